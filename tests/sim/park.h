/* The work of a capsule's PID 1 for jobs that grow and shrink (daemon/capsule/init/ranks/park.c),
 * over its own parking_state.c: passes on messages, and freezes a group all ranks of which are
 * parked. */
#ifndef RM_TESTS_SIM_PARK_H
#define RM_TESTS_SIM_PARK_H

#include "proto/program.pb-c.h"
#include "tests/sim/capsules_internal.h"

/* An order from rmd. */
void park_order(struct copy *copy, const Capsule__ResizeOrder *order);
/* A message from a rank. True: it is answered. */
bool park_receive(struct copy *copy, const Program__Resize *word, Program__Resize *ret_answer);
/* Some operation is to be done in the copy: a parked one runs for a while. */
void park_stir(struct copy *copy);
/* The payload was stopped otherwise, and runs again. */
void park_scan(struct copy *copy);
/* To the other end of a move, by way of the payload. */
void park_get_saved_state(struct copy *copy);
void park_set_saved_state(struct copy *copy);
void park_finish(struct copy *copy);

#endif
