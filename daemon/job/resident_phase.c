#include "daemon/job/resident_phase.h"

#include <stddef.h>

#include "common/util.h"

struct edge {
        enum resident_phase phase;
        enum resident_event event;
        enum resident_phase next;
        enum resident_action action;
};

static const struct edge edges[] = {
        { RESIDENT_NEW, RESIDENT_EV_MADE, RESIDENT_MAKING, RESIDENT_NOTHING },
        { RESIDENT_NEW, RESIDENT_EV_ABSENT, RESIDENT_MISSING, RESIDENT_REPORT },

        { RESIDENT_MAKING, RESIDENT_EV_ANSWERED, RESIDENT_READY, RESIDENT_REPORT_READY },
        { RESIDENT_MAKING, RESIDENT_EV_FOUND, RESIDENT_LAUNCHED, RESIDENT_REPORT_READY },
        { RESIDENT_MAKING, RESIDENT_EV_LOST, RESIDENT_LOST, RESIDENT_REPORT_LOST },

        { RESIDENT_READY, RESIDENT_EV_LAUNCH, RESIDENT_LAUNCHED, RESIDENT_SEND },
        /* The payload has come by a move or from a checkpoint: no command was sent from here. */
        { RESIDENT_READY, RESIDENT_EV_EXITED, RESIDENT_EXITED, RESIDENT_REPORT_EXITED },
        { RESIDENT_READY, RESIDENT_EV_LOST, RESIDENT_LOST, RESIDENT_REPORT_LOST },

        /* A second command is refused: PID 1 would refuse it, and its answer would pass for the end
         * of the first one. */
        { RESIDENT_LAUNCHED, RESIDENT_EV_UNLAUNCHED, RESIDENT_READY, RESIDENT_NOTHING },
        { RESIDENT_LAUNCHED, RESIDENT_EV_UNSTARTABLE, RESIDENT_UNSTARTED, RESIDENT_REPORT },
        { RESIDENT_LAUNCHED, RESIDENT_EV_EXITED, RESIDENT_EXITED, RESIDENT_REPORT_EXITED },
        { RESIDENT_LAUNCHED, RESIDENT_EV_LOST, RESIDENT_LOST, RESIDENT_REPORT_LOST },

        /* PID 1 may die before it has answered, after mpirun has ended: why the command failed is
         * told, not that it has ended. */
        { RESIDENT_UNSTARTED, RESIDENT_EV_EXITED, RESIDENT_UNSTARTED, RESIDENT_REPORT_EXITED },
        { RESIDENT_UNSTARTED, RESIDENT_EV_LOST, RESIDENT_LOST, RESIDENT_REPORT_LOST },

        /* PID 1 could not write down how its payload has ended. */
        { RESIDENT_EXITED, RESIDENT_EV_LOST, RESIDENT_LOST, RESIDENT_REPORT_LOST },

        { RESIDENT_LOST, RESIDENT_EV_REMAKE, RESIDENT_REMAKING, RESIDENT_NOTHING },
};

enum resident_action resident_next(enum resident_phase phase, enum resident_event event, enum resident_phase *ret_next) {
        for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
                if (edges[i].phase == phase && edges[i].event == event) {
                        *ret_next = edges[i].next;
                        return edges[i].action;
                }
        return RESIDENT_REFUSED;
}

static const struct {
        const char *name;
        bool has_capsule, answers, is_lost;
} phases[RESIDENT_PHASES] = {
        [RESIDENT_NEW] = { "new", false, false, false },           [RESIDENT_MAKING] = { "making", true, false, false },
        [RESIDENT_READY] = { "ready", true, true, false },         [RESIDENT_LAUNCHED] = { "launched", true, true, false },
        [RESIDENT_UNSTARTED] = { "unstarted", true, true, true },  [RESIDENT_EXITED] = { "exited", true, true, false },
        [RESIDENT_LOST] = { "lost", true, false, true },           [RESIDENT_MISSING] = { "missing", false, false, true },
        [RESIDENT_REMAKING] = { "remaking", false, false, false },
};

bool resident_phase_has_capsule(enum resident_phase phase) {
        return phases[phase].has_capsule;
}

bool resident_phase_answers(enum resident_phase phase) {
        return phases[phase].answers;
}

bool resident_phase_is_lost(enum resident_phase phase) {
        return phases[phase].is_lost;
}

const char *resident_phase_name(enum resident_phase phase) {
        return phases[phase].name;
}

const char *resident_event_name(enum resident_event event) {
        static const char *const names[] = { "made",       "absent",      "answered", "found", "launch",
                                             "unlaunched", "unstartable", "exited",   "lost",  "remake" };

        return (size_t) event < ARRAY_SIZE(names) ? names[event] : "?";
}
