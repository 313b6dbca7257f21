#include "rtlib/events.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "rtlib/channel.h"
#include "rtlib/places.h"
#include "rtlib/regions.h"

_Static_assert((int) RMRT_BEFORE_MOVE == (int) PROGRAM__EVENT__EVENT_BEFORE_MOVE &&
                       (int) RMRT_BEFORE_CHECKPOINT == (int) PROGRAM__EVENT__EVENT_BEFORE_CHECKPOINT &&
                       (int) RMRT_AFTER_MOVE == (int) PROGRAM__EVENT__EVENT_AFTER_MOVE &&
                       (int) RMRT_AFTER_CHECKPOINT == (int) PROGRAM__EVENT__EVENT_AFTER_CHECKPOINT &&
                       (int) RMRT_AFTER_RESTART == (int) PROGRAM__EVENT__EVENT_AFTER_RESTART,
               "events differ");

/* Each of them ends what was announced before, so all are heard of. */
#define AFTER (1U << RMRT_AFTER_MOVE | 1U << RMRT_AFTER_CHECKPOINT | 1U << RMRT_AFTER_RESTART)

#define BEFORE (1U << RMRT_BEFORE_MOVE | 1U << RMRT_BEFORE_CHECKPOINT)
#define DROP (1U << PROGRAM__EVENT__EVENT_DROP)
#define PLACE (1U << PROGRAM__EVENT__EVENT_PLACE)

struct callback {
        enum rmrt_event event;
        rmrt_event_fn fn;
        void *data;
};

/* Only ever added to. */
static struct {
        pthread_mutex_t lock;
        struct callback all[RMRT_CALLBACKS_MAX];
        _Atomic size_t n;
        _Atomic uint32_t requested;
} events = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint32_t events_requested(void) {
        return atomic_load_explicit(&events.requested, memory_order_relaxed) | (regions_any() ? AFTER | BEFORE | DROP : 0) |
               (places_any() ? AFTER | PLACE : 0);
}

int events_add(enum rmrt_event event, rmrt_event_fn fn, void *data) {
        int r = -ENOSPC;
        size_t n;

        if (event < RMRT_BEFORE_MOVE || event > RMRT_AFTER_RESTART || !fn)
                return -EINVAL;
        (void) pthread_mutex_lock(&events.lock);
        n = events.n;
        if (n < RMRT_CALLBACKS_MAX) {
                events.all[n] = (struct callback) { event, fn, data };
                events.n = n + 1;
                events.requested |= AFTER | 1U << event;
                r = 0;
        }
        (void) pthread_mutex_unlock(&events.lock);
        return r;
}

static void run(enum rmrt_event event) {
        size_t n = events.n;

        for (size_t i = 0; i < n; i++)
                if (events.all[i].event == event)
                        events.all[i].fn(event, events.all[i].data);
}

void events_answer(uint32_t rank, uint64_t serial) {
        Program__Answer answer = PROGRAM__ANSWER__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        answer.rank = rank;
        answer.serial = serial;
        request.body_case = PROGRAM__REQUEST__BODY_ANSWER;
        request.answer = &answer;
        channel_send(&request);
}

void events_receive(struct events_pending *pending, const Program__Notice *notice) {
        enum rmrt_event event = (enum rmrt_event) notice->happens->event;

        if (event == RMRT_BEFORE_MOVE || event == RMRT_BEFORE_CHECKPOINT) {
                *pending = (struct events_pending) { event, notice->serial };
        } else if ((Program__Event) event == PROGRAM__EVENT__EVENT_DROP) {
                pending->serial = notice->serial;
        } else if ((Program__Event) event == PROGRAM__EVENT__EVENT_PLACE) {
                places_requested(notice->serial, notice->happens->hold_usec);
        } else if (event >= RMRT_AFTER_MOVE && event <= RMRT_AFTER_RESTART) {
                *pending = (struct events_pending) { 0 };
                places_over();
                run(event);
        }
}

/* The work before the event is done only if the event is not over yet: after a long step all of it
 * may be there. */
void events_settle(const struct events_pending *pending, uint32_t rank) {
        if (pending->before)
                run(pending->before);
        if (pending->serial == 0)
                return;
        regions_drop(); /* after the functions, which may write there */
        events_answer(rank, pending->serial);
}
