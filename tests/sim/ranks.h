/* The ranks of a job with ranks in reserve: librmrt's own machine (rtlib/resize_state.c) in each,
 * and a program that does what programs do. It listens or not, answers at once, late or never,
 * makes the change or stays as it is; its ranks meet before a change is made, as they do in a
 * collective call of MPI. */
#ifndef RM_TESTS_SIM_RANKS_H
#define RM_TESTS_SIM_RANKS_H

#include "proto/program.pb-c.h"
#include "tests/sim/capsules_internal.h"

/* The payload of a group has begun, and its PID 1 knows which ranks they are; nothing if not both,
 * or its job has no ranks in reserve. */
void ranks_start(struct copy *copy);
/* The payload goes on from a checkpoint. */
void ranks_restore(struct payload *payload, const struct saved *saved);
/* A group whose program ends when rank 0 does. */
bool ranks_follow(const struct payload *payload);
/* Words that were lost are not said again at once. */
void ranks_receive(struct copy *copy, const Program__Resize *word);
/* The copy is frozen from now on: none of its ranks may compute. */
void ranks_check_held(const struct copy *copy);
/* The program of the payload has come to its end. False: it waits for others. */
bool ranks_may_end(const struct payload *payload);
void ranks_finish(struct payload *payload);

#endif
