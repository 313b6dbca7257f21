/* How long there is to answer, less what is kept back. */
#ifndef RM_POLICIES_DISTRIB_DEADLINE_H
#define RM_POLICIES_DISTRIB_DEADLINE_H

#include "rm/policy.h"

struct deadline {
        const struct rm_policy_run *run;
        uint64_t reserve_usec; /* for writing the answer */
};

static inline int64_t deadline_left_usec(const struct deadline *deadline) {
        return (int64_t) deadline->run->left_usec(deadline->run->context) - (int64_t) deadline->reserve_usec;
}

#endif
