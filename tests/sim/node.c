#include "tests/sim/node.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster_internal.h"
#include "daemon/log/raftlog_internal.h"
#include "daemon/state/commands.h"
#include "tests/sim/daemon.h"
#include "tests/sim/raftio.h"
#include "tests/sim/sockets.h"
#include "tests/sim/storage.h"
#include "tests/sim/timers.h"
#include "tests/sim/workload.h"

/* Between two proposals, and so many at once. */
#define THINK_MAX_USEC 700000U
#define OPEN_MAX 4U
#define HEARTBEAT_USEC 150000U
#define VOTER_TIMEOUT_USEC 2500000U
#define ELECTION_USEC 300000U
/* Every 30 s or so a leader hands over. */
#define HAND_OVER_MAX_USEC 60000000U
#define REPAIR_USEC 1000000U
/* Nothing is there, and nothing comes there (clock.c). */
#define STATE_DIR "/nonexistent"
#define SEEDS 3U

struct node {
        struct node_config config;
        struct timeline *timeline;
        struct checks *checks;
        struct capsules *capsules;
        struct movers *movers;
        struct host *host;
        struct disk *disk;
        bool began; /* the cluster: there was a log on its disk once */
        uint64_t answered_begin_usec, answered;
        unsigned changes;
        unsigned boots;
        bool resting; /* its users are */
        /* These fields are set while its process runs: */
        bool dying;
        struct event_base *base;
        struct cluster *cluster; /* NULL: it could not start, or does not run */
        struct daemon *daemon;
        unsigned open; /* proposals */
};

/* A proposal that is not answered yet. */
struct operation {
        struct node *node;
        uint32_t number;
        uint64_t begin_usec;
};

static struct raftlog *log_of(const struct node *n) {
        return n->cluster ? n->cluster->log : NULL;
}

/* ---- while it leads ---- */

/* The node hands the leadership over like one that is told to end. */
static void hand_over(void *userdata) {
        struct node *n = userdata;

        host_after(n->host, timeline_random(n->timeline, HAND_OVER_MAX_USEC), hand_over, NULL, n);
        if (n->cluster && cluster_is_leader(n->cluster) && cluster_hand_over(n->cluster))
                timeline_trace(n->timeline, host_name(n->host), "hands the leadership over");
}

/* ---- proposals ---- */

/* With an index it is in the log; without one nobody knows, or nobody had it. */
static void on_answer(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct operation *op = userdata;
        struct node *n = op->node;

        if (!n->dying) {
                n->open--;
                timeline_trace(n->timeline, host_name(n->host), "is answered: operation %u gave %d at %llu", op->number, code,
                               (unsigned long long) index);
        }
        if (!n->dying && index == 0 && code == -ESTALE)
                checks_fail(n->checks, "operation %u: %s", op->number, text);
        if (!n->dying && index > 0) {
                checks_acknowledged(n->checks, op->number, index, code, created);
                n->answered++;
                n->config.on_answer(n->config.userdata, op->begin_usec);
                /* A node whose session is not known any more is answered too. */
                if (code != -ESTALE && op->begin_usec > n->answered_begin_usec)
                        n->answered_begin_usec = op->begin_usec;
        }
        free(op);
}

/* Which operation it is of is told by its time, which the leader sets anew. */
static void propose(struct node *n) {
        struct operation *op = xcalloc(1, sizeof(*op));
        Rm__Command *command;

        op->node = n;
        op->begin_usec = timeline_now_usec(n->timeline);
        command = workload_command(n->timeline, n->checks, cluster_state(n->cluster), host_name(n->host), &op->number);
        checks_proposer(n->checks, op->number, host_number(n->host), host_life(n->host));
        timeline_trace(n->timeline, host_name(n->host), "proposes operation %u", op->number);
        command->time_usec = op->number;
        n->open++;
        cluster_propose(n->cluster, command, on_answer, op);
        rm__command__free_unpacked(command, NULL);
}

static void think(void *userdata) {
        struct node *n = userdata;

        if (n->cluster && n->open < OPEN_MAX && !n->resting)
                propose(n);
        if (!n->resting)
                host_after(n->host, timeline_random(n->timeline, THINK_MAX_USEC), think, NULL, n);
}

/* ---- what it is told ---- */

static void end_process(void *userdata) {
        host_kill(userdata);
}

static void start_process(void *userdata) {
        host_start(userdata);
}

/* The node ends by itself, after the current event. If its disk is damaged an administrator looks
 * after it (storage_repair() in on_start()). */
static void stop(struct node *n, const struct rm_error *why) {
        timeline_trace(n->timeline, host_name(n->host), "ends: %s", error_text(why));
        if (why->code != -EIO && why->code != -ENOSPC && !storage_damaged(n->host))
                checks_fail(n->checks, "%s ends: %s", host_name(n->host), error_text(why));
        host_after(n->host, 0, end_process, NULL, n->host);
        if (storage_damaged(n->host))
                timeline_at(n->timeline, timeline_now_usec(n->timeline) + REPAIR_USEC, start_process, NULL, n->host);
}

static void on_failed(void *userdata, const struct rm_error *why) {
        stop(userdata, why);
}

static void on_installed(void *userdata) {
        struct node *n = userdata;

        if (!n->cluster)
                return;
        checks_restored(n->checks, host_name(n->host), n->cluster->state, n->cluster->index);
        daemon_on_installed(n->daemon);
}

static void on_applied(void *userdata, const Rm__Command *command, const struct state_result *result) {
        daemon_on_applied(((struct node *) userdata)->daemon, command, result);
}

static void on_message(void *userdata, const char *node, const Rm__PeerMessage *message) {
        daemon_on_message(((struct node *) userdata)->daemon, node, message);
}

static void on_peer(void *userdata, const char *node, bool connected) {
        daemon_on_peer(((struct node *) userdata)->daemon, node, connected);
}

static void on_heartbeat(void *userdata) {
        daemon_on_heartbeat(((struct node *) userdata)->daemon);
}

static void on_lease(void *userdata) {
        daemon_on_lease(((struct node *) userdata)->daemon);
}

static void trace_members(const struct node *n, const char *what) {
        static const char *const roles[] = { "none", "spare", "standby", "voter" };
        struct raftlog_member members[RAFTLOG_MEMBERS_MAX];
        char text[512] = "";
        size_t n_members, used = 0;

        if (!log_of(n) || !timeline_traced(n->timeline))
                return;
        n_members = raftlog_members(log_of(n), members, ARRAY_SIZE(members));
        for (size_t i = 0; i < n_members && used < sizeof(text); i++)
                used += (size_t) snprintf(text + used, sizeof(text) - used, " %s:%s", members[i].node, roles[members[i].role]);
        timeline_trace(n->timeline, host_name(n->host), "%s, members%s", what, text);
}

static void on_leader(void *userdata, const char *leader) {
        struct node *n = userdata;

        timeline_trace(n->timeline, host_name(n->host), "%s %s", leader ? "follows" : "has no leader", leader ? leader : "");
        trace_members(n, "keeps the log");
        daemon_on_leader(n->daemon);
}

void node_applied(struct node *n, Rm__State *state, const struct state_index *indexed, uint64_t index, const Rm__Command *command,
                  const struct state_result *result, uint64_t before_usec) {
        if (command->time_usec < before_usec)
                checks_fail(n->checks, "the entry at %llu has a time before that of entries before it", (unsigned long long) index);
        n->changes += command->body_case == RM__COMMAND__BODY_VOTERS;
        checks_applied(n->checks, host_name(n->host), index, command, state, indexed, result, !n->cluster || n->cluster->member);
        capsules_applied(n->capsules, state, command, result);
        kept_applied(host_part(n->host, HOST_KEPT), state, command, result);
}

void node_changing(struct node *n) {
        trace_members(n, "changes the voters");
        n->config.on_change(n->config.userdata, n->config.number);
}

/* ---- its process ---- */

static int make_cluster(struct node *n, struct rm_error *err) {
        static const struct cluster_ops ops = { .on_applied = on_applied,
                                                .on_installed = on_installed,
                                                .on_message = on_message,
                                                .on_peer = on_peer,
                                                .on_heartbeat = on_heartbeat,
                                                .on_lease = on_lease,
                                                .on_leader = on_leader,
                                                .on_failed = on_failed };
        const char *seeds[SEEDS];
        char addresses[SEEDS][32], address[32], boot[32];
        Rm__Node self = RM__NODE__INIT;
        struct cluster_config config = { .name = CHECKS_CLUSTER,
                                         .self = &self,
                                         .peers = seeds,
                                         .bootstrap = n->config.number == 0 && !n->began,
                                         .state_dir = STATE_DIR,
                                         .node_timeout_usec = DAEMON_NODE_TIMEOUT_USEC,
                                         .heartbeat_usec = HEARTBEAT_USEC,
                                         .lease_usec = n->config.lease_usec,
                                         .snapshot_entries = n->config.snapshot_entries,
                                         .voters = n->config.voters,
                                         .voter_timeout_usec = VOTER_TIMEOUT_USEC,
                                         .election_usec = ELECTION_USEC };

        (void) snprintf(address, sizeof(address), SOCKETS_ADDRESS, n->config.number + 1);
        self.name = (char *) host_name(n->host);
        self.address = address;
        self.port = SOCKETS_PORT;
        self.cores = 4;
        self.level = STATE_LEVEL;
        (void) snprintf(boot, sizeof(boot), "boot%u", n->boots);
        self.boot_id = boot;
        for (unsigned i = 0; i < SEEDS && i < n->config.n_hosts && !config.bootstrap; i++) {
                (void) snprintf(addresses[i], sizeof(addresses[i]), SOCKETS_ADDRESS ":%u", i + 1, SOCKETS_PORT);
                seeds[config.n_peers++] = addresses[i];
        }
        if (config.lease_usec == 0)
                config.lease_usec = timeline_between(n->timeline, LEASE_MIN_USEC, LEASE_MAX_USEC);
        return cluster_create(n->base, &config, &ops, n, &n->cluster, err);
}

static void on_start(void *userdata) {
        struct node *n = userdata;
        struct rm_error err = { 0 };

        if (storage_damaged(n->host)) {
                kept_disk_lost(n->host);
                storage_repair(n->host);
        }
        n->dying = false;
        n->open = 0;
        n->base = event_base_new();
        timers_begin(n->host);
        sockets_begin(n->host);
        n->daemon = daemon_create(n->base, n->host, n->capsules, n->movers);
        if (make_cluster(n, &err) < 0) {
                stop(n, &err);
                return;
        }
        if (storage_damaged(n->host))
                checks_fail(n->checks, "%s starts with a damaged disk", host_name(n->host));
        n->began |= raftlog_exists(STATE_DIR);
        daemon_start(n->daemon, n->cluster);
        on_installed(n);
        hand_over(n);
        think(n);
}

static void on_killed(void *userdata) {
        struct node *n = userdata;

        n->dying = true;
        if (timeline_random(n->timeline, 2))
                sockets_reset(n->host);
        daemon_stop(n->daemon);
        cluster_destroy(take_ptr(n->cluster));
        daemon_destroy(take_ptr(n->daemon));
        sockets_end(n->host);
        timers_end(n->host);
        event_base_free(n->base);
}

static void on_packet(void *userdata, unsigned from, const void *data, size_t size_bytes) {
        struct node *n = userdata;

        sockets_packet(n->host, from, data, size_bytes);
}

/* raft_uv has libraft do this from its loop, by a function that is not exported. The list is one of
 * libraft's: each link is that to the next and that to the one before. */
static bool fire_completed(struct raft *raft) {
        void **list = raft->legacy.requests;
        bool any = false;

        while (list[0] != (void *) list) {
                void **link = list[0], **next = link[0], **previous = link[1];
                struct raft_apply *request = (struct raft_apply *) (void *) ((char *) link - offsetof(struct raft_apply, queue));

                previous[0] = next;
                next[1] = previous;
                any = true;
                if (!request->cb)
                        continue;
                if (request->type == RAFT_COMMAND)
                        request->cb(request, request->status, request->result);
                else if (request->type == RAFT_BARRIER)
                        ((struct raft_barrier *) (void *) request)->cb((struct raft_barrier *) (void *) request, request->status);
                else if (request->type == RAFT_CHANGE)
                        ((struct raft_change *) (void *) request)->cb((struct raft_change *) (void *) request, request->status);
                else
                        ((struct raft_transfer *) (void *) request)->cb((struct raft_transfer *) (void *) request);
        }
        return any;
}

static void on_idle(void *userdata) {
        struct node *n = userdata;
        struct raftlog *log;

        do
                (void) event_base_loop(n->base, EVLOOP_NONBLOCK);
        while ((log = log_of(n)) && fire_completed(&log->raft));
        raftio_scan(n->host);
        if (node_leads(n))
                checks_leads(n->checks, n->config.number, host_name(n->host), raft_current_term(&log->raft),
                             raft_last_index(&log->raft));
}

struct node *node_create(struct timeline *t, struct checks *checks, struct capsules *capsules, struct movers *movers,
                         const struct node_config *config) {
        static const struct host_ops ops = {
                .on_start = on_start, .on_killed = on_killed, .on_packet = on_packet, .on_idle = on_idle
        };
        struct node *n = xcalloc(1, sizeof(*n));
        cleanup_free char *name = xasprintf("n%u", config->number);

        n->config = *config;
        n->timeline = t;
        n->checks = checks;
        n->capsules = capsules;
        n->movers = movers;
        n->host = host_create(t, config->number, name, &ops, n);
        n->disk = disk_create(n->host);
        host_set_part(n->host, HOST_PROCESS, n);
        storage_begin(n->host);
        return n;
}

void node_destroy(struct node *n) {
        if (!n)
                return;
        host_kill(n->host);
        storage_end(n->host);
        disk_destroy(n->disk);
        host_destroy(n->host);
        free(n);
}

void node_reboot(struct node *n) {
        n->boots++;
}

/* ---- for the history ---- */

struct host *node_host(const struct node *n) {
        return n->host;
}

struct disk *node_disk(const struct node *n) {
        return n->disk;
}

struct checks *node_checks(const struct node *n) {
        return n->checks;
}

bool node_leads(const struct node *n) {
        struct raftlog *log = log_of(n);

        return log && raft_state(&log->raft) == RAFT_LEADER;
}

static bool keeps(const struct node *n, uint64_t id) {
        return log_of(n) && raftlog_voter_id(log_of(n)) == id && !storage_damaged(n->host);
}

bool node_can_spare(const struct node *leader, struct node *const *nodes, unsigned n_nodes, unsigned host) {
        struct raftlog_member members[RAFTLOG_MEMBERS_MAX];
        size_t n, voters = 0, others = 0, left = 0;
        bool has_vote = false;

        if (!leader || !cluster_is_leader(leader->cluster) || raftlog_changing(log_of(leader)))
                return false;
        n = raftlog_members(log_of(leader), members, ARRAY_SIZE(members));
        for (size_t i = 0; i < n; i++) {
                bool same = strcmp(members[i].node, host_name(nodes[host]->host)) == 0;

                others += !same;
                voters += members[i].role == RAFTLOG_VOTER;
                has_vote |= same && members[i].role == RAFTLOG_VOTER;
                for (unsigned k = 0; k < n_nodes; k++)
                        left += k != host && keeps(nodes[k], members[i].id);
        }
        return left == others && (!has_vote || voters > 2);
}

const char *node_voters_unsettled(const struct node *n) {
        struct raftlog_member members[RAFTLOG_MEMBERS_MAX];
        size_t n_members, voters = 0;

        if (!n || !cluster_is_leader(n->cluster))
                return "there is no leader";
        if (raftlog_changing(log_of(n)))
                return "the voters are being changed";
        n_members = raftlog_members(log_of(n), members, ARRAY_SIZE(members));
        for (size_t i = 0; i < n_members; i++)
                voters += members[i].role == RAFTLOG_VOTER;
        if (voters % 2 == 0)
                return "the voters are an even number";
        return voters < n_members ? "there are members without a vote" : NULL;
}

uint64_t node_answered_begin_usec(const struct node *n) {
        return n->answered_begin_usec;
}

uint64_t node_answered(const struct node *n) {
        return n->answered;
}

void node_rest(struct node *n) {
        n->resting = true;
}

const Rm__State *node_led_state(const struct node *n) {
        return n->cluster && cluster_is_leader(n->cluster) && cluster_synced(n->cluster) ? cluster_state(n->cluster) : NULL;
}

uint64_t node_index(const struct node *n) {
        return n->cluster ? cluster_state(n->cluster)->index : 0;
}

unsigned node_changes(const struct node *n) {
        return n->changes;
}
