/* Snapshots of clusters in use, as `rmctl snapshot` shows them: nodes of 8 to 64 cores, jobs in
 * groups of the default size that came and went, moves that cost what freezes do, a few nodes that
 * have just lost cores, and jobs that have just come. */
#ifndef RM_BENCH_BUSY_H
#define RM_BENCH_BUSY_H

#include "bench/placement/instance.h"

/* The fields `nodes`, `jobs` and `penalties` of the instance count: 0, 2 or 10 with penalties, else
 * 0. */
struct snapshot *busy_create(const struct instance *instance, struct dice *dice);

#endif
