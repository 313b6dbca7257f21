/* Objects whose time is over: jobs over their time limit, ended ones that have been kept for long
 * enough, and drained nodes. Pure. */
#ifndef RM_LEADER_EXPIRY_H
#define RM_LEADER_EXPIRY_H

#include "daemon/state/state_index.h"

/* The first running job that is over its time limit at `now_usec` (real time) and not being
 * cancelled; 0: none. */
uint64_t expiry_over_limit(const Rm__State *state, uint64_t now_usec);
/* The first ended job that is to be forgotten: it ended `keep_usec` ago, or there are many and its
 * output was taken; 0: none. */
uint64_t expiry_to_forget(const Rm__State *state, uint64_t keep_usec, uint64_t now_usec);
/* The first drained node that is UP and at `now_usec` was to be empty but is not, which has not
 * been told yet; NULL: none. */
const Rm__Node *expiry_overdue_node(const struct state_index *index, uint64_t now_usec);

#endif
