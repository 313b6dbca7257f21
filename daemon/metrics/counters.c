#include "daemon/metrics/counters.h"

#define MSEC UINT64_C(1000)
#define SEC UINT64_C(1000000)

const uint64_t *histogram_bounds(enum histogram histogram) {
        static const uint64_t bounds[HISTOGRAMS][HISTOGRAM_BUCKETS - 1] = {
                /* Freezes are what users feel: MPI programs do not notice 50 ms, and connections
                 * break after minutes. */
                [HISTOGRAM_FREEZE] = { 50 * MSEC, 100 * MSEC, 250 * MSEC, 500 * MSEC, SEC, 2500 * MSEC, 10 * SEC },
                [HISTOGRAM_PAUSE] = { 50 * MSEC, 100 * MSEC, 250 * MSEC, 500 * MSEC, SEC, 2500 * MSEC, 10 * SEC },
                /* Jobs wait for nothing, or until tomorrow. */
                [HISTOGRAM_WAITING] = { SEC, 10 * SEC, 60 * SEC, 600 * SEC, 3600 * SEC, 21600 * SEC, 86400 * SEC },
                /* A lease lasts some seconds. */
                [HISTOGRAM_RECOVERY] = { SEC, 2 * SEC, 5 * SEC, 10 * SEC, 30 * SEC, 60 * SEC, 300 * SEC },
        };

        return bounds[histogram];
}

size_t histogram_bucket(enum histogram histogram, size_t bucket) {
        return COUNTER_HISTOGRAMS + (size_t) histogram * (HISTOGRAM_BUCKETS + 1) + bucket;
}

size_t histogram_sum(enum histogram histogram) {
        return histogram_bucket(histogram, HISTOGRAM_BUCKETS);
}

void counters_observe(struct counters *counters, enum histogram histogram, uint64_t usec) {
        const uint64_t *bounds = histogram_bounds(histogram);
        size_t bucket = 0;

        while (bucket < HISTOGRAM_BUCKETS - 1 && usec > bounds[bucket])
                bucket++;
        counters->values[histogram_bucket(histogram, bucket)]++;
        counters->values[histogram_sum(histogram)] += usec;
}

uint64_t counters_observed(const struct counters *counters, enum histogram histogram) {
        uint64_t n = 0;

        for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
                n += counters->values[histogram_bucket(histogram, bucket)];
        return n;
}
