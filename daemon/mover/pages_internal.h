/* Shared by pages.c, pages_group.c (the processes) and pages_objects.c (the stream). */
#ifndef RM_MOVER_PAGES_INTERNAL_H
#define RM_MOVER_PAGES_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "daemon/mover/calls.h"
#include "daemon/mover/descriptors.h"
#include "daemon/mover/pages.h"
#include "daemon/mover/rounds.h"
#include "daemon/pages/pageset.h"
#include "daemon/pages/track.h"

#define LIST_MAX 4096U
/* The size of the queue of pages that wait to be read: as much as a fast link takes in that time
 * (PAGES_PINNED_USEC). */
#define QUEUE_RUNS 16384U
#define QUEUE_BYTES (UINT64_C(64) << 20)

struct process {
        int pidfd;
        pid_t pid;
        pid_t inner_pid;
        struct track *track; /* NULL: it could not be tracked yet, and all of it is to be sent when it is frozen */
        /* The `track` protects no pages, or cannot any more: in the freeze it reports all pages
         * there are, and is of no use after it. */
        bool untracked;
        bool continued; /* all of it went into the stream before */
        bool opened;
        bool listed;
        uint32_t slot;
        struct pageset *probed; /* what there was at the begin of a probe; NULL: not known, as the next */
        struct pageset *written; /* since then */
        struct pageset *later; /* NULL: nothing is left */
        UT_hash_handle hh; /* by pid */
        UT_hash_handle hh_inner; /* by inner_pid */
};

struct run {
        uint64_t start; /* little endian once it is complete */
        uint64_t end;
};

/* The pages that a round has reported, in the order in which they are to be read. */
struct queued {
        struct process *process;
        uint64_t start;
        uint64_t end;
        uint64_t reported_usec;
};

/* The pages that are left in the freeze. */
enum later {
        LATER_NONE,
        LATER_WRITTEN, /* what was written since the last round */
        LATER_ALL, /* there was none */
};

struct pages {
        const char *procs_file;
        const char *images_dir;
        struct image_writer *writer;
        const struct mover_hooks *hooks;
        struct process *by_pid;
        struct process *by_inner;
        unsigned nesting; /* of all processes; 0: none is known */
        struct descriptors *descriptors;
        uint64_t direct_left_usec; /* time of a processor for looks at descriptors */
        uint64_t locked_bytes; /* when they were taken up */
        bool begun; /* all were taken up once */
        bool frozen;
        uint64_t in_vain_usec; /* of an update: spent with processes that did not stop */
        struct rounds rounds;
        uint64_t round_usec; /* of the latest */
        struct slow *slow; /* NULL: they are as fast as they can */
        uint64_t slow_since_usec;
        uint64_t slow_until_usec;
        struct pages_figures figures;
        enum later later;
        struct process *later_at; /* what was read last: NULL: nothing of the present process */
        uint64_t later_position;

        /* The scan that runs. */
        struct process *at;
        struct pageset *adding; /* by pages_add_run() */
        struct rm_error *err;
        bool failed; /* what ends it is an error of writer or hooks, in err */
        uint64_t reported_bytes;
        uint32_t unpolled_bytes;
        uint32_t unpolled_runs;

        struct calls *calls;
        uint64_t scanned_usec; /* at them */
        uint64_t direct_usec; /* when files that are read past the page cache were looked for */
        struct queued queue[QUEUE_RUNS]; /* a ring */
        size_t queue_first;
        size_t n_queued;
        uint64_t queued_bytes;

        /* The list of pages that is open. */
        uint32_t list_slot;
        uint64_t list_bytes;
        size_t n_list;
        struct run list[LIST_MAX];
};

/* ---- the stream ---- */

/* Calls the hook. */
int pages_poll(struct pages *p, struct rm_error *err);
/* The object of the process, if it is not open yet. */
int pages_object_open(struct pages *p, struct process *process, struct rm_error *err);

typedef int (*pages_scan_fn)(struct track *track, track_run_cb run, void *ctx, struct rm_error *err);
/* Sends what the scan tells; before the freeze some of it is only queued. With an error, p->failed:
 * it is one of writer or hooks. */
int pages_scan(struct pages *p, struct process *process, pages_scan_fn scan, struct rm_error *err);

/* A list of pages, of kind LATER or PRESENT: at most one is open. */
int pages_list_begin(struct pages *p, struct process *process, Rm__ImageKind kind, struct rm_error *err);
/* Adds a run to the list. With an error, p->failed. */
int pages_list_add(struct pages *p, uint64_t start, uint64_t end);
int pages_list_end(struct pages *p, struct rm_error *err);

/* The poll of a scan, for track_set_poll(). */
int pages_scan_poll(void *ctx);

/* These pages of the process of the scan that runs are left. */
int pages_later_run(struct pages *p, uint64_t start, uint64_t end);
/* A track_run_cb: to p->adding. */
int pages_add_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind);

/* Drops the queued pages of processes that are still tracked. At the beginning of a round there are
 * none. */
void pages_queue_clear(struct pages *p);
int pages_queue_flush(struct pages *p, struct rm_error *err);

/* -EOPNOTSUPP: a file is open that is read past the page cache: such a read writes unseen into
 * pages that it has looked up before, for as long as it is under way. One that has looked a page up
 * before it was told, and writes into it after that was read, has its file open in between; there
 * this function is to be called. */
int pages_check_direct(struct pages *p, struct rm_error *err);

/* Which pages there are, after which its object is closed. `present` NULL: it has ended, and has
 * no pages any more. */
int pages_send_present(struct pages *p, struct process *process, const struct pageset *present, struct rm_error *err);

/* ---- the processes ---- */

/* Reads the list: those that have ended leave, and new ones are taken up; what could not be tracked
 * is tried again. `ret_reason`: of the last that still cannot; the first time the group goes the
 * other way then, and the rest is left. Errors are those of hooks and writer, or of reading the
 * list. */
int pages_update(struct pages *p, struct rm_error *ret_reason, struct rm_error *err);

/* The process has ended: the other side forgets it, and its pid may be used again. */
int pages_process_gone(struct pages *p, struct process *process, struct rm_error *err);
void pages_process_remove(struct pages *p, struct process *process);

#endif
