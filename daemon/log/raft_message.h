/* The messages of raft as bytes: a RaftMessage of peer.proto. Pure. */
#ifndef RM_LOG_RAFT_MESSAGE_H
#define RM_LOG_RAFT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <raft.h>

/* Beyond the largest entry and the largest state. */
#define RAFT_MESSAGE_MAX_BYTES ((size_t) 80 << 20)

/* `*ret_data` is the caller's to free(). -ENOMSG: a kind of message that is not known here; it may
 * be lost. */
int raft_message_pack(const struct raft_message *message, uint8_t **ret_data, size_t *ret_bytes);
/* Sets all of `ret` but server_id and server_address. What it points to comes from raft_malloc()
 * and is raft's, which takes it with the message; raft_message_drop() frees it if raft does not get
 * it. -EBADMSG: it is not what raft_message_pack() makes. */
int raft_message_unpack(const void *data, size_t size_bytes, struct raft_message *ret);
void raft_message_drop(struct raft_message *message);

#endif
