/* Captures a capsule of this node; a move and a checkpoint do it alike:
 *
 *   PRECOPY  Its memory goes ahead while it runs, and programs that asked for it hear that the
 *            freeze is near.
 *   FREEZE   All of its processes are stopped.
 *   CUT      Nothing gets in or out of it. A connection that no program has accepted yet is let in
 *            first.
 *   DUMP     CRIU dumps it, and rm-mover takes what CRIU does not carry.
 *
 * The owner decides what happens before, between and after these steps: which rm-mover takes the
 * capsule, whether other capsules are waited for, and what a failure means. Until the dump is done,
 * and after it as far as the owner lets it, capture_open() undoes all of it: the capsule runs on as
 * if nothing had happened.
 *
 * Of two owners of one capsule at most one captures it at a time; the state of the cluster sees to
 * that. */
#ifndef RM_TRANSFER_CAPTURE_H
#define RM_TRANSFER_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/calls.h"
#include "daemon/context.h"
#include "daemon/job/memory_report.h"
#include "daemon/job/runner.h"
#include "daemon/transfer/mover.h"
#include "daemon/transfer/trees.h"

struct capture;

enum capture_step { CAPTURE_NONE, CAPTURE_PRECOPY, CAPTURE_FREEZE, CAPTURE_CUT, CAPTURE_DUMP };

/* The cause of a failure. */
enum capture_failure {
        CAPTURE_FAILURE_OTHER,   /* a node's, the network's, or there was no time */
        CAPTURE_FAILURE_GROUP,   /* the capsule has something that cannot be carried */
        CAPTURE_FAILURE_PASSING, /* likewise, and it will pass */
};

/* The owner adds these operations. All are called from the loop, with the owner that
 * capture_create() was given. */
struct capture_ops {
        enum capsule_capture kind; /* what programs are told: CAPSULE_MOVE or CAPSULE_CHECKPOINT */
        uint64_t silence_usec;     /* in PRECOPY, from one report of rm-mover or of the ranks to the next */
        /* The rm-mover that takes the capsule, or NULL if it has gone. */
        struct mover *(*get_mover)(void *owner);
        /* By when the capsule is to have been captured, in the log's clock; 0 or UINT64_MAX: there
         * is no hurry. */
        uint64_t (*get_leave_by_usec)(void *owner);
        /* Sets the owner's deadline, which ends the capture by capture_open() if it passes; 0:
         * there is none. */
        void (*set_deadline)(void *owner, uint64_t usec);
        /* Fills in what is the owner's of the order to send memory ahead: all but the capsule's own
         * directories, its trees and whether ranks are to be told. What it points at lasts as long
         * as the owner. */
        void (*fill_precopy)(void *owner, Rm__MoverPrecopy *body);
        /* Asks the capsule for what travels beside the images, with capsule_get_saved_state() or
         * its like; returns its result. */
        int (*get_saved_state)(void *owner, struct capsule *capsule, capsule_saved_state_fn done, void *arg);
        /* Takes that; it is valid during the call. */
        void (*on_saved_state)(void *owner, const void *saved_state, size_t size_bytes);
        /* CRIU is done: fills in what is the owner's of the order to take the rest. */
        void (*fill_dump_done)(void *owner, Rm__MoverDumpDone *body, struct transfer_trees *trees);
        /* The step is done. PRECOPY: only if nothing was to go ahead; otherwise rm-mover tells the
         * owner itself. */
        void (*on_done)(void *owner, enum capture_step step);
        /* The capture has failed; the owner ends it, mostly by capture_open(). `text` says why. */
        void (*on_failed)(void *owner, enum capture_failure failure, const char *text);
};

/* `calls` is the list of all captures of this kind. `ops` is borrowed. */
struct capture *capture_create(struct rmd *rmd, struct calls *calls, const struct capture_ops *ops, void *owner);
/* Leaves the capsule as it is; the runner opens it if it is frozen and no other module holds it.
 * NULL ok. */
void capture_destroy(struct capture *capture);

/* Begins with this copy of a capsule: forgets what was asked of one before. */
void capture_begin(struct capture *capture, uint64_t job, int32_t index, uint64_t incarnation);
/* The copy, or NULL if it is not here, has ended or does not answer. */
struct resident *capture_running(const struct capture *capture);

enum capture_wait {
        CAPTURE_READY,
        CAPTURE_AWAITS_START, /* mpirun has not started its ranks yet, and may never do so */
        CAPTURE_AWAITS_TEST, /* whether memory can be tracked here is not known yet */
        CAPTURE_AWAITS_MEMORY, /* not all memory has arrived from its last move, without which it cannot be dumped */
};
/* Returns what a capsule that runs here is to wait for first. `tracks`: its memory is to be
 * tracked. */
enum capture_wait capture_waits(const struct capture *capture, bool tracks);

/* Starts CRIU before PRECOPY, so that this does not take time of the freeze, and fails if the
 * capsule cannot be captured for a reason that its PID 1 sees while it runs. */
void capture_preload(struct capture *capture);
/* Measures before PRECOPY how much memory and files are to go ahead, from which follows how long
 * that may take. Looks at `most` processes, which takes the loop 20 us each; for more it is
 * estimated. */
void capture_measure(struct capture *capture, size_t most, struct memory_report_use *ret);
/* May its memory be tracked, and travel apart from CRIU's images? If not, `text` says why. */
bool capture_may_track(const struct capture *capture, char *text, size_t text_bytes);

/* The steps. Each is begun when the one before is done, and the capsule runs here; on_done() or
 * on_failed() follows. capture_precopy(): `ahead` false: nothing is sent, programs are told.
 * capture_dump(): `dir` is where rm-mover listens for CRIU; `pages`: private memory travels
 * apart. */
void capture_precopy(struct capture *capture, bool ahead);
void capture_freeze(struct capture *capture, uint64_t timeout_usec);
void capture_cut(struct capture *capture);
void capture_dump(struct capture *capture, const char *dir, bool pages);

/* An event of rm-mover that belongs to PRECOPY; false if it is another. */
bool capture_on_mover_event(struct capture *capture, const Rm__MoverEvent *event);

/* The owner has told the programs something of it itself: capture_open() tells them that it is
 * over. */
void capture_announced(struct capture *capture);

/* When the capsule was frozen last (now_usec()), 0: it runs. */
uint64_t capture_frozen_usec(const struct capture *capture);
/* Sets the owner's deadline to what is left of [sched] move_timeout, the one limit for all that is
 * done while the capsule is frozen. */
void capture_limit_freeze(struct capture *capture);

/* The capsule runs on, if it was frozen, and its programs are told that it is over. */
void capture_open(struct capture *capture);

#endif
