#include "rm/rmrt.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "rtlib/channel.h"
#include "rtlib/events.h"
#include "rtlib/notices.h"
#include "rtlib/places.h"
#include "rtlib/regions.h"
#include "rtlib/resizing.h"

#define REPORT_USEC UINT64_C(1000000)

enum own_state { OWN_UNSAID, OWN_NO, OWN_YES };

/* The reports of this rank. Each is one value; that they belong together does not matter, since the
 * next report follows in a second. */
static struct {
        _Atomic bool managed;
        uint32_t rank; /* written before `managed` */
        _Atomic uint64_t done, total;
        _Atomic double goal_min, goal_max;
        _Atomic int own_state; /* enum own_state */
        _Atomic uint64_t next_usec; /* when rmd is told again */
        _Atomic uint64_t again_usec; /* and what this rank wants to hear */
        _Atomic uint64_t scan_usec; /* when it looks again whether something has come: with the next tick of the coarse clock */
} said;

/* Good to some milliseconds, for a few nanoseconds. */
static uint64_t coarse_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

static bool read_number(const char *variable, uint32_t *ret) {
        const char *text = getenv(variable);
        char *end;
        unsigned long number;

        if (!text || *text < '0' || *text > '9')
                return false;
        errno = 0;
        number = strtoul(text, &end, 10);
        if (*end || errno || number > UINT32_MAX)
                return false;
        *ret = (uint32_t) number;
        return true;
}

static void send_listen(uint32_t requested) {
        Program__Listen listen = PROGRAM__LISTEN__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        listen.rank = said.rank;
        listen.events = requested;
        request.body_case = PROGRAM__REQUEST__BODY_LISTEN;
        request.listen = &listen;
        channel_send(&request);
}

static void send_own_state(int own_state) {
        Program__OwnState own = PROGRAM__OWN_STATE__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        own.rank = said.rank;
        own.own_state = own_state == OWN_YES;
        request.body_case = PROGRAM__REQUEST__BODY_OWN_STATE;
        request.own_state = &own;
        channel_send(&request);
}

/* Reports are repeated for the case that PID 1 missed one, or the program has closed the socket. */
static void say_again(void) {
        uint32_t requested = events_requested();
        int own_state = atomic_load_explicit(&said.own_state, memory_order_relaxed);

        if (!rmrt_is_managed())
                return;
        if (requested && channel_listen(said.rank) == 0)
                send_listen(requested);
        if (own_state != OWN_UNSAID && said.rank == 0)
                send_own_state(own_state);
}

int rmrt_init(void) {
        uint32_t rank, active = 0;

        /* PMIx tells each rank its number. */
        if (atomic_load(&said.managed) || !getenv("RM_JOB_ID") || !read_number("PMIX_RANK", &rank))
                return 0;
        said.rank = rank;
        (void) read_number("RM_ACTIVE_RANKS", &active); /* of a job with ranks to park */
        resizing_init(rank, active);
        atomic_store(&said.next_usec, 0);
        atomic_store(&said.managed, true);
        say_again();
        return 0;
}

bool rmrt_is_managed(void) {
        return atomic_load_explicit(&said.managed, memory_order_acquire);
}

/* The answer is that of the library which rmd loads into jobs that go on without lost ranks; other
 * jobs do not have it. */
bool rmrt_is_respawned(void) {
        bool (*is_respawned)(void) = (bool (*)(void)) dlsym(RTLD_DEFAULT, "rmrt_ft_is_respawned");

        return is_respawned && is_respawned();
}

static void report(void) {
        Program__Report report = PROGRAM__REPORT__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        report.rank = said.rank;
        report.done = atomic_load_explicit(&said.done, memory_order_relaxed);
        report.total = atomic_load_explicit(&said.total, memory_order_relaxed);
        report.goal_min = atomic_load_explicit(&said.goal_min, memory_order_relaxed);
        report.goal_max = atomic_load_explicit(&said.goal_max, memory_order_relaxed);
        request.body_case = PROGRAM__REQUEST__BODY_REPORT;
        request.report = &report;
        channel_send(&request);
}

/* A single one of several threads does the work that is due. */
static bool is_due(_Atomic uint64_t *at_usec, uint64_t now, uint64_t next_usec) {
        uint64_t at = atomic_load_explicit(at_usec, memory_order_relaxed);

        return now >= at && atomic_compare_exchange_strong(at_usec, &at, next_usec);
}

/* For the program's own thread, which is here now. */
static void scan(uint64_t now) {
        bool listens = events_requested() != 0;

        if ((listens || atomic_load_explicit(&said.own_state, memory_order_relaxed)) &&
            is_due(&said.again_usec, now, now + REPORT_USEC))
                say_again();
        if (listens && is_due(&said.scan_usec, now, now + 1))
                notices_take(said.rank);
}

int rmrt_step(uint64_t done, uint64_t total) {
        uint64_t now;

        if (total > 0 && done > total)
                return -EINVAL;
        if (!rmrt_is_managed())
                return 0;
        atomic_store_explicit(&said.done, done, memory_order_relaxed);
        atomic_store_explicit(&said.total, total, memory_order_relaxed);
        now = coarse_usec();
        if (is_due(&said.next_usec, now, now + REPORT_USEC))
                report();
        scan(now);
        return 0;
}

void rmrt_checkpoint_here(void) {
        bool first = places_note();

        if (!rmrt_is_managed() || notices_inside())
                return;
        if (first)
                say_again();
        scan(coarse_usec());
        places_stay(said.rank);
}

int rmrt_goal(double steps_min, double steps_max) {
        if (!(steps_min >= 0) || !(steps_max >= 0) || isinf(steps_min) || isinf(steps_max) ||
            (steps_max > 0 && steps_min > steps_max))
                return -EINVAL;
        if (!rmrt_is_managed())
                return 0;
        atomic_store_explicit(&said.goal_min, steps_min, memory_order_relaxed);
        atomic_store_explicit(&said.goal_max, steps_max, memory_order_relaxed);
        atomic_store_explicit(&said.next_usec, 0, memory_order_relaxed); /* the next step tells it */
        return 0;
}

int rmrt_at(enum rmrt_event event, rmrt_event_fn fn, void *data) {
        int r = events_add(event, fn, data);

        if (r == 0)
                say_again();
        return r;
}

int rmrt_exclude(void *memory, size_t bytes) {
        int r = regions_exclude(memory, bytes);

        if (r == 0)
                say_again();
        return r;
}

void rmrt_own_state(bool own) {
        atomic_store_explicit(&said.own_state, own ? OWN_YES : OWN_NO, memory_order_relaxed);
        say_again();
}

int rmrt_include(const void *memory, size_t bytes) {
        return regions_include(memory, bytes);
}

void rmrt_finalize(void) {
        if (!atomic_exchange(&said.managed, false))
                return;
        report();
        if (events_requested())
                send_listen(0);
        resizing_finish();
        channel_close();
}
