/* Timers of libevent in virtual time: the linker puts these functions in the place of libevent's
 * (--wrap). Events that are made active at once are libevent's own. */
#include "tests/sim/timers.h"

#include <stdlib.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "common/util.h"

/* An event that waits. One that is armed anew, or freed, leaves its former time without effect. */
struct timer {
        struct event *event;
        uint64_t number;
        struct timeval timeout; /* that one with EV_PERSIST has again */
        LIST_ENTRY(timer) entry;
};

struct timers {
        uint64_t last_number;
        LIST_HEAD(, timer) list;
};

struct expiry {
        struct host *host;
        struct event *event;
        uint64_t number;
};

int __real_event_add(struct event *event, const struct timeval *timeout);
int __wrap_event_add(struct event *event, const struct timeval *timeout);
void __real_event_free(struct event *event);
void __wrap_event_free(struct event *event);
int __real_event_del(struct event *event);
int __wrap_event_del(struct event *event);
int __real_event_pending(const struct event *event, short events, struct timeval *tv);
int __wrap_event_pending(const struct event *event, short events, struct timeval *tv);

static struct timer *find(const struct timers *timers, const struct event *event) {
        struct timer *timer;

        LIST_FOREACH (timer, &timers->list, entry)
                if (timer->event == event)
                        return timer;
        return NULL;
}

static void timer_remove(struct timer *timer) {
        LIST_REMOVE(timer, entry);
        free(timer);
}

static void on_expiry(void *userdata) {
        struct expiry *expiry = userdata;
        struct timers *timers = host_part(expiry->host, HOST_TIMERS);
        struct timer *timer = find(timers, expiry->event);

        if (timer && timer->number == expiry->number) {
                if (event_get_events(expiry->event) & EV_PERSIST)
                        (void) __wrap_event_add(expiry->event, &timer->timeout);
                else
                        timer_remove(timer);
                event_active(expiry->event, EV_TIMEOUT, 0);
        }
        free(expiry);
}

int __wrap_event_add(struct event *event, const struct timeval *timeout) {
        struct host *host = host_current();
        struct timers *timers = host ? host_part(host, HOST_TIMERS) : NULL;
        struct timer *timer;
        struct expiry *expiry;

        if (!timers || !timeout)
                return __real_event_add(event, timeout);
        if (host_state(host) == HOST_DEAD)
                return 0;
        timer = find(timers, event);
        if (!timer) {
                timer = xcalloc(1, sizeof(*timer));
                timer->event = event;
                LIST_INSERT_HEAD(&timers->list, timer, entry);
        }
        timer->number = ++timers->last_number;
        timer->timeout = *timeout;
        expiry = xcalloc(1, sizeof(*expiry));
        *expiry = (struct expiry) { host, event, timer->number };
        host_after(host, (uint64_t) timeout->tv_sec * 1000000U + (uint64_t) timeout->tv_usec, on_expiry, free, expiry);
        return 0;
}

static struct timer *find_current(const struct event *event) {
        struct timers *timers = host_current() ? host_part(host_current(), HOST_TIMERS) : NULL;

        return timers ? find(timers, event) : NULL;
}

void __wrap_event_free(struct event *event) {
        struct timer *timer = find_current(event);

        if (timer)
                timer_remove(timer);
        __real_event_free(event);
}

int __wrap_event_del(struct event *event) {
        struct timer *timer = find_current(event);

        if (timer)
                timer_remove(timer);
        return __real_event_del(event);
}

int __wrap_event_pending(const struct event *event, short events, struct timeval *tv) {
        return find_current(event) ? events & EV_TIMEOUT : __real_event_pending(event, events, tv);
}

void timers_begin(struct host *host) {
        struct timers *timers = xcalloc(1, sizeof(*timers));

        LIST_INIT(&timers->list);
        host_set_part(host, HOST_TIMERS, timers);
}

void timers_end(struct host *host) {
        struct timers *timers = host_part(host, HOST_TIMERS);

        host_set_part(host, HOST_TIMERS, NULL);
        while (!LIST_EMPTY(&timers->list))
                timer_remove(LIST_FIRST(&timers->list));
        free(timers);
}
