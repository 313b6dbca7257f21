/* The words of a group's ranks about growing and shrinking (door.proto), and what rmd wants of the
 * ranks: from that follows what they are to be told, and whether the group can stand still. Pure.
 * What ranks say is the user's: any numbers. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_PARKING_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_PARKING_H

#include <stdbool.h>

#include "proto/capsule.pb-c.h"
#include "proto/door.pb-c.h"

struct parking;

struct parking *parking_create(void);
void parking_destroy(struct parking *parking); /* NULL ok */

/* This is how it is from now on. */
void parking_order(struct parking *parking, const Capsule__ResizeOrder *order);
/* A rank has said this. True: it is to be answered with `ret`. What no rank of this group can say
 * has no effect. */
bool parking_hear(struct parking *parking, const Door__Resize *word, Door__Resize *ret);

/* May the group stand still: are all its ranks parked, and is none to be told anything? */
bool parking_is_quiet(const struct parking *parking);
/* Does the group run although rmd has it parked, since not all of its ranks have said that they are
 * parked? Its program may know nothing of this. */
bool parking_is_awake(const struct parking *parking);
/* The group has been awake for long, or has not; true: that is new. */
bool parking_set_awake(struct parking *parking, bool awake);
/* Finds the next word that is to be told to a rank, and again until it answers; `at`: 0 at first.
 * False: that was all. */
bool parking_next(const struct parking *parking, size_t *at, Door__Resize *ret);

/* Returns what rank 0 has said, with what parking_set_awake() has noted; the parking's. */
const Capsule__ResizeSaid *parking_said(const struct parking *parking);

/* Returns the carry for the other end of a move: free with capsule__parking__free_unpacked(); NULL:
 * there is nothing. */
Capsule__Parking *parking_carry(const struct parking *parking);
void parking_set_carry(struct parking *parking, const Capsule__Parking *carry);

#endif
