/* The common functions of the verbs about checkpoints. */
#ifndef RM_LAUNCHER_RMCTL_CHECKPOINT_H
#define RM_LAUNCHER_RMCTL_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/rmctl/verb.h"

/* The first argument: "7.2"; `any`: "7" is good, too, and the number 0. */
int checkpoint_read_name(struct call *call, bool any, uint64_t *ret_job, uint64_t *ret_number);

/* An operation that a job has under way. */
struct checkpoint_awaited {
        const char *what; /* "checkpoint" */
        uint64_t job;
        uint64_t number;
        /* 0: it is under way, > 0: over, and told, < 0: it failed, and call->err is set. */
        int (*judge)(struct call *call, const Rm__Job *job, uint64_t number);
};

/* Looks at it until it is over; what `judge` has answered. -ETIMEDOUT after `timeout_usec` (0:
 * never); rmd may be away for a while. */
int checkpoint_wait(struct call *call, const struct checkpoint_awaited *awaited, uint64_t timeout_usec);

#endif
