#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

static Rm__Job *find_job(struct apply *a, const char *what, uint64_t id) {
        Rm__Job *job = state_job(a->state, id);

        if (!job)
                (void) apply_refuse(a, -ENOENT, "%s: no job %" PRIu64, what, id);
        return job;
}

/* The newest first: a front end that lost its answer comes back at once. */
static const Rm__Job *submitted_before(const Rm__State *state, const Rm__JobSpec *spec) {
        for (size_t i = state->n_jobs; spec->token[0] && i > 0; i--) {
                const Rm__JobSpec *known = state->jobs[i - 1]->spec;

                if (known->uid == spec->uid && strcmp(known->token, spec->token) == 0)
                        return state->jobs[i - 1];
        }
        return NULL;
}

void job_remove(struct apply *a, const Rm__Job *job) {
        Rm__State *state = a->state;
        size_t at = 0;

        while (state->jobs[at] != job)
                at++;
        state_index_forget(a->index, job->id);
        rm__job__free_unpacked(state->jobs[at], NULL);
        REPEATED_REMOVE(state->jobs, state->n_jobs, at);
}

static int check_submit(struct apply *a, const Rm__UserLimits *limits, const Rm__JobSpec *spec) {
        const struct limits_demand more = { .jobs = 1, .ranks = spec->ranks };
        int r = limits_admit(a, "submit: ", limits, spec, &more);

        if (r == 0 && a->state->n_jobs - limits_ended_over(a->state, limits, spec->uid, 0) >= STATE_JOBS_MAX)
                r = apply_refuse(a, -EAGAIN, "submit: %u jobs are known already; try again when some have ended", STATE_JOBS_MAX);
        return r;
}

/* However often a front end submits with the same token, it gets one job. */
static Rm__Job *add_job(struct apply *a, const Rm__JobSpec *spec) {
        Rm__Job *job = xcalloc(1, sizeof(*job));

        assert(!submitted_before(a->state, spec));
        rm__job__init(job);
        job->id = a->state->next_job++;
        job->spec = (Rm__JobSpec *) message_copy(&spec->base);
        job->state = RM__JOB_STATE__JOB_PENDING;
        job->submit_usec = a->time_usec;
        message_set_string(&job->reason, "waits to be placed");
        REPEATED_PUSH(a->state->jobs, a->state->n_jobs, job);
        state_index_job(a->index, job->id);
        return job;
}

int apply_job_submit(struct apply *a) {
        const Rm__CmdJobSubmit *in = a->command->job_submit;
        const Rm__JobSpec *spec = in->spec;
        Rm__UserLimits limits = RM__USER_LIMITS__INIT;
        struct rm_error err = { 0 };
        const Rm__Job *before, *job;
        int r;

        if (!spec || spec->ranks == 0 || spec->n_argv == 0)
                return apply_refuse(a, -EINVAL, "submit: a job needs a command line and at least one rank");
        if (spec->active_ranks > spec->ranks || spec->min_ranks > spec->active_ranks)
                return apply_refuse(a, -EINVAL, "submit: of %u ranks %u cannot compute, nor %u at least", spec->ranks,
                                    spec->active_ranks, spec->min_ranks);
        before = submitted_before(a->state, spec);
        if (before) {
                a->result->created = before->id;
                return 0;
        }
        limits.jobs = in->max_jobs;
        limits.ranks = in->max_ranks;
        limits.ended_kept = in->ended_kept;
        r = check_submit(a, &limits, spec);
        if (r < 0)
                return r;
        if (state_check_body(a->state, spec, &err) < 0)
                return apply_refuse(a, err.code, "submit: %s", err.text);
        if (!apply_goes_on(a, true))
                return 0;
        limits_forget_ended(a, &limits, spec->uid, 0);
        job = add_job(a, spec);
        a->result->created = job->id;
        apply_event(a, "job-submitted", spec->submit_node, job->id, 0, 0, "job %" PRIu64 " of %s: %s, %u ranks", job->id,
                    spec->user, spec->name, spec->ranks);
        return 0;
}

int apply_job_availability(struct apply *a) {
        const Rm__CmdJobAvailability *in = a->command->job_availability;
        Rm__Job *job = find_job(a, "job-availability", in->job);

        if (!job)
                return -ENOENT;
        if (in->error[0]) {
                apply_event(a, "availability-error", NULL, job->id, 0, 0, "job %" PRIu64 ": %s; the last good content stays",
                            job->id, in->error);
                return 0;
        }
        REPEATED_SET(job->available, job->n_available, in->nodes, in->n_nodes);
        job->available_set = in->set;
        apply_event(a, "availability", NULL, job->id, 0, 0, "job %" PRIu64 ": availability of its own, %zu nodes", job->id,
                    job->n_available);
        return 0;
}

int apply_job_wait(struct apply *a) {
        const Rm__CmdJobWait *in = a->command->job_wait;
        Rm__Job *job = find_job(a, "job-wait", in->job);

        if (!job)
                return -ENOENT;
        /* From here on the job's reason tells why the job ended. */
        if (job_ended(job) || job->state == RM__JOB_STATE__JOB_COMPLETING)
                return apply_refuse(a, -ESRCH, "job-wait: job %" PRIu64 " has ended", job->id);
        if (job->state == RM__JOB_STATE__JOB_RECOVERING)
                return apply_refuse(a, -EBUSY, "job-wait: what is left of job %" PRIu64 " is being removed", job->id);
        if (in->lost_round)
                job->age++;
        message_set_string(&job->stays_on, in->stays_on);
        if (strcmp(job->reason, in->reason) == 0)
                return 0;
        message_set_string(&job->reason, in->reason);
        if (in->reason[0])
                apply_event(a, "job-waits", NULL, job->id, 0, 0, "job %" PRIu64 " %s", job->id, in->reason);
        return 0;
}

/* Addresses of capsules that exist, and those that checkpoints need, are not given out again.
 * check_place() has seen that there are enough left, so that those given to this job do not come
 * round either. */
static uint32_t new_address(struct apply *a, const bool *held) {
        uint32_t address;

        do {
                address = a->state->next_address;
                a->state->next_address = address >= STATE_CAPSULES_MAX ? 1 : address + 1;
        } while (state_address_used(a->index, address) || held[address]);
        return address;
}

/* `checkpoint`: that it goes on from, NULL: none; `held`: as new_address(). The list of capsules
 * has a place for it. */
static void add_capsule(struct apply *a, Rm__Job *job, int32_t index, uint32_t ranks, const char *node,
                        const Rm__Checkpoint *checkpoint, const bool *held) {
        const Rm__CheckpointPart *part = checkpoint ? checkpoint_part(checkpoint, index) : NULL;
        Rm__Capsule *capsule = xcalloc(1, sizeof(*capsule));

        rm__capsule__init(capsule);
        capsule->index = index;
        capsule->ranks = ranks;
        capsule->address = part ? part->address : new_address(a, held);
        capsule->state = RM__CAPSULE_STATE__CAPSULE_PLACED;
        capsule->incarnation = a->state->next_incarnation++;
        message_set_string(&capsule->node, node);
        REPEATED_ADD(job->capsules, job->n_capsules, capsule);
}

/* Checks the node again, since a drain or a condition may have come after the plan was made; a node
 * that was told to be drained stays empty. */
static int check_node(struct apply *a, const char *name) {
        const Rm__Node *node = state_node(a->state, name);

        if (!node)
                return apply_refuse(a, -ENOENT, "place: no node '%s'", name);
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return apply_refuse(a, -EHOSTDOWN, "place: node '%s' is not up", name);
        if (node->drain)
                return apply_refuse(a, -EBUSY, "place: node '%s' is drained", name);
        if (node_condition(node) != RM__CONDITION__CONDITION_OK)
                return apply_refuse(a, -EBUSY, "place: the condition of node '%s' is %s", name,
                                    condition_name(node_condition(node)));
        return 0;
}

/* Checks that the job has the same groups as when the checkpoint was made, and that nodes have all
 * parts of it. */
static int check_checkpoint(struct apply *a, const Rm__CmdJobPlace *in, const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = in->checkpoint ? job_checkpoint(job, in->checkpoint) : NULL;

        if (!in->checkpoint)
                return 0;
        if (!checkpoint || checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                return apply_refuse(a, -ENOENT, "place: job %" PRIu64 " has no checkpoint %" PRIu64, job->id, in->checkpoint);
        if (checkpoint->n_parts != in->n_group_nodes + 1)
                return apply_refuse(a, -EINVAL, "place: checkpoint %" PRIu64 " of job %" PRIu64 " has %zu groups, not %zu",
                                    checkpoint->id, job->id, checkpoint->n_parts - 1, in->n_group_nodes);
        for (size_t i = 0; i < in->n_group_nodes; i++)
                if (checkpoint->parts[i + 1]->ranks != in->group_ranks[i])
                        return apply_refuse(a, -EINVAL, "place: group %zu of job %" PRIu64 " is not as in checkpoint %" PRIu64, i,
                                            job->id, checkpoint->id);
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                const char *node = i > 0 ? in->group_nodes[i - 1] : in->head_node;
                const Rm__Node *to = state_node(a->state, node), *from = state_node(a->state, checkpoint->parts[i]->node);
                cleanup_free char *lacks = to && from ? node_lacks(to, from) : NULL;

                if (lacks)
                        return apply_refuse(a, -EXDEV,
                                            "place: node '%s' lacks instruction sets of node '%s', where checkpoint %" PRIu64
                                            " of job %" PRIu64 " was made: %s",
                                            to->name, from->name, checkpoint->id, job->id, lacks);
        }
        for (size_t i = 0; i < checkpoint->n_parts; i++)
                if (!checkpoint_part_holder(a->state, checkpoint->parts[i], NULL))
                        return apply_refuse(a, -EHOSTDOWN,
                                            "place: no node that is up has all of checkpoint %" PRIu64 " of job %" PRIu64,
                                            checkpoint->id, job->id);
        return 0;
}

/* Returns whether there are addresses for all capsules. Restored capsules keep theirs and need no
 * new ones. An address that no capsule uses may be held by a checkpoint. */
static bool has_addresses(const struct apply *a, const Rm__CmdJobPlace *in, const bool *held) {
        size_t n_free = 0;

        if (in->checkpoint)
                return true;
        for (uint32_t address = 1; address <= STATE_CAPSULES_MAX; address++)
                n_free += !held[address] && !state_address_used(a->index, address);
        return in->n_group_nodes < n_free;
}

/* Parked groups need no cores, so that nothing else keeps them from all coming to one node. Those
 * that compute may be parked tomorrow, where they are. */
static int check_capsules(struct apply *a, const Rm__CmdJobPlace *in, const Rm__Job *job) {
        cleanup_free uint32_t *coming = xcalloc(a->state->n_nodes + 1, sizeof(*coming));

        if (in->capsules_per_core == 0 || !job_may_park(a->state, job->spec))
                return 0;
        coming[state_node_position(a->index, in->head_node)]++;
        for (size_t i = 0; i < in->n_group_nodes; i++) {
                uint32_t *here = &coming[state_node_position(a->index, in->group_nodes[i])];

                if (++*here > state_capsule_space(a->index, in->group_nodes[i], in->capsules_per_core))
                        return apply_refuse(a, -EDQUOT,
                                            "place: node '%s' has no room for group %zu of job %" PRIu64
                                            ", which has parked ones: %u capsules for each core are the limit ([job] "
                                            "max_capsules_per_core)",
                                            in->group_nodes[i], i, job->id, in->capsules_per_core);
        }
        return 0;
}

static int check_place(struct apply *a, const Rm__CmdJobPlace *in, const Rm__Job *job, const bool *held) {
        uint64_t ranks = 0;
        int r;

        if (job->state != RM__JOB_STATE__JOB_PENDING)
                return apply_refuse(a, -EBUSY, "place: job %" PRIu64 " is not pending", job->id);
        if (in->n_group_nodes == 0 || in->n_group_nodes != in->n_group_ranks)
                return apply_refuse(a, -EINVAL, "place: groups and nodes of job %" PRIu64 " do not match", job->id);
        if (!has_addresses(a, in, held))
                return apply_refuse(a, -EAGAIN, "place: no addresses left for the %zu groups of job %" PRIu64, in->n_group_nodes,
                                    job->id);
        r = check_node(a, in->head_node);
        if (r == 0)
                r = check_checkpoint(a, in, job);
        for (size_t i = 0; r == 0 && i < in->n_group_nodes; i++) {
                r = check_node(a, in->group_nodes[i]);
                if (r == 0 && in->group_ranks[i] == 0)
                        r = apply_refuse(a, -EINVAL, "place: group %zu of job %" PRIu64 " has no ranks", i, job->id);
                ranks += in->group_ranks[i];
        }
        if (r < 0)
                return r;
        if (ranks != job->spec->ranks)
                return apply_refuse(a, -EINVAL, "place: %" PRIu64 " ranks for the %u of job %" PRIu64, ranks, job->spec->ranks,
                                    job->id);
        return 0;
}

static int check_spares(struct apply *a, const char *what, char *const *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!state_node(a->state, nodes[i]))
                        return apply_refuse(a, -ENOENT, "%s: no node '%s'", what, nodes[i]);
        return 0;
}

void job_set_spares(Rm__Job *job, char *const *nodes, size_t n) {
        names_clear(&job->spare_nodes, &job->n_spare_nodes);
        for (size_t i = 0; i < n; i++)
                REPEATED_PUSH(job->spare_nodes, job->n_spare_nodes, xstrdup(nodes[i]));
}

/* A group that is elsewhere by now keeps what it has. */
int apply_job_cores(struct apply *a) {
        const Rm__CmdJobCores *in = a->command->job_cores;
        Rm__Job *job = find_job(a, "job-cores", in->job);

        if (!job)
                return -ENOENT;
        if (!job_running(job))
                return apply_refuse(a, -ESRCH, "job-cores: job %" PRIu64 " does not run", job->id);
        for (size_t i = 0; i < in->n_groups; i++) {
                const Rm__GroupCores *group = in->groups[i];
                Rm__Capsule *capsule = group->group >= 0 ? job_capsule(job, group->group) : NULL;

                if (!capsule || strcmp(capsule->node, group->node) != 0 ||
                    (group->n_cores != 0 && group->n_cores != job_capsule_cores(job, capsule)))
                        continue;
                free(capsule->cores);
                capsule->cores = xcalloc(group->n_cores, sizeof(*capsule->cores));
                capsule->n_cores = group->n_cores;
                if (group->n_cores > 0)
                        memcpy(capsule->cores, group->cores, sizeof(*capsule->cores) * group->n_cores);
        }
        return 0;
}

int apply_job_spares(struct apply *a) {
        const Rm__CmdJobSpares *in = a->command->job_spares;
        Rm__Job *job = find_job(a, "job-spares", in->job);
        int r = job ? check_spares(a, "job-spares", in->nodes, in->n_nodes) : -ENOENT;

        if (r < 0)
                return r;
        if (!job_running(job))
                return apply_refuse(a, -ESRCH, "job-spares: job %" PRIu64 " does not run", job->id);
        job_set_spares(job, in->nodes, in->n_nodes);
        apply_event(a, "job-spares", in->n_nodes ? in->nodes[0] : NULL, job->id, 0, 0, "job %" PRIu64 ": %zu of %u spare nodes",
                    job->id, in->n_nodes, job->spec->spares);
        return 0;
}

int apply_job_place(struct apply *a) {
        const Rm__CmdJobPlace *in = a->command->job_place;
        Rm__Job *job = find_job(a, "place", in->job);
        const Rm__Checkpoint *checkpoint = job && in->checkpoint ? job_checkpoint(job, in->checkpoint) : NULL;
        char name[48];
        /* The job's own checkpoints are forgotten if it does not go on from one of them, so they
         * hold no addresses. */
        cleanup_free bool *held = checkpoint_addresses(a->state, in->checkpoint ? NULL : job);
        int r = job ? check_place(a, in, job, held) : -ENOENT;

        if (r == 0)
                r = check_capsules(a, in, job);
        if (r == 0)
                r = check_spares(a, "place", in->spare_nodes, in->n_spare_nodes);
        if (r < 0)
                return r;
        job_set_spares(job, in->spare_nodes, in->n_spare_nodes);
        REPEATED_RESERVE(job->capsules, job->n_capsules, 1 + in->n_group_nodes);
        add_capsule(a, job, STATE_HEAD, 0, in->head_node, checkpoint, held);
        for (size_t i = 0; i < in->n_group_nodes; i++)
                add_capsule(a, job, (int32_t) i, in->group_ranks[i], in->group_nodes[i], checkpoint, held);
        job->restored_from = in->checkpoint;
        job->pending_since_usec = 0;
        if (!checkpoint) /* what was saved before is of other groups, at other addresses */
                job_checkpoints_forget(job);
        job->group_size = in->group_size;
        job_resize_begin(a->state, job, checkpoint);
        job_rank_losses_begin(a->state, job, checkpoint);
        job->state = RM__JOB_STATE__JOB_STARTING;
        state_index_job(a->index, job->id);
        if (job->attempt == 0)
                job->attempt = 1;
        job->epoch = ++a->state->last_epoch;
        job->age = 0;
        message_set_string(&job->reason, NULL);
        message_set_string(&job->policy, in->policy);
        apply_event(a, "job-placed", in->head_node, job->id, 0, 0, "job %" PRIu64 " placed: %zu groups, head on %s%s%s", job->id,
                    in->n_group_nodes, in->head_node, checkpoint ? ", from checkpoint " : "",
                    checkpoint ? checkpoint_name(job->id, checkpoint->id, name) : "");
        return 0;
}

int apply_capsule_ready(struct apply *a) {
        const Rm__CmdCapsuleReady *in = a->command->capsule_ready;
        Rm__Job *job = find_job(a, "capsule-ready", in->job);
        Rm__Capsule *capsule = job ? job_capsule(job, in->capsule) : NULL;

        if (!capsule || strcmp(capsule->node, in->node) != 0)
                return apply_refuse(a, -ESRCH, "capsule-ready: the capsule is not on that node");
        if (capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED)
                capsule->state = RM__CAPSULE_STATE__CAPSULE_READY;
        return 0;
}

int apply_capsule_blocker(struct apply *a) {
        const Rm__CmdCapsuleBlocker *in = a->command->capsule_blocker;
        Rm__Job *job = find_job(a, "capsule-blocker", in->job);
        Rm__Capsule *capsule = job ? job_capsule(job, in->capsule) : NULL;

        if (!capsule || strcmp(capsule->node, in->node) != 0)
                return apply_refuse(a, -ESRCH, "capsule-blocker: the capsule is not on that node");
        if (strlen(in->text) > STATE_BLOCKER_MAX)
                return apply_refuse(a, -EMSGSIZE, "capsule-blocker: more than %d bytes", STATE_BLOCKER_MAX);
        /* The blocker of the last refusal may be gone: if the capsule has none any more, the
         * refusal is no longer shown. */
        if (in->changed || strcmp(capsule->blocker, in->text) != 0)
                refusal_begin_again(capsule);
        if (capsule->blocker[0] && !in->text[0])
                refusal_forget(capsule);
        message_set_string(&capsule->blocker, in->text);
        return 0;
}

int apply_job_running(struct apply *a) {
        Rm__Job *job = find_job(a, "job-running", a->command->job_running->job);

        if (!job)
                return -ENOENT;
        if (job->state != RM__JOB_STATE__JOB_STARTING)
                return apply_refuse(a, -EBUSY, "job-running: job %" PRIu64 " is not starting", job->id);
        job->state = RM__JOB_STATE__JOB_RUNNING;
        state_index_job_state(a->index, job->id);
        job->start_usec = a->time_usec;
        job_restores_forget(job);
        apply_event(a, "job-started", job->capsules[0]->node, job->id, 0, 0, "job %" PRIu64 " runs", job->id);
        return 0;
}

static bool state_is_final(Rm__JobState state) {
        return state >= RM__JOB_STATE__JOB_COMPLETED && state <= RM__JOB_STATE__JOB_NODE_FAIL;
}

void job_end(struct apply *a, Rm__Job *job, Rm__JobState final_state) {
        static const char *const words[] = { "completed", "failed", "cancelled", "reached its time limit", "lost a node" };

        job->state = final_state;
        job->end_usec = a->time_usec;
        job->fold_since_usec = 0;
        job->held = false;
        if (final_state == RM__JOB_STATE__JOB_COMPLETED)
                job_checkpoints_forget(job);
        job_set_spares(job, NULL, 0);
        for (size_t i = 0; i < job->n_capsules; i++)
                job->capsules[i]->state = RM__CAPSULE_STATE__CAPSULE_GONE;
        state_index_job(a->index, job->id);
        apply_event(a, "job-ended", NULL, job->id, 0, 0, "job %" PRIu64 " %s, exit code %d%s%s", job->id,
                    words[final_state - RM__JOB_STATE__JOB_COMPLETED], job->exit_code, job->reason[0] ? ": " : "", job->reason);
        limits_forget_checkpoints(a, job);
}

void job_fail_unheard(Rm__Job *job, const Rm__Capsule *capsule) {
        char *reason;

        if (job->final_state != RM__JOB_STATE__JOB_COMPLETED || capsule->index == STATE_HEAD ||
            capsule->state == RM__CAPSULE_STATE__CAPSULE_GONE)
                return;
        reason = xasprintf("node '%s' went down before it could say how group %" PRId32 " ended", capsule->node, capsule->index);
        job->final_state = RM__JOB_STATE__JOB_NODE_FAIL;
        job->exit_code = 255;
        message_set_string(&job->reason, reason);
        free(reason);
}

static bool is_on_lost_node(const Rm__State *state, const Rm__Capsule *capsule) {
        const Rm__Node *node = state_node(state, capsule->node);

        return !node || node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

/* Nothing more is to come of it: not even the leader's word that the job starts again, which waits
 * until the node has surely fenced. */
static bool capsule_is_done(const Rm__State *state, const Rm__Job *job, const Rm__Capsule *capsule) {
        if (capsule->state == RM__CAPSULE_STATE__CAPSULE_GONE)
                return true;
        return is_on_lost_node(state, capsule) && !job_end_may_be_loss(job, capsule);
}

static void job_finish(struct apply *a, Rm__Job *job) {
        if (job->state != RM__JOB_STATE__JOB_COMPLETING)
                return;
        for (size_t k = 0; k < job->n_capsules; k++)
                if (!capsule_is_done(a->state, job, job->capsules[k]))
                        return;
        for (size_t k = 0; k < job->n_capsules; k++)
                job_fail_unheard(job, job->capsules[k]);
        job_rank_losses_judge(job);
        job_left(a, job);
        job_end(a, job, job->final_state);
}

/* Whether it has ended, or starts again, is open. */
static bool waits_for_lost_node(const Rm__State *state, const Rm__Job *job) {
        for (size_t k = 0; k < job->n_capsules; k++)
                if (job_end_may_be_loss(job, job->capsules[k]) && is_on_lost_node(state, job->capsules[k]))
                        return true;
        return false;
}

/* The job is cancelled with that signal, by a user or by rmd. */
static bool is_cancelled_so(const Rm__Job *job, uint32_t signal) {
        return job->cancel && job->cancel_signal == signal && job->final_state == RM__JOB_STATE__JOB_CANCELLED;
}

int apply_job_cancel(struct apply *a) {
        const Rm__CmdJobCancel *in = a->command->job_cancel;
        Rm__Job *job = find_job(a, "cancel-job", in->job);
        uint32_t signal = in->signal ? in->signal : SIGTERM;
        char *reason;

        if (!job)
                return -ENOENT;
        if (job_ended(job) || (job->state == RM__JOB_STATE__JOB_COMPLETING && !waits_for_lost_node(a->state, job)))
                return apply_refuse(a, -EALREADY, "cancel-job: job %" PRIu64 " has already ended", job->id);
        if (!apply_goes_on(a, in->timeout || !is_cancelled_so(job, signal)))
                return 0;
        reason = in->timeout ? xstrdup("time limit reached") : xasprintf("cancelled by %s", in->by);
        message_set_string(&job->reason, reason);
        free(reason);
        job->final_state = in->timeout ? RM__JOB_STATE__JOB_TIMEOUT : RM__JOB_STATE__JOB_CANCELLED;
        job->cancel = true;
        job->cancel_signal = signal;
        apply_event(a, "job-cancel", NULL, job->id, 0, 0, "job %" PRIu64 ": %s", job->id, job->reason);
        if (job->state == RM__JOB_STATE__JOB_PENDING || job->state == RM__JOB_STATE__JOB_COMPLETING)
                job->exit_code = 128 + (int32_t) job->cancel_signal;
        if (job->state == RM__JOB_STATE__JOB_PENDING)
                job_end(a, job, job->final_state);
        job_finish(a, job);
        return 0;
}

/* Begins to remove the capsules of a job whose end is decided. */
static void complete(struct apply *a, Rm__Job *job) {
        job->state = RM__JOB_STATE__JOB_COMPLETING;
        state_index_job_state(a->index, job->id);
        job_checkpoints_drop(job);
        job_moves_end(a, job->id, "the job has ended");
        job_finish(a, job);
}

void job_fail(struct apply *a, Rm__Job *job, const char *reason) {
        job->exit_code = 1;
        job->final_state = RM__JOB_STATE__JOB_FAILED;
        message_set_string(&job->reason, reason);
        complete(a, job);
}

static bool is_loss(const Rm__CmdJobExit *in) {
        return in->final_state == RM__JOB_STATE__JOB_NODE_FAIL || in->final_state == RM__JOB_STATE__JOB_FAILED ||
               (in->final_state == RM__JOB_STATE__JOB_PENDING && in->exit_code != 0);
}

int apply_job_exit(struct apply *a) {
        const Rm__CmdJobExit *in = a->command->job_exit;
        Rm__Job *job = find_job(a, "job-exit", in->job);

        if (!job)
                return -ENOENT;
        if (!job_running(job))
                return apply_refuse(a, -EALREADY, "job-exit: job %" PRIu64 " does not run", job->id);
        if (in->final_state != RM__JOB_STATE__JOB_PENDING && !state_is_final(in->final_state))
                return apply_refuse(a, -EINVAL, "job-exit: %d is not a final state", (int) in->final_state);
        if (job_is_restored(job) && is_loss(in)) {
                job_unrestored(a, job, &(struct unrestored) { .text = in->reason, .passing = true });
                return 0;
        }
        job->exit_code = in->exit_code;
        if (in->final_state != RM__JOB_STATE__JOB_PENDING)
                job->final_state = in->final_state;
        else if (!job->cancel)
                job->final_state = in->exit_code == 0 ? RM__JOB_STATE__JOB_COMPLETED : RM__JOB_STATE__JOB_FAILED;
        if (in->reason[0])
                message_set_string(&job->reason, in->reason);
        else if (!job->cancel)
                message_set_string(&job->reason, NULL);
        complete(a, job);
        return 0;
}

/* A job that goes on without ranks that are lost does not do so without an MPI daemon, with which
 * mpirun ends: as with a node that is lost. */
static bool restarts_without_daemon(const Rm__Job *job, const Rm__Capsule *capsule, const Rm__CmdGroupEnd *in) {
        return job->spec->on_rank_loss == RM__RANK_LOSS__RANK_LOSS_CONTINUE && (in->lost || in->killed) &&
               job_end_may_be_loss(job, capsule);
}

/* mpirun's word counts, unless it is that all went well: it also says so when it has lost a
 * daemon. */
int apply_group_end(struct apply *a) {
        const Rm__CmdGroupEnd *in = a->command->group_end;
        Rm__Job *job = find_job(a, "group-end", in->job);
        Rm__Capsule *capsule = job && in->group >= 0 ? job_capsule(job, in->group) : NULL;

        if (!capsule || strcmp(capsule->node, in->node) != 0)
                return apply_refuse(a, -ESRCH, "group-end: the group is not on that node");
        if (job->state != RM__JOB_STATE__JOB_COMPLETING)
                return apply_refuse(a, -EBUSY, "group-end: job %" PRIu64 " is not completing", job->id);
        if (in->exit_code < 1 || in->exit_code > 255)
                return apply_refuse(a, -EINVAL, "group-end: %" PRId32 " is not the exit code of a failure", in->exit_code);
        if (restarts_without_daemon(job, capsule, in)) {
                job_restart(a, job, in->reason);
                return 0;
        }
        if (job->final_state == RM__JOB_STATE__JOB_COMPLETED) {
                job->final_state = in->lost ? RM__JOB_STATE__JOB_NODE_FAIL : RM__JOB_STATE__JOB_FAILED;
                job->exit_code = in->exit_code;
        } else if (job->final_state != RM__JOB_STATE__JOB_FAILED && job->group_end_usec == 0) {
                return 0;
        }
        /* The others end because the first has: it is the reason. */
        if (job->group_end_usec == 0 ? !job->reason[0] : in->end_usec < job->group_end_usec) {
                message_set_string(&job->reason, in->reason);
                job->group_end_usec = in->end_usec;
        }
        return 0;
}

int apply_capsule_gone(struct apply *a) {
        const Rm__CmdCapsuleGone *in = a->command->capsule_gone;
        Rm__Job *job = find_job(a, "capsule-gone", in->job);
        Rm__Capsule *capsule = job ? job_capsule(job, in->capsule) : NULL;

        if (!capsule || strcmp(capsule->node, in->node) != 0)
                return apply_refuse(a, -ESRCH, "capsule-gone: the capsule is not on that node");
        if (job->state != RM__JOB_STATE__JOB_COMPLETING && job->state != RM__JOB_STATE__JOB_RECOVERING)
                return apply_refuse(a, -EBUSY, "capsule-gone: job %" PRIu64 " is not completing", job->id);
        if (in->incarnation != capsule->incarnation)
                return apply_refuse(a, -ESTALE, "capsule-gone: the capsule is another by now");
        capsule->state = RM__CAPSULE_STATE__CAPSULE_GONE;
        state_index_capsule(a->index, job->id, capsule->index);
        job_finish(a, job);
        job_recover(a, job);
        node_emptied(a, in->node);
        return 0;
}

void jobs_finish(struct apply *a) {
        for (size_t i = 0; i < a->state->n_jobs; i++)
                job_finish(a, a->state->jobs[i]);
}

int apply_job_forget(struct apply *a) {
        const Rm__Job *job = find_job(a, "forget", a->command->job_forget->job);

        if (!job)
                return -ENOENT;
        if (!job_ended(job))
                return apply_refuse(a, -EBUSY, "forget: job %" PRIu64 " has not ended", job->id);
        job_remove(a, job);
        return 0;
}

int apply_job_output_done(struct apply *a) {
        Rm__Job *job = find_job(a, "output-done", a->command->job_output_done->job);

        if (!job)
                return -ENOENT;
        if (apply_goes_on(a, !job->output_done))
                job->output_done = true;
        return 0;
}
