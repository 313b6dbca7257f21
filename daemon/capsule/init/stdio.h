/* Standard streams of the payload: FIFOs in the capsule, pumped to and from the node. */
#ifndef RM_DAEMON_CAPSULE_INIT_STDIO_H
#define RM_DAEMON_CAPSULE_INIT_STDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/capsule/init/core.h"
#include "proto/capsule.pb-c.h"

struct init;
struct rm_error;
struct stdio;

#define STDIO_DIR "/run/rm/io"

/*
 * No byte may be lost or repeated by a move. CRIU carries what is inside a FIFO only when somebody
 * in the payload can read it: so that holds for input, and output is emptied into the spool once
 * the payload stands still. PID 1 counts what went through, and pumps nothing from then on until
 * the payload runs again, here or elsewhere.
 */
int stdio_create(struct init *init, struct stdio **ret, struct rm_error *error);

/* Opens the FIFOs as descriptors 0 to 2, in the payload's child, as its user. 0 or negative
 * errno. */
int stdio_attach(bool stdin_null);
/* Must be called in PID 1 once the payload has opened them (after run or restore). */
void stdio_connected(struct stdio *stdio);

void stdio_pause(struct stdio *stdio);
void stdio_resume(struct stdio *stdio);
/* The payload stands still or is gone: all its output goes to the spool, and then nothing is
 * pumped. What processes of its owner's write that are not of the payload holds it up no longer
 * than what the FIFO has room for. -ENOSPC etc. */
int stdio_empty(struct stdio *stdio);

void stdio_input(struct stdio *stdio, struct ticket ticket, uint64_t offset, const void *data, size_t size);
void stdio_set_null(struct stdio *stdio);
void stdio_ack(struct stdio *stdio, uint32_t stream, uint64_t offset);

/* Reports how far the spools reach where rmd does not know yet. */
void stdio_report(struct stdio *stdio, bool all);
/* Time (now_usec) at which stdio_retry wants to be called; UINT64_MAX: not. */
uint64_t stdio_deadline(const struct stdio *stdio);
void stdio_retry(struct stdio *stdio);

/* Two of each: stdout, stderr. */
void stdio_get(const struct stdio *stdio, uint64_t ret_begin[2], uint64_t ret_end[2], uint64_t *ret_stdin_offset,
               bool *ret_stdin_closed);
void stdio_get_saved_state(const struct stdio *stdio, Capsule__SavedState *saved_state);
/* Must be called before the restore. */
int stdio_set_saved_state(struct stdio *stdio, const Capsule__SavedState *saved_state);

#endif
