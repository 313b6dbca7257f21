/* Why a move that a round wants is begun later: after failures, after a request, after a move by
 * choice. Pure. */
#ifndef RM_LEADER_COOLDOWN_H
#define RM_LEADER_COOLDOWN_H

#include "daemon/state/state.h"

/* The longest that a destination is avoided. */
#define COOLDOWN_DESTINATION_MAX_USEC 60000000U

enum cooldown {
        COOLDOWN_NONE,
        COOLDOWN_REQUEST, /* a user or administrator moved something of the job: it is not moved by choice for a while */
        COOLDOWN_CHOICE,  /* the capsule was moved by choice, and that move has not paid yet */
        COOLDOWN_FAILURE, /* its last move failed a moment ago */
        COOLDOWN_REFUSED, /* it was not moved for a reason of its own, and has not changed since */
};

/* For a move of this capsule with this cause, `now_usec` in real time. A move by choice pays within
 * `horizon_usec`. */
enum cooldown cooldown_of(const Rm__State *state, uint64_t job, int32_t capsule, Rm__MoveCause cause, uint64_t horizon_usec,
                          uint64_t now_usec);
/* Until when no more groups of this job are to go to `node`, after moves to it that failed, at
 * least two in a row; 0: now. */
uint64_t cooldown_destination_until(const Rm__State *state, uint64_t job, const char *node);
/* When a capsule is tried again that was refused for a reason of its own; 0: now. NULL ok. */
uint64_t cooldown_refused_until(const Rm__Refusal *refusal);
/* A text for people; NULL for COOLDOWN_NONE. */
const char *cooldown_text(enum cooldown cooldown);

#endif
