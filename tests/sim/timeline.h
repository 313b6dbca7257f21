/* Virtual time: events in their order, the only source of random numbers, and the trace. One seed
 * is one history. */
#ifndef RM_TESTS_SIM_TIMELINE_H
#define RM_TESTS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct timeline;

typedef void (*event_fn)(void *userdata);

/* `trace` NULL: none. */
struct timeline *timeline_create(uint64_t seed, FILE *trace);
/* Events that have not happened are dropped, see timeline_at(). NULL ok. */
void timeline_destroy(struct timeline *t);

uint64_t timeline_now_usec(const struct timeline *t);
/* How many events have happened. */
uint64_t timeline_count(const struct timeline *t);

/* The way that a history has gone: after each event, a digest of the times of all events, of the
 * random numbers that were asked for, and of what was noted. Zero-initialised. */
struct trail {
        uint64_t *digests;
        size_t n;
};
void trail_finish(struct trail *trail);
/* Adds this history to an empty trail. Before the first event. */
void timeline_record(struct timeline *t, struct trail *trail);
/* Compares this history with one of the same seed. Before the first event. */
void timeline_follow(struct timeline *t, const struct trail *trail);
/* When this history went another way than the one that it follows; UINT64_MAX: not yet. */
uint64_t timeline_parted_usec(const struct timeline *t);
/* Takes what nodes say to each other, or write, into the digest. */
void timeline_note(struct timeline *t, const void *data, size_t size_bytes);

/* Have `fn` called at that time; events of one time happen in the order in which they were asked
 * for. `drop` is called instead when the timeline ends before; NULL ok. */
void timeline_at(struct timeline *t, uint64_t when_usec, event_fn fn, event_fn drop, void *userdata);
/* The next event happens. false: there is none. */
bool timeline_step(struct timeline *t);

/* A random number in [0, n); n > 0. */
uint64_t timeline_random(struct timeline *t, uint64_t n);
/* A random number in [min, max]. */
uint64_t timeline_between(struct timeline *t, uint64_t min, uint64_t max);
bool timeline_chance(struct timeline *t, unsigned per_mille);

bool timeline_traced(const struct timeline *t);
/* Writes a line: time, `who`, what. */
void timeline_trace(struct timeline *t, const char *who, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
