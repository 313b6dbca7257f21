/* Timers of libevent in microseconds, the unit of all times here. */
#ifndef RM_COMMON_TIMER_H
#define RM_COMMON_TIMER_H

#include <stdint.h>
#include <stdlib.h>

#include <event2/event.h>

/* The event's timeout is `usec` from now, instead of what it was before; a timer is added by that.
 * Aborts when memory is out, as the x-functions of common/util.h do. */
static inline void timer_arm(struct event *event, uint64_t usec) {
        struct timeval wait = { .tv_sec = (time_t) (usec / 1000000U), .tv_usec = (suseconds_t) (usec % 1000000U) };

        if (event_add(event, &wait) < 0)
                abort();
}

/* Arms the timer like timer_arm(), or stops it if `usec` is 0. */
static inline void timer_set(struct event *event, uint64_t usec) {
        if (usec > 0)
                timer_arm(event, usec);
        else
                (void) event_del(event);
}

#endif
