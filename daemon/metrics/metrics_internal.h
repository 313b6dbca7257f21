/* The internal interface of the files of this folder. */
#ifndef RM_METRICS_METRICS_INTERNAL_H
#define RM_METRICS_METRICS_INTERNAL_H

#include "daemon/metrics/metrics.h"
#include "daemon/metrics/tally.h"
#include "daemon/metrics/totals.h"

struct metrics {
        char *node;
        uint64_t run;
        uint64_t start_usec;
        struct tally *tally;
        struct totals *totals;
};

#endif
