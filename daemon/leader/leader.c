#include "daemon/leader/leader.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/leader/core_share.h"
#include "daemon/leader/enact.h"
#include "daemon/leader/expiry.h"
#include "daemon/leader/fences.h"
#include "daemon/leader/files.h"
#include "daemon/leader/node_losses.h"
#include "daemon/leader/node_memory.h"
#include "daemon/leader/progress.h"
#include "daemon/leader/resizes.h"
#include "daemon/leader/round_input.h"
#include "daemon/leader/topology.h"
#include "daemon/leader/traffic.h"
#include "daemon/metrics/metrics.h"
#include "daemon/sched/move_cost.h"
#include "daemon/state/commands.h"

#define TICK_USEC 1000000U
#define REPORTS_MOST_USEC (1U * TICK_USEC)
#define REPORTS_SCAN_USEC 50000U
#define LOSS_MOST_USEC (60U * TICK_USEC) /* longer leases are looked at with the ticks */

struct leader {
        struct rmd *rmd;
        struct scheduler *scheduler;
        struct leader_files *files; /* availability */
        struct switches_file *switches;
        struct traffic *traffic;
        struct progress *progress;
        struct node_memory *memory;
        struct core_share *core_share;
        struct fences *fences;
        struct event *settle;
        struct event *tick;
        struct event *loss; /* pending: the last lease of a node that is lost ends then */
        bool settling;
        uint64_t begin_usec; /* when this node began to lead, monotonic */
        uint64_t round_usec; /* when the last round began, likewise */
        uint64_t round_log_usec; /* the same, by the clock of the log */
        uint64_t next_job; /* that waits, and by when it starts; 0: not known */
        uint64_t next_usec;
        bool skipped; /* after failures a move has to wait, or a node is avoided: the tick comes back to it */
        bool again; /* something changed while a round was under way */
        bool short_of_memory; /* the last round left something where it is for want of memory */
};

static const Rm__State *state_of(const struct leader *leader) {
        return cluster_state(leader->rmd->cluster);
}

static void propose(struct leader *leader, const Rm__Command *command) {
        cluster_decide(leader->rmd->cluster, command);
}

/* ---- rounds ---- */

static void settle_later(struct leader *leader, uint64_t usec) {
        if (leader->settling)
                return;
        leader->settling = true;
        timer_arm(leader->settle, usec);
}

static void keep_start(struct leader *leader, const struct rm_snapshot *snapshot, const struct round_result *result) {
        leader->next_job = 0;
        for (uint32_t j = 0; j < result->n_jobs; j++) {
                const Rm__Job *job = result->jobs[j].start_usec > 0 ? enact_job(leader->rmd, snapshot, j) : NULL;

                if (!job)
                        continue;
                leader->next_job = job->id;
                leader->next_usec = leader->round_log_usec + result->jobs[j].start_usec;
        }
}

static void on_round(void *context, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings) {
        struct leader *leader = context;

        if (snapshot->n_jobs > 0) /* else no policy was asked */
                metrics_policy(leader->rmd->metrics, now_usec() - leader->round_usec, warnings && *warnings);
        leader->short_of_memory = result->short_of_memory;
        keep_start(leader, snapshot, result);
        leader->skipped |= enact_round(leader->rmd, snapshot, result, warnings ? warnings : "", &leader->short_of_memory);
        leader->skipped |= resizes_decide(leader->rmd, leader->progress, snapshot, result);
        if (leader->again) {
                leader->again = false;
                settle_later(leader, leader->rmd->config->settle_usec);
        }
}

const char *leader_hold(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        return cooldown_text(enact_cooldown(rmd, snapshot, action));
}

static int64_t bytes_per_cost(const struct config *config) {
        return move_cost_bytes((uint64_t) config->link_mbit_per_sec * (1000000 / 8), config->horizon_usec);
}

static bool waits_for_file(const void *files, const Rm__Job *job) {
        return leader_files_unknown(files, job);
}

static void make_input(const struct rmd *rmd, struct round_input *ret) {
        static const uint32_t backfill[] = {
                [CONFIG_BACKFILL_NO] = 0, [CONFIG_BACKFILL_LIMITS] = ROUND_BACKFILL_LIMITS, [CONFIG_BACKFILL_ANY] = 1
        };
        struct round_input_config config = {
                .group_size = rmd->config->group_size,
                .now_usec = cluster_log_usec(rmd->cluster),
                .horizon_usec = rmd->config->horizon_usec,
                .age_weight = rmd->config->age_weight,
                .move_budget = rmd->config->move_budget,
                .bytes_per_cost = bytes_per_cost(rmd->config),
                .traffic = rmd->leader ? rmd->leader->traffic : NULL,
                .memory = rmd->leader ? rmd->leader->memory : NULL,
                .progress = rmd->leader ? rmd->leader->progress : NULL,
                .waits = waits_for_file,
                .waits_context = rmd->leader ? rmd->leader->files : NULL,
                .backfill = backfill[rmd->config->backfill],
                .distribution_weight = rmd->config->distribution_weight,
                .node_penalty = &rmd->config->node_penalty,
                .warn_penalty = rmd->config->warn_penalty,
                .spare_nodes = rmd->config->spare_nodes,
        };

        round_input_create(cluster_index(rmd->cluster), &config, ret);
}

static void report_left_out(struct leader *leader, const struct round_input *input) {
        for (size_t i = 0; i < input->n_left_out; i++) {
                const Rm__Job *job = state_job(state_of(leader), input->left_out[i].job);

                if (job && !job->cancel && job->state <= RM__JOB_STATE__JOB_RUNNING)
                        enact_report_reason(leader->rmd, job, &(struct reason) { .text = input->left_out[i].reason });
        }
}

/* Nodes report their memory, and what their groups take of it, when they hear of a new leader.
 * Before that a group could be moved to where it does not fit. */
static bool awaits_reports(const struct leader *leader) {
        const Rm__State *state = state_of(leader);
        bool any_runs = false;

        if (now_usec() >= leader->begin_usec + REPORTS_MOST_USEC)
                return false;
        for (size_t i = 0; i < state->n_jobs && !any_runs; i++)
                any_runs = job_running(state->jobs[i]);
        for (size_t i = 0; i < state->n_nodes && any_runs; i++)
                if (state->nodes[i]->health == RM__NODE_HEALTH__NODE_HEALTH_UP &&
                    !node_memory_knows(leader->memory, state->nodes[i]->name))
                        return true;
        return false;
}

static void run_round(struct leader *leader) {
        struct round_input input;
        struct rm_error err = { 0 };
        int r;

        if (!cluster_synced(leader->rmd->cluster))
                return;
        if (awaits_reports(leader)) {
                settle_later(leader, REPORTS_SCAN_USEC);
                return;
        }
        if (scheduler_busy(leader->scheduler)) {
                leader->again = true;
                return;
        }
        if (topology_report(leader->rmd, leader->switches))
                return; /* and back once it is known */
        leader->round_usec = now_usec();
        leader->round_log_usec = cluster_log_usec(leader->rmd->cluster);
        make_input(leader->rmd, &input);
        report_left_out(leader, &input);
        leader->skipped |= input.avoids;
        traffic_mark(leader->traffic);
        node_memory_mark(leader->memory);
        r = scheduler_run(leader->scheduler, take_ptr(input.snapshot), input.jobs, on_round, leader, &err);
        if (r < 0 && r != -ENOSPC)
                log_warn("scheduling: %s", error_text(&err));
        round_input_finish(&input);
}

static void on_settle(evutil_socket_t fd, short what, void *arg) {
        struct leader *leader = arg;

        leader->settling = false;
        run_round(leader);
}

/* ---- by the clock ---- */

static void cancel_over_limit(struct leader *leader, uint64_t now) {
        uint64_t job = expiry_over_limit(state_of(leader), now);
        struct command c;

        if (job != 0)
                propose(leader, command_job_timeout(&c, job, SIGTERM));
}

static void forget_old_job(struct leader *leader, uint64_t now) {
        uint64_t job = expiry_to_forget(state_of(leader), leader->rmd->config->keep_jobs_usec, now);
        struct command c;

        if (job != 0)
                propose(leader, command_job_forget(&c, job));
}

static void report_overdue(struct leader *leader, uint64_t now) {
        const Rm__Node *node = expiry_overdue_node(cluster_index(leader->rmd->cluster), now);
        struct command c;

        if (node)
                propose(leader, command_node_overdue(&c, node));
}

/* The state that the losses are of changes with each proposal that takes effect at once. */
static void answer_loss(struct leader *leader, const struct loss *loss) {
        const Rm__Job *job = state_job(state_of(leader), loss->job);
        cleanup_free char *reason = job ? loss_reason(loss, job) : NULL;
        struct command c;

        if (!job)
                return;
        if (loss->answer == LOSS_FENCE)
                fences_want(leader->fences, loss->node);
        else if (loss->answer == LOSS_RESTART)
                propose(leader, command_job_restart(&c, job->id, loss->attempt, loss->node->name, reason, true));
        else
                propose(leader, command_job_exit(&c, job->id, 255, reason, RM__JOB_STATE__JOB_NODE_FAIL));
}

static bool has_fenced(void *userdata, const char *node) {
        const struct leader *leader = userdata;

        return now_usec() >= cluster_fence_safe_usec(leader->rmd->cluster, node);
}

static void answer_losses(struct leader *leader, uint64_t now) {
        const struct node_losses_rule rule = { 2 * leader->rmd->config->node_timeout_usec, has_fenced, leader,
                                               fences_configured(leader->fences) };
        size_t n;
        cleanup_free struct loss *losses = losses_find(cluster_index(leader->rmd->cluster), &rule, now, &n);

        fences_scan_begin(leader->fences);
        for (size_t i = 0; i < n; i++)
                answer_loss(leader, &losses[i]);
        fences_scan_end(leader->fences);
}

static void on_loss(evutil_socket_t fd, short what, void *arg) {
        struct leader *leader = arg;

        if (cluster_synced(leader->rmd->cluster))
                answer_losses(leader, cluster_log_usec(leader->rmd->cluster));
}

/* Jobs start again when the lease of their node has ended, and not at the next tick. */
static void await_loss(struct leader *leader, const Rm__CmdNodeHealth *health) {
        uint64_t safe = cluster_fence_safe_usec(leader->rmd->cluster, health->node), now = now_usec();

        if (health->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && (safe <= now || safe - now < LOSS_MOST_USEC))
                timer_arm(leader->loss, safe > now ? safe - now : 0);
}

/* Nothing has changed, but time has passed: groups have rested, and what is not told in the log may
 * be otherwise. */
static bool timer_due(const struct leader *leader) {
        uint64_t interval = leader->rmd->config->interval_usec;

        return interval > 0 && now_usec() >= leader->round_usec + interval;
}

/* Measured rates of jobs go into the log once they are known: the next leader, to whose node they
 * may move when this one's node is drained, has measured nothing. */
static void log_rates(struct leader *leader) {
        const struct job_places *places;
        uint64_t id;

        while (state_of(leader)->level >= STATE_LEVEL_RATES && progress_take_news(leader->progress, &id, &places)) {
                const Rm__Job *job = state_job(state_of(leader), id);
                Rm__JobRate rates[JOB_PLACES_MOST], *list[JOB_PLACES_MOST];
                struct command c;
                Rm__CmdJobRates *body;

                if (!job || job->attempt != places->attempt || job->n_capsules > STATE_RATES_CAPSULES_MAX)
                        continue;
                body = command_job_rates(&c, id, job->attempt);
                for (size_t i = 0; i < places->n_places; i++)
                        if (job_place_measured(&places->places[i]) && places->places[i].n_nodes == job->n_capsules) {
                                job_place_pack(&places->places[i], &rates[body->n_rates]);
                                list[body->n_rates] = &rates[body->n_rates];
                                body->n_rates++;
                        }
                body->rates = list;
                cluster_decide(leader->rmd->cluster, &c.command);
                for (size_t i = 0; i < body->n_rates; i++)
                        free(rates[i].nodes);
        }
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
        struct leader *leader = arg;
        uint64_t now = cluster_log_usec(leader->rmd->cluster);

        if (!cluster_synced(leader->rmd->cluster))
                return;
        cancel_over_limit(leader, now);
        forget_old_job(leader, now);
        report_overdue(leader, now);
        answer_losses(leader, now);
        checkpoints_tick(leader->rmd, now);
        traffic_forget_ended(leader->traffic, state_of(leader));
        node_memory_forget(leader->memory, state_of(leader));
        metrics_forget(leader->rmd->metrics, state_of(leader));
        progress_forget(leader->progress, state_of(leader));
        log_rates(leader);
        core_share_forget(leader->core_share, cluster_index(leader->rmd->cluster));
        if (switches_file_scan(leader->switches))
                settle_later(leader, leader->rmd->config->settle_usec);
        if (leader->skipped || timer_due(leader)) {
                leader->skipped = false;
                run_round(leader);
        }
}

/* ---- from outside ---- */

static bool opens_job(const Rm__Command *command) {
        return command->body_case == RM__COMMAND__BODY_JOB_SUBMIT || command->body_case == RM__COMMAND__BODY_CHECKPOINT_IMPORT ||
               command->body_case == RM__COMMAND__BODY_JOB_RELEASE;
}

void leader_wake(struct leader *leader, const Rm__Command *command) {
        if (!leader)
                return;
        if (command && command->body_case == RM__COMMAND__BODY_NODE_HEALTH)
                await_loss(leader, command->node_health);
        /* These change nothing a policy sees, and neither which jobs there are nor which nodes. */
        if (command &&
            (command->body_case == RM__COMMAND__BODY_JOB_WAIT || command->body_case == RM__COMMAND__BODY_NOTE ||
             command->body_case == RM__COMMAND__BODY_SCHEDULING || command->body_case == RM__COMMAND__BODY_JOB_OUTPUT_DONE ||
             command->body_case == RM__COMMAND__BODY_JOB_FORGET || command->body_case == RM__COMMAND__BODY_JOB_CORES ||
             command->body_case == RM__COMMAND__BODY_CAPSULE_READY))
                return;
        leader_files_check(leader->files, !command || opens_job(command));
        settle_later(leader, leader->rmd->config->settle_usec);
}

void leader_round_soon(struct leader *leader) {
        if (leader)
                settle_later(leader, leader->rmd->config->settle_usec);
}

/* Traffic so small that no move pays for it does not cause a round. */
static double least_traffic(const struct config *config) {
        return (double) bytes_per_cost(config) * MOVE_COST_BASE * 1e6 /
               (double) (config->horizon_usec > 0 ? config->horizon_usec : 1);
}

void leader_on_traffic(struct leader *leader, const Rm__Traffic *report) {
        if (!leader)
                return;
        traffic_add(leader->traffic, state_of(leader), report);
        if (traffic_shifted(leader->traffic, report->job, least_traffic(leader->rmd->config)))
                settle_later(leader, leader->rmd->config->settle_usec);
}

void leader_on_memory(struct leader *leader, const char *node, const Rm__NodeMemory *report) {
        if (!leader)
                return;
        metrics_reported(leader->rmd->metrics, node, report->counters, now_usec() - leader->begin_usec);
        node_memory_add(leader->memory, state_of(leader), node, report);
        progress_add(leader->progress, cluster_index(leader->rmd->cluster), report, now_usec());
        if (leader->short_of_memory && node_memory_grown(leader->memory))
                settle_later(leader, leader->rmd->config->settle_usec);
}

void leader_on_core_share(struct leader *leader, const Rm__CoreShare *report) {
        if (leader)
                core_share_add(leader->core_share, cluster_index(leader->rmd->cluster), report);
}

struct snapshot *leader_nodes(const struct rmd *rmd) {
        const struct state_index *index = cluster_index(rmd->cluster);
        struct snapshot *snapshot = rmd->leader ? snapshot_create() : NULL;

        if (!snapshot)
                return NULL;
        round_input_nodes(index, &rmd->config->node_penalty, rmd->config->warn_penalty, snapshot);
        node_memory_fill(rmd->leader->memory, index, snapshot);
        return snapshot;
}

double leader_slowdown(const struct rmd *rmd, const Rm__Job *job) {
        return rmd->leader ? core_share_slowdown(rmd->leader->core_share, job) : 0;
}

bool leader_progress(const struct rmd *rmd, const Rm__Job *job, Rm__Progress *ret) {
        return rmd->leader && progress_get(rmd->leader->progress, job->id, now_usec(), ret);
}

uint64_t leader_expected_start(const struct rmd *rmd, const Rm__Job *job) {
        return rmd->leader && rmd->leader->next_job == job->id ? rmd->leader->next_usec : 0;
}

int leader_snapshot(struct rmd *rmd, struct leader_snapshot *ret, struct rm_error *err) {
        struct leader_snapshot result = { 0 };
        struct round_input input;
        int r;

        make_input(rmd, &input);
        r = round_policy_snapshot(snapshot_view(input.snapshot), input.jobs, &result.policy, err);
        if (r == 0) {
                result.real = take_ptr(input.snapshot);
                *ret = result;
        }
        round_input_finish(&input);
        return r;
}

void leader_snapshot_finish(struct leader_snapshot *snapshot) {
        snapshot_destroy(snapshot->policy);
        snapshot_destroy(snapshot->real);
        *snapshot = (struct leader_snapshot) { 0 };
}

struct scheduler *leader_side_scheduler(struct rmd *rmd, const char *policy) {
        struct scheduler_config config = {
                .host = { .directory = rmd->config->policy_dir },
                .policy = policy,
                .budget_usec = rmd->config->budget_usec,
        };

        return scheduler_create(rmd->base, &config);
}

int leader_try_round(struct rmd *rmd, struct scheduler *scheduler, scheduler_done done, void *context, struct rm_error *err) {
        struct round_input input;
        int r;

        make_input(rmd, &input);
        r = scheduler_run(scheduler, take_ptr(input.snapshot), input.jobs, done, context, err);
        round_input_finish(&input);
        return r;
}

struct leader *leader_create(struct rmd *rmd) {
        struct leader *leader = xcalloc(1, sizeof(*leader));

        leader->rmd = rmd;
        leader->begin_usec = now_usec();
        metrics_lead(rmd->metrics);
        leader->scheduler = leader_side_scheduler(rmd, rmd->config->policy);
        leader->traffic = traffic_create();
        leader->progress = progress_create();
        leader->memory = node_memory_create();
        leader->core_share = core_share_create();
        leader->fences = fences_create(rmd);
        leader->settle = evtimer_new(rmd->base, on_settle, leader);
        leader->loss = evtimer_new(rmd->base, on_loss, leader);
        leader->tick = event_new(rmd->base, -1, EV_PERSIST, on_tick, leader);
        timer_arm(leader->tick, TICK_USEC);
        leader->files = leader_files_create(rmd);
        leader->switches = switches_file_create(rmd->config);
        settle_later(leader, rmd->config->settle_usec);
        return leader;
}

void leader_destroy(struct leader *leader) {
        if (!leader)
                return;
        leader_files_destroy(leader->files);
        switches_file_destroy(leader->switches);
        traffic_destroy(leader->traffic);
        progress_destroy(leader->progress);
        node_memory_destroy(leader->memory);
        core_share_destroy(leader->core_share);
        fences_destroy(leader->fences);
        scheduler_destroy(leader->scheduler);
        event_free(leader->settle);
        event_free(leader->tick);
        event_free(leader->loss);
        free(leader);
}
