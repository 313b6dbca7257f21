/* Which nodes keep copies of checkpoints. Pure. */
#ifndef RM_LEADER_PARTNERS_H
#define RM_LEADER_PARTNERS_H

#include "daemon/state/state.h"

#define PARTNERS_AWAY_USEC (UINT64_C(60) * 1000000) /* a node that is DOWN for so long counts as lost, with what it has */

/* "n2 n4", at most `copies` of them, for what is captured on `node`: malloc'ed. */
char *partners_choose(const Rm__State *state, const Rm__Job *job, const char *node, uint32_t copies);

/* Another node for a part that fewer than 1 + `copies` nodes have or get; NULL: there are enough,
 * or there is no other, or no node that has it is up. `now`: real time. */
const char *partners_another(const Rm__State *state, const Rm__Job *job, const Rm__CheckpointPart *part, uint32_t copies,
                             uint64_t now);

#endif
