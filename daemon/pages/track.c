#include "daemon/pages/track.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/remote.h"

/* Linux has it in its headers since 6.15. */
#ifndef PAGE_IS_GUARD
#define PAGE_IS_GUARD (1U << 8)
#endif

/* The end of the addresses that programs have. */
#define USER_END (UINT64_C(1) << 47)

enum {
        REGIONS_MAX = 2048,
        POLL_USEC = 10000,
};

/* The range of one system call that scans: if all of it is written and to be protected, that takes
 * some 20 ms. */
static const uint64_t step_bytes = UINT64_C(4) << 30;

/* The pages that one system call protects: they are reported before the next one, and pages behind
 * them that are written meanwhile are still reported in this round. */
static const uint64_t protect_pages = 4096;

struct track {
        int proc_fd; /* its directory in /proc: never that of another process, whatever becomes of its pid */
        int uffd;
        int memory_fd; /* of the memory that the latest round looked at; -1: none yet */
        unsigned kinds;
        bool without_guards; /* the kernel does not know this category */
        bool failed; /* a round has: what it protected and did not tell passes for unwritten */
        track_poll_cb poll;
        void *poll_ctx;
        struct track_figures figures;
};

static const uint64_t features_requested =
        UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_WP_ASYNC;

/* ---- userfaultfd and PAGEMAP_SCAN ---- */

static int uffd_begin(int uffd) {
        struct uffdio_api api = { .api = UFFD_API, .features = features_requested };

        return ioctl(uffd, UFFDIO_API, &api) < 0 ? -errno : 0;
}

static int uffd_unregister(int uffd, uint64_t start, uint64_t end) {
        struct uffdio_range range = { .start = start, .len = end - start };

        return ioctl(uffd, UFFDIO_UNREGISTER, &range) < 0 ? -errno : 0;
}

/* Registers all of the range or none of it: where a mapping would have to be split, and the process
 * has as many as it may, the kernel has registered those before it. Its other errors come first;
 * with one of them a part may belong to a userfaultfd of the process, which kernels before 6.17
 * would unregister. */
static int uffd_register(int uffd, uint64_t start, uint64_t end) {
        struct uffdio_register registration = { .range = { .start = start, .len = end - start }, .mode = UFFDIO_REGISTER_MODE_WP };
        int r = ioctl(uffd, UFFDIO_REGISTER, &registration) < 0 ? -errno : 0;

        if (r == -ENOMEM)
                (void) uffd_unregister(uffd, start, end);
        return r;
}

/* Takes the protection off again: what is registered now can have pages that an earlier
 * registration has left marked as unwritten. */
static int uffd_unprotect(int uffd, uint64_t start, uint64_t end) {
        struct uffdio_writeprotect unprotect = { .range = { .start = start, .len = end - start } };
        int r;

        if (ioctl(uffd, UFFDIO_WRITEPROTECT, &unprotect) == 0)
                return 0;
        /* A part of it is registered no more already. */
        r = uffd_unregister(uffd, start, end);
        return r < 0 ? r : -ENOENT;
}

enum scan {
        SCAN_PROTECT, /* written, and protect these again */
        SCAN_WRITTEN,
        SCAN_PRESENT,
        SCAN_BOTH, /* present, and which of them are written */
        SCAN_REGISTERED, /* those in mappings that are registered */
        SCAN_UNREGISTERED, /* the others: whether they are written is not known */
};

/* Pages in memory or in swap, but not the page of zeros, and of a private mapping not those of its
 * file. What is in no mapping that is registered is passed over where pages are to be protected. */
static struct pm_scan_arg scan_argument(enum scan scan, const struct map *map) {
        static const uint64_t masks[] = {
                [SCAN_PROTECT] = PAGE_IS_WRITTEN,
                [SCAN_WRITTEN] = PAGE_IS_WRITTEN,
                [SCAN_REGISTERED] = PAGE_IS_WPALLOWED,
                [SCAN_UNREGISTERED] = PAGE_IS_WPALLOWED,
        };
        struct pm_scan_arg argument = {
                .size = sizeof(argument),
                .flags = scan == SCAN_PROTECT ? PM_SCAN_WP_MATCHING : 0,
                .start = map->start,
                .end = map->end,
                .max_pages = scan == SCAN_PROTECT ? protect_pages : 0,
                .category_mask = PAGE_IS_PFNZERO | masks[scan],
                .category_inverted = PAGE_IS_PFNZERO | (scan == SCAN_UNREGISTERED ? PAGE_IS_WPALLOWED : 0),
                .category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                .return_mask = scan == SCAN_BOTH ? PAGE_IS_WRITTEN : PAGE_IS_PRESENT,
        };

        if (map->kind == MAP_KIND_PRIVATE_FILE) {
                argument.category_mask |= PAGE_IS_FILE;
                argument.category_inverted |= PAGE_IS_FILE;
        }
        return argument;
}

/* ---- can it be done at all ---- */

/* Tests, in the child: is a protected page written, as far as the kernel says, once it has been
 * moved? The test asks as a round does, which registers each mapping before: from 2026 on kernels
 * say "written" only of registered ones. A kernel that has kept the protection (CVE-2025-21696)
 * says so of neither. */
static int try_move(void) {
        struct map page = { .kind = MAP_KIND_LAZY };
        struct page_region region;
        int uffd = (int) syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY | O_CLOEXEC | O_NONBLOCK);
        int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        char *from = mmap(NULL, 2 * PAGES_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *to = from + PAGES_PAGE_BYTES;

        if (uffd < 0 || pagemap < 0 || from == MAP_FAILED)
                return errno;
        *from = 1;
        page.start = (uint64_t) (uintptr_t) from;
        page.end = page.start + PAGES_PAGE_BYTES;
        if (uffd_begin(uffd) < 0 || uffd_register(uffd, page.start, page.end) < 0)
                return EOPNOTSUPP;
        for (int i = 0; i < 3; i++) {
                static const enum scan scans[] = { SCAN_PROTECT, SCAN_WRITTEN, SCAN_WRITTEN };
                static const int found[] = { 1, 0, 1 };
                struct pm_scan_arg argument = scan_argument(scans[i], &page);

                argument.vec = (uint64_t) (uintptr_t) &region;
                argument.vec_len = 1;
                if (ioctl(pagemap, PAGEMAP_SCAN, &argument) != found[i])
                        return EOPNOTSUPP;
                if (i == 1 && mremap(from, PAGES_PAGE_BYTES, PAGES_PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
                        return errno;
                if (i != 1)
                        continue;
                page = (struct map) { page.end, page.end + PAGES_PAGE_BYTES, MAP_KIND_LAZY };
                if (uffd_register(uffd, page.start, page.end) < 0)
                        return EOPNOTSUPP;
        }
        return 0;
}

int track_supported(struct rm_error *err) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0)
                _exit(try_move());
        if (pid < 0)
                return error_sys(err, -errno, "start a process");
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return error_sys(err, -errno, "wait for a process");
        if (!WIFEXITED(status))
                return error_set(err, -EIO, "a process that tries to track pages was killed");
        if (WEXITSTATUS(status) == EOPNOTSUPP)
                return error_set(err, -EOPNOTSUPP,
                                 "this kernel cannot track written pages (asynchronous write protection, Linux 6.7, with "
                                 "the correction of mremap, CVE-2025-21696, in 6.12.11 or 6.13)");
        return WEXITSTATUS(status) == 0 ? 0 : error_sys(err, -WEXITSTATUS(status), "track pages");
}

/* ---- begin and end ---- */

/* -ESRCH: it has been waited for, so that its pid may be another's. */
static int pid_of(int pidfd, pid_t *ret) {
        char path[64];
        cleanup_free char *text = NULL;
        const char *at;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        r = read_file(path, PAGES_PAGE_BYTES, &text, NULL);
        if (r < 0)
                return r;
        at = strstr(text, "\nPid:");
        if (!at)
                return -EINVAL;
        *ret = (pid_t) strtol(at + strlen("\nPid:"), NULL, 10);
        return *ret > 0 ? 0 : -ESRCH;
}

/* Opens the process's directory in /proc, while its pid is surely its own. */
static int open_process(int pidfd) {
        cleanup_close int fd = -1;
        char path[64];
        pid_t pid = 0;
        int r = pid_of(pidfd, &pid);

        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/%d", (int) pid);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
                return -errno;
        return take_fd(&fd);
}

int track_open(int pidfd, unsigned kinds, struct track **ret, struct rm_error *err) {
        int proc_fd = open_process(pidfd);
        struct track *track;

        if (proc_fd < 0)
                return error_sys(err, proc_fd, "open the process");
        track = xcalloc(1, sizeof(*track));
        *track = (struct track) { .proc_fd = proc_fd, .uffd = -1, .memory_fd = -1, .kinds = kinds };
        *ret = track;
        return 0;
}

int track_start(int pidfd, unsigned kinds, uint64_t limit_usec, struct track **ret, struct rm_error *err) {
        struct track *track = NULL;
        int r = track_open(pidfd, kinds, &track, err);

        if (r < 0)
                return r;
        r = remote_userfaultfd(pidfd, track->proc_fd, limit_usec, &track->uffd, &track->figures.stopped_usec, err);
        if (r == 0) {
                r = uffd_begin(track->uffd);
                if (r < 0)
                        r = error_sys(err, r, "begin with userfaultfd");
        }
        if (r < 0) {
                track_end(track);
                return r;
        }
        *ret = track;
        return 0;
}

int track_proc_fd(const struct track *track) {
        return track->proc_fd;
}

void track_set_poll(struct track *track, track_poll_cb poll, void *ctx) {
        track->poll = poll;
        track->poll_ctx = ctx;
}

void track_end(struct track *track) {
        if (!track)
                return;
        cleanup_close_fd(&track->uffd);
        cleanup_close_fd(&track->memory_fd);
        cleanup_close_fd(&track->proc_fd);
        free(track);
}

const struct track_figures *track_figures(const struct track *track) {
        return &track->figures;
}

/* ---- rounds ---- */

struct round {
        struct track *track;
        enum scan scan;
        int pagemap_fd;
        track_run_cb run;
        track_run_cb present; /* of SCAN_BOTH */
        void *ctx;
        struct maps maps;
        uint64_t polled_usec;
        struct page_region regions[REGIONS_MAX];
};

/* After execve(2) what was opened before still shows the old memory. */
static int round_open(struct round *round, struct rm_error *err) {
        struct track *track = round->track;
        int r;

        cleanup_close_fd(&track->memory_fd);
        round->pagemap_fd = openat(track->proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
        track->memory_fd = openat(track->proc_fd, "mem", O_RDONLY | O_CLOEXEC);
        if (round->pagemap_fd < 0 || track->memory_fd < 0)
                return error_sys(err, errno == ENOENT ? -ESRCH : -errno, "open the memory of the process");
        r = maps_read(track->proc_fd, &round->maps);
        return r < 0 ? error_sys(err, r, "read the mappings of the process") : 0;
}

static bool is_requested(const struct round *round, const struct map *map) {
        return map->kind < MAP_KIND_VDSO && (round->track->kinds & 1U << map->kind) != 0;
}

/* Mappings may be many, and so may steps over one of many TiB with nothing in it, which take no
 * time. */
static int poll_sometimes(struct round *round) {
        struct track *track = round->track;
        uint64_t now = now_usec();

        if (!track->poll || now - round->polled_usec < POLL_USEC)
                return 0;
        round->polled_usec = now;
        return track->poll(track->poll_ctx);
}

/* Guards (MADV_GUARD_INSTALL) have no contents, but pass for pages that are swapped out. */
static int scan_pages(struct round *round, struct pm_scan_arg *argument) {
        struct track *track = round->track;
        int n;

        if (!track->without_guards) {
                argument->category_mask |= PAGE_IS_GUARD;
                argument->category_inverted |= PAGE_IS_GUARD;
        }
        n = ioctl(round->pagemap_fd, PAGEMAP_SCAN, argument);
        if (n < 0 && errno == EINVAL && !track->without_guards) {
                track->without_guards = true;
                argument->category_mask &= ~(uint64_t) PAGE_IS_GUARD;
                argument->category_inverted &= ~(uint64_t) PAGE_IS_GUARD;
                n = ioctl(round->pagemap_fd, PAGEMAP_SCAN, argument);
        }
        return n < 0 ? -errno : n;
}

/* Is there such a page in the mapping? 1, 0 or -errno. */
static int find_page(struct round *round, enum scan scan, const struct map *map) {
        struct pm_scan_arg argument = scan_argument(scan, map);

        argument.vec = (uint64_t) (uintptr_t) round->regions;
        argument.vec_len = argument.max_pages = 1;
        return scan_pages(round, &argument);
}

/* Widens the mapping by the room on both sides of it: a mapping that grows meanwhile would be
 * registered in part otherwise, and so be two, which mremap(2) refuses to take for one. In the last
 * one there may be no room: addresses of the kernel come next. */
static struct map with_space(const struct maps *maps, size_t i) {
        struct map range = maps->items[i];

        if (i > 0)
                range.start = maps->items[i - 1].end;
        if (i + 1 < maps->n && maps->items[i + 1].start < USER_END)
                range.end = maps->items[i + 1].start;
        return range;
}

/* A mapping that cannot be registered (it is gone meanwhile, or of a kind that the kernel does not
 * take) is not protected either, and so told by the last round at the latest. */
static int register_map(const struct round *round, size_t i, bool *ret_done, struct rm_error *err) {
        int uffd = round->track->uffd;
        struct map range = with_space(&round->maps, i);
        int r = uffd_register(uffd, range.start, range.end);

        if (r < 0) {
                range = round->maps.items[i]; /* something else is in that room now */
                r = uffd_register(uffd, range.start, range.end);
        }
        *ret_done = r == 0;
        /* The process could protect pages itself, so that they would pass for unwritten. */
        if (r == -EBUSY)
                return error_set(err, r, "the process uses userfaultfd itself, at %" PRIx64, range.start);
        r = r < 0 ? 0 : uffd_unprotect(uffd, range.start, range.end);
        return r < 0 && r != -ENOENT ? error_sys(err, r, "take the protection off at %" PRIx64, range.start) : 0;
}

static bool any_registered(struct round *round) {
        for (size_t i = 0; i < round->maps.n; i++)
                if (is_requested(round, &round->maps.items[i]) && find_page(round, SCAN_REGISTERED, &round->maps.items[i]) > 0)
                        return true;
        return false;
}

/* All mappings in the first round, later those with pages that are not registered: new ones, ones
 * that were moved, and ones that became one with what was moved beside them: mremap(2) ends the
 * registration of all of that, and leaves the marks at the pages. What is registered must not be
 * registered again: if that happens just before, it would pass unseen. */
static int register_maps(struct round *round, struct rm_error *err) {
        bool first = round->track->figures.rounds == 0;
        size_t tried = 0, done = 0;
        int r = 0;

        for (size_t i = 0; i < round->maps.n && r == 0; i++) {
                const struct map *map = &round->maps.items[i];
                bool registered;

                if (!is_requested(round, map) || (!first && find_page(round, SCAN_UNREGISTERED, map) == 0))
                        continue;
                r = register_map(round, i, &registered, err);
                tried++;
                done += registered;
                if (r == 0)
                        r = poll_sometimes(round);
        }
        /* The userfaultfd is for memory that is no more, or there is none. */
        if (r == 0 && (round->track->uffd < 0 || (tried > 0 && done == 0 && !any_registered(round))))
                return error_set(err, -ESTALE, "the process has executed another program, or has ended");
        return r;
}

/* `scan`: how these regions were found. */
static int report(struct round *round, int n, enum scan scan, enum map_kind kind) {
        for (int i = 0; i < n; i++) {
                const struct page_region *region = &round->regions[i];
                bool requested = scan != SCAN_BOTH || (region->categories & PAGE_IS_WRITTEN) != 0;
                int r = requested ? round->run(round->ctx, region->start, region->end, kind) : 0;

                if (r == 0 && round->scan == SCAN_BOTH)
                        r = round->present(round->ctx, region->start, region->end, kind);
                if (r != 0)
                        return r;
                if (requested && round->scan != SCAN_PRESENT)
                        round->track->figures.pages += (region->end - region->start) / PAGES_PAGE_BYTES;
        }
        return 0;
}

/* The kernel walks on when its own list of 512 regions is full; if it comes to the end then, it
 * leaves in walk_end where that list was full last. */
static uint64_t scanned_to(const struct round *round, const struct pm_scan_arg *argument, int n) {
        uint64_t reported = n > 0 ? round->regions[n - 1].end : 0;

        return argument->walk_end > reported ? argument->walk_end : reported;
}

/* Memory that is not registered counts as written. */
static enum scan scan_for(struct round *round, const struct map *map) {
        if (round->scan != SCAN_WRITTEN && round->scan != SCAN_BOTH)
                return round->scan;
        return round->track->uffd < 0 || round->track->failed || find_page(round, SCAN_UNREGISTERED, map) != 0 ? SCAN_PRESENT
                                                                                                               : round->scan;
}

static int scan_map(struct round *round, const struct map *map, struct rm_error *err) {
        enum scan scan = scan_for(round, map);
        struct pm_scan_arg argument = scan_argument(scan, map);
        int r = 0;

        argument.vec = (uint64_t) (uintptr_t) round->regions;
        argument.vec_len = REGIONS_MAX;
        while (r == 0 && argument.start < map->end) {
                uint64_t end = (argument.start / step_bytes + 1) * step_bytes;
                int n;

                argument.end = end < map->end ? end : map->end;
                n = scan_pages(round, &argument);
                if (n < 0)
                        return error_sys(err, n, "scan pages at %" PRIx64, (uint64_t) argument.start);
                end = scanned_to(round, &argument, n);
                if (end <= argument.start)
                        return error_set(err, -EIO, "scan pages at %" PRIx64 ": it does not go on", (uint64_t) argument.start);
                argument.start = end;
                r = report(round, n, scan, map->kind);
                if (r == 0)
                        r = poll_sometimes(round);
        }
        return r;
}

static int round_run(struct track *track, enum scan scan, track_run_cb run, track_run_cb present, void *ctx, struct rm_error *err) {
        struct round round = { .track = track, .scan = scan, .pagemap_fd = -1, .run = run, .present = present, .ctx = ctx };
        int r = round_open(&round, err);

        if (r == 0 && scan == SCAN_PROTECT)
                r = register_maps(&round, err);
        for (size_t i = 0; r == 0 && i < round.maps.n; i++)
                if (is_requested(&round, &round.maps.items[i]))
                        r = scan_map(&round, &round.maps.items[i], err);
        maps_finish(&round.maps);
        cleanup_close_fd(&round.pagemap_fd);
        if (scan != SCAN_PRESENT)
                track->figures.rounds++;
        if (scan == SCAN_PROTECT && r != 0)
                track->failed = true;
        return r;
}

int track_round(struct track *track, track_run_cb run, void *ctx, struct rm_error *err) {
        return round_run(track, SCAN_PROTECT, run, NULL, ctx, err);
}

int track_last(struct track *track, track_run_cb run, void *ctx, struct rm_error *err) {
        return round_run(track, SCAN_WRITTEN, run, NULL, ctx, err);
}

int track_last_and_present(struct track *track, track_run_cb run, track_run_cb present, void *ctx, struct rm_error *err) {
        return round_run(track, SCAN_BOTH, run, present, ctx, err);
}

int track_present(struct track *track, track_run_cb run, void *ctx, struct rm_error *err) {
        return round_run(track, SCAN_PRESENT, run, NULL, ctx, err);
}

void track_again(struct track *track, uint64_t start, uint64_t end) {
        if (track->uffd >= 0)
                (void) uffd_unprotect(track->uffd, start, end);
}

ssize_t track_read(struct track *track, uint64_t address, void *data, size_t size_bytes) {
        size_t done = 0;

        while (done < size_bytes) {
                ssize_t n = pread(track->memory_fd, (uint8_t *) data + done, size_bytes - done, (off_t) (address + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return done > 0 ? (ssize_t) done : n < 0 ? -errno : 0;
                done += (size_t) n;
        }
        return (ssize_t) done;
}
