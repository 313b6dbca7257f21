/* Which pages another process has written, found from outside while it runs: asynchronous write
 * protection by a userfaultfd of its memory. Blocking; for root. The process need not help, cannot
 * prevent that pages are told as written, and is stopped only while the tracking begins.
 *
 * How it is used: track_start(), then rounds: track_round() tells what was written since the
 * round before (the first: all there is) and protects it again, and the caller reads these
 * pages, a moment later: see PAGES_PINNED_USEC. When the process is frozen,
 * track_last_and_present() tells what was written since, and which pages there are at all. A
 * copy that has taken every run, and drops what is not present, is right. */
#ifndef RM_DAEMON_PAGES_TRACK_H
#define RM_DAEMON_PAGES_TRACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/pages/maps.h"

struct track;

/* The kernel may write into a page that it has looked up before: for process_vm_writev(2), or for a
 * read(2) past the page cache. That is no page fault: the page was told when it was looked up, and
 * is not told again. Calls of the former kind usually take less than this time, so what a round
 * told is to be read that much later, and when they are over (daemon/mover/calls.h); a process that
 * may do the latter cannot be tracked. */
#define PAGES_PINNED_USEC 20000U

/* [start, end): whole pages of one mapping, in ascending order. Nonzero ends the call with this
 * value. */
typedef int (*track_run_cb)(void *ctx, uint64_t start, uint64_t end, enum map_kind kind);

struct track_figures {
        uint64_t stopped_usec; /* how long track_start() stopped it, at most */
        uint64_t rounds;
        uint64_t pages; /* told by rounds, the last one included */
};

/* Can this kernel track as it is needed here? It tries on memory of a child. 0, -EOPNOTSUPP (before
 * 6.7, or one whose mremap(2) keeps the protection, so that moved pages would pass for unwritten),
 * or another error. */
int track_supported(struct rm_error *err);

/* `pidfd`: the process; needed only here. `kinds`: 1 << enum map_kind for each that runs are wanted
 * of, of MAP_KIND_LAZY, MAP_KIND_PRIVATE_FILE (its own pages only) and MAP_KIND_SHARED.
 * `limit_usec`: how long its threads may be stopped. After an error the process is as it was;
 * errors are those of remote_userfaultfd(). */
int track_start(int pidfd, unsigned kinds, uint64_t limit_usec, struct track **ret, struct rm_error *err);

/* Opens a frozen process, without protecting anything: track_last() and track_present()
 * tell all pages there are. */
int track_open(int pidfd, unsigned kinds, struct track **ret, struct rm_error *err);

/* The process's directory in /proc, which the track keeps. */
int track_proc_fd(const struct track *track);

/* Called now and then between the steps of a scan, which take some 20 ms at most; nonzero ends the
 * scan with this value. */
typedef int (*track_poll_cb)(void *ctx);
void track_set_poll(struct track *track, track_poll_cb poll, void *ctx);

/* A round while it runs. Pages are protected before they are told: what is read afterwards is
 * told again if it changes meanwhile. -ESRCH: it has ended, or executes another program just
 * now. -ESTALE: it has executed another program, whose pages are not tracked. -EBUSY: it uses
 * userfaultfd itself. After any error pages may have been protected and not told: track_last()
 * tells all there are then, and for further rounds another track is needed. */
int track_round(struct track *track, track_run_cb run, void *ctx, struct rm_error *err);
/* Reports a range again that a round reported, by the next round at the latest, if it is still
 * there. For pages that could not be read. */
void track_again(struct track *track, uint64_t start, uint64_t end);
/* Makes the last round, once the process is frozen. Memory that is not tracked, such as new memory
 * or another program's, is reported as written. */
int track_last(struct track *track, track_run_cb run, void *ctx, struct rm_error *err);
/* Like track_last(), and reports to `present`, each run behind that of `run`, all pages there are,
 * both as one look at each page finds it. The kernel does not stop with the process: where no page
 * is tracked, khugepaged fills holes with zeros, and these pages would be new to a second look,
 * though their contents never came. */
int track_last_and_present(struct track *track, track_run_cb run, track_run_cb present, void *ctx, struct rm_error *err);
/* All pages there are, in memory or swapped out. Pages of zeros that were only read are not told,
 * nor guards (MADV_GUARD_INSTALL; by Linux 6.13 and 6.14 they are, and cannot be read). */
int track_present(struct track *track, track_run_cb run, void *ctx, struct rm_error *err);

/* Reads memory of the process, also where it may not read it itself. Returns how many bytes could
 * be read, up to the first page that cannot; pages can vanish at any time while it runs. -errno
 * when none could. For pages that a round reported; of MAP_KIND_PRIVATE_FILE and MAP_KIND_SHARED a
 * page that has vanished is read from its file again, for as long as the file system takes. */
ssize_t track_read(struct track *track, uint64_t address, void *data, size_t size_bytes);

const struct track_figures *track_figures(const struct track *track);

/* Ends the tracking. As long as the process lives, this takes some 20 ms per GiB of protected
 * memory, in which it cannot map memory: so not while it is frozen for a move. NULL ok. */
void track_end(struct track *track);

#endif
