#include "daemon/transfer/gate.h"

#include <errno.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/timer.h"

#define AGAIN_USEC 20000U

void gate_init(struct gate *gate, struct event_base *base, event_callback_fn enter, void *arg) {
        *gate = (struct gate) { .again = evtimer_new(base, enter, arg) };
}

void gate_finish(struct gate *gate) {
        event_free(gate->again);
}

void gate_leave(struct gate *gate) {
        (void) evtimer_del(gate->again);
        gate->held = false;
}

int gate_pass(struct gate *gate, const char *point, struct rm_error *err) {
        int r = fault_point(point, err);

        if (r != -EAGAIN) {
                gate->held = false;
                return r;
        }
        if (!gate->held)
                log_warn("fault point %s: held", point);
        gate->held = true;
        timer_arm(gate->again, AGAIN_USEC);
        return -EINPROGRESS;
}

bool gate_holds(const struct gate *gate) {
        return gate->held;
}
