/* Sessions of proposers: how a command that was sent to several leaders is applied once (Ongaro
 * 2014, section 6.3).
 *
 * A proposer is one start of a node's rmd, its instance. It numbers its proposals, and each command
 * says in its Origin whose it is. The state keeps per proposer the number of the last command that
 * was applied, and the last results: a command that comes again is answered with what it gave
 * before, and changes nothing. A proposer has at most STATE_RESULTS_KEPT numbers open, so that the
 * results of all that it may ask for are there.
 *
 * Commands of one proposer are applied in the order of their numbers. One that overtakes another
 * which is still to come is refused with -EILSEQ, and is to be sent again. Numbers may be left out:
 * of proposals that were given up, and never come.
 *
 * Of each node the last few instances are known. A command of an instance that is not is refused
 * with -ESTALE, since it may have been applied, unless it says that it is the first of its
 * instance. */
#ifndef RM_STATE_STATE_SESSION_H
#define RM_STATE_STATE_SESSION_H

#include "proto/state.pb-c.h"

#define STATE_RESULTS_KEPT 32U
#define STATE_SESSIONS_PER_NODE 4U

/* NULL: there is none. */
Rm__Session *state_session(const Rm__State *state, const char *node, uint64_t instance);
/* NULL: that command was not applied, or its result is not kept any more. */
const Rm__SessionResult *session_result(const Rm__Session *session, uint64_t sequence);

#endif
