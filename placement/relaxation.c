#include "placement/relaxation.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- sorting ---- */

static int compare_classes(const void *a, const void *b) {
        const struct node_class *x = a, *y = b;

        if (x->penalty != y->penalty)
                return x->penalty < y->penalty ? -1 : 1;
        return x->cores < y->cores ? -1 : x->cores > y->cores;
}

static double key_of(const struct node_class *class, int64_t distribution_weight) {
        return (double) class->penalty + (double) distribution_weight / class->cores;
}

static int compare_keys(const void *a, const void *b, void *context) {
        int64_t weight = *(const int64_t *) context;
        double x = key_of(a, weight), y = key_of(b, weight);

        if (x != y)
                return x < y ? -1 : 1;
        return compare_classes(a, b);
}

static int compare_demands(const void *a, const void *b) {
        const struct job_demand *x = a, *y = b;

        if (x->priority != y->priority)
                return x->priority > y->priority ? -1 : 1;
        return x->job < y->job ? -1 : x->job > y->job;
}

/* ---- making ---- */

/* Behind the `n` that are there, or, when it is as the last of them, into that one: neighbours are
 * often alike. How many there are now. */
static uint32_t add_class(struct node_class *classes, uint32_t n, const struct node_class *class) {
        if (n > 0 && compare_classes(&classes[n - 1], class) == 0) {
                classes[n - 1].nodes += class->nodes;
                return n;
        }
        classes[n] = *class;
        return n + 1;
}

static int list_classes(struct relaxation *relaxation, const struct rm_snapshot *snapshot) {
        uint64_t *pinned = calloc(snapshot->n_nodes + 1u, sizeof(*pinned));
        uint32_t n = 0;

        relaxation->classes = calloc(snapshot->n_nodes + 1u, sizeof(*relaxation->classes));
        if (!relaxation->classes || !pinned) {
                free(pinned);
                return -ENOMEM;
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                        if (snapshot->jobs[j].groups[g].node >= 0 && (snapshot->jobs[j].groups[g].flags & RM_GROUP_PINNED))
                                pinned[snapshot->jobs[j].groups[g].node] += snapshot->jobs[j].groups[g].ranks;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                uint64_t cores = snapshot->nodes[s].cores > pinned[s] ? snapshot->nodes[s].cores : pinned[s];
                struct node_class class = { .penalty = snapshot->nodes[s].penalty, .cores = (uint32_t) cores, .nodes = 1 };

                if (cores > 0)
                        n = add_class(relaxation->classes, n, &class);
        }
        free(pinned);
        qsort(relaxation->classes, n, sizeof(*relaxation->classes), compare_classes);
        for (uint32_t i = 0; i < n; i++) {
                struct node_class class = relaxation->classes[i];

                relaxation->n_classes = add_class(relaxation->classes, relaxation->n_classes, &class);
        }
        return 0;
}

static int list_demands(struct relaxation *relaxation, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        relaxation->demands = calloc(snapshot->n_jobs + 1u, sizeof(*relaxation->demands));
        if (!relaxation->demands)
                return -ENOMEM;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (plan->jobs[j].decision == RM_PLACE)
                        relaxation->demands[relaxation->n_demands++] = (struct job_demand) {
                                .job = j, .ranks = snapshot->jobs[j].ranks, .priority = snapshot->jobs[j].priority
                        };
        qsort(relaxation->demands, relaxation->n_demands, sizeof(*relaxation->demands), compare_demands);
        return 0;
}

/* The scale is as fine as sums of costs, which stay below 2^53, allow: prices times cores of all
 * nodes must fit too. */
static int choose_shift(const struct relaxation *relaxation, int64_t weight) {
        double most = 1, cores = 1;
        int shift = 0;

        for (uint32_t i = 0; i < relaxation->n_classes; i++) {
                most = fmax(most, key_of(&relaxation->classes[i], weight) + (double) weight);
                cores += (double) relaxation->classes[i].cores * relaxation->classes[i].nodes;
        }
        if (relaxation->n_demands > 0)
                most *= (double) relaxation->demands[0].priority + 1;
        for (uint32_t i = 0; i < relaxation->n_demands; i++)
                cores += relaxation->demands[i].ranks;
        while (shift < 20 && ldexp(most * cores, shift + 1) < 0x1p60)
                shift++;
        return shift;
}

/* Along the classes from the last used one up: a core costs what its job saves by being here and
 * not on the next class. */
static void set_prices(struct relaxation *relaxation, int64_t weight) {
        uint32_t *owner = calloc(relaxation->n_classes + 1u, sizeof(*owner)), t = 0, used = 0;
        uint64_t left = relaxation->n_demands > 0 ? relaxation->demands[0].ranks : 0;
        double price = 0;

        if (!owner) /* prices of 0 will do */
                return;
        for (uint32_t i = 0; i < relaxation->n_classes && t < relaxation->n_demands; i++) {
                uint64_t space = (uint64_t) relaxation->classes[i].cores * relaxation->classes[i].nodes;

                owner[i] = t;
                used = i;
                while (t < relaxation->n_demands && space >= left) {
                        space -= left;
                        if (++t < relaxation->n_demands)
                                left = relaxation->demands[t].ranks;
                }
                left -= t < relaxation->n_demands ? space : 0;
        }
        for (uint32_t i = used; i-- > 0;) {
                double step = key_of(&relaxation->classes[i + 1], weight) - key_of(&relaxation->classes[i], weight);

                price += step * (double) relaxation->demands[owner[i + 1]].priority;
                relaxation->classes[i].price = llround(ldexp(price, relaxation->shift));
        }
        free(owner);
}

int relaxation_init(struct relaxation *relaxation, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        int64_t weight = snapshot->params.distribution_weight;
        int r;

        *relaxation = (struct relaxation) { 0 };
        if ((r = list_classes(relaxation, snapshot)) < 0 || (r = list_demands(relaxation, snapshot, plan)) < 0)
                return r;
        qsort_r(relaxation->classes, relaxation->n_classes, sizeof(*relaxation->classes), compare_keys, &weight);
        relaxation->shift = choose_shift(relaxation, weight);
        set_prices(relaxation, weight);
        return 0;
}

void relaxation_finish(struct relaxation *relaxation) {
        free(relaxation->classes);
        free(relaxation->demands);
        *relaxation = (struct relaxation) { 0 };
}

/* ---- the bound ---- */

/* The least that a rank of the job costs, scaled, where a node costs at least its part of the
 * distribution weight. */
static int64_t rank_cost(const struct relaxation *relaxation, const struct job_demand *demand, int64_t weight) {
        int64_t scale = (int64_t) 1 << relaxation->shift, least = INT64_MAX;

        for (uint32_t i = 0; i < relaxation->n_classes; i++) {
                const struct node_class *class = &relaxation->classes[i];
                int64_t together = class->cores < demand->ranks ? class->cores : demand->ranks;
                int64_t cost =
                        demand->priority * class->penalty * scale + demand->priority * weight * scale / together + class->price;

                least = cost < least ? cost : least;
        }
        return least;
}

uint32_t relaxation_find(const struct relaxation *relaxation, int64_t penalty, uint32_t cores) {
        uint32_t i = 0;

        while (i < relaxation->n_classes && (relaxation->classes[i].penalty != penalty || relaxation->classes[i].cores != cores))
                i++;
        return i;
}

int64_t relaxation_bound(const struct relaxation *relaxation, int64_t distribution_weight) {
        int64_t sum = 0, last_cost = 0;
        const struct job_demand *last = NULL;
        uint32_t most = 0;

        for (uint32_t i = 0; i < relaxation->n_classes; i++) {
                sum -= relaxation->classes[i].price * relaxation->classes[i].cores * relaxation->classes[i].nodes;
                most = relaxation->classes[i].cores > most ? relaxation->classes[i].cores : most;
        }
        for (uint32_t i = 0; i < relaxation->n_demands && relaxation->n_classes > 0; i++) {
                const struct job_demand *demand = &relaxation->demands[i];

                if (!last || last->priority != demand->priority ||
                    (last->ranks != demand->ranks && (last->ranks < most || demand->ranks < most)))
                        last_cost = rank_cost(relaxation, demand, distribution_weight);
                last = demand;
                sum += last_cost * demand->ranks;
        }
        return -(-sum >> relaxation->shift);
}
