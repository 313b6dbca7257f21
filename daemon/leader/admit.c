#include "daemon/leader/admit.h"

#include <stdlib.h>

#include "common/util.h"

static int compare(const void *a, const void *b) {
        const struct admit_job *x = *(const struct admit_job *const *) a, *y = *(const struct admit_job *const *) b;

        if (x->runs != y->runs)
                return x->runs ? -1 : 1;
        if (x->too_large != y->too_large)
                return x->too_large ? 1 : -1;
        if (x->priority != y->priority)
                return x->priority > y->priority ? -1 : 1;
        return x < y ? -1 : x > y; /* both of one array: in its order */
}

size_t admit_within(const struct admit_job *jobs, size_t n, long double limit, bool *ret_left_out) {
        cleanup_free const struct admit_job **order = xcalloc(n + 1, sizeof(*order));
        long double sum = 0;
        size_t left_out = 0;

        for (size_t i = 0; i < n; i++) {
                order[i] = &jobs[i];
                ret_left_out[i] = false;
                sum += jobs[i].weight;
        }
        if (sum <= limit)
                return 0;
        qsort(order, n, sizeof(*order), compare);
        sum = 0;
        for (size_t i = 0; i < n; i++) {
                if (sum + order[i]->weight <= limit) {
                        sum += order[i]->weight;
                        continue;
                }
                ret_left_out[order[i] - jobs] = true;
                left_out++;
        }
        return left_out;
}
