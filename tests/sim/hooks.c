/* The checks of rmd's own code: the linker puts these functions in the place of those of
 * daemon/cluster (--wrap), which they call. */
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/leading.h"
#include "daemon/log/raftlog_internal.h"
#include "daemon/state/state_index.h"
#include "tests/sim/node.h"

void __real_state_apply(Rm__State *state, struct state_index *indexed, uint64_t index, const Rm__Command *command,
                        struct state_result *ret);
void __wrap_state_apply(Rm__State *state, struct state_index *indexed, uint64_t index, const Rm__Command *command,
                        struct state_result *ret);
int __real_raftlog_propose(struct raftlog *log, const Rm__Command *command, raftlog_done_fn done, void *userdata);
int __wrap_raftlog_propose(struct raftlog *log, const Rm__Command *command, raftlog_done_fn done, void *userdata);
int __real_leading_propose(struct leading *leading, Rm__Command *command, raftlog_done_fn done, void *context,
                           struct rm_error *err);
int __wrap_leading_propose(struct leading *leading, Rm__Command *command, raftlog_done_fn done, void *context,
                           struct rm_error *err);
void __real_leading_serve(struct leading *leading, const char *node, const Rm__Propose *propose);
void __wrap_leading_serve(struct leading *leading, const char *node, const Rm__Propose *propose);
int __real_raft_assign(struct raft *r, struct raft_change *req, raft_id id, int role, raft_change_cb cb);
int __wrap_raft_assign(struct raft *r, struct raft_change *req, raft_id id, int role, raft_change_cb cb);
int __real_raft_remove(struct raft *r, struct raft_change *req, raft_id id, raft_change_cb cb);
int __wrap_raft_remove(struct raft *r, struct raft_change *req, raft_id id, raft_change_cb cb);

void __real_cluster_propose(struct cluster *cluster, const Rm__Command *command, cluster_propose_fn callback, void *userdata);
void __wrap_cluster_propose(struct cluster *cluster, const Rm__Command *command, cluster_propose_fn callback, void *userdata);

/* Which one the leader is about to stamp: those who propose write its number where the time will
 * be. 0: one of the leader's own. */
static uint64_t operation;

static struct node *current_node(void) {
        return host_current() ? host_part(host_current(), HOST_PROCESS) : NULL;
}

void __wrap_state_apply(Rm__State *state, struct state_index *indexed, uint64_t index, const Rm__Command *command,
                        struct state_result *ret) {
        uint64_t before_usec = state->time_usec;

        __real_state_apply(state, indexed, index, command, ret);
        if (current_node())
                node_applied(current_node(), state, indexed, index, command, ret, before_usec);
}

/* Proposals that rmd makes by itself have a number, too. */
void __wrap_cluster_propose(struct cluster *cluster, const Rm__Command *command, cluster_propose_fn callback, void *userdata) {
        struct node *n = current_node();
        Rm__Command numbered = *command;

        if (numbered.time_usec == 0 && n) {
                numbered.time_usec = checks_operation(node_checks(n), "rmd's own");
                checks_proposer(node_checks(n), (uint32_t) numbered.time_usec, host_number(host_current()),
                                host_life(host_current()));
        }
        __real_cluster_propose(cluster, &numbered, callback, userdata);
}

int __wrap_raftlog_propose(struct raftlog *log, const Rm__Command *command, raftlog_done_fn done, void *userdata) {
        checks_proposed(node_checks(current_node()), raft_last_index(&log->raft) + 1, command,
                        operation <= UINT32_MAX ? (uint32_t) operation : 0);
        return __real_raftlog_propose(log, command, done, userdata);
}

int __wrap_leading_propose(struct leading *leading, Rm__Command *command, raftlog_done_fn done, void *context,
                           struct rm_error *err) {
        int r;

        operation = command->time_usec;
        r = __real_leading_propose(leading, command, done, context, err);
        operation = 0;
        return r;
}

void __wrap_leading_serve(struct leading *leading, const char *node, const Rm__Propose *propose) {
        operation = propose->command ? propose->command->time_usec : 0;
        __real_leading_serve(leading, node, propose);
        operation = 0;
}

int __wrap_raft_assign(struct raft *r, struct raft_change *req, raft_id id, int role, raft_change_cb cb) {
        node_changing(current_node());
        return __real_raft_assign(r, req, id, role, cb);
}

int __wrap_raft_remove(struct raft *r, struct raft_change *req, raft_id id, raft_change_cb cb) {
        node_changing(current_node());
        return __real_raft_remove(r, req, id, cb);
}
