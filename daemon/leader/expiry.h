/* Which jobs have had their time: those over their time limit, and ended ones that have been kept for long enough. Pure. */
#ifndef RM_LEADER_EXPIRY_H
#define RM_LEADER_EXPIRY_H

#include "daemon/cluster/state.h"

/* The first running job that is over its time limit at `now_usec` (real time) and not being cancelled; 0: none. */
uint64_t expiry_over_limit(const Rm__State *state, uint64_t now_usec);
/* The first ended job that is to be forgotten: it ended `keep_usec` ago, or there are many and its output was taken; 0: none. */
uint64_t expiry_to_forget(const Rm__State *state, uint64_t keep_usec, uint64_t now_usec);

#endif
