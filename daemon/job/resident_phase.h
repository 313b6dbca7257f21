/* The life of a capsule on this node as a table: in which phase which event leads to which phase,
 * and what is done then. Pure.
 *
 *   NEW -> MAKING -> READY -> LAUNCHED -> EXITED        a capsule that is made, or adopted, here
 *   NEW -> MAKING -> READY -> EXITED                    a copy that came by a move or from a
 *                                                       checkpoint: no command was sent here
 *   NEW -> MISSING                                      the state says that it is here, and it is
 *                                                       not
 *
 * From each phase with a capsule the way leads to LOST if its PID 1 dies. The runner removes a
 * resident in any phase.
 *
 * The phase took the place of six flags (answers, command sent, exited, lost, not startable, being
 * removed): of their 64 combinations these eight were possible. Three more things are known of a
 * capsule in any phase, and no phase follows from them: how it came (enum resident_origin, which
 * never changes), who is going to open a frozen copy (enum resident_holder), and in which phase the
 * capsule itself is (capsule_phase(), which PID 1 reports). */
#ifndef RM_JOB_RESIDENT_PHASE_H
#define RM_JOB_RESIDENT_PHASE_H

#include <stdbool.h>

enum resident_phase {
        RESIDENT_NEW,       /* nothing is known of it yet */
        RESIDENT_MAKING,    /* its PID 1 has not answered yet */
        RESIDENT_READY,     /* PID 1 answers; no command was sent to it from here */
        RESIDENT_LAUNCHED,  /* its command was sent, or ran already when an rmd adopted it */
        RESIDENT_UNSTARTED, /* of a head: PID 1 answers, but its command cannot be started, and the job ends for it */
        RESIDENT_EXITED,    /* its payload has ended; PID 1 answers, or has ended as well */
        RESIDENT_LOST,      /* PID 1 has died, or has never answered */
        RESIDENT_MISSING,   /* there is no capsule: it could not be made, or did not outlive a restart of the node */
        RESIDENT_REMAKING,  /* an rmd before this one had made it in part: what is left of it goes, and it is made anew */
        RESIDENT_PHASES
};

enum resident_event {
        RESIDENT_EV_MADE,        /* it is being made, or was found here */
        RESIDENT_EV_ABSENT,      /* it is not here, and cannot be made */
        RESIDENT_EV_ANSWERED,    /* PID 1 answers for the first time, and nothing was launched in it */
        RESIDENT_EV_FOUND,       /* the same, and it is not empty */
        RESIDENT_EV_LAUNCH,      /* its command is about to be sent */
        RESIDENT_EV_UNLAUNCHED,  /* the command was not started, and may be sent again */
        RESIDENT_EV_UNSTARTABLE, /* the command of a head was not started, and never will be */
        RESIDENT_EV_EXITED,
        RESIDENT_EV_LOST,
        RESIDENT_EV_REMAKE,
        RESIDENT_EVENTS
};

/* The action that an event calls for once it has led to its next phase. */
enum resident_action {
        RESIDENT_REFUSED,     /* the event cannot be in that phase: nothing has changed, and nothing is done */
        RESIDENT_NOTHING,
        RESIDENT_REPORT_READY,  /* PID 1 is given its orders, and whoever waits for the capsule hears of it */
        RESIDENT_SEND,        /* the command is sent */
        RESIDENT_REPORT_EXITED, /* whoever reads the output of a head, or waits for the daemon of a group, hears of it */
        RESIDENT_REPORT_LOST,   /* whoever waits for the capsule hears of it */
        RESIDENT_REPORT,      /* the log is told */
        RESIDENT_ACTIONS
};

/* Returns what is to be done, and the next phase, which is written only if the event is not
 * refused. */
enum resident_action resident_next(enum resident_phase phase, enum resident_event event, enum resident_phase *ret_next);

/* Properties of a phase. */
bool resident_phase_has_capsule(enum resident_phase phase);
bool resident_phase_answers(enum resident_phase phase);
/* Is the capsule lost: nothing runs in it, and nothing will, though it had to? */
bool resident_phase_is_lost(enum resident_phase phase);

const char *resident_phase_name(enum resident_phase phase);
const char *resident_event_name(enum resident_event event);

#endif
