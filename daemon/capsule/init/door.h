/* The program socket ("door" in this code): a socket in the capsule at which its programs can speak
 * to PID 1, and so to rmd, by librmrt. The way back is notice.h.
 *
 * Of datagrams, since a connection out of the capsule could not be dumped; a program that does not
 * read, or sends half a message, holds up nobody. What is not taken in time stays in the socket's
 * queue, and when that is full the program's call fails. */
#ifndef RM_DAEMON_CAPSULE_INIT_DOOR_H
#define RM_DAEMON_CAPSULE_INIT_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct door;
struct init;
struct ranks;
struct rm_error;

/* Makes the program socket, before the payload is there. Messages that it takes are kept in
 * `ranks`, which it uses as long as the process lives. */
int door_create(struct init *init, struct ranks *ranks, struct door **ret, struct rm_error *error);
/* Tells rmd, which has come anew, what is known. */
void door_greet(struct door *door);
/* Takes all that is there now, so that what a rank said before it ended is known. */
void door_take_all(struct door *door);
/* Returns when door_timeout() is to be called; UINT64_MAX: not before there is something. */
uint64_t door_deadline(const struct door *door);
void door_timeout(struct door *door);

/* Puts what frozen ranks have said, and do not say again, into the carry. door_carry_finish() frees
 * what is in it. */
void door_carry(struct door *door, Capsule__Carry *carry);
void door_carry_finish(Capsule__Carry *carry);
void door_set_carry(struct door *door, const Capsule__Carry *carry);

#endif
