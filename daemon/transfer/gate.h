/* The entry of a state of a transfer, with its fault point (common/fault.h): a test can make the
 * state fail, or hold it. */
#ifndef RM_TRANSFER_GATE_H
#define RM_TRANSFER_GATE_H

#include <stdbool.h>

#include <event2/event.h>

#include "common/error.h"

struct gate {
        struct event *again; /* pending: the state is held */
        bool held;
};

/* `enter` is to enter the state again, which asks gate_pass() again. */
void gate_init(struct gate *gate, struct event_base *base, event_callback_fn enter, void *arg);
void gate_finish(struct gate *gate);

/* Another state is entered: nothing holds the last one any more. */
void gate_leave(struct gate *gate);
/* 0: the state is entered. -EINPROGRESS: it is not, until `enter` is called, or at all; nothing is
 * to be done. Otherwise it fails with `err`. */
int gate_pass(struct gate *gate, const char *point, struct rm_error *err);
/* The state was not entered yet. */
bool gate_holds(const struct gate *gate);

#endif
