/* libraft's raft_io on a host of the virtual world: its network, its disk, its clocks. */
#ifndef RM_TESTS_SIM_RAFTIO_H
#define RM_TESTS_SIM_RAFTIO_H

#include <raft.h>

#include "tests/sim/disk.h"
#include "tests/sim/network.h"

struct raftio;

/* Hands a packet to whoever sends for this process. `data` is valid during the call. */
typedef void (*raftio_send_fn)(void *userdata, unsigned to, const void *data, size_t size_bytes);

/* For one life of the process. Servers are the hosts, their ids one above their numbers, their addresses not used. */
struct raftio *raftio_create(struct host *host, struct disk *disk, raftio_send_fn send, void *userdata);
/* After raft_close() has come to its end. NULL ok. */
void raftio_destroy(struct raftio *rio);
/* Borrowed. */
struct raft_io *raftio_get(struct raftio *rio);

/* What another one's raftio has sent. */
void raftio_receive(struct raftio *rio, unsigned from, const void *data, size_t size_bytes);
/* The process is killed: raft_close() follows, and nothing has an effect any more. */
void raftio_kill(struct raftio *rio);

#endif
