/* Jobs that grow and shrink: passes on what ranks and rmd say (parking_state.h), and lets a group
 * stand still all ranks of which are parked. Other code that stops and starts the payload does not
 * see that: to it a parked group runs. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_PARK_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"
#include "proto/program.pb-c.h"

struct core;
struct park;

/* Creates the parking of the group. Never fails; the result lives as long as the process. */
struct park *park_create(struct core *core);

/* Takes an order of rmd. */
void park_order(struct park *park, const Capsule__ResizeOrder *order);
/* Takes a word from a rank, or from a program that claims to be one. */
void park_receive(struct park *park, const Program__Resize *word);
/* Tells rmd all that is known. */
void park_resync(const struct park *park);

/* Does the payload stand still since the group is parked? Nobody else thaws it then. NULL ok. */
bool park_holds(const struct park *park);
/* There is something for the group to do: a parked one runs for a while. */
void park_stir(struct park *park);
/* A move or a checkpoint begins to track the group's memory, for which the group must run: one that
 * does is not frozen for some seconds. */
void park_rest(struct park *park);
/* The payload was stopped otherwise, and runs again. */
void park_scan(struct park *park);
/* The payload is no more. */
void park_forget(struct park *park);

/* Returns the carry for the other end of a move: free with capsule__parking__free_unpacked(); NULL:
 * there is nothing. */
Capsule__Parking *park_saved_state(const struct park *park);
void park_set_saved_state(struct park *park, const Capsule__Parking *saved_state);

/* Returns when park_timeout() is to be called; UINT64_MAX: never. */
uint64_t park_deadline(const struct park *park);
void park_timeout(struct park *park);

#endif
