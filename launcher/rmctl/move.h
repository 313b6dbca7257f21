/* The common functions of rmctl's verbs about moves. */
#ifndef RM_LAUNCHER_RMCTL_MOVE_H
#define RM_LAUNCHER_RMCTL_MOVE_H

#include "launcher/rmctl/verb.h"

/* The moves of a job (0: of all) after this one that rmd remembers. */
int move_list(struct call *call, uint64_t job, uint64_t since, Rm__LocalReply **ret_reply);

/* Wait until move `move` of `job` is committed; an error with its text when it is aborted.
 * `timeout_usec` 0: forever. */
int move_wait(struct call *call, uint64_t job, uint64_t move, uint64_t timeout_usec);

#endif
