#include <stdio.h>
#include <string.h>

#include "tests/unit/policy/broken/broken.h"

/* Right, but it prints, and its texts are no texts. */
static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        for (int i = 0; i < 100000; i++)
                (void) printf("{\"policy\":\"I am the plan\"}\n");
        memset(plan->method, 0xff, sizeof(plan->method));
        for (uint32_t j = 0; j < plan->n_jobs; j++)
                memset(plan->jobs[j].reason, '\n', sizeof(plan->jobs[j].reason));
        return place_nothing(self, snapshot, run, plan);
}

BROKEN_POLICY("noisy", place);
