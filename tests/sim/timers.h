/* The timers of the process of a host. */
#ifndef RM_TESTS_SIM_TIMERS_H
#define RM_TESTS_SIM_TIMERS_H

#include "tests/sim/host.h"

/* From when the process starts until it has ended. */
void timers_begin(struct host *host);
void timers_end(struct host *host);

#endif
