/* Turns the sums that the connections of a group have sent into the bytes that it sent to each
 * group of its job. Pure. */
#ifndef RM_JOB_TRAFFIC_DELTA_H
#define RM_JOB_TRAFFIC_DELTA_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/flow.h"
#include "daemon/config/config.h"
#include "daemon/state/state.h"

struct traffic_sent {
        int32_t to; /* group */
        uint64_t bytes;
};

/* Finds the bytes that were sent since `before`, in the order of `now`: to groups of the job only,
 * and only where it is more than nothing. A sum that has fallen is one of other connections, and
 * counts whole. `ret` has room for n_now. Returns how many. */
size_t traffic_delta(const struct config *config, const Rm__Job *job, const struct capsule_flow *before, size_t n_before,
                     const struct capsule_flow *now, size_t n_now, struct traffic_sent *ret);

#endif
