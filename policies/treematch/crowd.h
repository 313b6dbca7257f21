/* Jobs that are mapped together: the groups of full size of jobs whose groups have one size, or of one job with a limit of its own. */
#ifndef RM_TREEMATCH_CROWD_H
#define RM_TREEMATCH_CROWD_H

#include "policies/treematch/scene.h"

struct crowd {
        struct scene *scene;
        const uint32_t *job;
        uint32_t n_jobs;
        uint32_t group_size;
        const struct places *places; /* down to nodes, or to cores */
        uint32_t *room; /* each leaf: groups that may be on it */
        uint32_t *leaf; /* each group, job after job: where the plan has it */
        uint32_t n_groups;
        struct graph graph; /* the traffic between the groups */
};

/* The smaller last group of a job is no part of this: it stays where the plan has it. */
uint32_t crowd_groups(const struct rm_job *job);

/* The crowd that job `jobs[0]` is in: those of `jobs` that can be mapped together with it come first, the others after them; returns how many
 * they are. */
uint32_t crowd_select(const struct scene *scene, uint32_t *jobs, uint32_t n_jobs);

/* All of it in the pool of the scene. With leaves that are cores' places, cores that others have are taken to be the first ones of their node. */
void crowd_make(struct scene *scene, const uint32_t *jobs, uint32_t n_jobs, bool down_to_cores, struct crowd *ret_crowd);

/* crowd->leaf into the plan. */
void crowd_take(const struct crowd *crowd);

#endif
