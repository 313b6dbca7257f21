#include "tests/unit/policy/broken/broken.h"

static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        while (run->size > 0)
                (void) place_nothing(self, snapshot, run, plan);
        return 0;
}

BROKEN_POLICY("hang", place);
