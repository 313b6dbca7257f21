/*
 * Packing groups onto nodes, fast and without a solver: what `greedy` is, where `distrib` starts
 * from, and what the scheduler finds room with when capacity has shrunk. Pure; includes nothing but
 * the public header.
 *
 * Groups that run stay where they are while their node has room for them. What must go, and what is
 * new, is put job by job on the node that costs the least for each rank, and among equals where it
 * leaves the smallest hole.
 */
#ifndef RM_PLACEMENT_PACK_H
#define RM_PLACEMENT_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/shelf.h"
#include "rm/policy.h"

/* A packing under way. Fields are the interface: `plan` is filled in as it goes. */
struct pack {
        const struct rm_snapshot *snapshot;
        struct rm_plan *plan;
        int64_t *free_cores;   /* each node; below 0 where pinned groups exceed the capacity */
        int64_t *free_memory;  /* each node: for groups that come to it */
        uint32_t *used;        /* each node: ranks of the job in hand, all 0 between jobs */
        struct shelf shelf;    /* follows free_cores while shelved; where there are many nodes */
        bool shelved;
};

/* `snapshot` and `plan` (arrays made, every job RM_WAIT) are borrowed until pack_finish().
 * -ENOMEM. */
int pack_init(struct pack *pack, const struct rm_snapshot *snapshot, struct rm_plan *plan);
void pack_finish(struct pack *pack); /* fine after a failed init */

/* Called for a group that fits nowhere: answer a node to put it on nevertheless, or RM_NO_NODE to
 * give up. pack->used counts the job's ranks, pack->free_cores the room, both without this
 * group. */
typedef int32_t (*pack_overflow)(void *context, const struct pack *pack, uint32_t job, uint32_t group);

/* Place every running job. `overflow` NULL: when keeping what runs leaves no room for the rest, all
 * is packed again. -ENOSPC when not all of them fit; the plan is then meaningless. */
int pack_running(struct pack *pack, pack_overflow overflow, void *context);

/* Place waiting jobs by priority and age, as far as rm_params.backfill lets them pass each other.
 * `repack`: running groups may be moved to make room. Nothing can go wrong but -ENOMEM: what does
 * not fit waits. */
int pack_waiting(struct pack *pack, bool repack);

/* Makes the whole plan: running jobs, then waiting ones. -ENOMEM, -ENOSPC as above. */
int pack_plan(const struct rm_snapshot *snapshot, struct rm_plan *plan, bool repack);

/* Groups that take `each` bytes, at most `most`, that `node` has memory for. */
uint32_t pack_memory_groups(const struct pack *pack, int64_t each, uint32_t node, uint32_t most);

/* Could `job` run if it were alone on the cluster of `snapshot`? */
bool pack_fits_alone(const struct rm_snapshot *snapshot, const struct rm_job *job);

/* The order in which waiting jobs are served: effective priority (priority + age_weight * age)
 * downwards, then as in the snapshot. Indices of the jobs without a node, into `ret_order` (n_jobs
 * entries); returns how many. */
uint32_t pack_order(const struct rm_snapshot *snapshot, uint32_t *ret_order);

/* Give the groups of `job` names: `full_count[node]` groups of full size and, when the last one is
 * smaller, `rest_node` for it. Pinned ones stay, then the ones that are dearest to move; others
 * fill what is left. full_count is used up (all 0 after). 0, or -EINVAL when the counts do not add
 * up or a pinned group has no place. */
int pack_name_groups(const struct rm_job *job, uint32_t n_nodes, uint32_t *full_count, int32_t rest_node, int32_t *ret_group_node);

/* Groups of full size, and the ranks of the smaller last one (0: there is none). */
static inline uint32_t job_full_groups(const struct rm_job *job) {
        return job->ranks / job->group_size;
}
static inline uint32_t job_rest_ranks(const struct rm_job *job) {
        return job->ranks % job->group_size;
}
static inline uint32_t job_node_limit(const struct rm_job *job, uint32_t node) {
        return job->node_limit ? job->node_limit[node] : RM_NO_LIMIT;
}

#endif
