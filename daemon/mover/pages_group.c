#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/mover/pages_internal.h"
#include "daemon/mover/procs.h"

/* How long a process is stopped at most to begin with it. That takes less than a millisecond, but
 * the machine may be busy, or it may be in vfork(2). */
#define STOP_USEC 50000U
#define STOP_TRIES 4U
#define STOP_PAUSE_USEC 20000U
/* For all processes that do not stop, each time that the group is looked through: a program can
 * have thousands. */
#define IN_VAIN_USEC 2000000U

void pages_process_remove(struct pages *p, struct process *process) {
        HASH_DELETE(hh, p->by_pid, process);
        HASH_DELETE(hh_inner, p->by_inner, process);
        track_end(process->track);
        pageset_destroy(process->probed);
        pageset_destroy(process->written);
        pageset_destroy(process->later);
        cleanup_close_fd(&process->pidfd);
        free(process);
}

int pages_process_gone(struct pages *p, struct process *process, struct rm_error *err) {
        int r = process->opened ? pages_send_present(p, process, NULL, err) : 0;

        pages_process_remove(p, process);
        return r;
}

static struct process *process_find(const struct pages *p, pid_t pid) {
        struct process *process;

        HASH_FIND(hh, p->by_pid, &pid, sizeof(pid), process);
        return process;
}

/* Names in the stream are pids in the group's namespace; one in a namespace below would be
 * another's name. */
static int process_check(const struct pages *p, const struct procs_status *status, struct rm_error *err) {
        struct process *other;

        HASH_FIND(hh_inner, p->by_inner, &status->inner_pid, sizeof(status->inner_pid), other);
        if (other || (p->nesting != 0 && status->nesting != p->nesting))
                return error_set(err, -EOPNOTSUPP, "it is in a pid namespace of its own");
        if (HASH_COUNT(p->by_pid) >= IMAGE_PAGES_MAX)
                return error_set(err, -EOPNOTSUPP, "there are more than %u processes", IMAGE_PAGES_MAX);
        return 0;
}

/* The status is that of the process of the pidfd: it is read when both are open, and so the pid is
 * still that of the first. */
static int process_open(pid_t pid, int *ret_pidfd, struct procs_status *ret_status) {
        cleanup_free char *path = xasprintf("/proc/%d", (int) pid);
        cleanup_close int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int pidfd = proc_fd < 0 ? -1 : (int) syscall(SYS_pidfd_open, pid, 0);
        int r;

        if (pidfd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        r = procs_status(proc_fd, ret_status);
        if (r == 0)
                *ret_pidfd = take_fd(&pidfd);
        return r;
}

/* Made known, but not tracked. */
static int process_add(struct pages *p, pid_t pid, struct process **ret, struct rm_error *err) {
        cleanup_close int pidfd = -1;
        struct procs_status status = { 0 };
        struct process *process;
        int r = process_open(pid, &pidfd, &status);

        if (r < 0)
                return error_sys(err, r, "open it");
        r = process_check(p, &status, err);
        if (r < 0)
                return r;
        process = xcalloc(1, sizeof(*process));
        process->pidfd = take_fd(&pidfd);
        process->pid = pid;
        process->inner_pid = status.inner_pid;
        HASH_ADD(hh, p->by_pid, pid, sizeof(process->pid), process);
        HASH_ADD(hh_inner, p->by_inner, inner_pid, sizeof(process->inner_pid), process);
        p->nesting = status.nesting;
        p->locked_bytes += status.locked_bytes;
        *ret = process;
        return 0;
}

/* Offsets in the stream are addresses. With page tables of five levels a program can ask for memory
 * that is behind them. */
static int check_addresses(const struct track *track, struct rm_error *err) {
        struct maps maps;
        uint64_t end;
        int r = maps_read(track_proc_fd(track), &maps);

        if (r < 0)
                return error_sys(err, r, "read the mappings");
        end = maps_end(&maps, MAP_KIND_LAZY);
        maps_finish(&maps);
        return end > IMAGE_OBJECT_MAX_BYTES
                       ? error_set(err, -EOPNOTSUPP, "it has memory behind 48 bits of addresses, up to %" PRIx64, end)
                       : 0;
}

static int track_try(struct pages *p, struct process *process, struct rm_error *err) {
        const unsigned kinds = 1U << MAP_KIND_LAZY;
        int r = p->frozen ? track_open(process->pidfd, kinds, &process->track, err)
                          : track_start(process->pidfd, kinds, STOP_USEC, &process->track, err);

        if (r < 0)
                return r;
        process->untracked = p->frozen;
        r = check_addresses(process->track, err);
        if (r < 0)
                track_end(take_ptr(process->track));
        return r;
}

/* Returns errors of the hooks; others are in `ret_reason`. */
static int process_track(struct pages *p, struct process *process, struct rm_error *ret_reason, struct rm_error *err) {
        int r = pages_poll(p, err);

        if (r == 0 && p->in_vain_usec >= IN_VAIN_USEC)
                (void) error_set(ret_reason, -ETIMEDOUT, "others did not stop, and so it was not tried");
        for (unsigned i = 0; i < STOP_TRIES && r == 0 && p->in_vain_usec < IN_VAIN_USEC; i++) {
                uint64_t begin_usec = now_usec();
                int k = track_try(p, process, ret_reason);

                if (k != -EAGAIN && k != -ETIMEDOUT)
                        break;
                (void) usleep(STOP_PAUSE_USEC);
                p->in_vain_usec += now_usec() - begin_usec;
                r = pages_poll(p, err);
        }
        return r;
}

/* A pid that is listed: takes the process up, unless it is there already. */
static int process_take(struct pages *p, pid_t pid, struct rm_error *ret_reason, struct rm_error *err) {
        struct process *process = process_find(p, pid);
        struct rm_error why = { 0 };
        int r = 0;

        if (!process && process_add(p, pid, &process, &why) < 0)
                process = NULL;
        if (process && !process->track)
                r = process_track(p, process, &why, err);
        if (r == 0 && process && !process->track && why.code == -ESRCH)
                r = pages_process_gone(p, process, err);
        else if (why.code < 0 && why.code != -ESRCH && (!process || !process->track))
                (void) error_set(ret_reason, why.code, "process %d: %s", (int) pid, error_text(&why));
        return r;
}

/* Removes processes that have ended. A pid in the list may be another's by now. */
static int processes_leave(struct pages *p, const pid_t *pids, size_t n, struct rm_error *err) {
        struct process *process, *next;
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                process = process_find(p, pids[i]);
                if (process)
                        process->listed = syscall(SYS_pidfd_send_signal, process->pidfd, 0, NULL, 0) == 0;
        }
        HASH_ITER (hh, p->by_pid, process, next) {
                if (!process->listed && r == 0)
                        r = pages_process_gone(p, process, err);
                else
                        process->listed = false;
        }
        return r;
}

int pages_update(struct pages *p, struct rm_error *ret_reason, struct rm_error *err) {
        cleanup_free pid_t *pids = NULL;
        size_t n = 0;
        int r = procs_read(p->procs_file, &pids, &n);

        if (r < 0)
                return error_sys(err, r, "read %s", p->procs_file);
        p->in_vain_usec = 0;
        r = processes_leave(p, pids, n, err);
        for (size_t i = 0; i < n && r == 0 && (p->begun || ret_reason->code == 0); i++)
                r = process_take(p, pids[i], ret_reason, err);
        p->begun = true;
        return r;
}
