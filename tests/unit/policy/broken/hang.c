#include "tests/unit/policy/broken/broken.h"

static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        for (volatile int i = 0;; i++)
                if (i < 0)
                        return place_nothing(self, snapshot, run, plan);
}

BROKEN_POLICY("hang", place);
