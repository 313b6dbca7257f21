#include <errno.h>

#include "tests/unit/policy/broken/broken.h"

static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        return place_nothing(self, snapshot, run, plan) - ENOSPC;
}

BROKEN_POLICY("gives-up", place);
