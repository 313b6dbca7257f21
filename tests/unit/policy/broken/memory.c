#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/policy/broken/broken.h"

static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        for (;;) {
                char *p = malloc(16 << 20);

                if (!p)
                        return place_nothing(self, snapshot, run, plan) - ENOMEM;
                memset(p, 1, 16 << 20);
        }
}

BROKEN_POLICY("memory", place);
