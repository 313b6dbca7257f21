/*
 * A tally is what one node counts of what happens in the cluster. Every node sees all events of the
 * log, and of each event one node counts: the one that it concerns, or, if the log says that this
 * one is not up, the first that is. All nodes decide that by the same state, so each event is
 * counted once, without a word between them. What an rmd did not see, since it was stopped or got
 * the state as a whole, it does not count. Pure: knows no clock.
 */
#ifndef RM_METRICS_TALLY_H
#define RM_METRICS_TALLY_H

#include "daemon/metrics/counters.h"
#include "daemon/state/state.h"

struct tally;

/* Creates the tally of the node of that name, which is copied. */
struct tally *tally_create(const char *self);
void tally_destroy(struct tally *tally); /* NULL ok */

/* The state came as a whole: since when jobs wait and run is read from it. */
void tally_learn(struct tally *tally, const Rm__State *state);
/* An event has happened, and `state` is what came of it. */
void tally_event(struct tally *tally, const Rm__State *state, const Rm__Event *event);
/* The leader's policies were asked, which took so long; `failed`: one of them gave no valid
 * answer. */
void tally_policy(struct tally *tally, uint64_t usec, bool failed);

/* Valid as long as the tally is. */
const struct counters *tally_counters(const struct tally *tally);
/* Grows whenever one of the counters does. */
uint64_t tally_changes(const struct tally *tally);

#endif
