/* The program socket: a socket in the capsule at which its programs can speak
 * to PID 1, and so to rmd, by librmrt. The way back is notice.h.
 *
 * Of datagrams, since a connection out of the capsule could not be dumped; a program that does not
 * read, or sends half a message, holds up nobody. What is not taken in time stays in the socket's
 * queue, and when that is full the program's call fails. */
#ifndef RM_DAEMON_CAPSULE_INIT_PROGRAM_SOCKET_H
#define RM_DAEMON_CAPSULE_INIT_PROGRAM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct program_socket;
struct init;
struct ranks;
struct rm_error;

/* Makes the program socket, before the payload is there. Messages that it takes are kept in
 * `ranks`, which it uses as long as the process lives. */
int program_socket_create(struct init *init, struct ranks *ranks, struct program_socket **ret, struct rm_error *error);
/* Tells rmd, which has come anew, what is known. */
void program_socket_resync(struct program_socket *program_socket);
/* Takes all that is there now, so that what a rank said before it ended is known. */
void program_socket_take_all(struct program_socket *program_socket);
/* Returns when program_socket_timeout() is to be called; UINT64_MAX: not before there is
 * something. */
uint64_t program_socket_deadline(const struct program_socket *program_socket);
void program_socket_timeout(struct program_socket *program_socket);

/* Puts what frozen ranks have said, and do not say again, into the carry.
 * program_socket_saved_state_finish() frees what is in it. */
void program_socket_saved_state(struct program_socket *program_socket, Capsule__SavedState *saved_state);
void program_socket_saved_state_finish(Capsule__SavedState *saved_state);
void program_socket_set_saved_state(struct program_socket *program_socket, const Capsule__SavedState *saved_state);

#endif
