#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/policy/broken/broken.h"

static void *read_something(void *arg) {
        FILE *f = fopen("/proc/self/status", "re");
        void *memory = malloc(1U << 20);

        *(int *) arg = f && memory && fgetc(f) != EOF;
        free(memory);
        if (f)
                (void) fclose(f);
        return arg;
}

/* Nothing is wrong with it: it does what solvers may do, be it confined or not. */
static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        pthread_t threads[3];
        int read[3] = { 0 };

        for (int i = 0; i < 3; i++)
                if (pthread_create(&threads[i], NULL, read_something, &read[i]) != 0)
                        return -EAGAIN;
        for (int i = 0; i < 3; i++)
                if (pthread_join(threads[i], NULL) != 0 || !read[i])
                        return -EIO;
        return place_nothing(self, snapshot, run, plan);
}

BROKEN_POLICY("threads", place);
