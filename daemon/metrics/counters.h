/* The counters of a node are one row of numbers that only grow: nodes report them, and the leader
 * adds them up. Pure. */
#ifndef RM_METRICS_COUNTERS_H
#define RM_METRICS_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/* Buckets of a histogram: the last one has no upper bound. */
#define HISTOGRAM_BUCKETS 8U

enum histogram {
        HISTOGRAM_FREEZE,   /* of a move: from the freeze to its end */
        HISTOGRAM_PAUSE,    /* of a checkpoint: for how long the job was frozen */
        HISTOGRAM_WAITING,  /* of a job: until it was placed */
        HISTOGRAM_RECOVERY, /* of a job: from the loss of a node until it ran again */
        HISTOGRAMS
};

/* Why groups move; in the order of MoveCause in the state, of which the first is none. */
#define COUNTERS_CAUSES 5U

/* The places of the numbers. Nodes of different versions report to each other: a new one is added
 * at the end. */
enum counter {
        COUNTER_HISTOGRAMS = 0, /* of each: its buckets, then the sum in microseconds */
        COUNTER_MOVES_DONE = COUNTER_HISTOGRAMS + HISTOGRAMS * (HISTOGRAM_BUCKETS + 1), /* of each cause */
        COUNTER_MOVES_FAILED = COUNTER_MOVES_DONE + COUNTERS_CAUSES,
        COUNTER_MOVE_BYTES = COUNTER_MOVES_FAILED + COUNTERS_CAUSES,
        COUNTER_CHECKPOINTS_DONE,
        COUNTER_CHECKPOINTS_FAILED,
        COUNTER_RECOVERIES_DONE,
        COUNTER_RECOVERIES_FAILED,
        COUNTER_WORK_LOST_USEC, /* of jobs that start again: since they began, or since what they go on from */
        COUNTER_POLICY_RUNS,
        COUNTER_POLICY_USEC,
        COUNTER_POLICY_FAILURES,
        COUNTERS
};

struct counters {
        uint64_t values[COUNTERS];
};

/* The upper bounds of the buckets but the last, in microseconds. */
const uint64_t *histogram_bounds(enum histogram histogram);
/* The place of a bucket. */
size_t histogram_bucket(enum histogram histogram, size_t bucket);
/* The place of the sum. */
size_t histogram_sum(enum histogram histogram);

/* A value on a bound belongs to the bucket below it. */
void counters_observe(struct counters *counters, enum histogram histogram, uint64_t usec);
/* How many values the histogram has. */
uint64_t counters_observed(const struct counters *counters, enum histogram histogram);

#endif
