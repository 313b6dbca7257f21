/* How a capsule is captured for a checkpoint, and how one comes back from it, as tables: what
 * follows what. Pure.
 *
 * Save:    IDLE -> PREPARE -> PRECOPY -> COPIED -> FREEZE -> CUT -> HELD -> DUMP -> STORE ->
 *          COPY -> IDLE
 *          COPIED and HELD wait for all capsules of the job: none is frozen before all have sent
 *          their memory ahead, none is dumped before all are cut off, so that together they are a
 *          consistent cut. After DUMP nothing more is needed of the capsule, and it runs.
 * Restore: NEW -> PREPARE -> TRANSFER -> RESTORE -> DONE -> OPEN -> END
 *          DONE waits for all capsules of the job, and for the log to say that it runs; a drill
 *          ends there.
 * A failure leads through UNDO (a save: the capsule runs on as if nothing had been; the checkpoint
 * is given up for all) or to FAILED (a restore). */
#ifndef RM_CHECKPOINT_MACHINE_H
#define RM_CHECKPOINT_MACHINE_H

#include <stdbool.h>

enum save_state {
        SAVE_IDLE,
        SAVE_PREPARE, /* rm-mover begins, CRIU is loaded */
        SAVE_PRECOPY, /* memory goes ahead; the capsule runs */
        SAVE_COPIED,  /* waits for the others */
        SAVE_FREEZE,
        SAVE_CUT,
        SAVE_HELD,    /* frozen and cut off; waits for the others */
        SAVE_DUMP,
        SAVE_STORE,   /* it runs; what was captured goes to the disk */
        SAVE_COPY,    /* and to other nodes */
        SAVE_UNDO,
        SAVE_STATES
};

enum save_event {
        SAVE_EV_START,    /* the state says that a checkpoint is made */
        SAVE_EV_READY,
        SAVE_EV_COPIED,
        SAVE_EV_ALL_COPIED,
        SAVE_EV_FROZEN,
        SAVE_EV_CUT,
        SAVE_EV_ALL_CUT,
        SAVE_EV_CAPTURED, /* all of it is in rm-mover */
        SAVE_EV_STORED,
        SAVE_EV_COPIED_OUT, /* all nodes that are to have it do, or never will */
        SAVE_EV_FAILED,
        SAVE_EV_OVER,     /* the state has it no more, or the undoing is done */
        SAVE_EVENTS
};

bool save_next(enum save_state state, enum save_event event, enum save_state *ret_next);
const char *save_state_name(enum save_state state); /* lower case, as in fault points */
const char *save_event_name(enum save_event event);

enum restore_state {
        RESTORE_NEW,
        RESTORE_PREPARE,  /* rm-mover begins to listen */
        RESTORE_TRANSFER, /* a node that has the part sends it */
        RESTORE_RESTORE,
        RESTORE_DONE,     /* frozen and cut off, until all of the job are */
        RESTORE_OPEN,     /* the job runs, and so is its capsule to */
        RESTORE_END,
        RESTORE_FAILED,
        RESTORE_STATES
};

enum restore_event {
        RESTORE_EV_START,
        RESTORE_EV_ADOPTED, /* an rmd before this one has restored it */
        RESTORE_EV_LISTENING,
        RESTORE_EV_RECEIVED,
        RESTORE_EV_RESTORED,
        RESTORE_EV_RUNNING, /* the log says so of the job */
        RESTORE_EV_OPENED,
        RESTORE_EV_RETRY, /* what came is no good, and another node has it too */
        RESTORE_EV_FAILED,
        RESTORE_EVENTS
};

bool restore_next(enum restore_state state, enum restore_event event, enum restore_state *ret_next);
const char *restore_state_name(enum restore_state state);

#endif
