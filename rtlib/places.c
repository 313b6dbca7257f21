#include "rtlib/places.h"

#include <stdatomic.h>
#include <time.h>

#include "rtlib/channel.h"
#include "rtlib/events.h"
#include "rtlib/notices.h"

#define HOLD_MOST_USEC UINT64_C(120000000) /* whatever PID 1 says */
#define SCAN_USEC UINT64_C(20000)          /* another thread may have taken what came */

static struct {
        _Atomic bool any;
        _Atomic uint64_t serial; /* of the notice that asks for it; 0: none is wanted */
        _Atomic uint64_t end_usec;
} places;

static uint64_t now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

bool places_any(void) {
        return atomic_load_explicit(&places.any, memory_order_relaxed);
}

bool places_note(void) {
        return !places_any() && !atomic_exchange(&places.any, true);
}

void places_requested(uint64_t serial, uint64_t hold_usec) {
        places.end_usec = now_usec() + (hold_usec < HOLD_MOST_USEC ? hold_usec : HOLD_MOST_USEC);
        places.serial = serial;
}

void places_over(void) {
        places.serial = 0;
}

/* If no message says that it is over, rmd is lost. */
static bool is_requested(uint64_t serial) {
        if (serial == 0 || atomic_load_explicit(&places.serial, memory_order_relaxed) != serial)
                return false;
        return now_usec() < atomic_load_explicit(&places.end_usec, memory_order_relaxed);
}

void places_stay(uint32_t rank) {
        uint64_t serial = atomic_load_explicit(&places.serial, memory_order_relaxed);

        if (serial == 0)
                return;
        if (is_requested(serial))
                events_answer(rank, serial);
        while (is_requested(serial)) {
                channel_wait(SCAN_USEC);
                notices_take(rank);
        }
}
