/* Standard streams of the payload: FIFOs in the capsule, pumped to and from the node. */
#ifndef RM_DAEMON_CAPSULE_INIT_STDIO_H
#define RM_DAEMON_CAPSULE_INIT_STDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/capsule/init/ctl.h"
#include "proto/capsule.pb-c.h"

struct init;
struct rm_error;
struct stdio;

#define STDIO_DIR "/run/rm/io"

/*
 * CRIU carries what is inside a FIFO; PID 1 counts what went through. So that no byte is lost or repeated, nothing is
 * pumped from the moment the payload is frozen until it runs again, here or elsewhere.
 */
int stdio_create(struct init *init, struct stdio **ret, struct rm_error *error);

/* In the payload's child, as its user: opens the FIFOs as descriptors 0 to 2. 0 or negative errno. */
int stdio_attach(bool stdin_null);
/* In PID 1 once the payload has opened them (after run or restore). */
void stdio_connected(struct stdio *stdio);

void stdio_pause(struct stdio *stdio);
void stdio_resume(struct stdio *stdio);
/* The payload is gone: all that is left goes to the spool. */
void stdio_drain(struct stdio *stdio);

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
void stdio_get_carry(const struct stdio *stdio, Capsule__Carry *carry);
/* Before the restore. */
int stdio_set_carry(struct stdio *stdio, const Capsule__Carry *carry);

#endif
