/* The role of a node that keeps the log, or is about to: the log itself, and the last commands of
 * it for those that will follow this node if it leads. It is there for as long as the log is,
 * whichever node leads. */
#ifndef RM_CLUSTER_VOTER_H
#define RM_CLUSTER_VOTER_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "daemon/log/feed.h"
#include "daemon/log/raftlog.h"

struct voter;

struct voter_config {
        const char *name; /* this node's */
        const char *state_dir;
        uint32_t snapshot_entries; /* between snapshots; 0 = 1024 */
        unsigned election_msec; /* as in raftlog_config; 0 = 300 */
        uint64_t join_log; /* likewise */
};

/* Does `state_dir` hold a log? */
bool voter_exists(const char *state_dir);
/* As raftlog_discard(). */
int voter_discard(const char *state_dir, struct rm_error *err);
/* Open the log, or make one; as raftlog_open(), whose ops these are. */
int voter_open(struct event_base *base, const struct voter_config *config, const struct raftlog_ops *ops, void *userdata,
               struct voter **ret, struct rm_error *err);
/* As raftlog_close(). NULL ok. */
void voter_close(struct voter *voter);

/* As the functions of raftlog.h of these names. */
bool voter_leading(const struct voter *voter);
uint64_t voter_term(const struct voter *voter);
const char *voter_leader(const struct voter *voter);
uint64_t voter_log_id(const struct voter *voter);
bool voter_full(const struct voter *voter);
int voter_propose(struct voter *voter, const Rm__Command *command, raftlog_done_fn done, void *userdata);
void voter_receive(struct voter *voter, const char *node, const Rm__RaftPart *part);
uint64_t voter_id(const struct voter *voter);
enum raftlog_role voter_role(const struct voter *voter);
uint64_t voter_applied(const struct voter *voter);
/* The log, for changes of the voters; NULL: there is no voter. */
struct raftlog *voter_log(struct voter *voter);
/* The last commands that were applied. */
const struct feed *voter_feed(const struct voter *voter);

#endif
