/* What a call of rmrt_step() costs: in a rank of rmd's, and outside of rmd. Median of several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rm/rmrt.h"

enum { RUNS = 9 };
#define CALLS UINT64_C(20000000)

/* Of its own processor time. */
static double now_nsec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

/* Nanoseconds a call: the median, and the spread. */
static double measure(const char *where) {
        double runs[RUNS];

        for (int i = 0; i < RUNS; i++) {
                double begin = now_nsec();

                for (uint64_t k = 1; k <= CALLS; k++)
                        (void) rmrt_step(k, CALLS);
                runs[i] = (now_nsec() - begin) / (double) CALLS;
        }
        qsort(runs, RUNS, sizeof(*runs), compare);
        (void) printf("rmrt_step %s: %.1f ns (%.1f to %.1f)\n", where, runs[RUNS / 2], runs[0], runs[RUNS - 1]);
        return runs[RUNS / 2];
}

int main(void) {
        double managed;

        (void) unsetenv("RM_JOB_ID");
        (void) rmrt_init();
        (void) measure("outside of rmd");
        (void) setenv("RM_JOB_ID", "1", 1);
        (void) setenv("PMIX_RANK", "0", 1);
        (void) rmrt_init();
        managed = measure("in a rank");
        rmrt_finalize();
        return managed <= 100 ? 0 : 1;
}
