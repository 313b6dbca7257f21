#include "daemon/capsule/init/memory/uffd_handler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/compare.h"
#include "common/error.h"
#include "common/log.h"
#include "common/openat.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/passing.h"
#include "daemon/pages/serve.h"
#include "daemon/pages/vmflags.h"

/* ---- to PID 1 ---- */

static int say(const struct uffd_handler_job *job, const struct uffd_handler_word *word, int fd) {
        return passing_send(job->say_fd, word, sizeof(*word), fd);
}

static int say_of(const struct uffd_handler_job *job, enum uffd_handler_say what, int key) {
        return say(job, &(struct uffd_handler_word) { .say = what, .key = key }, -1);
}

static int on_began(void *ctx, int uffd, int store, int parent_uffd) {
        const struct uffd_handler_word first = { .say = UFFD_HANDLER_UFFD, .key = uffd, .parent = parent_uffd };
        const struct uffd_handler_word second = { .say = UFFD_HANDLER_STORE, .key = uffd };
        int r = say(ctx, &first, uffd);

        return r == 0 ? say(ctx, &second, store) : r;
}

static int on_copied(void *ctx, int uffd) {
        return say_of(ctx, UFFD_HANDLER_COPIED, uffd);
}

static int on_ended(void *ctx, int uffd) {
        return say_of(ctx, UFFD_HANDLER_ENDED, uffd);
}

/* ---- its descriptors ---- */

/* PID 1 has rmd's connection, the node's directories and much more. */
static int close_others(const struct uffd_handler_job *job) {
        cleanup_free int *keep = xcalloc(2 * job->n_parts + 3, sizeof(*keep));
        unsigned from = STDERR_FILENO + 1;
        size_t n = 0;

        keep[n++] = job->say_fd;
        keep[n++] = job->listen_fd;
        keep[n++] = job->later_fd;
        for (size_t i = 0; i < job->n_parts; i++) {
                keep[n++] = job->parts[i].uffd;
                keep[n++] = job->parts[i].store;
        }
        qsort(keep, n, sizeof(*keep), compare_u32);
        for (size_t i = 0; i < n; i++) {
                if (keep[i] < (int) from)
                        continue; /* none */
                if (keep[i] > (int) from && close_range(from, (unsigned) keep[i] - 1, 0) < 0)
                        return -errno;
                from = (unsigned) keep[i] + 1;
        }
        return close_range(from, ~0U, 0) < 0 ? -errno : 0;
}

/* ---- pages that come first ---- */

/* When a thread ends the kernel does not wait for a page: it passes over the robust mutexes that
 * the thread holds, and over who waits for its end, if the page that tells of them is missing. With
 * glibc and musl both are told of in one. */
static int expedite_thread(struct serve *serve, pid_t pid, pid_t tid) {
        struct robust_list_head *head = NULL;
        size_t size;
        uint64_t page;

        if (syscall(SYS_get_robust_list, tid, &head, &size) < 0 || !head)
                return 0;
        page = (uint64_t) (uintptr_t) head / PAGES_PAGE_BYTES * PAGES_PAGE_BYTES;
        serve_expedite(serve, pid, page, page + PAGES_PAGE_BYTES);
        return serve_fetch(serve, pid, page, page + PAGES_PAGE_BYTES);
}

static int expedite_threads(struct serve *serve, pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/task", (int) pid);
        cleanup_dir DIR *dir = opendir(path);
        const char *tid;
        int r = 0;

        while (r == 0 && (tid = next_number(dir)))
                r = expedite_thread(serve, pid, (pid_t) atoi(tid));
        return r;
}

/* ---- CRIU ---- */

/* The owner's other processes, which may reach the directory on another way, are sent off. */
static int accept_criu(const struct uffd_handler_job *job) {
        for (;;) {
                int fd = accept4(job->listen_fd, NULL, NULL, SOCK_CLOEXEC);
                struct ucred peer = { 0 };
                socklen_t size = sizeof(peer);

                if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
                        return -errno;
                if (fd < 0)
                        continue;
                if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == job->criu_pid)
                        return fd;
                log_warn("process %d connected to the uffd handler in CRIU's place", (int) peer.pid);
                (void) close(fd);
        }
}

/* CRIU 4.2 forgets a mapping that it has made at its final place by chance: what it lacks would
 * read as zeros. */
static int register_all(struct serve *serve, pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/smaps", (int) pid);
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        cleanup_free struct vmflags_range *ranges = NULL;
        size_t n = 0;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno; /* it has ended */
        r = vmflags_read_file(fd, &text, NULL);
        if (r < 0)
                return r;
        (void) vmflags_reduce(text);
        r = vmflags_lazy(text, &ranges, &n);
        for (size_t i = 0; i < n && r == 0; i++)
                r = serve_register(serve, pid, ranges[i].start, ranges[i].end);
        return r;
}

static int add_parts(struct serve *serve, const struct uffd_handler_job *job, struct rm_error *err) {
        int r = 0;

        for (size_t i = 0; i < job->n_parts && r == 0; i++) {
                const struct uffd_handler_part *part = &job->parts[i];
                struct page_store *store;

                r = page_store_adopt(part->store, &store);
                if (r == 0 && part->uffd >= 0)
                        r = serve_resume(serve, part->uffd, store);
                else if (r == 0)
                        serve_add(serve, part->pid, store);
                if (r == 0 && part->later)
                        serve_later(serve, part->pid, part->later);
        }
        if (r == 0 && job->later_fd >= 0)
                serve_from(serve, job->later_fd, job->left);
        for (size_t i = 0; i < job->n_parts && r == 0; i++)
                if (job->parts[i].parent_uffd >= 0)
                        r = serve_copy(serve, job->parts[i].uffd, job->parts[i].parent_uffd);
        return r < 0 ? error_sys(err, r, "cannot read what is missing") : 0;
}

/* Serves CRIU until it has restored all. After a failure the connection stays open until the
 * process ends: CRIU fails when it closes, and PID 1 has heard why by then. */
static int attend_restore(struct serve *serve, const struct uffd_handler_job *job, struct rm_error *err) {
        int fd = accept_criu(job);
        int r;

        if (fd < 0)
                return error_sys(err, fd, "cannot wait for CRIU");
        (void) close(job->listen_fd);
        r = serve_accept(serve, fd, err);
        if (r == 0)
                (void) close(fd);
        for (size_t i = 0; i < job->n_parts && r == 0; i++) {
                r = register_all(serve, job->parts[i].pid);
                if (r < 0)
                        return error_sys(err, r, "cannot register the memory of process %d", (int) job->parts[i].pid);
                r = expedite_threads(serve, job->parts[i].pid);
                if (r < 0)
                        return error_sys(err, r, "get pages that are still at the source of the move");
        }
        return r < 0 ? r : say_of(job, UFFD_HANDLER_RESTORED, 0);
}

static int fill(struct uffd_handler_job *job, struct rm_error *err) {
        const struct serve_ops ops = {
                .ctx = job, .began = on_began, .copied = on_copied, .ended = on_ended, .max_bytes = job->max_bytes
        };
        struct serve *serve = serve_create(&ops, job->in_hand);
        const struct serve_figures *figures = serve_figures(serve);
        int r = add_parts(serve, job, err);

        if (r == 0 && job->listen_fd >= 0)
                r = attend_restore(serve, job, err);
        if (r == 0)
                r = serve_run(serve, err);
        if (r == 0)
                log_info("%" PRIu64 " MiB given to the restored processes in %" PRIu64 " ms, %" PRIu64 " faults",
                         figures->bytes >> 20, figures->usec / 1000, figures->faults);
        if (r == 0 && figures->later_bytes > 0)
                log_info("%" PRIu64 " MiB of it came later, %" PRIu64 " faults waited for some, 99 of 100 for at most %" PRIu64
                         " us",
                         figures->later_bytes >> 20, (uint64_t) atomic_load(&job->left->faults),
                         (uint64_t) atomic_load(&job->left->p99_usec));
        return r; /* all descriptors go with the process, and with them the memory */
}

static void say_failed(const struct uffd_handler_job *job, int code, const char *why) {
        struct uffd_handler_word word = { .say = code == -ECANCELED ? UFFD_HANDLER_CRIU_ENDED : UFFD_HANDLER_FAILED };

        (void) text_format(word.text, sizeof(word.text), "%s", why);
        (void) say(job, &word, -1);
}

void uffd_handler_run(struct uffd_handler_job *job) {
        struct rm_error error = { 0 };
        int r = close_others(job);

        (void) prctl(PR_SET_NAME, "rm-uffd");
        r = r < 0 ? error_sys(&error, r, "cannot close descriptors") : fill(job, &error);
        if (r < 0)
                say_failed(job, r, error_text(&error));
        _exit(r < 0 ? 1 : 0);
}
