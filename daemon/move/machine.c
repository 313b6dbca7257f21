#include "daemon/move/machine.h"

#include <stddef.h>

#include "common/util.h"

struct edge {
        enum move_state state;
        enum move_event event;
        enum move_state next;
};

static const struct edge source[] = {
        { MOVE_NEW, MOVE_EV_START, MOVE_PREPARE },
        { MOVE_PREPARE, MOVE_EV_READY, MOVE_PRECOPY },
        { MOVE_PREPARE, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_PREPARE, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_PRECOPY, MOVE_EV_COPIED, MOVE_FREEZE },
        { MOVE_PRECOPY, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_PRECOPY, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_FREEZE, MOVE_EV_FROZEN, MOVE_CUT },
        { MOVE_FREEZE, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_FREEZE, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_CUT, MOVE_EV_CUT, MOVE_TRANSFER },
        { MOVE_CUT, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_CUT, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_TRANSFER, MOVE_EV_SENT, MOVE_RESTORE },
        { MOVE_TRANSFER, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_TRANSFER, MOVE_EV_ABORTED, MOVE_END },
        /* The destination may be done before we hear that it has all. */
        { MOVE_TRANSFER, MOVE_EV_COMMITTED, MOVE_RELEASE },
        { MOVE_RESTORE, MOVE_EV_COMMITTED, MOVE_RELEASE },
        { MOVE_RESTORE, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_RESTORE, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_UNDO, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_UNDO, MOVE_EV_COMMITTED, MOVE_RELEASE },
        { MOVE_RELEASE, MOVE_EV_RELEASED, MOVE_END },
};

static const struct edge destination[] = {
        { MOVE_NEW, MOVE_EV_START, MOVE_PREPARE },     { MOVE_PREPARE, MOVE_EV_READY, MOVE_TRANSFER },
        { MOVE_PREPARE, MOVE_EV_FAILED, MOVE_UNDO },   { MOVE_PREPARE, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_TRANSFER, MOVE_EV_SENT, MOVE_RESTORE }, { MOVE_TRANSFER, MOVE_EV_FAILED, MOVE_UNDO },
        { MOVE_TRANSFER, MOVE_EV_ABORTED, MOVE_END },  { MOVE_RESTORE, MOVE_EV_RESTORED, MOVE_COMMIT },
        { MOVE_RESTORE, MOVE_EV_FAILED, MOVE_UNDO },   { MOVE_RESTORE, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_COMMIT, MOVE_EV_COMMITTED, MOVE_OPEN }, { MOVE_COMMIT, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_OPEN, MOVE_EV_OPENED, MOVE_FILL },      { MOVE_UNDO, MOVE_EV_ABORTED, MOVE_END },
        { MOVE_NEW, MOVE_EV_OPENED, MOVE_FILL },       { MOVE_FILL, MOVE_EV_FILLED, MOVE_END },
        { MOVE_FILL, MOVE_EV_FAILED, MOVE_END }, /* the group has ended: that is the runner's affair */
};

bool machine_next(enum move_role role, enum move_state state, enum move_event event, enum move_state *ret_next) {
        const struct edge *edges = role == MOVE_SOURCE ? source : destination;
        size_t n = role == MOVE_SOURCE ? ARRAY_SIZE(source) : ARRAY_SIZE(destination);

        for (size_t i = 0; i < n; i++)
                if (edges[i].state == state && edges[i].event == event) {
                        *ret_next = edges[i].next;
                        return true;
                }
        return false;
}

const char *machine_role_name(enum move_role role) {
        return role == MOVE_SOURCE ? "source" : "destination";
}

const char *machine_state_name(enum move_state state) {
        static const char *const names[] = { "new",    "prepare", "precopy", "freeze",  "cut",  "transfer", "restore",
                                             "commit", "open",    "fill",    "release", "undo", "end" };

        return (size_t) state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *machine_event_name(enum move_event event) {
        static const char *const names[] = { "start",     "ready",  "copied", "frozen",   "cut",    "sent",   "restored",
                                             "committed", "opened", "filled", "released", "failed", "aborted" };

        return (size_t) event < ARRAY_SIZE(names) ? names[event] : "?";
}
