#include "daemon/checkpoint/machine.h"

#include <stddef.h>

#include "common/util.h"

static const struct {
        enum save_state state;
        enum save_event event;
        enum save_state next;
} saves[] = {
        { SAVE_IDLE, SAVE_EV_START, SAVE_PREPARE },    { SAVE_PREPARE, SAVE_EV_READY, SAVE_PRECOPY },
        { SAVE_PREPARE, SAVE_EV_FAILED, SAVE_UNDO },   { SAVE_PREPARE, SAVE_EV_OVER, SAVE_UNDO },
        { SAVE_PRECOPY, SAVE_EV_COPIED, SAVE_COPIED }, { SAVE_PRECOPY, SAVE_EV_FAILED, SAVE_UNDO },
        { SAVE_PRECOPY, SAVE_EV_OVER, SAVE_UNDO },     { SAVE_COPIED, SAVE_EV_ALL_COPIED, SAVE_FREEZE },
        { SAVE_COPIED, SAVE_EV_FAILED, SAVE_UNDO },    { SAVE_COPIED, SAVE_EV_OVER, SAVE_UNDO },
        { SAVE_FREEZE, SAVE_EV_FROZEN, SAVE_CUT },     { SAVE_FREEZE, SAVE_EV_FAILED, SAVE_UNDO },
        { SAVE_FREEZE, SAVE_EV_OVER, SAVE_UNDO },      { SAVE_CUT, SAVE_EV_CUT, SAVE_HELD },
        { SAVE_CUT, SAVE_EV_FAILED, SAVE_UNDO },       { SAVE_CUT, SAVE_EV_OVER, SAVE_UNDO },
        { SAVE_HELD, SAVE_EV_ALL_CUT, SAVE_DUMP },     { SAVE_HELD, SAVE_EV_FAILED, SAVE_UNDO },
        { SAVE_HELD, SAVE_EV_OVER, SAVE_UNDO },        { SAVE_DUMP, SAVE_EV_CAPTURED, SAVE_STORE },
        { SAVE_DUMP, SAVE_EV_FAILED, SAVE_UNDO },      { SAVE_DUMP, SAVE_EV_OVER, SAVE_UNDO },
        { SAVE_STORE, SAVE_EV_STORED, SAVE_COPY },     { SAVE_STORE, SAVE_EV_FAILED, SAVE_UNDO },
        { SAVE_STORE, SAVE_EV_OVER, SAVE_UNDO },       { SAVE_COPY, SAVE_EV_COPIED_OUT, SAVE_IDLE },
        { SAVE_COPY, SAVE_EV_OVER, SAVE_IDLE },        { SAVE_UNDO, SAVE_EV_OVER, SAVE_IDLE },
};

bool save_next(enum save_state state, enum save_event event, enum save_state *ret_next) {
        for (size_t i = 0; i < ARRAY_SIZE(saves); i++)
                if (saves[i].state == state && saves[i].event == event) {
                        *ret_next = saves[i].next;
                        return true;
                }
        return false;
}

const char *save_state_name(enum save_state state) {
        static const char *const names[] = { "idle", "prepare", "precopy", "copied", "freeze", "cut",
                                             "held", "dump",    "store",   "copy",   "undo" };

        return (size_t) state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *save_event_name(enum save_event event) {
        static const char *const names[] = { "start",   "ready",    "copied", "all_copied", "frozen", "cut",
                                             "all_cut", "captured", "stored", "copied_out", "failed", "over" };

        return (size_t) event < ARRAY_SIZE(names) ? names[event] : "?";
}

static const struct {
        enum restore_state state;
        enum restore_event event;
        enum restore_state next;
} restores[] = {
        { RESTORE_NEW, RESTORE_EV_START, RESTORE_PREPARE },
        { RESTORE_NEW, RESTORE_EV_FAILED, RESTORE_FAILED },
        { RESTORE_PREPARE, RESTORE_EV_LISTENING, RESTORE_TRANSFER },
        { RESTORE_PREPARE, RESTORE_EV_RETRY, RESTORE_PREPARE },
        { RESTORE_PREPARE, RESTORE_EV_FAILED, RESTORE_FAILED },
        { RESTORE_TRANSFER, RESTORE_EV_RECEIVED, RESTORE_RESTORE },
        { RESTORE_TRANSFER, RESTORE_EV_RETRY, RESTORE_PREPARE },
        { RESTORE_TRANSFER, RESTORE_EV_FAILED, RESTORE_FAILED },
        { RESTORE_RESTORE, RESTORE_EV_RESTORED, RESTORE_DONE },
        { RESTORE_RESTORE, RESTORE_EV_FAILED, RESTORE_FAILED },
        { RESTORE_NEW, RESTORE_EV_ADOPTED, RESTORE_DONE },
        { RESTORE_DONE, RESTORE_EV_RUNNING, RESTORE_OPEN },
        { RESTORE_OPEN, RESTORE_EV_OPENED, RESTORE_END },
};

bool restore_next(enum restore_state state, enum restore_event event, enum restore_state *ret_next) {
        for (size_t i = 0; i < ARRAY_SIZE(restores); i++)
                if (restores[i].state == state && restores[i].event == event) {
                        *ret_next = restores[i].next;
                        return true;
                }
        return false;
}

const char *restore_state_name(enum restore_state state) {
        static const char *const names[] = { "new", "prepare", "transfer", "restore", "done", "open", "end", "failed" };

        return (size_t) state < ARRAY_SIZE(names) ? names[state] : "?";
}
