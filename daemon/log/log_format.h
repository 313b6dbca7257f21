/* How commands and states are stored in the log: as frames, filled up to a multiple of 8 bytes,
 * because raft_uv stores nothing else. */
#ifndef RM_LOG_LOG_FORMAT_H
#define RM_LOG_LOG_FORMAT_H

#include <stddef.h>

#include <raft.h>

#include "proto/state.pb-c.h"

#define LOG_ENTRY_MAX_BYTES (32U << 20)

/* Returns how many bytes the command takes in the log. */
size_t log_entry_bytes(const Rm__Command *command);
/* `ret->base` is raft's: it comes from raft_malloc(). -EMSGSIZE: the command is over
 * LOG_ENTRY_MAX_BYTES. */
int log_entry_pack(const Rm__Command *command, struct raft_buffer *ret);
/* NULL: it is damaged. Free with rm__command__free_unpacked(). */
Rm__Command *log_entry_unpack(const struct raft_buffer *buf);

/* `*ret_bufs`, an array of one, and its memory are raft's. */
void log_snapshot_pack(const Rm__State *state, struct raft_buffer **ret_bufs, unsigned *ret_n);
/* NULL: it is damaged. `buf` stays the caller's. */
Rm__State *log_snapshot_unpack(const struct raft_buffer *buf);

#endif
