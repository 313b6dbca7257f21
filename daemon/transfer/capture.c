#include "daemon/transfer/capture.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/job/pages_test.h"
#include "daemon/state/leave_by.h"
#include "daemon/transfer/precopy_time.h"
#include "daemon/transfer/standstill.h"

/* Connections to a capsule last as long as move_timeout may be at most. */
_Static_assert(CONFIG_MOVE_TIMEOUT_MAX_USEC <= CAPSULE_SILENCE_MAX_USEC,
               "a capsule would be frozen for longer than its connections last");

struct capture {
        struct rmd *rmd;
        const struct capture_ops *ops;
        void *owner;
        struct caller caller;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        enum capture_step step;
        uint64_t ahead_bytes;     /* that are to go ahead, as far as they were measured */
        uint64_t precopy_usec, precopy_end_usec; /* how long that may take, and until when */
        bool ahead;               /* rm-mover sends it */
        bool announced;           /* programs were told that the freeze is near */
        uint64_t frozen_usec;     /* 0: it runs */
        struct standstill standstill;
        struct event *reopen; /* pending: it runs for a moment, so that connections are accepted */
};

static void on_reopen_over(evutil_socket_t fd, short what, void *arg);

struct capture *capture_create(struct rmd *rmd, struct calls *calls, const struct capture_ops *ops, void *owner) {
        struct capture *capture = xcalloc(1, sizeof(*capture));

        *capture = (struct capture) { .rmd = rmd, .ops = ops, .owner = owner };
        capture->reopen = evtimer_new(rmd->base, on_reopen_over, capture);
        caller_init(&capture->caller, calls, capture);
        return capture;
}

static struct resident *resident_of(const struct capture *capture) {
        return runner_copy(capture->rmd->runner, capture->job, capture->index, capture->incarnation);
}

void capture_destroy(struct capture *capture) {
        struct resident *resident = capture && capture->frozen_usec ? resident_of(capture) : NULL;

        if (!capture)
                return;
        if (resident)
                resident_release(resident, RESIDENT_CAPTURED);
        caller_finish(&capture->caller);
        event_free(capture->reopen);
        free(capture);
}

void capture_begin(struct capture *capture, uint64_t job, int32_t index, uint64_t incarnation) {
        caller_renew(&capture->caller);
        capture->job = job;
        capture->index = index;
        capture->incarnation = incarnation;
        capture->step = CAPTURE_NONE;
        capture->ahead = capture->announced = false;
        capture->ahead_bytes = capture->frozen_usec = 0;
        capture->standstill = (struct standstill) { 0 };
}

struct resident *capture_running(const struct capture *capture) {
        struct resident *resident = resident_of(capture);

        return resident && resident_is_live(resident) ? resident : NULL;
}

static void fail_for(struct capture *capture, enum capture_failure failure, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void fail_for(struct capture *capture, enum capture_failure failure, const char *fmt, ...) {
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void) text_format_va(text, sizeof(text), fmt, ap);
        va_end(ap);
        capture->ops->on_failed(capture->owner, failure, text);
}

/* The capture fails for a reason that is not the capsule's own. */
#define fail(capture_, ...) fail_for(capture_, CAPTURE_FAILURE_OTHER, __VA_ARGS__)

static void set_deadline(struct capture *capture, uint64_t usec) {
        capture->ops->set_deadline(capture->owner, usec);
}

static bool order(struct capture *capture, const Rm__MoverCommand *command) {
        struct mover *mover = capture->ops->get_mover(capture->owner);

        if (mover && mover_command(mover, command) == 0)
                return true;
        fail(capture, "cannot send to rm-mover");
        return false;
}

/* ---- before the pre-copy ---- */

enum capture_wait capture_waits(const struct capture *capture, bool tracks) {
        const struct resident *resident = capture_running(capture);
        struct capsule_status status = { 0 };

        if (resident && capsule_phase(resident_capsule(resident)) == CAPSULE_EMPTY)
                return CAPTURE_AWAITS_START;
        if (tracks && pages_test_runs(capture->rmd->pages_test))
                return CAPTURE_AWAITS_TEST;
        if (resident)
                capsule_get_status(resident_capsule(resident), &status);
        return status.filling ? CAPTURE_AWAITS_MEMORY : CAPTURE_READY;
}

static void on_preloaded(struct capsule *capsule, int error, const char *text, void *arg) {
        struct capture *capture = call_done(arg, error);

        /* Without CRIU that waits it is started later; with these errors that would be in vain. */
        if (capture && (error == -EOPNOTSUPP || error == -EBUSY) && capture->step < CAPTURE_CUT)
                fail_for(capture, CAPTURE_FAILURE_GROUP, "%s", text);
}

void capture_preload(struct capture *capture) {
        const struct resident *resident = capture_running(capture);
        struct call *call = resident ? call_create(&capture->caller) : NULL;

        if (call)
                (void) call_begun(call, capsule_criu_preload(resident_capsule(resident), on_preloaded, call));
}

void capture_measure(struct capture *capture, size_t most, struct memory_report_use *ret) {
        const struct resident *resident = capture_running(capture);

        *ret = (struct memory_report_use) { 0 };
        if (resident)
                memory_report_read(resident, most, ret);
        capture->ahead_bytes = ret->memory_bytes + ret->files_bytes;
}

bool capture_may_track(const struct capture *capture, char *text, size_t text_bytes) {
        const char *self = cluster_self(capture->rmd->cluster);
        const char *why = "";

        if (!capture->rmd->config->move_tracking)
                (void) text_format(text, text_bytes, "[move] tracking = no on %s", self);
        else if (!pages_test_passed(capture->rmd->pages_test, &why))
                (void) text_format(text, text_bytes, "%s: %s", self, why);
        else
                return true;
        return false;
}

/* ---- what programs are told ---- */

/* The time for which ranks may make the capture wait; 0: none. */
static uint64_t callback_wait(struct capture *capture) {
        return leave_by_wait_usec(capture->ops->get_leave_by_usec(capture->owner), cluster_log_usec(capture->rmd->cluster),
                                  capture->rmd->config->callback_wait_usec);
}

/* Ranks want to be told before the freeze. */
static bool has_listeners(struct capture *capture, const struct resident *resident) {
        struct capsule_status status;

        capsule_get_status(resident_capsule(resident), &status);
        return status.progress.listening > 0 && callback_wait(capture) > 0;
}

/* The ranks have done what they wanted to do before the freeze, or their time is over: rm-mover
 * sends the last of what goes ahead. */
static void on_announced(struct capsule *capsule, int error, const char *text, void *arg) {
        struct capture *capture = call_done(arg, error);
        Rm__MoverGoOn body = RM__MOVER_GO_ON__INIT;

        if (!capture || capture->step != CAPTURE_PRECOPY)
                return;
        if (capture->ahead)
                (void) order(capture, &MOVER_COMMAND(&body));
        else
                capture->ops->on_done(capture->owner, CAPTURE_PRECOPY);
}

static void announce(struct capture *capture) {
        const struct resident *resident = capture_running(capture);
        struct call *call = call_create(&capture->caller);

        capture->announced = true;
        set_deadline(capture, capture->ops->silence_usec);
        if (!resident) {
                (void) call_begun(call, -ECHILD);
                fail(capture, "the capsule has ended");
        } else if (!call_begun(call, capsule_announce(resident_capsule(resident), capture->ops->kind, callback_wait(capture),
                                                      on_announced, call))) {
                fail(capture, "the ranks cannot be told");
        }
}

void capture_announced(struct capture *capture) {
        capture->announced = true;
}

static void announce_over(struct capture *capture) {
        const struct resident *resident = capture_running(capture);

        if (capture->announced && resident)
                (void) capsule_announce_over(resident_capsule(resident), capture->ops->kind);
        capture->announced = false;
}

/* ---- PRECOPY ---- */

static void send_ahead(struct capture *capture, const struct resident *resident) {
        cleanup_free char *cgroup = capsule_payload_cgroup(resident_capsule(resident));
        cleanup_free char *procs_file = xasprintf("%s/cgroup.procs", cgroup);
        cleanup_free char *scan_dir = capsule_init_cgroup(resident_capsule(resident));
        Rm__MoverPrecopy body = RM__MOVER_PRECOPY__INIT;
        struct transfer_trees trees;

        capture->ahead = true;
        body.procs_file = procs_file;
        body.scan_dir = scan_dir;
        body.announce = has_listeners(capture, resident);
        transfer_trees_init(&trees, capture->rmd->config, resident);
        body.trees = trees.list;
        body.n_trees = TRANSFER_TREES_AHEAD;
        capture->ops->fill_precopy(capture->owner, &body);
        capture->precopy_usec = precopy_time_usec(capture->ahead_bytes, body.bytes_per_sec);
        capture->precopy_end_usec = now_usec() + capture->precopy_usec;
        set_deadline(capture, capture->ops->silence_usec);
        (void) order(capture, &MOVER_COMMAND(&body));
        transfer_trees_finish(&trees);
}

/* Memory that need not be carried was given up, by those ranks that were in time. */
static void on_dropped(struct capsule *capsule, int error, const char *text, void *arg) {
        struct capture *capture = call_done(arg, error);
        const struct resident *resident = capture ? capture_running(capture) : NULL;

        if (!capture || capture->step != CAPTURE_PRECOPY)
                return;
        if (resident)
                send_ahead(capture, resident);
        else
                fail(capture, "the capsule has ended");
}

/* False: no rank has such memory, or there is no time to ask. */
static bool ask_to_drop(struct capture *capture, const struct resident *resident) {
        uint64_t wait_usec = callback_wait(capture);
        struct capsule_status status;
        struct call *call;

        capsule_get_status(resident_capsule(resident), &status);
        if (status.progress.excluding == 0 || wait_usec == 0)
                return false;
        call = call_create(&capture->caller);
        return call_begun(call, capsule_announce(resident_capsule(resident), CAPSULE_DROP, wait_usec, on_dropped, call));
}

void capture_precopy(struct capture *capture, bool ahead) {
        const struct resident *resident = capture_running(capture);

        capture->step = CAPTURE_PRECOPY;
        set_deadline(capture, capture->ops->silence_usec);
        if (!resident)
                fail(capture, "the capsule has ended");
        else if (!ahead && has_listeners(capture, resident))
                announce(capture);
        else if (!ahead)
                capture->ops->on_done(capture->owner, CAPTURE_PRECOPY);
        else if (!ask_to_drop(capture, resident))
                send_ahead(capture, resident);
}

/* The pre-copy goes on, but not indefinitely. */
static void renew_precopy(struct capture *capture) {
        if (now_usec() < capture->precopy_end_usec)
                set_deadline(capture, capture->ops->silence_usec);
        else
                fail(capture, "its memory is still being sent ahead after %.0f s, the limit for a group of its size",
                     (double) capture->precopy_usec / 1e6);
}

bool capture_on_mover_event(struct capture *capture, const Rm__MoverEvent *event) {
        bool precopies = capture->step == CAPTURE_PRECOPY;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_PROGRESS:
                if (precopies)
                        renew_precopy(capture);
                return true;
        case RM__MOVER_EVENT__BODY_NEARLY:
                if (precopies)
                        announce(capture);
                return true;
        default:
                return false;
        }
}

/* ---- FREEZE and CUT ---- */

uint64_t capture_frozen_usec(const struct capture *capture) {
        return capture->frozen_usec;
}

void capture_limit_freeze(struct capture *capture) {
        uint64_t limit_usec = capture->rmd->config->move_timeout_usec;
        uint64_t stood_usec = now_usec() - capture->frozen_usec;

        set_deadline(capture, stood_usec < limit_usec ? limit_usec - stood_usec : 1);
}

static void on_frozen(struct capsule *capsule, int error, const char *text, void *arg) {
        struct capture *capture = call_done(arg, error);

        if (!capture || capture->step != CAPTURE_FREEZE)
                return;
        if (error < 0)
                fail(capture, "freezing: %s", text);
        else
                capture->ops->on_done(capture->owner, CAPTURE_FREEZE);
}

void capture_freeze(struct capture *capture, uint64_t timeout_usec) {
        struct resident *resident = capture_running(capture);
        struct call *call;

        capture->step = CAPTURE_FREEZE;
        set_deadline(capture, timeout_usec);
        if (!resident) {
                fail(capture, "the capsule has ended");
                return;
        }
        capture->frozen_usec = now_usec();
        resident_hold(resident, RESIDENT_CAPTURED);
        call = call_create(&capture->caller);
        if (!call_begun(call, capsule_freeze(resident_capsule(resident), on_frozen, call)))
                fail(capture, "cannot freeze the capsule");
}

/* Lets the capsule run for a moment; then it is frozen and cut off again. Nothing of it, or of its
 * job, has been dumped yet. */
static void reopen_briefly(struct capture *capture, struct capsule *capsule, unsigned usec) {
        if (capsule_open(capsule, NULL, NULL) < 0)
                fail(capture, "cannot reopen the capsule to drain its accept queue");
        else
                timer_arm(capture->reopen, usec);
}

static void on_cut(struct capsule *capsule, int error, const char *text, void *arg) {
        struct capture *capture = call_done(arg, error);
        unsigned usec;

        if (!capture || capture->step != CAPTURE_CUT)
                return;
        if (standstill_again(&capture->standstill, error, capsule_init_pid(capsule), &usec))
                reopen_briefly(capture, capsule, usec);
        else if (error == -EAGAIN || error == -EOPNOTSUPP) /* what it holds that cannot be carried */
                fail_for(capture, error == -EAGAIN ? CAPTURE_FAILURE_PASSING : CAPTURE_FAILURE_GROUP, "%s", text);
        else if (error < 0)
                fail(capture, "cutting the link: %s", text);
        else
                capture->ops->on_done(capture->owner, CAPTURE_CUT);
}

static bool cut(struct capture *capture, const struct resident *resident) {
        struct call *call = call_create(&capture->caller);

        return call_begun(call, capsule_cut(resident_capsule(resident), on_cut, call));
}

void capture_cut(struct capture *capture) {
        const struct resident *resident = capture_running(capture);

        capture->step = CAPTURE_CUT;
        if (!resident)
                fail(capture, "the capsule has ended");
        else if (!cut(capture, resident))
                fail(capture, "cannot cut the link");
}

static void on_reopen_over(evutil_socket_t fd, short what, void *arg) {
        struct capture *capture = arg;
        const struct resident *resident = capture_running(capture);

        if (capture->step != CAPTURE_CUT)
                return;
        capture->frozen_usec = now_usec();
        if (!resident || capsule_freeze(resident_capsule(resident), NULL, NULL) < 0 || !cut(capture, resident))
                fail(capture, "cannot freeze the capsule again");
}

/* ---- DUMP ---- */

static void on_saved_state(struct capsule *capsule, int error, const char *text, const void *saved_state, size_t size_bytes,
                           void *arg) {
        struct capture *capture = call_done(arg, error);

        if (!capture || capture->step != CAPTURE_DUMP)
                return;
        if (error < 0)
                fail(capture, "reading the capsule's counters: %s", text);
        else
                capture->ops->on_saved_state(capture->owner, saved_state, size_bytes);
}

static bool get_saved_state(struct capture *capture, const struct resident *resident) {
        struct call *call = call_create(&capture->caller);

        return call_begun(call, capture->ops->get_saved_state(capture->owner, resident_capsule(resident), on_saved_state, call));
}

/* CRIU is done: what it does not carry follows. */
static void send_trees(struct capture *capture, const struct resident *resident) {
        Rm__MoverDumpDone done = RM__MOVER_DUMP_DONE__INIT;
        struct transfer_trees trees;

        transfer_trees_init(&trees, capture->rmd->config, resident);
        capture->ops->fill_dump_done(capture->owner, &done, &trees);
        done.trees = trees.list;
        done.n_trees = trees.n;
        if (order(capture, &MOVER_COMMAND(&done)))
                capture->ops->on_done(capture->owner, CAPTURE_DUMP);
        transfer_trees_finish(&trees);
}

static void on_dumped(struct capsule *capsule, int error, const char *text, void *arg) {
        struct capture *capture = call_done(arg, error);
        const struct resident *resident = capture ? resident_of(capture) : NULL;

        if (!capture || capture->step != CAPTURE_DUMP)
                return;
        if (error < 0 || !resident)
                fail_for(capture, CAPTURE_FAILURE_GROUP, "criu dump: %s", text);
        else
                send_trees(capture, resident);
}

void capture_dump(struct capture *capture, const char *dir, bool pages) {
        const struct resident *resident = capture_running(capture);
        uint64_t timeout_usec = capture->rmd->config->move_timeout_usec;
        Rm__MoverStart start = RM__MOVER_START__INIT;
        struct call *call;

        capture->step = CAPTURE_DUMP;
        capture_limit_freeze(capture);
        if (!resident) {
                fail(capture, "the capsule has ended");
                return;
        }
        if (!order(capture, &MOVER_COMMAND(&start)))
                return;
        call = call_create(&capture->caller);
        if (!get_saved_state(capture, resident))
                (void) call_begun(call, -ECHILD);
        else if (call_begun(call, capsule_dump(resident_capsule(resident), dir, true, pages, timeout_usec, on_dumped, call)))
                return;
        fail(capture, "cannot start the dump");
}

/* ---- the end ---- */

static void on_open_done(struct capsule *capsule, int error, const char *text, void *arg) {
        struct resident *resident = call_done(arg, error);

        if (!resident)
                return;
        resident_release(resident, RESIDENT_CAPTURED);
        /* -ETIME: there is no lease; the runner opens it when there is one again. */
        if (error < 0 && error != -ETIME) {
                log_error("capsule %s cannot resume after it was captured: %s; trying again", capsule_id(capsule), text);
                runner_retry(resident_runner(resident));
        }
}

/* A capsule that is to run on, also after whoever has captured it has gone: the call is the
 * resident's. False: it was not even asked to, and PID 1 is not there any more. */
static bool open_frozen(const struct resident *resident) {
        struct call *call = resident_call(resident);

        return call_begun(call, capsule_open(resident_capsule(resident), on_open_done, call));
}

void capture_open(struct capture *capture) {
        struct resident *resident = resident_of(capture);
        const struct resident *running = capture_running(capture);
        bool frozen = capture->frozen_usec > 0;

        (void) evtimer_del(capture->reopen);
        capture->step = CAPTURE_NONE;
        capture->frozen_usec = 0;
        if (frozen && resident && !(running && resident_capsule(running) && open_frozen(running)))
                resident_release(resident, RESIDENT_CAPTURED);
        announce_over(capture);
}
