/* A voter: libraft and the state of the cluster on a host of the virtual world. It answers requests of clients, or hands them to the leader. */
#ifndef RM_TESTS_SIM_REPLICA_H
#define RM_TESTS_SIM_REPLICA_H

#include "tests/sim/checks.h"
#include "tests/sim/disk.h"
#include "tests/sim/network.h"

struct replica;

enum packet_kind { PACKET_RAFT, PACKET_REQUEST, PACKET_ANSWER };

/* The packed command follows. */
struct request_packet {
        enum packet_kind kind;
        unsigned client; /* its host */
        uint32_t operation;
        unsigned handed_on; /* so many times */
};

enum outcome {
        OUTCOME_DONE, /* it is in the log, and `code` is what applying it gave */
        OUTCOME_UNKNOWN, /* it may be, or come to be, in the log or not */
        OUTCOME_REFUSED, /* it is not in the log: there is no leader, or no room */
};

struct answer_packet {
        enum packet_kind kind;
        uint32_t operation;
        enum outcome outcome;
        int code;
        uint64_t index, created;
};

struct replica_config {
        unsigned number; /* of its host */
        unsigned n_voters; /* their hosts have the numbers from 0 */
        bool pre_vote;
        unsigned snapshot_entries, trailing_entries;
};

/* Its process is not running yet. Host and disk are its own. */
struct replica *replica_create(struct timeline *t, struct checks *checks, const struct replica_config *config);
/* Before its process runs. */
void replica_connect(struct replica *v, struct network *network);
void replica_destroy(struct replica *v); /* NULL ok */

struct host *replica_host(const struct replica *v);
struct disk *replica_disk(const struct replica *v);
bool replica_leads(const struct replica *v);
/* NULL: its process does not run. Borrowed, until the next event. */
const Rm__State *replica_state(const struct replica *v);
/* Of the last entry that was applied; 0: its process does not run. */
uint64_t replica_applied(const struct replica *v);

#endif
