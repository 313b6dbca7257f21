/* Private memory of processes that travels apart from CRIU's images: sent while they run, round
 * after round of what they have written (daemon/pages/track.h), and the rest of it when they are
 * frozen. One object of kind PAGES for each process, in the end one of kind PRESENT. */
#ifndef RM_MOVER_PAGES_H
#define RM_MOVER_PAGES_H

#include "daemon/image/writer.h"
#include "daemon/mover/hooks.h"
#include "daemon/mover/slow.h"
#include "daemon/pages/later.h"

struct pages;

struct pages_group {
        const char *procs_file; /* names its processes, as cgroup.procs does; must live as long as the stream */
        const char *scan_dir; /* a control group whose processor time it costs to look at what they have open; empty: rm-mover's */
};

/* Begins to track every process of the group. Nothing is sent yet. `images_dir`: see below. It, `w`
 * and `hooks` must outlive it. 0; without `*ret` when some process cannot be tracked: then none is,
 * and `ret_reason` says why. Errors are those of the hooks. */
int pages_begin(const struct pages_group *group, const char *images_dir, struct image_writer *w, const struct mover_hooks *hooks,
                struct pages **ret, struct rm_error *ret_reason, struct rm_error *err);

/* Another stream, of the same group, when pages_finish() has ended the one before and they run
 * again; all is as after pages_begin(). Of a process that was tracked all the time only what it has
 * written since pages_finish(), or a bit before, comes then, and all pages there are in the list of
 * PRESENT; `hooks->continues` is called before its first object. Once it was called, the stream
 * must become whole, or nothing can continue from there. 0, also with `ret_reason` set: the group
 * cannot be tracked any more, and pages_destroy() is to follow. Errors are those of the hooks and
 * the writer. */
int pages_again(struct pages *p, const struct pages_group *group, struct image_writer *w, const struct mover_hooks *hooks,
                struct rm_error *ret_reason, struct rm_error *err);

/* Sends memory while the processes run: at least one round, and further ones while that gains
 * something and the deadline of the hooks leaves time. May be called again, as when other work has
 * taken its time. The hooks may have changed their limits. */
int pages_rounds(struct pages *p, struct rm_error *err);

/* How much they have written since it was read last; UINT64_MAX: more than `most_bytes`, or that
 * cannot be told. Nothing is sent. */
int pages_written(struct pages *p, uint64_t most_bytes, uint64_t *ret_bytes, struct rm_error *err);

/* In place of rounds, or after some, nothing being sent in the freeze of what was written: it is
 * told then, and can be read as long as the processes are frozen. pages_probe(): a look at how fast
 * they write, for up to 10 s; `ret_fast`: so fast that it is in vain to send anything ahead, and
 * all of their memory is left. Otherwise rounds may follow, and then pages_postpone(): what was
 * written since the last one is left. */
int pages_probe(struct pages *p, bool *ret_fast, struct rm_error *err);
void pages_postpone(struct pages *p);

/* Would more rounds gain something if the processes were slower, for `limit_usec` at most, and is
 * there time for one? */
bool pages_slow_pays(const struct pages *p, uint64_t limit_usec);
/* The bytes of the last round, and its time. */
void pages_last_round(const struct pages *p, uint64_t *ret_bytes, uint64_t *ret_usec);
/* Rounds, for `limit_usec` at most, while the processes are slowed down; longer than that they are
 * not. They stay slow until pages_slow_end(), which may come when their freeze is under way. Owns
 * `slow`. */
int pages_slow_rounds(struct pages *p, struct slow *slow, uint64_t limit_usec, struct rm_error *err);
void pages_slow_end(struct pages *p);

/* Writes vmflags/PID in `images_dir` for each process: what CRIU asks of its mappings
 * (daemon/pages/vmflags.h). Done by pages_begin(), too; to be done again as late as possible. Slow,
 * as it looks at all memory, and so nothing for the freeze; what is not written CRIU finds out by
 * itself. -EOPNOTSUPP: there is memory now that must be in CRIU's images. */
int pages_save_flags(struct pages *p, struct rm_error *err);

/* From here on they are frozen, and `hooks` may be others than before. What has been written since
 * the last round; all memory of what is not tracked. */
int pages_send_last(struct pages *p, const struct mover_hooks *hooks, struct rm_error *err);
/* Sends, when CRIU is done, the pages that have been written even since then, and which pages there
 * are. -ESRCH: a process has ended. */
int pages_finish(struct pages *p, struct rm_error *err);

/* After pages_finish(), of what was left: how much there is still. */
uint64_t pages_later_bytes(const struct pages *p);
struct pages_piece {
        uint32_t pid; /* inner */
        uint64_t address;
        size_t size_bytes; /* 0: there is nothing (any more) */
        uint8_t data[LATER_PIECE_MAX_BYTES];
};
/* Reads that page, and some that follow, or, with a pid of 0, those that are next; they are not
 * left any more then. -EIO, or another error: they are lost. */
int pages_later_read(struct pages *p, uint32_t inner_pid, uint64_t address, struct pages_piece *piece, struct rm_error *err);

struct pages_figures {
        uint64_t rounds;
        uint64_t last_bytes; /* told when frozen */
        uint64_t last_usec;
        uint64_t slow_usec;
        uint64_t probe_bytes; /* written within probe_usec */
        uint64_t probe_usec;
};
const struct pages_figures *pages_figures(const struct pages *p);

/* Ends the tracking, which costs the processes up to 45 ms for each GiB, in which they cannot map
 * memory: so not while their freeze counts. NULL ok. */
void pages_destroy(struct pages *p);

#endif
