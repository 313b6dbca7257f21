/*
 * What a dual knows of each value of each cell, laid out to be looked up: how much more than the least its two chains cost with
 * it. Values are groups, of one size for all jobs.
 */
#ifndef RM_POLICIES_DISTRIB_MARGIN_H
#define RM_POLICIES_DISTRIB_MARGIN_H

#include "policies/distrib/arena.h"
#include "policies/distrib/dual.h"

#define MARGIN_NEVER ((int64_t) 1 << 50)

/* By cell and groups, see margins_at(). All costs are scaled as those of the dual are, MARGIN_NEVER: no plan has it. */
struct margins {
        const struct problem *problem;
        const struct dual *dual;
        uint32_t jobs, nodes, stride; /* stride: one more than the most groups */
        int64_t *node_cost;   /* in the chain of the node */
        int64_t *job_cost;    /* in the chain of the job, less that of none */
        int64_t *node_margin; /* the least of the node's chain with it, above the least of all */
        int64_t *job_margin;
        /* As node_margin, when it is the last node of the job: with what the other jobs there cost above their least. */
        int64_t *ending;
        int64_t *complete; /* each job and groups: what so many more cost it at least, with the nodes that they go to */
        int64_t *node_least, *job_least;
        int64_t *job_zero; /* what the job's chain costs when it is nowhere */
        int64_t gap; /* what a plan that costs the target or less may cost above the least of all chains */
        int64_t *joint, *forward, *backward;
        struct arena arena;
};

/* False: no memory; margins_finish() is fine after it. The problem is borrowed. */
bool margins_init(struct margins *margins, const struct problem *problem);
void margins_finish(struct margins *margins);

/* False: there is no plan. The dual is borrowed. */
bool margins_read(struct margins *margins, const struct dual *dual);

static inline size_t margins_at(const struct margins *margins, uint32_t job, uint32_t node, uint32_t groups) {
        return ((size_t) job * margins->nodes + node) * margins->stride + groups;
}

#endif
