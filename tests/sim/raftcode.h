/* The records that raft stores; and its messages, for people. */
#ifndef RM_TESTS_SIM_RAFTCODE_H
#define RM_TESTS_SIM_RAFTCODE_H

#include <raft.h>
#include <stdint.h>

/* A buffer that grows; zeroed: empty. free(data). */
struct bytes {
        uint8_t *data;
        size_t n;
};

/* Writes a line for people. */
void message_describe(const struct raft_message *message, char *buf, size_t buf_bytes);

void entry_pack(const struct raft_entry *entry, struct bytes *ret);
/* `n` entries that entry_pack() made, from records, into one batch. */
struct raft_entry *entries_unpack(const struct bytes *records, size_t n);

void snapshot_pack(const struct raft_snapshot *snapshot, struct bytes *ret);
/* Raft's. */
struct raft_snapshot *snapshot_unpack(const void *data);

#endif
