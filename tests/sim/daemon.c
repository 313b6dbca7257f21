#include "tests/sim/daemon.h"

#include <stdlib.h>

#include "common/util.h"
#include "daemon/checkpoint/checkpoints.h"
#include "daemon/config/config.h"
#include "daemon/job/outputs.h"
#include "daemon/job/runner.h"
#include "daemon/leader/leader.h"
#include "daemon/move/moves.h"
#include "daemon/node/topology.h"
#include "tests/sim/fakecapsule.h"

#define CORES 4U
#define NOWHERE "/nonexistent" /* nothing comes there (machine.c) */
#define NETWORK 0x0a480000U
/* Short beside a history. */
#define MOVE_TIMEOUT_USEC 5000000U
#define KILL_WAIT_USEC 2000000U
#define SETTLE_USEC 50000U
#define INTERVAL_USEC UINT64_C(10000000)
#define RESIZE_INTERVAL_USEC UINT64_C(1000000)
#define HORIZON_USEC UINT64_C(5000000)
#define CHECKPOINTS_KEPT 2U
#define VERIFY_MIN_USEC 2000000U
#define VERIFY_MAX_USEC 15000000U
#define COPIES_MAX 2U /* on other nodes */
/* The workload forgets jobs, with their tokens. */
#define KEEP_JOBS_USEC UINT64_C(3600000000)

struct daemon {
        struct rmd rmd;
        struct config config;
        struct topology topology;
};

/* ---- as in daemon/main.c ---- */

static void on_capsule(void *userdata, struct resident *resident, int error, const char *text) {
        struct rmd *rmd = userdata;

        if (rmd->checkpoints)
                checkpoints_capsule_ready(rmd->checkpoints, resident, error, text);
        moves_capsule_ready(rmd->moves, resident, error, text);
}

static bool keeps_copy(void *userdata, const struct resident *resident) {
        struct rmd *rmd = userdata;

        return moves_own(rmd->moves, resident) || (rmd->checkpoints && checkpoints_own(rmd->checkpoints, resident));
}

static bool holds(void *userdata, const struct resident *resident) {
        return moves_hold(((struct rmd *) userdata)->moves, resident);
}

static void on_filling(void *userdata, struct resident *resident) {
        struct rmd *rmd = userdata;

        moves_capsule_filling(rmd->moves, resident);
}

static void on_unfenced(void *userdata) {
        struct rmd *rmd = userdata;

        moves_wake(rmd->moves);
        checkpoints_wake(rmd->checkpoints);
}

static const struct runner_ops runner_ops = { on_capsule, keeps_copy, holds, on_filling, on_unfenced };

void daemon_on_applied(struct daemon *d, const Rm__Command *command, const struct state_result *result) {
        struct rmd *rmd = &d->rmd;

        if (result->repeated || result->error.code < 0 || !rmd->runner)
                return;
        if (command->body_case == RM__COMMAND__BODY_MOVE_START)
                moves_started(rmd->moves, result->created);
        if (command->body_case == RM__COMMAND__BODY_CHECKPOINT_START)
                checkpoints_started(rmd->checkpoints, command->checkpoint_start->job, result->created);
        moves_wake(rmd->moves);
        runner_wake(rmd->runner);
        checkpoints_wake(rmd->checkpoints);
        leader_wake(rmd->leader, command);
}

void daemon_on_installed(struct daemon *d) {
        if (!d->rmd.runner)
                return;
        moves_wake(d->rmd.moves);
        runner_wake(d->rmd.runner);
        checkpoints_wake(d->rmd.checkpoints);
        leader_wake(d->rmd.leader, NULL);
}

void daemon_on_message(struct daemon *d, const char *node, const Rm__PeerMessage *message) {
        struct rmd *rmd = &d->rmd;

        if (!rmd->runner || moves_on_message(rmd->moves, node, message) || checkpoints_on_message(rmd->checkpoints, node, message))
                return;
        if (message->body_case == RM__PEER_MESSAGE__BODY_AGENT_RUN)
                runner_agent_run(rmd->runner, message->agent_run);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_AGENT_DONE)
                runner_agent_done(rmd->runner, node, message->agent_done);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_AGENT_KILL)
                runner_agent_kill(rmd->runner, message->agent_kill);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_RANKS_END)
                runner_ranks_end(rmd->runner, message->ranks_end);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_RANKS_ENDED)
                runner_ranks_ended(rmd->runner, message->ranks_ended);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_ENDS_GET)
                runner_ends_get(rmd->runner, message->ends_get);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_ENDS)
                runner_ends(rmd->runner, message->ends);
}

void daemon_on_peer(struct daemon *d, const char *node, bool connected) {
        struct rmd *rmd = &d->rmd;

        if (!rmd->runner)
                return;
        moves_on_peer(rmd->moves, node, connected);
        checkpoints_on_peer(rmd->checkpoints, node, connected);
        if (connected)
                runner_peer_connected(rmd->runner, node);
}

void daemon_on_heartbeat(struct daemon *d) {
        if (!d->rmd.runner)
                return;
        moves_keep(d->rmd.moves);
        checkpoints_keep(d->rmd.checkpoints);
        runner_keep_peers(d->rmd.runner);
}

void daemon_on_lease(struct daemon *d) {
        if (d->rmd.runner)
                runner_renew_leases(d->rmd.runner);
}

static void see_who_leads(struct rmd *rmd) {
        bool leads = cluster_is_leader(rmd->cluster);

        if (leads && !rmd->leader)
                rmd->leader = leader_create(rmd);
        else if (!leads)
                leader_destroy(take_ptr(rmd->leader));
}

void daemon_on_leader(struct daemon *d) {
        if (!d->rmd.runner)
                return;
        see_who_leads(&d->rmd);
        runner_wake(d->rmd.runner);
}

/* No front end is attached. */
void outputs_pump(struct outputs *outputs, uint64_t job) {
}

/* ---- life ---- */

/* Fields that are not set here are not used. */
static void set_config(struct config *config, const struct host *host) {
        config->cluster_name = xstrdup(CHECKS_CLUSTER);
        config->key_file = xstrdup("");
        config->second_key_file = xstrdup("");
        config->node_name = xstrdup(host_name(host));
        config->address = xstrdup("");
        config->uplink = xstrdup("eth0");
        config->runtime_dir = xstrdup(NOWHERE);
        config->state_dir = xstrdup(NOWHERE); /* files.h: its checkpoints */
        config->network = NETWORK;
        config->network_prefix = 16;
        config->move_tracking = true;
        config->move_last = CONFIG_LAST_SLOW;
        config->move_slow_usec = 1000000;
        config->move_timeout_usec = MOVE_TIMEOUT_USEC;
        config->kill_wait_usec = KILL_WAIT_USEC;
        config->node_timeout_usec = DAEMON_NODE_TIMEOUT_USEC;
        config->topology = xstrdup("");
        config->policy = xstrdup("greedy");
        config->policy_dir = xstrdup(NOWHERE);
        config->fence_plugin = xstrdup(CONFIG_FENCE_NONE);
        config->budget_usec = 1000000;
        config->settle_usec = SETTLE_USEC;
        config->interval_usec = INTERVAL_USEC;
        config->horizon_usec = HORIZON_USEC;
        config->keep_jobs_usec = KEEP_JOBS_USEC;
        config->resize_interval_usec = RESIZE_INTERVAL_USEC;
        config->moves_at_once = 8;
        config->move_budget = 4;
        config->link_mbit_per_sec = 1000;
        config->age_weight = 1;
        config->distribution_weight = 10;
        config->backfill = CONFIG_BACKFILL_LIMITS;
        config->checkpoint_store = xstrdup(CONFIG_STORE_PARTNER);
        config->checkpoint_keep = CHECKPOINTS_KEPT;
        config->checkpoint_copies = 1 + (uint32_t) timeline_random(host_timeline(host), COPIES_MAX);
        config->checkpoint_verify_usec = timeline_between(host_timeline(host), VERIFY_MIN_USEC, VERIFY_MAX_USEC);
        config->checkpoint_mtbf_usec = INTERVAL_USEC;
}

static void set_topology(struct topology *topology) {
        topology->cores = topology->real_cores = CORES;
        topology->memory_bytes = UINT64_C(16) << 30;
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX; cpu++)
                topology->core_of_cpu[cpu] = (int16_t) (cpu < CORES ? (int) cpu : -1);
}

struct daemon *daemon_create(struct event_base *base, struct host *host, struct capsules *capsules, struct movers *movers) {
        struct daemon *d = xcalloc(1, sizeof(*d));

        set_config(&d->config, host);
        set_topology(&d->topology);
        movers_begin(movers, host);
        d->rmd.base = base;
        d->rmd.config = &d->config;
        d->rmd.topology = &d->topology;
        d->rmd.capsules = fakecapsule_begin(capsules, host);
        return d;
}

void daemon_start(struct daemon *d, struct cluster *cluster) {
        struct rmd *rmd = &d->rmd;
        struct rm_error err = { 0 };

        rmd->cluster = cluster;
        if (moves_create(rmd, &rmd->moves, &err) < 0 || checkpoints_create(rmd, &rmd->checkpoints, &err) < 0 ||
            runner_create(rmd, &runner_ops, rmd, &rmd->runner, &err) < 0)
                abort();
        see_who_leads(rmd);
}

void daemon_stop(struct daemon *d) {
        if (!d)
                return;
        leader_destroy(take_ptr(d->rmd.leader));
        checkpoints_destroy(take_ptr(d->rmd.checkpoints));
        moves_destroy(take_ptr(d->rmd.moves));
        runner_destroy(take_ptr(d->rmd.runner));
}

void daemon_destroy(struct daemon *d) {
        if (!d)
                return;
        capsule_ctx_destroy(d->rmd.capsules);
        config_finish(&d->config);
        free(d);
}
