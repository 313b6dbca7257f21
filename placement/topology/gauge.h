/* The change of bytes times hops by single moves from node to node, where measure.h measures whole
 * plans. */
#ifndef RM_PLACEMENT_GAUGE_H
#define RM_PLACEMENT_GAUGE_H

#include "placement/topology/places.h"
#include "placement/topology/pool.h"
#include "rm/policy.h"

struct gauge {
        struct pool pool;
        struct places places; /* down to nodes */
};

/* The snapshot's nodes and switches are not needed any more after it. */
void gauge_init(struct gauge *gauge, const struct rm_snapshot *snapshot);
void gauge_finish(struct gauge *gauge);

/* Bytes times hops between the ranks of `job` with its groups on `node` (all on one). Inside of a
 * node there are no hops; 0 when nothing is known of the traffic. */
double gauge_job(const struct gauge *gauge, const struct rm_job *job, const int32_t *node);

/* The part of it that group `group` has, if that one were on `at`. */
double gauge_group(const struct gauge *gauge, const struct rm_job *job, const int32_t *node, uint32_t group, int32_t at);

#endif
