/* What groups get of cores that ranks share, told to the leader, so that a folded job's slowdown can be shown. */
#ifndef RM_JOB_CORE_REPORT_H
#define RM_JOB_CORE_REPORT_H

#include <stdint.h>

#include "daemon/node/core_time.h"

/* When a group was last looked at. */
struct core_report_last {
        uint64_t at_usec; /* monotonic; 0: it was not, or shared no core then */
        struct core_time time;
};

struct runner;

void core_report_start(struct runner *runner);
void core_report_stop(struct runner *runner);

#endif
