#include "tests/unit/policy/broken/broken.h"

/* All jobs on the first node, as if memory were endless. */
static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        (void) self;
        (void) run;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                plan->jobs[j].decision = RM_PLACE;
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                        plan->jobs[j].group_node[g] = 0;
        }
        return 0;
}

BROKEN_POLICY("over-memory", place);
