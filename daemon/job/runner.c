#include "daemon/job/runner_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/launch.h"
#include "daemon/job/limits.h"
#include "daemon/job/outputs.h"

#define RETRY_USEC 300000
#define SCAN_USEC 2000000

struct limiting {
        bool done;
};

static const Rm__State *state_of(const struct runner *runner) {
        return cluster_state(runner->rmd->cluster);
}

static const char *self_of(const struct runner *runner) {
        return cluster_self(runner->rmd->cluster);
}

/* ---- the table of local capsules ---- */

struct resident *runner_copy(struct runner *runner, uint64_t job, int32_t index, uint64_t incarnation) {
        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                if (resident_is(l, job, index, incarnation))
                        return l;
        return NULL;
}

struct resident *runner_current(struct runner *runner, uint64_t job, int32_t index) {
        const Rm__Job *j = state_job(state_of(runner), job);
        const Rm__Capsule *capsule = j ? job_capsule(j, index) : NULL;

        if (!capsule || strcmp(capsule->node, self_of(runner)) != 0)
                return NULL;
        return runner_copy(runner, job, index, capsule->incarnation);
}

static struct resident *add_resident(struct runner *runner, uint64_t job, int32_t index, uint64_t incarnation) {
        struct resident *resident = resident_create(runner, &runner->calls, job, index, incarnation);

        resident_list_add(&runner->residents, resident);
        return resident;
}

static void remove_resident(struct runner *runner, struct resident *resident) {
        resident_list_remove(resident);
        agents_forget(resident);
        blocker_forget(resident);
        cores_forget(resident);
        ending_forget(resident);
        rank_ends_forget(resident);
        traffic_forget(resident);
        resident_destroy(resident);
}

static void on_destroyed(struct capsule *capsule, int error, const char *text, void *arg) {
        if (error < 0)
                log_warn("a capsule left something behind: %s", text);
        runner_wake(arg);
}

void runner_drop(struct runner *runner, struct resident *resident, bool spool) {
        if (resident_capsule(resident))
                capsule_destroy(resident_capsule(resident), spool, on_destroyed, runner);
        remove_resident(runner, resident);
}

void runner_order_again(struct resident *resident) {
        resizing_order_again(resident);
        rank_loss_order_again(resident);
}

/* ---- what capsules report ---- */

/* Does what an event of the capsule calls for. Afterwards the resident may be gone: a move that
 * fails drops it. */
static void act(struct runner *runner, struct resident *resident, enum resident_action action, int error, const char *text) {
        bool is_head = resident_index(resident) == STATE_HEAD;

        if (action == RESIDENT_REFUSED)
                return;
        if (action == RESIDENT_REPORT_READY)
                runner_order_again(resident);
        if (is_head && (action == RESIDENT_REPORT_READY || action == RESIDENT_REPORT_EXITED))
                outputs_pump(runner->rmd->outputs, resident_job(resident));
        else if (action == RESIDENT_REPORT_EXITED)
                agents_report_exit(runner, resident);
        if (action == RESIDENT_REPORT_READY || action == RESIDENT_REPORT_LOST)
                runner->ops->on_capsule(runner->userdata, resident, error, text);
        runner_wake(runner);
}

static struct resident *find_by_capsule(struct runner *runner, const struct capsule *capsule) {
        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                if (resident_capsule(l) == capsule)
                        return l;
        return NULL;
}

static void on_ready(struct capsule *capsule, int error, const char *text, void *userdata) {
        struct runner *runner = userdata;
        struct resident *resident = find_by_capsule(runner, capsule);
        bool empty = capsule_phase(capsule) == CAPSULE_EMPTY;
        enum resident_action action;

        if (!resident)
                return;
        if (error < 0)
                log_warn("capsule %s: %s", capsule_id(capsule), text);
        action = error < 0 ? resident_lost(resident, RESIDENT_EV_LOST, text, 0)
                           : resident_event(resident, empty ? RESIDENT_EV_ANSWERED : RESIDENT_EV_FOUND);
        act(runner, resident, action, error, text);
}

static void on_output(struct capsule *capsule, int stream, uint64_t end, void *userdata) {
        struct runner *runner = userdata;
        struct resident *resident = find_by_capsule(runner, capsule);

        if (resident && resident_index(resident) == STATE_HEAD)
                outputs_pump(runner->rmd->outputs, resident_job(resident));
}

static void on_agent_request(struct capsule *capsule, const char *id, const char *host, const char *command, void *userdata) {
        struct resident *resident = find_by_capsule(userdata, capsule);

        if (resident)
                agents_on_request(userdata, resident, id, host, command);
}

static void on_agent_gone(struct capsule *capsule, const char *id, void *userdata) {
        struct resident *resident = find_by_capsule(userdata, capsule);

        if (resident)
                agents_on_gone(userdata, resident, id);
}

static void on_exited(struct capsule *capsule, int wait_status, void *userdata) {
        struct runner *runner = userdata;
        struct resident *resident = find_by_capsule(runner, capsule);
        struct capsule_status status;

        if (!resident)
                return;
        capsule_get_status(capsule, &status);
        act(runner, resident, resident_exited(resident, wait_status, status.end_real_usec ? status.end_real_usec : now_real_usec()),
            0, "");
}

static void on_stalled(struct capsule *capsule, enum capsule_stall why, void *userdata) {
        const struct resident *resident = find_by_capsule(userdata, capsule);

        if (resident)
                stalls_report(userdata, resident, why);
}

static void on_lost(struct capsule *capsule, const char *text, void *userdata) {
        struct runner *runner = userdata;
        struct resident *resident = find_by_capsule(runner, capsule);

        if (!resident)
                return;
        log_warn("capsule %s is lost: %s", capsule_id(capsule), text);
        act(runner, resident, resident_lost(resident, RESIDENT_EV_LOST, text, now_real_usec()), -ECHILD, text);
}

static void on_blocker(struct capsule *capsule, const char *text, uint64_t processes, void *userdata) {
        struct resident *resident = find_by_capsule(userdata, capsule);

        if (!resident)
                return;
        blocker_reported(resident, text, processes);
        runner_wake(userdata);
}

static void on_filling(struct capsule *capsule, void *userdata) {
        struct runner *runner = userdata;
        struct resident *resident = find_by_capsule(runner, capsule);

        if (!resident)
                return;
        runner->ops->on_filling(runner->userdata, resident);
        runner_wake(runner); /* it may be broken */
}

static void on_unfenced(struct capsule *capsule, void *userdata) {
        struct runner *runner = userdata;
        struct resident *resident = find_by_capsule(runner, capsule);

        if (resident)
                agents_unfenced(runner, resident);
        runner->ops->on_unfenced(runner->userdata);
        runner_wake(runner);
}

static void on_rank_said(struct capsule *capsule, void *userdata) {
        runner_wake(userdata);
}

static const struct capsule_callbacks callbacks = {
        .ready = on_ready,
        .output = on_output,
        .agent_request = on_agent_request,
        .agent_gone = on_agent_gone,
        .exited = on_exited,
        .blocker = on_blocker,
        .stalled = on_stalled,
        .filling = on_filling,
        .unfenced = on_unfenced,
        .rank_said = on_rank_said,
        .lost = on_lost,
};

/* `kept`: what a copy that a move makes is allowed at least; such a copy is silent until its move
 * is committed. NULL: none makes it. */
static int make_resident(struct runner *runner, const Rm__Job *job, int32_t index, uint64_t incarnation,
                         const struct capsule_limits *kept, enum resident_origin origin, struct resident **ret,
                         struct rm_error *err) {
        struct launch_spec spec;
        struct capsule *capsule = NULL;
        struct resident *resident;
        int r = launch_spec_init(&spec, runner->rmd->config, job, index, incarnation, kept != NULL || job->restored_from > 0);

        if (r < 0)
                return error_set(err, r, "no such capsule");
        spec.spec.drill = origin == RESIDENT_DRILL;
        limits_here(runner->rmd, job_capsule(job, index)->ranks, job_capsule(job, index)->ranks * job->spec->rank_memory_bytes,
                    kept, &spec.spec.limits);
        r = capsule_create(runner->rmd->capsules, &spec.spec, &callbacks, runner, &capsule, err);
        if (r < 0)
                (void) error_prefix(err, "capsule %s", spec.id);
        launch_spec_finish(&spec);
        if (r < 0)
                return r;
        resident = add_resident(runner, job->id, index, incarnation);
        (void) resident_made(resident, capsule, origin);
        if (ret)
                *ret = resident;
        return 0;
}

int runner_make_copy(struct runner *runner, const Rm__Job *job, const Rm__Move *move, const struct capsule_limits *kept,
                     struct resident **ret, struct rm_error *err) {
        return make_resident(runner, job, move->capsule, move->incarnation, kept, RESIDENT_CREATED, ret, err);
}

int runner_make_drill(struct runner *runner, const Rm__Job *job, int32_t index, uint64_t incarnation, struct rm_error *err) {
        const struct resident *original = runner_current(runner, job->id, index);
        struct capsule_limits kept = { 0 };

        if (original && resident_capsule(original))
                capsule_get_limits(resident_capsule(original), &kept);
        return make_resident(runner, job, index, incarnation, &kept, RESIDENT_DRILL, NULL, err);
}

/* ---- matching state and capsules ---- */

/* rmd was killed while it made the capsule: nothing has run in it, as the state has not heard of it
 * yet. */
static void make_again(struct runner *runner, struct resident *resident) {
        struct capsule *capsule = resident_remake(resident);

        if (!capsule)
                return;
        log_info("capsule %s was only partly created; recreating", capsule_id(capsule));
        capsule_destroy(capsule, true, on_destroyed, runner);
}

/* Sets the limits of a capsule that came by a move, since it had none during the restore, or was
 * adopted. */
static void limit(struct runner *runner, const struct resident *resident) {
        struct limiting *limiting = resident_part(resident, RESIDENT_LIMITS, sizeof(*limiting));
        int r;

        if (limiting->done || capsule_phase(resident_capsule(resident)) != CAPSULE_RUNNING ||
            state_capsule_move(cluster_index(runner->rmd->cluster), resident_job(resident), resident_index(resident)))
                return;
        r = capsule_apply_limits(resident_capsule(resident));
        if (r < 0)
                log_warn("capsule %s: its limits cannot be set: %s", capsule_id(resident_capsule(resident)), strerror(-r));
        limiting->done = true;
}

/* A node that was away while its job started again: what it had of an attempt before must be gone
 * before it makes anything of this one. Until a job runs, none of its capsules moves: the head's
 * incarnation is the lowest of the attempt. */
static bool waits_for_older(struct runner *runner, const Rm__Job *job) {
        char prefix[32];

        if (job->attempt < 2)
                return false;
        launch_job_prefix(prefix, job->id);
        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                if (resident_job(l) == job->id && resident_incarnation(l) < job->capsules[0]->incarnation)
                        return true;
        return capsule_any_is_going(runner->rmd->capsules, prefix);
}

static void on_opened(struct capsule *capsule, int error, const char *text, void *arg) {
        struct runner *runner = arg;

        /* -ETIME: there is no lease; on_unfenced() follows when there is one. */
        if (error == 0 || error == -ECANCELED || error == -ETIME)
                return;
        log_warn("capsule %s cannot be opened: %s; trying again", capsule_id(capsule), text);
        runner_retry(runner);
}

/* A capsule that is frozen although neither a move nor a checkpoint has it: an rmd before this one
 * had begun something with it, or it had no lease when it was to be opened. One that came from a
 * checkpoint is opened by its restart, which waits for the rest of the job. */
static void open_leftover(struct runner *runner, const struct resident *resident, const Rm__Job *job) {
        enum capsule_phase phase = capsule_phase(resident_capsule(resident));

        if ((phase != CAPSULE_FROZEN && phase != CAPSULE_RESTORED) || resident_holder(resident) != RESIDENT_FREE ||
            (job->restored_from && job->state == RM__JOB_STATE__JOB_STARTING) || runner->ops->holds(runner->userdata, resident))
                return;
        log_info("job %" PRIu64 ": capsule %" PRId32 " resumes here", job->id, resident_index(resident));
        (void) capsule_open(resident_capsule(resident), on_opened, runner);
}

static bool is_going(const struct runner *runner, uint64_t job, const Rm__Capsule *capsule) {
        char id[64];

        launch_capsule_id(id, job, capsule->index, capsule->incarnation);
        return capsule_is_going(runner->rmd->capsules, id);
}

/* The state says this capsule is on this node. */
static void reconcile_placed(struct runner *runner, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct resident *resident = runner_copy(runner, job->id, capsule->index, capsule->incarnation);
        cleanup_free char *why = NULL;
        struct rm_error err = { 0 };

        if (resident && resident_phase(resident) == RESIDENT_LOST && resident_origin(resident) == RESIDENT_ADOPTED &&
            capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED)
                make_again(runner, resident);
        if (resident && resident_phase(resident) == RESIDENT_REMAKING) {
                if (is_going(runner, job->id, capsule))
                        return; /* on_destroyed() */
                remove_resident(runner, resident);
                resident = NULL;
        }
        if (!resident) {
                if (capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED) {
                        if (waits_for_older(runner, job)) {
                                runner_retry(runner);
                                return;
                        }
                        if (make_resident(runner, job, capsule->index, capsule->incarnation, NULL, RESIDENT_CREATED, &resident,
                                          &err) == 0)
                                return;
                        log_warn("job %" PRIu64 ": %s", job->id, error_text(&err));
                        why = xstrdup(error_text(&err));
                } else {
                        why = xasprintf("%s has lost it (was it restarted?)", self_of(runner));
                }
                resident = add_resident(runner, job->id, capsule->index, capsule->incarnation);
                (void) resident_lost(resident, RESIDENT_EV_ABSENT, why, 0);
        }
        if (resident_answers(resident)) {
                open_leftover(runner, resident, job);
                limit(runner, resident);
        }
        if (resident_answers(resident) && capsule->state == RM__CAPSULE_STATE__CAPSULE_READY)
                cores_apply(runner, resident, capsule);
        if (resident_answers(resident) && job->resize && capsule->index != STATE_HEAD)
                resizing_apply(runner, resident, job, capsule);
        if (resident_answers(resident) && job->rank_losses && capsule->index != STATE_HEAD)
                rank_loss_apply(runner, resident, job, capsule);
        if (resident_answers(resident) && capsule->index == 0)
                own_state_report(runner, resident, job);
        if (reports_broken(runner, resident, job))
                return;
        if (resident_index(resident) == STATE_HEAD && resident_capsule(resident))
                head_reconcile(runner, resident, job, capsule);
        else if (resident_is_lost(resident))
                reports_lost(runner, resident, job, capsule);
        else if (resident_answers(resident) && capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED)
                reports_placed(runner, resident, job);
        blocker_report(runner, resident, capsule);
}

/* Ends a capsule of a job that is COMPLETING. A job that may start again for the loss of another
 * node does not do so before nothing of this attempt runs. */
static void end_placed(struct runner *runner, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct resident *resident = runner_copy(runner, job->id, capsule->index, capsule->incarnation);

        if (resident && resident_answers(resident) && job->resize && capsule->index != STATE_HEAD)
                resizing_apply(runner, resident, job, capsule); /* a daemon that stands still does not end */
        if (resident && capsule->index != STATE_HEAD &&
            (!rank_loss_reported(runner, resident, job, capsule) || !ends_reported(runner, resident, job)))
                return;
        while ((resident = runner_copy(runner, job->id, capsule->index, capsule->incarnation)))
                runner_drop(runner, resident, capsule->index != STATE_HEAD);
        /* mpirun may not have ended by itself: who reads its output is told that this was all. */
        if (capsule->index == STATE_HEAD)
                outputs_pump(runner->rmd->outputs, job->id);
        if (!job_wants_restart(job->spec) || !is_going(runner, job->id, capsule)) /* else on_destroyed() */
                gone_report(runner, job->id, capsule);
}

/* Removes a capsule of a job that is RECOVERING: nothing of its next attempt is placed before
 * nothing of this one runs. */
static void remove_placed(struct runner *runner, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct resident *resident = runner_copy(runner, job->id, capsule->index, capsule->incarnation);

        if (resident)
                runner_drop(runner, resident, true);
        if (!is_going(runner, job->id, capsule)) /* else on_destroyed() */
                gone_report(runner, job->id, capsule);
}

static void reconcile_all_placed(struct runner *runner) {
        size_t n;
        cleanup_free struct state_placed *placed = state_placed_on(cluster_index(runner->rmd->cluster), self_of(runner), &n);

        for (size_t i = 0; i < n; i++) {
                if (job_running(placed[i].job))
                        reconcile_placed(runner, placed[i].job, placed[i].capsule);
                else if (placed[i].job->state == RM__JOB_STATE__JOB_COMPLETING)
                        end_placed(runner, placed[i].job, placed[i].capsule);
                else if (placed[i].job->state == RM__JOB_STATE__JOB_RECOVERING)
                        remove_placed(runner, placed[i].job, placed[i].capsule);
        }
}

/* Copies the state knows nothing of (any more) go. */
static void drop_strays(struct runner *runner) {
        const Rm__State *state = state_of(runner);
        struct resident *next;

        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = next) {
                const Rm__Job *job = state_job(state, resident_job(l));
                const Rm__Capsule *capsule = job ? job_capsule(job, resident_index(l)) : NULL;
                bool current = capsule && job_running(job) && capsule->incarnation == resident_incarnation(l) &&
                               strcmp(capsule->node, self_of(runner)) == 0;

                next = resident_next_of(l);
                if (current || (job && job->state == RM__JOB_STATE__JOB_COMPLETING) || runner->ops->keeps_copy(runner->userdata, l))
                        continue;
                log_info("capsule of job %" PRIu64 " (%" PRId32 ") does not belong on this node: removed", resident_job(l),
                         resident_index(l));
                /* The output of a job's last head may still be read. */
                runner_drop(runner, l,
                            resident_index(l) != STATE_HEAD || !capsule || capsule->incarnation != resident_incarnation(l));
        }
}

static void reconcile(struct runner *runner) {
        if (!cluster_synced(runner->rmd->cluster)) {
                /* The state that this node has may be old: nothing is started or ended by it, but
                 * jobs that were being ended here go on ending. */
                ending_go_on(runner);
                return;
        }
        runner_renew_leases(runner);
        reconcile_all_placed(runner);
        drop_strays(runner);
        agents_reconcile(runner);
        ends_reconcile(runner);
        traffic_wake(runner);
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
        reconcile(arg);
}

static void on_retry(evutil_socket_t fd, short what, void *arg) {
        struct runner *runner = arg;

        runner->retry_requested = false;
        reconcile(runner);
}

void runner_wake(struct runner *runner) {
        event_active(runner->wake, EV_TIMEOUT, 0);
}

void runner_retry(struct runner *runner) {
        if (runner->retry_requested)
                return;
        runner->retry_requested = true;
        timer_arm(runner->retry, RETRY_USEC);
}

void runner_scan_again(struct runner *runner) {
        if (!evtimer_pending(runner->scan, NULL))
                timer_arm(runner->scan, SCAN_USEC);
}

/* ---- life ---- */

static void *adopt_one(struct capsule *capsule, const char *id, void *arg) {
        struct runner *runner = arg;
        struct resident *resident;
        uint64_t job, incarnation;
        int32_t index;

        if (!launch_parse_id(id, &job, &index, &incarnation)) {
                log_warn("capsule '%s' is none of ours: left alone", id);
                return runner;
        }
        resident = add_resident(runner, job, index, incarnation);
        (void) resident_made(resident, capsule, RESIDENT_ADOPTED);
        return runner;
}

int runner_create(struct rmd *rmd, const struct runner_ops *ops, void *userdata, struct runner **ret, struct rm_error *err) {
        struct runner *runner = xcalloc(1, sizeof(*runner));
        int n;

        runner->rmd = rmd;
        runner->ops = ops;
        runner->userdata = userdata;
        runner->wake = event_new(rmd->base, -1, 0, on_wake, runner);
        runner->retry = evtimer_new(rmd->base, on_retry, runner);
        runner->scan = evtimer_new(rmd->base, on_wake, runner);
        traffic_start(runner);
        memory_report_start(runner);
        core_report_start(runner);
        n = capsule_adopt_all(rmd->capsules, &callbacks, adopt_one, runner, err);
        if (n < 0) {
                runner_destroy(runner);
                return error_prefix(err, "adopting capsules");
        }
        if (n > 0)
                log_info("adopting %d capsules", n);
        *ret = runner;
        return 0;
}

void runner_destroy(struct runner *runner) {
        if (!runner)
                return;
        while (!LIST_EMPTY(&runner->residents))
                remove_resident(runner, LIST_FIRST(&runner->residents));
        agents_finish(runner);
        event_free(runner->wake);
        event_free(runner->retry);
        event_free(runner->scan);
        traffic_stop(runner);
        memory_report_stop(runner);
        core_report_stop(runner);
        free(runner);
}
