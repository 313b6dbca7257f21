#include "tests/sim/timeline.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/util.h"
#include "launcher/sim/heap.h"

#define TRAIL_STEP 4096U

struct event {
        event_fn fn, drop;
        void *userdata;
        uint32_t next_free; /* counted from 1; 0: none */
};

struct timeline {
        uint64_t now_usec;
        uint64_t random;
        uint64_t count;
        uint64_t digest; /* of all times, random numbers and messages so far */
        uint64_t asked; /* the order of events of one time */
        struct heap heap;
        struct event *events;
        uint32_t n_events, first_free;
        FILE *trace;
        struct trail *trail;
        const struct trail *followed;
        uint64_t parted_usec;
};

/* splitmix64: seeds that are near each other give histories that are not. */
static uint64_t mix(uint64_t x) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        return x ^ x >> 31;
}

struct timeline *timeline_create(uint64_t seed, FILE *trace) {
        struct timeline *t = xcalloc(1, sizeof(*t));

        t->random = mix(seed) | 1;
        t->trace = trace;
        t->parted_usec = UINT64_MAX;
        return t;
}

void timeline_destroy(struct timeline *t) {
        if (!t)
                return;
        while (t->heap.n > 0) {
                struct event event = t->events[heap_take(&t->heap).b];

                if (event.drop)
                        event.drop(event.userdata);
        }
        heap_finish(&t->heap);
        free(t->events);
        free(t);
}

uint64_t timeline_now_usec(const struct timeline *t) {
        return t->now_usec;
}

uint64_t timeline_count(const struct timeline *t) {
        return t->count;
}

void timeline_record(struct timeline *t, struct trail *trail) {
        t->trail = trail;
}

void timeline_follow(struct timeline *t, const struct trail *trail) {
        t->followed = trail;
}

uint64_t timeline_parted_usec(const struct timeline *t) {
        return t->parted_usec;
}

void trail_finish(struct trail *trail) {
        free(trail->digests);
        *trail = (struct trail) { 0 };
}

static void trail_add(struct trail *trail, uint64_t digest) {
        if (trail->n % TRAIL_STEP == 0)
                trail->digests = xrealloc(trail->digests, (trail->n + TRAIL_STEP) * sizeof(*trail->digests));
        trail->digests[trail->n++] = digest;
}

/* An event has happened, which is number `count`. */
static void scan_trails(struct timeline *t) {
        if (t->trail)
                trail_add(t->trail, t->digest);
        if (t->followed && t->parted_usec == UINT64_MAX &&
            (t->count > t->followed->n || t->followed->digests[t->count - 1] != t->digest))
                t->parted_usec = t->now_usec;
}

static void note_number(struct timeline *t, uint64_t number) {
        t->digest = mix(t->digest ^ number);
}

void timeline_note(struct timeline *t, const void *data, size_t size_bytes) {
        note_number(t, XXH3_64bits(data, size_bytes));
}

static uint32_t take_slot(struct timeline *t) {
        uint32_t slot = t->first_free;

        if (slot > 0) {
                t->first_free = t->events[slot - 1].next_free;
                return slot - 1;
        }
        if (t->n_events % 256 == 0)
                t->events = xrealloc(t->events, (t->n_events + 256) * sizeof(*t->events));
        return t->n_events++;
}

void timeline_at(struct timeline *t, uint64_t when_usec, event_fn fn, event_fn drop, void *userdata) {
        uint32_t slot = take_slot(t);
        struct heap_entry entry = { .time_usec = (int64_t) (when_usec < t->now_usec ? t->now_usec : when_usec), .b = slot };

        entry.kind = (uint32_t) (t->asked >> 32);
        entry.a = (uint32_t) t->asked++;
        t->events[slot] = (struct event) { .fn = fn, .drop = drop, .userdata = userdata };
        heap_add(&t->heap, &entry);
}

bool timeline_step(struct timeline *t) {
        struct heap_entry entry;
        struct event event;

        if (t->heap.n == 0)
                return false;
        entry = heap_take(&t->heap);
        event = t->events[entry.b];
        t->events[entry.b].next_free = t->first_free;
        t->first_free = entry.b + 1;
        t->now_usec = (uint64_t) entry.time_usec;
        t->count++;
        note_number(t, t->now_usec);
        event.fn(event.userdata);
        scan_trails(t);
        return true;
}

uint64_t timeline_random(struct timeline *t, uint64_t n) {
        /* xorshift64* */
        t->random ^= t->random >> 12;
        t->random ^= t->random << 25;
        t->random ^= t->random >> 27;
        note_number(t, n);
        return (t->random * UINT64_C(2685821657736338717) >> 16) % n;
}

uint64_t timeline_between(struct timeline *t, uint64_t min, uint64_t max) {
        return min + timeline_random(t, max - min + 1);
}

bool timeline_chance(struct timeline *t, unsigned per_mille) {
        return per_mille > 0 && timeline_random(t, 1000) < per_mille;
}

bool timeline_traced(const struct timeline *t) {
        return t->trace != NULL;
}

void timeline_trace(struct timeline *t, const char *who, const char *fmt, ...) {
        va_list ap;

        if (!t->trace)
                return;
        (void) fprintf(t->trace, "%4" PRIu64 ".%06" PRIu64 " %-4s ", t->now_usec / 1000000, t->now_usec % 1000000, who);
        va_start(ap, fmt);
        (void) vfprintf(t->trace, fmt, ap);
        va_end(ap);
        (void) fputc('\n', t->trace);
}
