#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/proc_count.h"
#include "common/util.h"
#include "daemon/mover/pages_internal.h"
#include "daemon/mover/procs.h"
#include "daemon/pages/vmflags.h"

/* A round costs some milliseconds for each GiB, and makes the freeze shorter. */
#define ROUNDS_MAX 8U
#define ENOUGH 1024U
/* There may be more of them when they are frozen. */
#define BEGIN_MAX (IMAGE_PAGES_MAX / 8 * 7)
/* Locked pages up to this size are in CRIU's images too. */
#define LOCKED_MAX_BYTES (UINT64_C(16) << 20)
/* The limit of processor time for one stream: some hundred looks at thousands of descriptors.
 * Programs decide how many they have. */
#define DIRECT_CPU_USEC UINT64_C(10000000)
/* Programs decide how many mappings they have. */
#define FLAGS_MAX_BYTES (INT64_C(64) << 20)

/* ---- what CRIU asks of mappings ---- */

static int flags_open(const char *images_dir, int *ret_fd) {
        cleanup_free char *path = xasprintf("%s/vmflags", images_dir);
        cleanup_close int fd = -1;

        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        /* CRIU runs as the owner of the group. */
        if (fd < 0 || fchmod(fd, 0755) < 0)
                return -errno;
        *ret_fd = take_fd(&fd);
        return 0;
}

static int flags_write(const struct process *process, int dir_fd, int64_t *sum_bytes) {
        char name[16];
        struct stat st;
        int r;

        (void) snprintf(name, sizeof(name), "%d", (int) process->inner_pid);
        r = vmflags_save(track_proc_fd(process->track), dir_fd, name);
        if (r == 0 && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                *sum_bytes += st.st_size;
        return r;
}

/* Returns errors of the hooks. In `ret_reason`: memory that must be in CRIU's images. */
static int flags_save(struct pages *p, struct rm_error *ret_reason, struct rm_error *err) {
        cleanup_close int dir_fd = -1;
        struct process *process, *next;
        int64_t sum_bytes = 0;
        int r = flags_open(p->images_dir, &dir_fd);

        if (r < 0) {
                log_warn("%s/vmflags: %s: the dump takes longer", p->images_dir, strerror(-r));
                return 0;
        }
        HASH_ITER (hh, p->by_pid, process, next) {
                int k = 0;

                if (r == 0 && process->track && sum_bytes < FLAGS_MAX_BYTES) {
                        k = flags_write(process, dir_fd, &sum_bytes);
                        r = pages_poll(p, err);
                }
                if (k == -EOPNOTSUPP)
                        (void) error_set(ret_reason, k, "process %d: it has a shadow stack, or memory that children get empty",
                                         (int) process->pid);
                else if (k < 0)
                        log_debug("mappings of process %d: %s", (int) process->pid, strerror(-k));
        }
        return r;
}

int pages_save_flags(struct pages *p, struct rm_error *err) {
        struct rm_error reason = { 0 };
        int r = flags_save(p, &reason, err);

        if (r == 0 && reason.code < 0)
                r = error_set(err, reason.code, "%s", error_text(&reason));
        return r;
}

/* ---- what writes unseen ---- */

/* All looks of one stream have a limit of time together: rounds may be many. */
int pages_check_direct(struct pages *p, struct rm_error *err) {
        struct procs_budget budget = { .descriptors = PROC_GROUP_DESCRIPTORS_MAX, .cpu_usec = p->direct_left_usec };
        char path[PROCS_PATH_BYTES];
        struct process *process, *next;
        int direct = 0;

        HASH_ITER (hh, p->by_pid, process, next) {
                if (process->track)
                        direct = descriptors_read_direct(p->descriptors, track_proc_fd(process->track), &budget, path);
                p->direct_left_usec = budget.cpu_usec;
                if (direct == -E2BIG)
                        return error_set(err, -EOPNOTSUPP, "process %d: there are too many open files and locks to be looked at",
                                         (int) process->pid);
                if (direct < 0 && direct != -ESRCH)
                        return error_set(err, -EOPNOTSUPP, "cannot look at what process %d has open: %s", (int) process->pid,
                                         strerror(-direct));
                if (direct > 0)
                        return error_set(err, -EOPNOTSUPP, "process %d reads '%s' %s", (int) process->pid, path,
                                         direct == PROCS_DIRECT_FLAG ? "with O_DIRECT" : "on FUSE, 9p or SMB");
        }
        return 0;
}

/* ---- while they run ---- */

/* Does it all go apart from CRIU's images? If not, `ret_reason` says why. */
static int group_check(struct pages *p, struct rm_error *ret_reason, struct rm_error *err) {
        int r;

        if (p->locked_bytes > LOCKED_MAX_BYTES) {
                (void) error_set(ret_reason, -EOPNOTSUPP, "%" PRIu64 " MiB of memory are locked", p->locked_bytes >> 20);
                return 0;
        }
        r = flags_save(p, ret_reason, err);
        if (r == 0 && ret_reason->code == 0)
                (void) pages_check_direct(p, ret_reason);
        return r;
}

/* The stream that follows is of this group. */
static int group_set(struct pages *p, const struct pages_group *group, struct rm_error *err) {
        int r;

        p->procs_file = group->procs_file;
        p->direct_left_usec = DIRECT_CPU_USEC;
        descriptors_end(take_ptr(p->descriptors));
        r = descriptors_start(group->scan_dir, &p->descriptors);
        return r < 0 ? error_sys(err, r, "cannot start a process") : 0;
}

int pages_begin(const struct pages_group *group, const char *images_dir, struct image_writer *w, const struct mover_hooks *hooks,
                struct pages **ret, struct rm_error *ret_reason, struct rm_error *err) {
        cleanup_free pid_t *pids = NULL;
        struct pages *p;
        size_t n = 0;
        int r;

        if (procs_read(group->procs_file, &pids, &n) < 0 || n == 0 || n > BEGIN_MAX) {
                (void) error_set(ret_reason, -EOPNOTSUPP, "%s names %zu processes, and 1 to %u can be tracked", group->procs_file,
                                 n, BEGIN_MAX);
                return 0;
        }
        if (track_supported(ret_reason) < 0)
                return 0;
        p = xcalloc(1, sizeof(*p));
        p->images_dir = images_dir;
        p->writer = w;
        p->hooks = hooks;
        p->rounds = (struct rounds) { .part = ENOUGH };
        p->calls = calls_create();
        r = group_set(p, group, err);
        if (r == 0)
                r = pages_update(p, ret_reason, err);
        if (r == 0 && ret_reason->code == 0)
                r = group_check(p, ret_reason, err);
        if (r < 0 || ret_reason->code < 0) {
                pages_destroy(p);
                return r;
        }
        *ret = p;
        return 0;
}

/* ---- another stream ---- */

/* Prepares the process for another stream: the kernel reports from now on the pages written since
 * the last scan. The scan of pages_finish() has protected no page, so that the pages that it
 * reported, and those written after it, are reported by the next round. Not so where there is no
 * protection, or none of the memory that the process has now. */
static void process_again(struct process *process) {
        if (process->track && process->untracked)
                track_end(take_ptr(process->track));
        process->untracked = false;
        process->opened = false;
        process->continued = process->track != NULL;
}

/* Asks each time, since the locked memory may have changed. */
static uint64_t locked_bytes(const struct pages *p) {
        const struct process *process;
        uint64_t sum_bytes = 0;

        for (process = p->by_pid; process; process = process->hh.next) {
                struct procs_status status = { 0 };

                if (process->track && procs_status(track_proc_fd(process->track), &status) == 0)
                        sum_bytes += status.locked_bytes;
        }
        return sum_bytes;
}

/* Removes the flags of earlier processes: those of processes that have ended would be taken for
 * those of others with their pids. */
static int flags_clear(const struct pages *p, struct rm_error *err) {
        cleanup_free char *path = xasprintf("%s/vmflags", p->images_dir);
        int r = remove_tree(path);

        return r < 0 ? error_sys(err, r, "remove %s", path) : 0;
}

int pages_again(struct pages *p, const struct pages_group *group, struct image_writer *w, const struct mover_hooks *hooks,
                struct rm_error *ret_reason, struct rm_error *err) {
        struct process *process, *next;
        int r = flags_clear(p, err);

        p->writer = w;
        p->hooks = hooks;
        p->frozen = false;
        p->figures = (struct pages_figures) { 0 };
        p->rounds = (struct rounds) { .part = ENOUGH };
        p->reported_bytes = 0;
        pages_queue_clear(p);
        HASH_ITER (hh, p->by_pid, process, next)
                process_again(process);
        p->locked_bytes = 0;
        if (r == 0)
                r = group_set(p, group, err);
        if (r == 0)
                r = pages_update(p, ret_reason, err);
        error_clear(ret_reason); /* one that cannot be tracked now may be in the next round, or comes whole in the freeze */
        p->locked_bytes = locked_bytes(p);
        return r < 0 ? r : group_check(p, ret_reason, err);
}

void pages_destroy(struct pages *p) {
        struct process *process, *next;

        if (!p)
                return;
        pages_slow_end(p);
        HASH_ITER (hh, p->by_pid, process, next)
                pages_process_remove(p, process);
        calls_destroy(p->calls);
        descriptors_end(p->descriptors);
        free(p);
}

const struct pages_figures *pages_figures(const struct pages *p) {
        return &p->figures;
}

/* Makes a round of one process. A process that has ended meanwhile, or executed another program, is
 * seen by the next update. */
static int process_round(struct pages *p, struct process *process, struct rm_error *err) {
        int r = process->track ? pages_scan(p, process, track_round, err) : 0;

        if (r == 0 || p->failed)
                return r;
        log_debug("process %d: %s: all of it is sent again", (int) process->pid, error_text(err));
        error_clear(err);
        track_end(take_ptr(process->track));
        return 0;
}

static int round_run(struct pages *p, struct rm_error *err) {
        uint64_t begin_usec = now_usec();
        struct process *process, *next;
        struct rm_error reason = { 0 };
        int r;

        p->reported_bytes = 0;
        pages_queue_clear(p);
        r = pages_update(p, &reason, err);
        if (reason.code < 0)
                log_debug("%s: it is sent when it is frozen", error_text(&reason));
        HASH_ITER (hh, p->by_pid, process, next)
                if (r == 0)
                        r = process_round(p, process, err);
        if (r == 0)
                r = pages_queue_flush(p, err);
        if (r == 0)
                r = fault_wait("mover.send.round", err);
        if (r == 0)
                r = pages_check_direct(p, err);
        p->figures.rounds++;
        if (r == 0)
                r = p->hooks->idle(p->hooks->ctx, err);
        p->round_usec = now_usec() - begin_usec;
        return r;
}

/* The first round is made always: its pages would have to be sent in the freeze otherwise, whose
 * length has a limit. */
static bool in_time(const struct pages *p) {
        return p->figures.rounds == 0 || rounds_in_time(p->hooks->deadline, now_usec(), p->round_usec);
}

int pages_rounds(struct pages *p, struct rm_error *err) {
        bool more = in_time(p);
        int r = 0;

        p->rounds.n = 0;
        p->rounds.before_bytes = 0;
        p->rounds.max = p->hooks->rounds_max ? p->hooks->rounds_max : ROUNDS_MAX;
        while (r == 0 && more) {
                r = round_run(p, err);
                more = rounds_another(&p->rounds, p->reported_bytes) && in_time(p);
        }
        return r;
}

struct count {
        uint64_t bytes;
        uint64_t most_bytes;
};

static int count_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct count *count = ctx;

        count->bytes += end - start;
        return count->bytes > count->most_bytes;
}

int pages_written(struct pages *p, uint64_t most_bytes, uint64_t *ret_bytes, struct rm_error *err) {
        struct count count = { .most_bytes = most_bytes };
        struct process *process, *next;
        struct rm_error reason = { 0 };
        int r = pages_update(p, &reason, err);
        bool known = r == 0 && reason.code == 0;

        HASH_ITER (hh, p->by_pid, process, next)
                /* A scan that protects nothing: what it tells is told again. One that fails is left
                 * to a round. */
                if (known && process->track)
                        known = track_last(process->track, count_run, &count, NULL) == 0;
        *ret_bytes = known ? count.bytes : UINT64_MAX;
        return r == 0 ? pages_check_direct(p, err) : r;
}

/* ---- slower, where that gains nothing ---- */

bool pages_slow_pays(const struct pages *p, uint64_t limit_usec) {
        return rounds_slow_pays(p->round_usec, limit_usec) && in_time(p);
}

void pages_last_round(const struct pages *p, uint64_t *ret_bytes, uint64_t *ret_usec) {
        *ret_bytes = p->reported_bytes;
        *ret_usec = p->round_usec;
}

void pages_slow_end(struct pages *p) {
        if (!p->slow)
                return;
        slow_end(take_ptr(p->slow));
        p->figures.slow_usec = now_usec() - p->slow_since_usec;
}

int pages_slow_rounds(struct pages *p, struct slow *slow, uint64_t limit_usec, struct rm_error *err) {
        unsigned share_usec = rounds_first_share(p->reported_bytes, p->round_usec);
        int r;

        p->slow = slow;
        p->slow_since_usec = now_usec();
        p->slow_until_usec = p->slow_since_usec + limit_usec;
        do {
                uint64_t before_bytes = p->reported_bytes;

                r = slow_set(p->slow, share_usec);
                if (r < 0) {
                        log_warn("the processes cannot be slowed down: %s", strerror(-r));
                        pages_slow_end(p);
                        return 0;
                }
                r = round_run(p, err);
                log_debug("with %u us of a core a second: %" PRIu64 " KiB sent in %" PRIu64 " ms", share_usec,
                          p->reported_bytes >> 10, p->round_usec / 1000);
                share_usec = rounds_next_share(share_usec, p->reported_bytes, before_bytes);
        } while (r == 0 && p->slow && !rounds_slow_enough(p->round_usec) && now_usec() < p->slow_until_usec && in_time(p));
        return r;
}

/* ---- when they are frozen ---- */

/* Scans a frozen process. The reported pages are sent, or left; with an error, p->failed: as after
 * pages_scan(). */
static int scan_frozen(struct pages *p, struct process *process, pages_scan_fn scan, struct rm_error *err) {
        struct rm_error why = { 0 };
        int r, k;

        if (!p->later)
                return pages_scan(p, process, scan, err);
        r = pages_object_open(p, process, err);
        if (r == 0)
                r = pages_list_begin(p, process, RM__IMAGE_KIND__IMAGE_KIND_LATER, err);
        p->failed = r < 0;
        if (r == 0)
                r = pages_scan(p, process, scan, err);
        if (p->failed)
                return r;
        k = pages_list_end(p, &why);
        p->failed = k < 0;
        if (k < 0)
                *err = why;
        return k < 0 ? k : r;
}

/* The first scan protects its pages again, so that the second one reports only pages written since.
 * Where not all memory can be protected (the process has executed another program since the last
 * round), both report all of it. */
static int process_scan_first(struct pages *p, struct process *process, struct rm_error *err) {
        int r = scan_frozen(p, process, p->later == LATER_ALL ? track_present : track_round, err);

        if (r == 0 || p->failed)
                return r;
        error_clear(err);
        process->untracked = true;
        return scan_frozen(p, process, track_last, err);
}

static int scan_last(struct track *track, track_run_cb run, void *ctx, struct rm_error *err) {
        return track_last_and_present(track, run, pages_add_run, ctx, err);
}

/* CRIU is done with it: nothing but the kernel changes its memory from here on. */
static int process_finish(struct pages *p, struct process *process, struct rm_error *err) {
        struct pageset *present = p->adding = pageset_create();
        int r = scan_frozen(p, process, scan_last, err);

        if (r < 0 && !p->failed)
                r = error_prefix(err, "process %d", (int) process->pid);
        if (r == 0)
                r = fault_wait("mover.send.present", err);
        if (r == 0)
                r = pages_object_open(p, process, err);
        if (r == 0)
                r = pages_send_present(p, process, present, err);
        pageset_destroy(present);
        return r;
}

static int process_last(struct pages *p, struct process *process, struct rm_error *err) {
        int r = process_scan_first(p, process, err);

        if (r == -ESRCH && !p->failed) {
                error_clear(err);
                return pages_process_gone(p, process, err);
        }
        return r < 0 && !p->failed ? error_prefix(err, "process %d", (int) process->pid) : r;
}

static int last_send(struct pages *p, bool done, struct rm_error *err) {
        struct process *process, *next;

        HASH_ITER (hh, p->by_pid, process, next) {
                int r = done ? process_finish(p, process, err) : process_last(p, process, err);

                if (r < 0)
                        return r;
        }
        return p->hooks->idle(p->hooks->ctx, err);
}

static int last_run(struct pages *p, bool done, struct rm_error *err) {
        uint64_t begin_usec = now_usec();
        int r;

        p->reported_bytes = 0;
        r = last_send(p, done, err);
        p->figures.last_bytes += p->later ? 0 : p->reported_bytes;
        p->figures.last_usec += now_usec() - begin_usec;
        return r;
}

int pages_send_last(struct pages *p, const struct mover_hooks *hooks, struct rm_error *err) {
        struct rm_error reason = { 0 };
        int r;

        p->hooks = hooks;
        p->frozen = true;
        r = pages_update(p, &reason, err);
        if (r == 0 && reason.code < 0)
                r = error_set(err, reason.code, "%s", error_text(&reason));
        return r < 0 ? r : last_run(p, false, err);
}

int pages_finish(struct pages *p, struct rm_error *err) {
        int r = last_run(p, true, err);

        descriptors_end(take_ptr(p->descriptors)); /* the group may be removed now */
        return r;
}
