#include "daemon/capsule/init/fencing.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/freezer.h"
#include "daemon/capsule/init/init.h"

#define USEC_PER_SEC UINT64_C(1000000)

/* Processes stand still within a few milliseconds, unless they are in the kernel without an end (a
 * hung file system), where they run no program either. LEASE_FENCE_USEC in daemon/cluster/lease.h
 * counts with this, and with GUARD_USEC. */
enum { STOP_WAIT_USEC = 100000, STOP_SCAN_USEC = 500 };

/* PID 1 writes output to a disk, and hangs when that does. Then a second thread, the guard, freezes
 * the payload, so long after the end. */
enum { GUARD_USEC = 150000, GUARD_STACK_BYTES = 128 * 1024 };

struct fencing {
        struct init *init;
        struct source timer;
        int guard_timer_fd;
        pthread_mutex_t lock; /* what follows changes under it; the guard changes only guard_froze */
        uint64_t end_usec;
        bool done;
        bool froze; /* by it, and so to be thawed by it */
        bool cut; /* likewise */
        bool guard_froze;
        bool resumed; /* and its threads are to be let go, without the lock */
};

bool fencing_is_on(const struct fencing *fencing) {
        return fencing->init->core.spec->fenced && (fencing->done || now_boot_usec() >= fencing->end_usec);
}

bool fencing_is_done(const struct fencing *fencing) {
        return fencing->done;
}

void fencing_leave_freeze(struct fencing *fencing) {
        fencing->froze = false;
}

void fencing_leave_cut(struct fencing *fencing) {
        fencing->cut = false;
}

/* Absolute, so that time which the machine sleeps through counts. UINT64_MAX: not. */
static int arm(int fd, uint64_t at_usec) {
        struct itimerspec at = { 0 };

        if (at_usec != UINT64_MAX) {
                at.it_value.tv_sec = (time_t) (at_usec / USEC_PER_SEC);
                at.it_value.tv_nsec = (long) (at_usec % USEC_PER_SEC * 1000U) + 1; /* all 0 would disarm it */
        }
        return timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL) < 0 ? -errno : 0;
}

static int arm_both(const struct fencing *fencing) {
        uint64_t end = fencing->end_usec;
        int r = arm(fencing->timer.fd, end);

        return r < 0 ? r : arm(fencing->guard_timer_fd, end < UINT64_MAX - GUARD_USEC ? end + GUARD_USEC : UINT64_MAX);
}

/* ---- the end of the lease ---- */

/* Stops the payload. A payload that cannot be stopped is killed: the job may already run
 * elsewhere. */
static void stop(struct fencing *fencing) {
        const struct init *init = fencing->init;
        uint64_t deadline = now_usec() + STOP_WAIT_USEC;
        struct rm_error error = { 0 };

        fencing->froze = true;
        if (freezer_set(init, true, &error) < 0) {
                log_error("the lease of this node has ended: %s; it is killed", error_text(&error));
                (void) cgroup_kill(init->core.node.cgroup_payload, init->core.spec->cgroup_v1);
                return;
        }
        while (!freezer_is_frozen(init) && now_usec() < deadline)
                usleep(STOP_SCAN_USEC);
}

static void cut_off(struct fencing *fencing) {
        struct link *link = &fencing->init->link;
        struct rm_error error = { 0 };

        if (link->filtered)
                return;
        fencing->cut = true;
        if (link_set_filter(link, true, &error) == 0)
                return;
        log_error("%s; its link goes down instead", error_text(&error));
        if (link_set_up(link, false, &error) < 0)
                log_error("%s", error_text(&error));
}

/* Freeze before cut, as in a move: no system call of a program meets the filter. CRIU has the
 * freezer while it dumps, and what it restores begins frozen; both are cut off already. */
static void fence(struct fencing *fencing) {
        struct init *init = fencing->init;

        if (init->core.phase == CAPSULE__PHASE__PHASE_RUNNING)
                stop(fencing);
        else if (init->core.phase == CAPSULE__PHASE__PHASE_EMPTY || init->core.phase == CAPSULE__PHASE__PHASE_EXITED)
                fencing->froze = fencing->guard_froze;
        cut_off(fencing);
        log_warn("the lease of this node has ended: fenced%s", fencing->guard_froze ? ", late: PID 1 was held up" : "");
        fencing->guard_froze = false;
        fencing->done = true;
        init->core.ops->send_status(&init->core);
}

static void on_timer(struct source *source, uint32_t events) {
        struct fencing *fencing = source->data;
        uint64_t times;

        if (read(source->fd, &times, sizeof(times)) < 0)
                return;
        (void) pthread_mutex_lock(&fencing->lock);
        if (!fencing->done && now_boot_usec() >= fencing->end_usec)
                fence(fencing);
        (void) pthread_mutex_unlock(&fencing->lock);
}

/* The guard waits for no disk, nor does the first thread while it has the lock. Frozen processes
 * send nothing, so the cut can wait for that thread. */
static void *run_guard(void *arg) {
        struct fencing *fencing = arg;
        const struct init *init = fencing->init;
        uint64_t times;

        while (read(fencing->guard_timer_fd, &times, sizeof(times)) >= 0 || errno == EINTR) {
                (void) pthread_mutex_lock(&fencing->lock);
                if (!fencing->done && now_boot_usec() >= fencing->end_usec) {
                        fencing->guard_froze = true;
                        (void) cgroup_set_frozen(init->core.node.cgroup_payload, init->core.spec->cgroup_v1, true);
                }
                (void) pthread_mutex_unlock(&fencing->lock);
        }
        return NULL;
}

/* ---- a new one ---- */

static int open_again(struct fencing *fencing, struct rm_error *error) {
        struct link *link = &fencing->init->link;
        int r;

        if (!fencing->cut)
                return 0;
        r = link_set_up(link, true, error);
        if (r == 0)
                r = link_set_filter(link, false, error);
        if (r == 0)
                fencing->cut = false;
        return r;
}

static int thaw(struct fencing *fencing, struct rm_error *error) {
        const struct init *init = fencing->init;

        if (!freezer_is_frozen(init))
                return freezer_set(init, false, error);
        freezer_note_calls(init);
        fencing->resumed = true;
        return freezer_resume(init, error);
}

static int go_on(struct fencing *fencing, struct rm_error *error) {
        int r = open_again(fencing, error);

        /* A freeze that was ordered meanwhile goes on. */
        if (r == 0 && fencing->froze && !fencing->init->freezing)
                r = thaw(fencing, error);
        if (r == 0)
                fencing->froze = false;
        return r;
}

static void renew(struct fencing *fencing, uint64_t end_usec) {
        struct rm_error error = { 0 };

        /* The timer was not seen yet: PID 1 was held up. */
        if (!fencing->done && now_boot_usec() >= fencing->end_usec)
                fence(fencing);
        fencing->end_usec = end_usec;
        if (arm_both(fencing) < 0) {
                log_error("cannot arm the timer of the lease");
                fence(fencing);
                return;
        }
        if (!fencing->done || end_usec <= now_boot_usec())
                return;
        if (go_on(fencing, &error) < 0) {
                log_error("%s; trying again when the lease is renewed", error_text(&error));
                return;
        }
        fencing->done = false;
        link_announce(&fencing->init->link);
        log_info("this node has a lease");
        fencing->init->core.ops->send_status(&fencing->init->core);
}

void fencing_renew(struct fencing *fencing, uint64_t end_usec) {
        bool later = end_usec > fencing->end_usec || fencing->end_usec == UINT64_MAX, resumed;

        if (!fencing->init->core.spec->fenced || !later)
                return;
        (void) pthread_mutex_lock(&fencing->lock);
        renew(fencing, end_usec);
        resumed = fencing->resumed;
        fencing->resumed = false;
        (void) pthread_mutex_unlock(&fencing->lock);
        /* This may take longer than the new lease lasts, while the payload runs: then the guard
         * freezes it. */
        if (resumed)
                freezer_let_go(fencing->init);
}

/* ---- life ---- */

/* Signals are for the first thread. */
static int start_guard(struct fencing *fencing) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r = pthread_attr_init(&attributes);

        if (r != 0)
                return -r;
        (void) pthread_attr_setstacksize(&attributes, GUARD_STACK_BYTES);
        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attributes, run_guard, fencing);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attributes);
        return -r;
}

static int make_timers(struct fencing *fencing) {
        int r;

        fencing->timer = (struct source) { .fn = on_timer, .data = fencing };
        fencing->timer.fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        fencing->guard_timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
        if (fencing->timer.fd < 0 || fencing->guard_timer_fd < 0)
                return -errno;
        r = source_add(fencing->init->core.epoll_fd, &fencing->timer, EPOLLIN);
        return r < 0 ? r : start_guard(fencing);
}

int fencing_create(struct init *init, struct fencing **ret, struct rm_error *error) {
        struct fencing *fencing = xcalloc(1, sizeof(*fencing));
        int r;

        fencing->init = init;
        *ret = fencing;
        if (!init->core.spec->fenced)
                return 0;
        (void) pthread_mutex_init(&fencing->lock, NULL);
        cut_off(fencing);
        fencing->done = true;
        r = make_timers(fencing);
        return r < 0 ? error_sys(error, r, "cannot make the timer of the lease") : 0;
}
