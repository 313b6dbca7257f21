/* The door: a socket in the capsule at which its programs can speak to PID 1, and so to rmd, by librmrt.
 *
 * Of datagrams, since a connection out of the capsule could not be dumped; a program that does not read, or sends half a message, holds up nobody. What
 * is not taken in time stays in the socket's queue, and when that is full the program's call fails. */
#ifndef RM_DAEMON_CAPSULE_INIT_DOOR_H
#define RM_DAEMON_CAPSULE_INIT_DOOR_H

#include <stdint.h>

struct door;
struct init;
struct rm_error;

/* Before the payload is there. */
int door_create(struct init *init, struct door **ret, struct rm_error *error);
/* Tells rmd, which has come anew, what is known. */
void door_greet(const struct door *door);
/* When door_timeout() is to be called; UINT64_MAX: not before there is something. */
uint64_t door_deadline(const struct door *door);
void door_timeout(struct door *door);

#endif
