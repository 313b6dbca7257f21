/* Measures the cost of a call of rmrt_step(): in a rank of rmd's, and outside of rmd; and of
 * rmrt_checkpoint_here(), when nothing is near. Median of several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rm/rmrt.h"

enum { RUNS = 9 };
#define CALLS UINT64_C(20000000)

/* The processor time of this process. */
static double now_nsec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void step(uint64_t k) {
        (void) rmrt_step(k, CALLS);
}

static void place(uint64_t k) {
        (void) k;
        rmrt_checkpoint_here();
}

/* Nanoseconds a call: the median, and the spread. */
static double measure(const char *what, void (*call)(uint64_t k)) {
        double runs[RUNS];

        for (int i = 0; i < RUNS; i++) {
                double begin = now_nsec();

                for (uint64_t k = 1; k <= CALLS; k++)
                        call(k);
                runs[i] = (now_nsec() - begin) / (double) CALLS;
        }
        qsort(runs, RUNS, sizeof(*runs), compare);
        (void) printf("%s: %.1f ns (%.1f to %.1f)\n", what, runs[RUNS / 2], runs[0], runs[RUNS - 1]);
        return runs[RUNS / 2];
}

int main(void) {
        double steps, places;

        (void) unsetenv("RM_JOB_ID");
        (void) rmrt_init();
        (void) measure("rmrt_step outside of rmd", step);
        (void) setenv("RM_JOB_ID", "1", 1);
        (void) setenv("PMIX_RANK", "0", 1);
        (void) rmrt_init();
        steps = measure("rmrt_step in a rank", step);
        places = measure("rmrt_checkpoint_here in a rank", place);
        rmrt_finalize();
        return steps <= 100 && places <= 100 ? 0 : 1;
}
