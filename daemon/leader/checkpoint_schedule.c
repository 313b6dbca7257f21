#include "daemon/leader/checkpoint_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/leader/interval.h"
#include "daemon/leader/partners.h"
#include "daemon/state/commands.h"

#define CAPTURE_MOST_USEC (UINT64_C(1200) * 1000000) /* then something is stuck, and nodes have not said so */
#define RETRY_USEC (UINT64_C(10) * 1000000)          /* after a checkpoint that failed, at least */
#define AHEAD_USEC (UINT64_C(20) * 1000000)          /* before a deadline or a limit, and as long as the last one took */
#define DRILL_MOST_USEC (UINT64_C(1200) * 1000000)   /* likewise, from when a drill was captured */
#define COPY_REST_USEC (UINT64_C(60) * 1000000)       /* after a copy that failed, until another node is to have one */
#define SHARE_OF_CORE 4U                              /* what is stored beside the job takes it about that part of a core */

/* ---- begin ---- */

int leader_checkpoint(struct rmd *rmd, uint64_t id, const struct checkpoint_wish *wish, cluster_propose_fn callback, void *userdata,
                      struct rm_error *err) {
        const Rm__State *state = cluster_state(rmd->cluster);
        const Rm__Job *job = state_job(state, id);
        bool partners_requested = wish->cause != RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL &&
                                  strcmp(rmd->config->checkpoint_store, CONFIG_STORE_PARTNER) == 0;
        cleanup_free char **nodes = NULL, **partners = NULL;
        Rm__CmdCheckpointStart *body;
        struct state_result result;
        struct command c;

        if (!rmd->leader)
                return error_set(err, -EHOSTUNREACH, "this node does not lead any more");
        if (!job || job_ended(job))
                return error_set(err, -ENOENT, "job %" PRIu64 " does not run", id);
        nodes = xcalloc(job->n_capsules + 1, sizeof(*nodes));
        partners = xcalloc(job->n_capsules + 1, sizeof(*partners));
        body = command_checkpoint_start(&c, id, wish->cause);
        body->by = (char *) wish->by;
        body->stop = wish->stop;
        body->force = wish->force;
        body->limits = wish->limits;
        body->keep = rmd->config->checkpoint_keep;
        body->capsule_nodes = nodes;
        body->partners = partners;
        for (size_t i = 0; i < job->n_capsules; i++) {
                char *node = job->capsules[i]->node;

                if (names_have(nodes, body->n_capsule_nodes, node))
                        continue;
                nodes[body->n_capsule_nodes++] = node;
                partners[body->n_partners++] =
                        partners_choose(state, job, node, partners_requested ? rmd->config->checkpoint_copies : 0);
        }
        if (cluster_effect(rmd->cluster, &c.command, &result) == STATE_EFFECT_REFUSED)
                callback(userdata, result.error.code, result.error.text, state->index, 0);
        else
                cluster_propose(rmd->cluster, &c.command, callback, userdata);
        for (size_t i = 0; i < body->n_partners; i++)
                free(partners[i]);
        return 0;
}

/* ---- when ---- */

static const Rm__Checkpoint *last_done(const Rm__Job *job) {
        for (size_t i = job->n_checkpoints; i > 0; i--)
                if (job->checkpoints[i - 1]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        return job->checkpoints[i - 1];
        return NULL;
}

/* The cost of a checkpoint to the job: the job is frozen, and then shares its cores with the
 * process that stores. */
static uint64_t cost_of(const Rm__Checkpoint *checkpoint) {
        uint64_t longest_usec = 0;

        for (size_t i = 0; checkpoint && i < checkpoint->n_parts; i++)
                if (checkpoint->parts[i]->store_usec > longest_usec)
                        longest_usec = checkpoint->parts[i]->store_usec;
        return checkpoint ? checkpoint->pause_usec + longest_usec / SHARE_OF_CORE : 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* The number of nodes that the job is on. It may have as many capsules as there are addresses, and
 * is asked for once a second. */
static uint32_t nodes_of(const Rm__Job *job) {
        cleanup_free char **names = xcalloc(job->n_capsules, sizeof(*names));
        uint32_t n = 0;

        for (size_t i = 0; i < job->n_capsules; i++)
                names[i] = job->capsules[i]->node;
        qsort(names, job->n_capsules, sizeof(*names), compare_names);
        for (size_t i = 0; i < job->n_capsules; i++)
                n += i == 0 || strcmp(names[i - 1], names[i]) != 0;
        return n > 0 ? n : 1;
}

uint64_t checkpoint_interval_usec(const Rm__State *state, const Rm__Job *job, uint64_t prior_mtbf_usec) {
        struct state_failures failures;
        struct interval_facts facts;

        if (job->own_state)
                return 0;
        if (job->spec->checkpoint_usec != STATE_CHECKPOINT_AUTO)
                return job->spec->checkpoint_usec;
        state_failures(state, 0, &failures);
        facts = (struct interval_facts) {
                .cost_usec = cost_of(last_done(job)),
                .mtbf_usec = interval_mtbf(prior_mtbf_usec, failures.node_usec, failures.losses),
                .nodes = nodes_of(job),
                .foreseen = failures.losses > 0 ? (double) failures.foreseen / (double) failures.losses : 0,
        };
        return interval_best(&facts);
}

/* The time of the job's next checkpoint by the log's clock; UINT64_MAX: never. */
static uint64_t next_usec(const Rm__Job *job, uint64_t interval) {
        uint64_t last = job->checkpoint_try_usec > job->start_usec ? job->checkpoint_try_usec : job->start_usec;

        if (interval == 0)
                return UINT64_MAX;
        if (job->checkpoint_error[0] && interval < RETRY_USEC)
                interval = RETRY_USEC;
        return last + interval;
}

/* About how long it takes until it is done. */
static uint64_t takes_usec(const Rm__Job *job) {
        const Rm__Checkpoint *last = last_done(job);

        return last && last->end_usec > last->start_usec ? last->end_usec - last->start_usec : 0;
}

static bool is_moving(const struct state_index *index, uint64_t job) {
        size_t n;
        Rm__Move *const *moves = state_open_moves(index, &n);

        for (size_t i = 0; i < n; i++)
                if (moves[i]->job == job)
                        return true;
        return false;
}

static bool may_begin(const struct state_index *index, const Rm__Job *job) {
        bool changes = job->resize && job->resize->begun;

        return job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel && !job_checkpoint_under_way(job) && !changes &&
               !is_moving(index, job->id);
}

/* So short before its time limit that it is time to save it. */
static bool at_limit(const Rm__Job *job, uint64_t now) {
        uint64_t limit = job->start_usec + job->spec->time_limit_usec;

        return job->spec->checkpoint_at_limit && job->spec->time_limit_usec > 0 && now + AHEAD_USEC + 2 * takes_usec(job) >= limit;
}

/* The job has a capsule on a node that is to be empty so soon that it cannot be waited for any
 * more. */
static bool at_deadline(const Rm__State *state, const Rm__Job *job, uint64_t now) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Node *node = state_node(state, job->capsules[i]->node);

                if (node && node->drain && node->drain_deadline_usec > 0 &&
                    now + AHEAD_USEC + 2 * takes_usec(job) >= node->drain_deadline_usec)
                        return true;
        }
        return false;
}

/* When it failed just now, another one would too. */
static bool has_rested(const Rm__Job *job, uint64_t now) {
        return !job->checkpoint_error[0] || now >= job->checkpoint_try_usec + RETRY_USEC / 2;
}

/* The job starts again elsewhere, with the state that its program has saved. */
static bool requeue(struct rmd *rmd, const Rm__Job *job, uint64_t now) {
        struct command c;

        if (!job_wants_restart(job->spec) || !at_deadline(cluster_state(rmd->cluster), job, now))
                return false;
        cluster_decide(rmd->cluster, command_job_requeue(&c, job->id, job->attempt,
                                                         "a node must be empty soon, and its program keeps its own state"));
        return true;
}

static Rm__CheckpointCause cause_now(const struct rmd *rmd, const Rm__Job *job, uint64_t now, bool others, bool *ret_stop) {
        const Rm__State *state = cluster_state(rmd->cluster);
        uint64_t interval = checkpoint_interval_usec(state, job, rmd->config->checkpoint_mtbf_usec);
        uint64_t next = next_usec(job, interval);

        *ret_stop = true;
        if (job->own_state)
                return RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_NONE;
        if (at_limit(job, now) && has_rested(job, now))
                return RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_LIMIT;
        if (job_wants_restart(job->spec) && at_deadline(state, job, now) && has_rested(job, now))
                return RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRAIN;
        *ret_stop = false;
        /* Jobs are saved one after the other, so that the network is not full at once; but no job
         * waits for longer than an interval. */
        if (now < next || (others && now < next + interval))
                return RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_NONE;
        return RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_INTERVAL;
}

static void on_begun(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        if (code < 0 && code != -ECANCELED)
                log_info("a checkpoint does not begin: %s", text);
}

/* ---- what is stuck ---- */

static bool is_untried(const Rm__Checkpoint *checkpoint, const Rm__CheckpointPart *part) {
        return checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DRILLING && !part->drilled;
}

/* A node that was to store its part, or to try its restore, is down. */
static bool is_lost(const Rm__State *state, const Rm__Checkpoint *checkpoint) {
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                const Rm__CheckpointPart *part = checkpoint->parts[i];
                const Rm__Node *node = state_node(state, part->node);

                if ((part->n_stored == 0 || is_untried(checkpoint, part)) &&
                    (!node || node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN))
                        return true;
        }
        return false;
}

/* A drill must not be in the way of a checkpoint for which there is little time left. */
static bool is_pressing(const struct rmd *rmd, const Rm__Job *job, uint64_t now) {
        bool stop;

        return cause_now(rmd, job, now, false, &stop) != RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_NONE && stop;
}

static bool give_up_stuck(struct rmd *rmd, const Rm__Job *job, const Rm__Checkpoint *checkpoint, uint64_t now) {
        bool capturing = checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING;
        struct command c;

        if (is_lost(cluster_state(rmd->cluster), checkpoint))
                (void) command_checkpoint_abort(&c, job->id, checkpoint->id, "a node of the job is down");
        else if (capturing && now > checkpoint->start_usec + CAPTURE_MOST_USEC)
                (void) command_checkpoint_abort(&c, job->id, checkpoint->id, "it has not been captured in time");
        else if (checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DRILLING &&
                 now > checkpoint->captured_usec + DRILL_MOST_USEC)
                (void) command_checkpoint_abort(&c, job->id, checkpoint->id, "it has not come to its end in time");
        else if (checkpoint_is_drill(checkpoint) && is_pressing(rmd, job, now))
                (void) command_checkpoint_abort(&c, job->id, checkpoint->id, "the job is to be saved before it has to leave");
        else
                return false;
        cluster_decide(rmd->cluster, &c.command);
        return true;
}

/* ---- copies that were lost ---- */

/* Copies again the job's checkpoints that are done, the newest first. True: the state has
 * changed. */
static bool copy_again(struct rmd *rmd, const Rm__Job *job, uint64_t now) {
        const Rm__State *state = cluster_state(rmd->cluster);
        struct command c;

        for (size_t i = job->n_checkpoints; i > 0; i--) {
                const Rm__Checkpoint *checkpoint = job->checkpoints[i - 1];

                if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE ||
                    now < checkpoint->copy_error_usec + COPY_REST_USEC)
                        continue;
                for (size_t k = 0; k < checkpoint->n_parts; k++) {
                        const Rm__CheckpointPart *part = checkpoint->parts[k];
                        const char *node = partners_another(state, job, part, rmd->config->checkpoint_copies, now);

                        if (!node)
                                continue;
                        cluster_decide(rmd->cluster,
                                       command_checkpoint_copy_requested(&c, job->id, checkpoint->id, part->capsule, node));
                        return true;
                }
        }
        return false;
}

void checkpoints_tick(struct rmd *rmd, uint64_t now) {
        const struct state_index *index = cluster_index(rmd->cluster);
        const Rm__State *state = state_index_state(index);
        bool others = false;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(state->jobs[i]);

                if (checkpoint && give_up_stuck(rmd, state->jobs[i], checkpoint, now))
                        return; /* the state has changed: the next tick sees the others */
                others |= checkpoint != NULL;
                if (rmd->config->checkpoint_copies > 0 && copy_again(rmd, state->jobs[i], now))
                        return;
        }
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                struct checkpoint_wish wish = { .by = "" };

                if (!may_begin(index, job))
                        continue;
                if (job->own_state && requeue(rmd, job, now))
                        return;
                wish.cause = cause_now(rmd, job, now, others, &wish.stop);
                if (wish.cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_NONE)
                        continue;
                (void) leader_checkpoint(rmd, job->id, &wish, on_begun, NULL, NULL);
                return;
        }
}
