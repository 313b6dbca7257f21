/* The two state machines of a move, as tables: what follows what, at the source and at the
 * destination. Pure.
 *
 * Both begin with NEW -> PREPARE.
 *   source       PREPARE -> PRECOPY -> FREEZE -> CUT -> TRANSFER -> RESTORE -> RELEASE -> END
 *   destination  PREPARE -> TRANSFER -> RESTORE -> COMMIT -> OPEN -> FILL -> END
 *
 * While the source is in RESTORE, the destination restores. While the destination is in FILL, the
 * group runs there, and some of its memory follows; a destination that takes over a copy which runs
 * already, after a restart of rmd, begins in FILL.
 * Before the commit every failure leads through UNDO: the abort is proposed, and what the log says
 * first holds. */
#ifndef RM_MOVE_MACHINE_H
#define RM_MOVE_MACHINE_H

#include <stdbool.h>

enum move_role { MOVE_SOURCE, MOVE_DESTINATION };

enum move_state {
        MOVE_NEW,      /* the log, or the other end, has said that there is such a move */
        MOVE_PREPARE,  /* both ends get ready; the group runs */
        MOVE_PRECOPY,  /* memory goes ahead; the group runs */
        MOVE_FREEZE,
        MOVE_CUT,
        MOVE_TRANSFER, /* dump and image stream */
        MOVE_RESTORE,
        MOVE_COMMIT,   /* proposed to the log */
        MOVE_OPEN,
        MOVE_FILL,     /* the group runs; PID 1 gives it what it has not got yet of its memory */
        MOVE_RELEASE,  /* the source's copy goes */
        MOVE_UNDO,     /* the abort is proposed */
        MOVE_END,
        MOVE_STATES
};

enum move_event {
        MOVE_EV_START,
        MOVE_EV_READY,     /* this end and (source) the other are prepared */
        MOVE_EV_COPIED,    /* as much as is worth it went ahead */
        MOVE_EV_FROZEN,
        MOVE_EV_CUT,
        MOVE_EV_SENT,      /* the other side has all of the image, verified; destination: it has it */
        MOVE_EV_RESTORED,
        MOVE_EV_COMMITTED, /* the log says so */
        MOVE_EV_OPENED,    /* destination: link open, running */
        MOVE_EV_FILLED,    /* destination: the group has all of its memory */
        MOVE_EV_RELEASED,
        MOVE_EV_FAILED,
        MOVE_EV_ABORTED,   /* the log says so */
        MOVE_EVENTS
};

/* The next state; false when the event has no business in that state (nothing changes then). */
bool machine_next(enum move_role role, enum move_state state, enum move_event event, enum move_state *ret_next);
const char *machine_role_name(enum move_role role);
const char *machine_state_name(enum move_state state); /* lower case, as in fault points */
const char *machine_event_name(enum move_event event);

#endif
