/* The words of a group's ranks about growing and shrinking (program.proto), and what rmd wants of
 * the ranks: from that follows what they are to be told, and whether the group can stand still.
 * Pure. What ranks say is the user's: any numbers. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_PARKING_STATE_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_PARKING_STATE_H

#include <stdbool.h>

#include "proto/capsule.pb-c.h"
#include "proto/program.pb-c.h"

struct parking;

struct parking *parking_state_create(void);
void parking_state_destroy(struct parking *parking); /* NULL ok */

/* This is how it is from now on. */
void parking_state_order(struct parking *parking, const Capsule__ResizeOrder *order);
/* A rank has said this. True: it is to be answered with `ret`. What no rank of this group can say
 * has no effect. */
bool parking_state_receive(struct parking *parking, const Program__Resize *word, Program__Resize *ret);

/* May the group stand still: are all its ranks parked, and is none to be told anything? */
bool parking_state_is_quiet(const struct parking *parking);
/* Does the group run although rmd has it parked, since not all of its ranks have said that they are
 * parked? Its program may know nothing of this. */
bool parking_state_is_awake(const struct parking *parking);
/* The group has been awake for long, or has not; true: that is new. */
bool parking_state_set_awake(struct parking *parking, bool awake);
/* Finds the next word that is to be told to a rank, and again until it answers; `at`: 0 at first.
 * False: that was all. */
bool parking_state_next(const struct parking *parking, size_t *at, Program__Resize *ret);

/* Returns what rank 0 has said, with what parking_state_set_awake() has noted; the parking's. */
const Capsule__ResizeSaid *parking_state_reported(const struct parking *parking);

/* Returns the carry for the other end of a move: free with capsule__parking__free_unpacked(); NULL:
 * there is nothing. */
Capsule__Parking *parking_state_save(const struct parking *parking);
void parking_state_load(struct parking *parking, const Capsule__Parking *saved_state);

#endif
