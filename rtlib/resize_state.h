/* Growing and shrinking, as one rank sees it: what it says at the program socket, what it hears
 * there, and what follows. Without input and output; time is an argument.
 *
 * Rank 0 speaks for the active ranks, 0 .. `ranks` - 1, and each parked one for itself. A datagram
 * can be lost, since a move gives the capsule a new program socket: all is said again until it is
 * answered. No rank waits inside of MPI for one that rmd has not agreed to wake. */
#ifndef RM_RTLIB_RESIZE_STATE_H
#define RM_RTLIB_RESIZE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/program.pb-c.h"
#include "rm/rmrt.h"

enum resize_phase {
        RESIZE_FIXED, /* the job has no ranks to park */
        RESIZE_MEMBER, /* active, and not rank 0 */
        RESIZE_IDLE, /* rank 0 from here on: nothing is wanted */
        RESIZE_REQUESTED, /* rmd wants another number, and has not heard that the program can change */
        RESIZE_BEGUN, /* it has, and the ranks make the new communicator */
        RESIZE_MADE, /* they have, and rmd has not heard */
        RESIZE_FINISHING, /* the program ends, and rmd has not heard */
        RESIZE_FINISHED,
        RESIZE_PARKING, /* another rank from here on: parked, and rmd has not heard */
        RESIZE_PARKED,
        RESIZE_WOKEN, /* for a change that rank 0 may not make any more, since it ends */
        RESIZE_ENDED, /* the job ends */
        RESIZE_PHASES
};

struct resize {
        enum resize_phase phase;
        uint32_t rank;
        uint32_t ranks; /* active ones */
        uint64_t epoch; /* of the last change that this rank took part in */
        struct rmrt_change next;
        uint64_t send_usec; /* when it is said again; UINT64_MAX: not before something is heard */
};

/* `ranks` of the job are active at its start; 0: it has no others. */
void resize_state_init(struct resize *resize, uint32_t rank, uint32_t ranks);

/* Takes a notice of PID 1. A notice that does not fit the phase is passed over: it is old. */
void resize_state_receive(struct resize *resize, const Program__Resize *notice);

/* True: this is to be said now. */
bool resize_state_send(struct resize *resize, uint64_t now_usec, Program__Resize *ret);

/* The change to `next` has come to pass, in RESIZE_BEGUN or RESIZE_WOKEN. Other ranks that were
 * active in both, or leave, say so in RESIZE_MEMBER. */
void resize_state_made(struct resize *resize, const struct rmrt_change *change);

/* The rank is not one of the active ones, or not any more: it waits. */
void resize_state_park(struct resize *resize);

/* The program ends: rank 0 tells rmd. */
void resize_state_finish(struct resize *resize);

#endif
