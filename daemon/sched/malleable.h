/* Which jobs are to grow or shrink: those that were started with ranks in reserve, and whose
 * program can change. Pure.
 *
 * Jobs shrink when running ones have more ranks than there are cores (rather than that ranks share
 * cores), or when the first job that waits finds room that way; those of the lowest priority first,
 * and of these the ones that do more steps than their goal wants, then the largest. Jobs grow into
 * cores that no job waits for; those of the highest priority first, and of these the ones that are
 * behind their goal, then the smallest; one that does more than its goal does not. A rank that is
 * added has a core on the node of its group. If there are none, a group that is still parked first
 * moves to a node that has them. So cores that are scattered stay idle rather than that ranks share
 * them. A growth that has not begun when its cores are needed otherwise is taken back. Virtual
 * malleability (Cores 2015) folds the ranks that there are; here it is their number that follows
 * the cores. */
#ifndef RM_SCHED_MALLEABLE_H
#define RM_SCHED_MALLEABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sched/round.h"

enum malleable_goal {
        MALLEABLE_NO_GOAL,
        MALLEABLE_BEHIND,
        MALLEABLE_AHEAD,
};

/* A job that has nodes. In the order in which jobs were submitted. */
struct malleable_job {
        uint32_t active; /* ranks */
        uint32_t requested; /* by a change that is under way; 0: none is */
        uint32_t least, most; /* never fewer or more; both 0: its number is fixed */
        uint32_t step; /* ranks of a group: it changes by so many. Of most ranks the last group may have fewer */
        bool may_change; /* its program asks, and it was not changed a moment ago */
        bool may_stay; /* it was asked to grow, and that can still be taken back */
        int64_t priority;
        enum malleable_goal goal;
        /* Where each of its groups is, or goes: as many as `most` ranks are in; borrowed.
         * RM_NO_NODE: nowhere yet. NULL: only those that are active are anywhere. */
        const int32_t *group_node;
        uint32_t first_moving; /* the first of its parked groups that moves, counted from 1; 0: none does */
        const uint32_t *node_limit; /* ranks that it may have on each node; borrowed, NULL: as many as there are cores */
        uint64_t rank_memory_bytes; /* what a rank that comes to another node takes there */
};

/* The first that waits. */
struct malleable_waiting {
        uint32_t ranks; /* 0: none waits */
        int64_t priority; /* no job of a higher one shrinks for it */
};

/* A node. */
struct malleable_node {
        int64_t free_cores; /* that nothing has, nor anything that comes; below 0: ranks share cores */
        int64_t free_memory; /* for what comes; RM_NO_MEMORY_LIMIT: any */
};

struct malleable_question {
        const struct malleable_job *jobs;
        size_t n_jobs;
        struct malleable_waiting waiting;
        const struct malleable_node *nodes;
        size_t n_nodes;
        uint64_t cores; /* usable ones, but those that are kept free */
};

/* The move of a parked group. */
struct malleable_move {
        size_t job;
        uint32_t group;
        int32_t node;
};

struct malleable_answer {
        /* n_jobs entries: how many active ranks each is to have; 0: it stays as it is. As many as
         * are active: its growth is taken back. */
        uint32_t *requested;
        struct malleable_move *moves; /* so that jobs can grow later */
        size_t n_moves;
};

/* The first of the jobs that wait after a round for which the cluster has cores at all. */
struct malleable_waiting malleable_first_waiting(const struct rm_snapshot *snapshot, const struct round_result *result);

/* The largest size of groups, up to `most`, with which so many ranks fill all of theirs: the groups
 * of a job are alike, and all ranks of a group have a core. */
uint32_t malleable_group_size(uint32_t ranks, uint32_t most);

void malleable_decide(const struct malleable_question *question, struct malleable_answer *ret);
void malleable_answer_finish(struct malleable_answer *answer);

#endif
