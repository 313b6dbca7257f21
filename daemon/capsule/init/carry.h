/* The carry is what travels with a capsule beside its image: read from the frozen source, set at
 * the destination before the restore, and what the restored processes are compared with. */
#ifndef RM_DAEMON_CAPSULE_INIT_SAVED_STATE_H
#define RM_DAEMON_CAPSULE_INIT_SAVED_STATE_H

#include <stdbool.h>

#include "daemon/capsule/init/core.h"
#include "proto/capsule.pb-c.h"

struct init;
struct rm_error;

/* Reads it and sends it as the reply of `ticket`. For a `checkpoint` it tells how files are, and
 * files that are written in place are copied to the directory `files_fd` (-1: not), see
 * rollback_copy(). 0, or negative, and then there was no reply. */
int saved_state_send(struct init *init, struct ticket ticket, bool checkpoint, int files_fd, uint64_t files_max_bytes,
                     struct rm_error *error);

/* Sets output, System V objects, interrupted calls and which ranks listen. -EBADMSG and others: the
 * data is damaged. */
int saved_state_set(struct init *init, const Capsule__SavedState *saved_state, struct rm_error *error);

/* A copy; free with capsule__saved_state__free_unpacked(). */
Capsule__SavedState *saved_state_copy(const Capsule__SavedState *saved_state);

/* Are the restored, frozen processes what `carry` says of the dumped ones, and may their owner open
 * what they have open? `moved`: and do they write to the same files? 0, -EPERM or -EXDEV. */
int saved_state_verify(const struct init *init, const Capsule__SavedState *saved_state, bool moved, struct rm_error *error);

#endif
