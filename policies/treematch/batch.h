/* Jobs that are mapped together: the groups of full size of jobs whose groups have one size, or of
 * one job with a limit of its own. */
#ifndef RM_TREEMATCH_BATCH_H
#define RM_TREEMATCH_BATCH_H

#include "placement/topology/map_context.h"

struct batch {
        struct map_context *context;
        const uint32_t *job;
        uint32_t n_jobs;
        uint32_t group_size;
        const struct places *places; /* down to nodes, or to cores */
        uint32_t *space; /* each leaf: groups that may be on it */
        uint32_t *leaf; /* each group, job after job: where the plan has it */
        uint32_t n_groups;
        struct graph graph; /* the traffic between the groups */
};

/* The smaller last group of a job is no part of this: it stays where the plan has it. */
uint32_t batch_groups(const struct rm_job *job);

/* The batch that job `jobs[0]` is in: those of `jobs` that can be mapped together with it come
 * first, the others after them; returns how many they are. */
uint32_t batch_select(const struct map_context *context, uint32_t *jobs, uint32_t n_jobs);

/* Makes the batch in the pool of the context. With leaves that are cores' places, cores that other
 * jobs have are taken to be the first ones of their node. */
void batch_make(struct map_context *context, const uint32_t *jobs, uint32_t n_jobs, bool down_to_cores, struct batch *ret_batch);

/* batch->leaf into the plan. */
void batch_take(const struct batch *batch);

#endif
