/* By when work is to have left a node, and how long programs may be waited for before that. Times
 * are of the log's clock; UINT64_MAX: never. Pure. */
#ifndef RM_STATE_LEAVE_BY_H
#define RM_STATE_LEAVE_BY_H

#include <stdint.h>

#include "proto/state.pb-c.h"

/* The deadline of its drain; once it is critical, since then. NULL ok. */
uint64_t node_leave_by_usec(const Rm__Node *node);
/* The first of its nodes, or its time limit, if it is to be saved before that. */
uint64_t job_leave_by_usec(const Rm__State *state, const Rm__Job *job);

/* An eighth of the time that is left, and `most_usec` at most: most of it is for what there is to
 * do then. */
uint64_t leave_by_wait_usec(uint64_t leave_by_usec, uint64_t now_usec, uint64_t most_usec);

#endif
