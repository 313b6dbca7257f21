#include "daemon/leader/enact.h"

#include <stdlib.h>
#include <string.h>

#include "common/groups.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/cores.h"
#include "daemon/leader/fold_place.h"
#include "daemon/leader/parked.h"
#include "daemon/leader/processors.h"
#include "daemon/leader/round_input.h"
#include "daemon/state/commands.h"

static const Rm__State *state_of(const struct rmd *rmd) {
        return cluster_state(rmd->cluster);
}

static void propose(struct rmd *rmd, const Rm__Command *command) {
        cluster_decide(rmd->cluster, command);
}

/* A snapshot names jobs by their numbers. */
static uint64_t job_number(const struct rm_snapshot *snapshot, uint32_t index) {
        return strtoull(snapshot->jobs[index].name, NULL, 10);
}

const Rm__Job *enact_job(const struct rmd *rmd, const struct rm_snapshot *snapshot, uint32_t index) {
        return state_job(state_of(rmd), job_number(snapshot, index));
}

/* Names of `n` nodes; the array is the caller's, the names are the snapshot's. */
static char **node_names(const struct rm_snapshot *snapshot, const int32_t *nodes, uint32_t n) {
        char **names = xcalloc(n + 1u, sizeof(*names));

        for (uint32_t i = 0; i < n; i++)
                names[i] = (char *) snapshot->nodes[nodes[i]].name;
        return names;
}

static void reserve_nodes(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        struct command c;
        Rm__CmdJobSpares *body = command_job_spares(&c, job_number(snapshot, action->job));
        cleanup_free char **names = node_names(snapshot, action->spare_nodes, action->n_spare_nodes);

        body->nodes = names;
        body->n_nodes = action->n_spare_nodes;
        propose(rmd, &c.command);
}

/* The round was made of groups as they are in this checkpoint (0: of a job that begins). If that is
 * not what the job goes on from any more, or nodes that have it went, the job is not placed: the
 * change brings the next round. */
static bool still_from(const struct rmd *rmd, const Rm__Job *job, uint64_t checkpoint) {
        const Rm__Checkpoint *newest = job_newest_checkpoint(state_of(rmd), job);
        const char *node;

        return (newest ? newest->id : 0) == checkpoint && !job_awaited_checkpoint(state_of(rmd), job, &node);
}

/* False: it is left to the next round, or there is no room for its parked groups, which it is
 * told. */
static bool start_job(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action, uint64_t checkpoint,
                      const char *policy) {
        const struct rm_job *view = &snapshot->jobs[action->job];
        const Rm__Job *job = enact_job(rmd, snapshot, action->job);
        cleanup_free uint32_t *ranks = NULL;
        cleanup_free int32_t *nodes = NULL;
        uint32_t n_groups, size;
        struct command c;
        Rm__CmdJobPlace *body = command_job_place(&c, job_number(snapshot, action->job));

        if (!job || !still_from(rmd, job, checkpoint))
                return false;
        /* The list has also parked groups, and ranks, which policies are not shown. */
        size = view->n_groups > 1
                       ? view->group_size
                       : round_input_group_size_of(state_of(rmd), job, job_checkpoint(job, checkpoint), rmd->config->group_size);
        if (size < view->group_size) /* nodes have become smaller since */
                size = view->group_size;
        ranks = groups_create(job->spec->ranks, size, &n_groups);
        nodes = parked_place(cluster_index(rmd->cluster), snapshot, action->job, job,
                             &(struct parked_start) { .n_groups = n_groups,
                                                      .group_size = size,
                                                      .group_node = action->group_node,
                                                      .head_node = action->head_node,
                                                      .capsules_per_core = rmd->config->max_capsules_per_core });
        if (!nodes) {
                enact_report_reason(rmd, job,
                                    &(struct reason) { .text = "waits for memory for its parked ranks, or for nodes with fewer "
                                                               "capsules ([job] max_capsules_per_core)" });
                return false;
        }
        body->group_size = size;
        body->head_node = (char *) snapshot->nodes[action->head_node].name;
        body->policy = (char *) policy;
        body->n_group_nodes = body->n_group_ranks = n_groups;
        body->group_nodes = node_names(snapshot, nodes, n_groups);
        body->spare_nodes = node_names(snapshot, action->spare_nodes, action->n_spare_nodes);
        body->n_spare_nodes = action->n_spare_nodes;
        body->group_ranks = ranks;
        body->checkpoint = checkpoint;
        body->capsules_per_core = rmd->config->max_capsules_per_core;
        propose(rmd, &c.command);
        free(body->group_nodes);
        free(body->spare_nodes);
        return true;
}

/* A job that has lost a node need not wait for cores of its own: it may share at once, or when it
 * has waited for as long as its owner wants. */
static bool may_fold(const struct rmd *rmd, const Rm__Job *job) {
        uint64_t waited_usec = cluster_log_usec(rmd->cluster) - job->pending_since_usec;

        if (job->state != RM__JOB_STATE__JOB_PENDING || job->held || job->attempt < 2 || job->pending_since_usec == 0)
                return false;
        return job->spec->on_node_loss == STATE_LOSS_FOLD ||
               (job->spec->recover_wait_usec > 0 && waited_usec >= job->spec->recover_wait_usec);
}

/* True: it is placed, or that was proposed at least. */
static bool start_folded(struct rmd *rmd, const struct rm_snapshot *snapshot, uint32_t index, uint64_t checkpoint,
                         const Rm__Job *job) {
        const uint32_t n_groups = snapshot->jobs[index].n_groups;
        cleanup_free int32_t *nodes = xcalloc(n_groups + 1u, sizeof(*nodes));
        struct round_action action = { .kind = ROUND_START, .job = index, .group_node = nodes };
        int32_t head;

        if (!may_fold(rmd, job) || !fold_place(snapshot, index, nodes, &head))
                return false;
        action.head_node = head;
        return start_job(rmd, snapshot, &action, checkpoint, "fold");
}

static int32_t capsule_of(const struct round_action *action) {
        return action->group == ROUND_HEAD ? STATE_HEAD : action->group;
}

static Rm__MoveCause cause_of(enum round_cause cause) {
        static const Rm__MoveCause causes[] = {
                [ROUND_NEEDED] = RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED,
                [ROUND_RETURN] = RM__MOVE_CAUSE__MOVE_CAUSE_RETURN,
                [ROUND_CHOICE] = RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE,
        };

        return causes[cause];
}

enum cooldown enact_cooldown(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        if (action->kind != ROUND_MOVE)
                return COOLDOWN_NONE;
        return cooldown_of(state_of(rmd), job_number(snapshot, action->job), capsule_of(action), cause_of(action->cause),
                           rmd->config->horizon_usec, cluster_log_usec(rmd->cluster));
}

/* A node that may be lost any moment is left in the shortest time, though the group is frozen for
 * longer. */
static bool leaves_at_once(const struct rmd *rmd, const char *from) {
        const Rm__Node *node = state_node(state_of(rmd), from);

        return node && node_critical_usec(node) > 0;
}

/* How many capsules the destination of a move may have for each core; 0: any number. Groups that
 * compute need cores, and may always go where there are some, or share some when a node is to be
 * empty. The others go where a user says, or his availability file. */
static uint32_t move_limit(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        const Rm__Job *job = enact_job(rmd, snapshot, action->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, capsule_of(action)) : NULL;

        if (!capsule || snapshot->nodes[action->from].cores == 0)
                return 0;
        return action->cause == ROUND_NEEDED || job_group_parked(job, capsule) ? rmd->config->max_capsules_per_core : 0;
}

/* The move is to begin where the round saw the capsule: a user may have moved it since. Where the
 * destination lacks instruction sets the state would refuse the move, and every round would propose
 * it again. */
static bool may_move(const struct rmd *rmd, const Rm__Capsule *capsule, const char *from, const char *to) {
        const Rm__Node *source = state_node(state_of(rmd), from), *destination = state_node(state_of(rmd), to);
        cleanup_free char *lacks = source && destination ? node_lacks(destination, source) : NULL;

        return capsule && strcmp(capsule->node, from) == 0 && !lacks;
}

static void start_move(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action) {
        const Rm__Job *job = enact_job(rmd, snapshot, action->job);
        struct command c;
        Rm__CmdMoveStart *body =
                command_move_start(&c, job_number(snapshot, action->job), capsule_of(action), snapshot->nodes[action->to].name);

        body->cause = cause_of(action->cause);
        body->reason = (char *) action->reason;
        body->stop = leaves_at_once(rmd, snapshot->nodes[action->from].name);
        body->capsules_per_core = move_limit(rmd, snapshot, action);
        /* Without a free capsule on the node the move would be refused, and every round would
         * propose it again. */
        if (state_capsule_space(cluster_index(rmd->cluster), body->to, body->capsules_per_core) > 0 &&
            may_move(rmd, job ? job_capsule(job, body->capsule) : NULL, snapshot->nodes[action->from].name, body->to))
                propose(rmd, &c.command);
}

void enact_report_reason(struct rmd *rmd, const Rm__Job *job, const struct reason *reason) {
        bool waits = job->state == RM__JOB_STATE__JOB_PENDING;
        bool stays = reason->stays_on && state_of(rmd)->level >= STATE_LEVEL_STAYS;
        const char *stays_on = stays ? reason->stays_on : "";
        cleanup_free char *text = waits ? job_wait_text(job, reason->text) : xstrdup(reason->text);
        struct command c;
        Rm__CmdJobWait *body;

        if (!reason->lost_round && strcmp(job->reason, text) == 0 && strcmp(job->stays_on, stays_on) == 0)
                return;
        body = command_job_wait(&c, job->id, text);
        body->lost_round = reason->lost_round;
        body->stays_on = (char *) stays_on;
        propose(rmd, &c.command);
}

/* Without jobs no policy was asked, so that nothing is known to be better. */
static void report_warnings(struct rmd *rmd, const struct rm_snapshot *snapshot, const char *warnings) {
        struct command c;

        if (strcmp(warnings, state_of(rmd)->scheduling_warning) == 0 || (!*warnings && snapshot->n_jobs == 0))
                return;
        propose(rmd, command_scheduling(&c, warnings));
}

static void enact_actions(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *result, bool *ret_started,
                          bool *ret_skipped) {
        size_t moving;

        (void) state_open_moves(cluster_index(rmd->cluster), &moving);
        for (size_t i = 0; i < result->n_actions; i++) {
                const struct round_action *action = &result->actions[i];
                enum cooldown cooldown;

                if (action->kind == ROUND_START) {
                        *ret_started |= start_job(rmd, snapshot, action, result->jobs[action->job].checkpoint,
                                                  result->jobs[action->job].policy);
                } else if (action->kind == ROUND_RESERVE) {
                        reserve_nodes(rmd, snapshot, action);
                } else if (moving < rmd->config->moves_at_once) {
                        cooldown = enact_cooldown(rmd, snapshot, action);
                        *ret_skipped |= cooldown == COOLDOWN_FAILURE || cooldown == COOLDOWN_REFUSED;
                        if (cooldown == COOLDOWN_NONE)
                                start_move(rmd, snapshot, action);
                        moving++;
                }
        }
}

bool enact_moves(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *moves) {
        bool started = false, skipped = false;

        enact_actions(rmd, snapshot, moves, &started, &skipped);
        return skipped;
}

/* Groups that no policy sees, and that are to leave their nodes as others are. */
static void move_parked(struct rmd *rmd, const struct rm_snapshot *snapshot, struct parked_stay *ret_stays, bool *ret_skipped) {
        struct round_result moves = { 0 };

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const Rm__Job *job = enact_job(rmd, snapshot, j);

                if (job && job_may_park(state_of(rmd), job->spec))
                        parked_moves(cluster_index(rmd->cluster), snapshot, j, job, rmd->config->max_capsules_per_core, &moves,
                                     &ret_stays[j]);
        }
        *ret_skipped |= enact_moves(rmd, snapshot, &moves);
        free(moves.actions);
}

static bool has_node_to_leave(const Rm__State *state, const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Node *node = state_node(state, job->capsules[i]->node);

                if (node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP && node_usable_cores(node) == 0)
                        return true;
        }
        return false;
}

/* Tells the reason, and which nodes the job cannot come to, if it waits for some. */
static void report_reason(struct rmd *rmd, const Rm__Job *job, const struct reason *reason) {
        bool waits = job->n_capsules == 0 || has_node_to_leave(state_of(rmd), job);
        cleanup_free char *against = waits ? processors_reason(state_of(rmd), job) : NULL;
        cleanup_free char *text = against ? xasprintf("%s%s%s", reason->text, *reason->text ? "; " : "", against) : NULL;
        struct reason longer = *reason;

        longer.text = text ? text : reason->text;
        enact_report_reason(rmd, job, &longer);
}

/* A group that computes comes before a parked one. */
static void report_stay(struct rmd *rmd, const Rm__Job *job, const struct round_job_result *outcome,
                        const struct parked_stay *parked) {
        struct reason reason = { .text = outcome->reason, .stays_on = outcome->stays_on };

        if (parked->reason && !outcome->stays_on[0])
                reason = (struct reason) { .text = parked->reason, .stays_on = parked->node };
        report_reason(rmd, job, &reason);
}

bool enact_round(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings,
                 bool *ret_short_of_memory) {
        struct parked_stay *parked = xcalloc(snapshot->n_jobs + 1u, sizeof(*parked));
        bool started = false, skipped = false;

        report_warnings(rmd, snapshot, warnings);
        cores_report(rmd, snapshot, result);
        enact_actions(rmd, snapshot, result, &started, &skipped);
        move_parked(rmd, snapshot, parked, &skipped);
        for (uint32_t i = 0; i < result->n_jobs; i++) {
                const Rm__Job *job = enact_job(rmd, snapshot, i);

                if (job && job->state == RM__JOB_STATE__JOB_PENDING && result->jobs[i].waits &&
                    start_folded(rmd, snapshot, i, result->jobs[i].checkpoint, job))
                        break; /* the others are looked at in the round that follows */
                /* Looked at again with each tick: its time may be over. */
                skipped |= job && job->state == RM__JOB_STATE__JOB_PENDING && job->attempt > 1 && job->spec->recover_wait_usec > 0;
                if (job && job->state == RM__JOB_STATE__JOB_PENDING && result->jobs[i].waits)
                        report_reason(rmd, job,
                                      &(struct reason) { .text = result->jobs[i].reason,
                                                         .lost_round = result->jobs[i].lost && started });
                else if (job && job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel)
                        report_stay(rmd, job, &result->jobs[i], &parked[i]);
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                *ret_short_of_memory |= parked[j].reason != NULL;
                free(parked[j].reason);
        }
        free(parked);
        return skipped;
}
