/*
 * Folding: what capacity running jobs see when there are fewer cores than ranks, and unfolding,
 * which is the same function with enough cores. Jobs that run are never told to stop for want of
 * cores: they get room everywhere in proportion to the cores,
 *
 *      maxProcs(i) = ceil(nCores(i) * N / nTotalCores)         N ranks running (Cores 2015)
 *
 * for the cluster, and again for each job whose own availability allows fewer cores than it has
 * ranks. Where that is not enough for whole groups, the node is raised on which it hurts least.
 * With no cores at all, everything stays where it is. Memory is not folded: a group comes to no
 * node that has too little of it, or whose processors lack what it may use, and stays where it is
 * when there is no other. Where programs
 * have goals, groups that must find room come first to nodes of jobs that do more steps than their
 * goal (fold_turns.h).
 * Pure: what is answered depends on the arguments alone, and a placement that is answered once is
 * answered again.
 */
#ifndef RM_SCHED_FOLD_H
#define RM_SCHED_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/fold_turns.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"

/* Beside RM_GROUP_PINNED in rm_group.flags: the group should leave its node, and no other node has
 * memory for it. */
#define FOLD_GROUP_KEPT 2u
/* Beside FOLD_GROUP_KEPT: all other nodes that its job may use lack processors for it. */
#define FOLD_GROUP_BARRED 4u

/* Read only for others. */
struct fold {
        /* The given jobs, with capacities (node cores) and limits that the running ones fit into.
         * Jobs that wait may use only cores that are really free: they are kept off nodes whose
         * capacity stands above `real_cores`. */
        struct snapshot *snapshot;
        struct rm_plan *witness; /* a placement of every running job that fits; waiting ones wait */
        uint32_t *real_cores; /* each node: usable now */
        uint64_t real_total; /* their sum; 0: nothing moves */
        uint64_t ranks; /* that need cores */
        struct fold_turns *turns; /* NULL: all share alike */
        const struct round_kinds *kinds; /* while it is made */
        bool unsettled; /* pinned groups are on nodes they must leave: cores that are free now are theirs next */
};

/* `snapshot` is taken over (also on failure): its cores are the real ones, 0 for nodes to be left.
 * Groups that move or cannot move are pinned. `jobs`: what else is known of them, NULL ok; used
 * during the call only. */
int fold_create(struct snapshot *snapshot, const struct round_job *jobs, struct fold **ret_fold, struct rm_error *err);
void fold_destroy(struct fold *fold); /* NULL ok */

/* ceil(cores * ranks / total_cores); total_cores at least 1. */
uint32_t fold_max_procs(uint32_t cores, uint64_t ranks, uint64_t total_cores);

/* Cores job may use on `node` really: the least of the node's and its own limit, before any
 * folding. */
uint32_t fold_usable(const struct rm_job *job, uint32_t node, uint32_t real_cores);

/* Returns whether what is on node `from` can go to none of the nodes with cores that the job may
 * use (NULL: any job), since they all have other processors. False if there is no such node. */
bool fold_bars(const struct fold *fold, const struct round_kinds *kinds, const struct rm_job *job, int32_t from);

#endif
