#include "daemon/leader/leader.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/cores.h"
#include "daemon/leader/files.h"
#include "daemon/leader/topology.h"
#include "daemon/leader/traffic.h"
#include "daemon/leader/view.h"
#include "daemon/sched/move_cost.h"

#define TICK_USEC 1000000U
#define JOBS_KEPT 500U
/* A move that failed is tried again after this, doubled for each failure in a row. */
#define BACKOFF_FIRST_USEC 500000U
#define BACKOFF_MAX_USEC 30000000U
/* How long an asked-for move keeps the scheduler from moving that job without need. */
#define STEERED_USEC 60000000U

struct leader {
        struct rmd *rmd;
        struct scheduler *scheduler;
        struct leader_files *files; /* availability; only while leading */
        struct switches_file *switches; /* likewise */
        struct traffic *traffic;
        struct event *settle;
        struct event *tick;
        bool settling;
        uint64_t round_usec; /* when the last round began, monotonic */
        bool skipped; /* a move has to wait after failures: the tick comes back to it */
        bool again; /* something changed while a round was under way */
};

static const Rm__State *state_of(const struct leader *leader) {
        return cluster_state(leader->rmd->cluster);
}

static void propose(struct leader *leader, const Rm__Command *command) {
        cluster_propose(leader->rmd->cluster, command, NULL, NULL);
}

/* ---- carrying out a round ---- */

/* A snapshot names jobs by their numbers. */
static uint64_t job_number(const struct rm_snapshot *snapshot, uint32_t index) {
        return strtoull(snapshot->jobs[index].name, NULL, 10);
}

static const Rm__Job *job_at(const struct leader *leader, const struct rm_snapshot *snapshot, uint32_t index) {
        return state_job(state_of(leader), job_number(snapshot, index));
}

/* Names of `n` nodes; the array is the caller's, the names are the snapshot's. */
static char **node_names(const struct rm_snapshot *snapshot, const int32_t *nodes, uint32_t n) {
        char **names = xcalloc(n + 1u, sizeof(*names));

        for (uint32_t i = 0; i < n; i++)
                names[i] = (char *) snapshot->nodes[nodes[i]].name;
        return names;
}

static void reserve_nodes(struct leader *leader, const struct rm_snapshot *snapshot, const struct round_action *action) {
        Rm__CmdJobSpares body = RM__CMD_JOB_SPARES__INIT;
        Rm__Command command = RM__COMMAND__INIT;
        cleanup_free char **names = node_names(snapshot, action->spare_nodes, action->n_spare_nodes);

        body.job = job_number(snapshot, action->job);
        body.nodes = names;
        body.n_nodes = action->n_spare_nodes;
        command.body_case = RM__COMMAND__BODY_JOB_SPARES;
        command.job_spares = &body;
        propose(leader, &command);
}

static void start_job(struct leader *leader, const struct rm_snapshot *snapshot, const struct round_action *action,
                      const char *policy) {
        const struct rm_job *job = &snapshot->jobs[action->job];
        Rm__CmdJobPlace body = RM__CMD_JOB_PLACE__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        body.job = job_number(snapshot, action->job);
        body.group_size = job->group_size;
        body.head_node = (char *) snapshot->nodes[action->head_node].name;
        body.policy = (char *) policy;
        body.n_group_nodes = body.n_group_ranks = job->n_groups;
        body.group_nodes = node_names(snapshot, action->group_node, job->n_groups);
        body.spare_nodes = node_names(snapshot, action->spare_nodes, action->n_spare_nodes);
        body.n_spare_nodes = action->n_spare_nodes;
        body.group_ranks = xcalloc(job->n_groups, sizeof(uint32_t));
        for (uint32_t i = 0; i < job->n_groups; i++)
                body.group_ranks[i] = job->groups[i].ranks;
        command.body_case = RM__COMMAND__BODY_JOB_PLACE;
        command.job_place = &body;
        propose(leader, &command);
        free(body.group_nodes);
        free(body.spare_nodes);
        free(body.group_ranks);
}

/* When this capsule may be moved again (real time), after moves that failed; 0 = now. */
static uint64_t backoff_until(const Rm__State *state, uint64_t job, int32_t capsule) {
        uint64_t wait = 0;
        uint64_t last = 0;

        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job != job || move->capsule != capsule)
                        continue;
                if (move->state != RM__MOVE_STATE__MOVE_ABORTED)
                        break;
                if (!last)
                        last = move->end_usec;
                wait = wait ? wait * 2 : BACKOFF_FIRST_USEC;
                if (wait >= BACKOFF_MAX_USEC)
                        break;
        }
        return last ? last + (wait > BACKOFF_MAX_USEC ? BACKOFF_MAX_USEC : wait) : 0;
}

/* Somebody has just put a capsule of this job where he wants it: nothing is moved only to look better. */
static bool steered(const Rm__State *state, uint64_t job, uint64_t now) {
        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job == job && move->cause == RM__MOVE_CAUSE__MOVE_CAUSE_ASKED && now < move->start_usec + STEERED_USEC)
                        return true;
        }
        return false;
}

/* It was moved by choice not long ago: before the horizon has passed, that move has not paid yet. */
static bool rests(const Rm__State *state, uint64_t job, int32_t capsule, uint64_t horizon_usec, uint64_t now) {
        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job == job && move->capsule == capsule && move->state != RM__MOVE_STATE__MOVE_ABORTED)
                        return move->cause == RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE && now < move->start_usec + horizon_usec;
        }
        return false;
}

/* A move that a round wants is to be begun later. */
enum hold {
        HOLD_NONE,
        HOLD_STEERED,
        HOLD_RESTS,
        HOLD_FAILED,
};

static int32_t capsule_of(const struct round_action *action) {
        return action->group == ROUND_HEAD ? STATE_HEAD : action->group;
}

static enum hold hold_of(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        const Rm__State *state = cluster_state(rmd->cluster);
        uint64_t job = job_number(snapshot, action->job), now = now_real_usec();

        if (action->cause == ROUND_CHOICE && steered(state, job, now))
                return HOLD_STEERED;
        if (action->cause == ROUND_CHOICE && rests(state, job, capsule_of(action), rmd->config->horizon_usec, now))
                return HOLD_RESTS;
        return backoff_until(state, job, capsule_of(action)) > now ? HOLD_FAILED : HOLD_NONE;
}

const char *leader_hold(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        static const char *const reasons[] = {
                [HOLD_NONE] = NULL,
                [HOLD_STEERED] = "the job was moved on request less than a minute ago",
                [HOLD_RESTS] = "the group was moved by choice within the horizon",
                [HOLD_FAILED] = "its last move failed a moment ago",
        };

        return action->kind == ROUND_MOVE ? reasons[hold_of(rmd, snapshot, action)] : NULL;
}

static Rm__MoveCause cause_of(enum round_cause cause) {
        static const Rm__MoveCause causes[] = {
                [ROUND_NEEDED] = RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED,
                [ROUND_RETURN] = RM__MOVE_CAUSE__MOVE_CAUSE_RETURN,
                [ROUND_CHOICE] = RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE,
        };

        return causes[cause];
}

static void start_move(struct leader *leader, const struct rm_snapshot *snapshot, const struct round_action *action) {
        Rm__CmdMoveStart body = RM__CMD_MOVE_START__INIT;
        Rm__Command command = RM__COMMAND__INIT;
        enum hold hold;

        body.job = job_number(snapshot, action->job);
        body.capsule = capsule_of(action);
        body.to = (char *) snapshot->nodes[action->to].name;
        body.cause = cause_of(action->cause);
        body.reason = (char *) action->reason;
        hold = hold_of(leader->rmd, snapshot, action);
        leader->skipped |= hold == HOLD_FAILED;
        if (hold != HOLD_NONE)
                return;
        command.body_case = RM__COMMAND__BODY_MOVE_START;
        command.move_start = &body;
        propose(leader, &command);
}

static void tell_waiting(struct leader *leader, const Rm__Job *job, const char *reason, bool lost_round) {
        Rm__CmdJobWait body = RM__CMD_JOB_WAIT__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        if (!lost_round && strcmp(job->reason, reason) == 0)
                return;
        body.job = job->id;
        body.reason = (char *) reason;
        body.lost_round = lost_round;
        command.body_case = RM__COMMAND__BODY_JOB_WAIT;
        command.job_wait = &body;
        propose(leader, &command);
}

static void settle_later(struct leader *leader, uint64_t usec) {
        struct timeval delay = { .tv_sec = (time_t) (usec / 1000000), .tv_usec = (suseconds_t) (usec % 1000000) };

        if (leader->settling)
                return;
        leader->settling = true;
        (void) evtimer_add(leader->settle, &delay);
}

/* Without jobs no policy was asked, so that nothing is known to be better. */
static void tell_warnings(struct leader *leader, const struct rm_snapshot *snapshot, const char *warnings) {
        Rm__CmdScheduling body = RM__CMD_SCHEDULING__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        if (strcmp(warnings, state_of(leader)->scheduling_warning) == 0 || (!*warnings && snapshot->n_jobs == 0))
                return;
        body.warning = (char *) warnings;
        command.body_case = RM__COMMAND__BODY_SCHEDULING;
        command.scheduling = &body;
        propose(leader, &command);
}

static void on_round(void *context, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings) {
        struct leader *leader = context;
        size_t running;
        bool started = false;

        (void) state_open_moves(cluster_index(leader->rmd->cluster), &running);

        tell_warnings(leader, snapshot, warnings ? warnings : "");
        cores_tell(leader->rmd, snapshot, result);
        for (size_t i = 0; i < result->n_actions; i++) {
                const struct round_action *action = &result->actions[i];

                if (action->kind == ROUND_START) {
                        start_job(leader, snapshot, action, result->jobs[action->job].policy);
                        started = true;
                } else if (action->kind == ROUND_RESERVE) {
                        reserve_nodes(leader, snapshot, action);
                } else if (running < leader->rmd->config->moves_at_once) {
                        start_move(leader, snapshot, action);
                        running++;
                }
        }
        for (uint32_t i = 0; i < result->n_jobs; i++) {
                const Rm__Job *job = job_at(leader, snapshot, i);

                if (job && job->state == RM__JOB_STATE__JOB_PENDING && result->jobs[i].waits)
                        tell_waiting(leader, job, result->jobs[i].reason, result->jobs[i].lost && started);
                else if (job && job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel)
                        tell_waiting(leader, job, result->jobs[i].reason, false);
        }
        if (leader->again) {
                leader->again = false;
                settle_later(leader, leader->rmd->config->settle_usec);
        }
}

static int64_t bytes_per_cost(const struct config *config) {
        return move_cost_bytes((uint64_t) config->link_mbit_per_sec * (1000000 / 8), config->horizon_usec);
}

static bool waits_for_file(const void *files, const Rm__Job *job) {
        return leader_files_unknown(files, job);
}

static void make_view(const struct rmd *rmd, struct view *ret) {
        static const uint32_t backfill[] = {
                [CONFIG_BACKFILL_NO] = 0, [CONFIG_BACKFILL_LIMITS] = ROUND_BACKFILL_LIMITS, [CONFIG_BACKFILL_ANY] = 1
        };
        struct view_config config = {
                .group_size = rmd->config->group_size,
                .now_usec = now_real_usec(),
                .horizon_usec = rmd->config->horizon_usec,
                .age_weight = rmd->config->age_weight,
                .move_budget = rmd->config->move_budget,
                .bytes_per_cost = bytes_per_cost(rmd->config),
                .traffic = rmd->leader ? rmd->leader->traffic : NULL,
                .waits = waits_for_file,
                .waits_context = rmd->leader ? rmd->leader->files : NULL,
                .backfill = backfill[rmd->config->backfill],
        };

        view_create(cluster_index(rmd->cluster), &config, ret);
}

static void tell_left_out(struct leader *leader, const struct view *view) {
        for (size_t i = 0; i < view->n_left_out; i++) {
                const Rm__Job *job = state_job(state_of(leader), view->left_out[i].job);

                if (job && !job->cancel && job->state <= RM__JOB_STATE__JOB_RUNNING)
                        tell_waiting(leader, job, view->left_out[i].reason, false);
        }
}

static void run_round(struct leader *leader) {
        struct view view;
        struct rm_error err = { 0 };
        int r;

        if (!cluster_is_leader(leader->rmd->cluster) || !cluster_synced(leader->rmd->cluster))
                return;
        if (scheduler_busy(leader->scheduler)) {
                leader->again = true;
                return;
        }
        if (leader->switches && topology_tell(leader->rmd, leader->switches))
                return; /* and back once it is known */
        leader->round_usec = now_usec();
        make_view(leader->rmd, &view);
        tell_left_out(leader, &view);
        traffic_mark(leader->traffic);
        r = scheduler_run(leader->scheduler, take_ptr(view.snapshot), view.jobs, on_round, leader, &err);
        if (r < 0 && r != -ENOSPC)
                log_warn("scheduling: %s", error_text(&err));
        view_finish(&view);
}

static void on_settle(evutil_socket_t fd, short what, void *arg) {
        struct leader *leader = arg;

        leader->settling = false;
        run_round(leader);
}

/* ---- by the clock ---- */

static void check_limits(struct leader *leader, uint64_t now) {
        const Rm__State *state = state_of(leader);
        uint64_t over = 0;

        for (size_t i = 0; i < state->n_jobs && !over; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel && job->spec->time_limit_usec &&
                    now > job->start_usec + job->spec->time_limit_usec)
                        over = job->id;
        }
        if (over) {
                Rm__CmdJobCancel body = RM__CMD_JOB_CANCEL__INIT;
                Rm__Command command = RM__COMMAND__INIT;

                body.job = over;
                body.signal = SIGTERM;
                body.timeout = true;
                command.body_case = RM__COMMAND__BODY_JOB_CANCEL;
                command.job_cancel = &body;
                propose(leader, &command);
        }
}

static void forget_old_jobs(struct leader *leader, uint64_t now) {
        const Rm__State *state = state_of(leader);
        size_t ended = 0;
        uint64_t old = 0;

        for (size_t i = 0; i < state->n_jobs; i++)
                ended += job_ended(state->jobs[i]);
        for (size_t i = 0; i < state->n_jobs && !old; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job_ended(job) &&
                    (now > job->end_usec + leader->rmd->config->keep_jobs_usec || (ended > JOBS_KEPT && job->output_done)))
                        old = job->id;
        }
        if (old) {
                Rm__CmdJobForget body = RM__CMD_JOB_FORGET__INIT;
                Rm__Command command = RM__COMMAND__INIT;

                body.job = old;
                command.body_case = RM__COMMAND__BODY_JOB_FORGET;
                command.job_forget = &body;
                propose(leader, &command);
        }
}

/* A job with a capsule on a node that is down cannot go on: its mpirun would wait for ever. */
static void fail_lost_jobs(struct leader *leader, uint64_t now) {
        const Rm__State *state = state_of(leader);
        uint64_t grace = 2 * leader->rmd->config->node_timeout_usec;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                for (size_t k = 0; k < job->n_capsules && job_running(job); k++) {
                        const Rm__Node *node = state_node(state, job->capsules[k]->node);
                        Rm__CmdJobExit body = RM__CMD_JOB_EXIT__INIT;
                        Rm__Command command = RM__COMMAND__INIT;
                        cleanup_free char *reason = NULL;

                        if (!node || node->health != RM__NODE_HEALTH__NODE_HEALTH_DOWN || now < node->health_since_usec + grace)
                                continue;
                        reason = xasprintf("node %s is down", node->name);
                        body.job = job->id;
                        body.exit_code = 255;
                        body.reason = reason;
                        body.final_state = RM__JOB_STATE__JOB_NODE_FAIL;
                        command.body_case = RM__COMMAND__BODY_JOB_EXIT;
                        command.job_exit = &body;
                        propose(leader, &command);
                        return; /* the state has changed; the rest at the next tick */
                }
        }
}

/* Nothing has changed, but time has passed: groups have rested, and what is not told in the log may be otherwise. */
static bool timer_due(const struct leader *leader) {
        uint64_t interval = leader->rmd->config->interval_usec;

        return interval > 0 && now_usec() >= leader->round_usec + interval;
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
        struct leader *leader = arg;
        uint64_t now = now_real_usec();

        if (!cluster_is_leader(leader->rmd->cluster) || !cluster_synced(leader->rmd->cluster))
                return;
        check_limits(leader, now);
        forget_old_jobs(leader, now);
        fail_lost_jobs(leader, now);
        traffic_forget_ended(leader->traffic, state_of(leader));
        if (leader->switches && switches_file_look(leader->switches))
                settle_later(leader, leader->rmd->config->settle_usec);
        if (leader->skipped || timer_due(leader)) {
                leader->skipped = false;
                run_round(leader);
        }
}

/* ---- from outside ---- */

void leader_wake(struct leader *leader, const Rm__Command *command) {
        if (!leader || !cluster_is_leader(leader->rmd->cluster))
                return;
        leader_files_check(leader->files);
        /* These change nothing a policy sees. */
        if (command &&
            (command->body_case == RM__COMMAND__BODY_JOB_WAIT || command->body_case == RM__COMMAND__BODY_NOTE ||
             command->body_case == RM__COMMAND__BODY_SCHEDULING || command->body_case == RM__COMMAND__BODY_JOB_OUTPUT_DONE ||
             command->body_case == RM__COMMAND__BODY_JOB_FORGET || command->body_case == RM__COMMAND__BODY_JOB_CORES ||
             command->body_case == RM__COMMAND__BODY_CAPSULE_READY))
                return;
        settle_later(leader, leader->rmd->config->settle_usec);
}

void leader_round_soon(struct leader *leader) {
        if (leader)
                settle_later(leader, leader->rmd->config->settle_usec);
}

void leader_changed(struct leader *leader) {
        bool leads = cluster_is_leader(leader->rmd->cluster);

        if (leads && !leader->files) {
                leader->files = leader_files_create(leader->rmd);
                leader->switches = switches_file_create(leader->rmd->config);
                settle_later(leader, leader->rmd->config->settle_usec);
        } else if (!leads && leader->files) {
                leader_files_destroy(leader->files);
                leader->files = NULL;
                switches_file_destroy(take_ptr(leader->switches));
                scheduler_cancel(leader->scheduler);
        }
}

/* What no move is worth is not worth a round. */
static double least_traffic(const struct config *config) {
        return (double) bytes_per_cost(config) * MOVE_COST_BASE * 1e6 /
               (double) (config->horizon_usec > 0 ? config->horizon_usec : 1);
}

void leader_on_traffic(struct leader *leader, const Rm__Traffic *report) {
        if (!leader || !cluster_is_leader(leader->rmd->cluster))
                return;
        traffic_add(leader->traffic, state_of(leader), report);
        if (traffic_shifted(leader->traffic, report->job, least_traffic(leader->rmd->config)))
                settle_later(leader, leader->rmd->config->settle_usec);
}

int leader_snapshot(struct rmd *rmd, struct leader_view *ret, struct rm_error *err) {
        struct leader_view result = { 0 };
        struct view view;
        int r;

        make_view(rmd, &view);
        r = round_view(snapshot_view(view.snapshot), view.jobs, &result.policy, err);
        if (r == 0) {
                result.real = take_ptr(view.snapshot);
                *ret = result;
        }
        view_finish(&view);
        return r;
}

void leader_view_finish(struct leader_view *view) {
        snapshot_destroy(view->policy);
        snapshot_destroy(view->real);
        *view = (struct leader_view) { 0 };
}

struct policy_host *leader_side_host(struct leader *leader) {
        return scheduler_side_host(leader->scheduler);
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
        struct view view;
        int r;

        make_view(rmd, &view);
        r = scheduler_run(scheduler, take_ptr(view.snapshot), view.jobs, done, context, err);
        view_finish(&view);
        return r;
}

int leader_create(struct rmd *rmd, struct leader **ret, struct rm_error *err) {
        struct leader *leader = xcalloc(1, sizeof(*leader));
        struct timeval tick = { .tv_sec = TICK_USEC / 1000000U };

        leader->rmd = rmd;
        leader->scheduler = leader_side_scheduler(rmd, rmd->config->policy);
        leader->traffic = traffic_create();
        leader->settle = evtimer_new(rmd->base, on_settle, leader);
        leader->tick = event_new(rmd->base, -1, EV_PERSIST, on_tick, leader);
        (void) evtimer_add(leader->tick, &tick);
        *ret = leader;
        return 0;
}

void leader_destroy(struct leader *leader) {
        if (!leader)
                return;
        leader_files_destroy(leader->files);
        switches_file_destroy(leader->switches);
        traffic_destroy(leader->traffic);
        scheduler_destroy(leader->scheduler);
        event_free(leader->settle);
        event_free(leader->tick);
        free(leader);
}
