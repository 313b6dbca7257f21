/*
 * Plans in pieces. Prices that grow ever slower with the number of groups make a cheapest plan where jobs and nodes, joined
 * where a job is on a node, form trees, with at most one node in each tree that has something free: going round a circle, or
 * from one such node to another, is for nothing one way or the other (extreme points: Hirsch & Dantzig 1968). So it is a
 * partition of jobs and nodes into small trees, the components, each filled by itself. All components are listed that a plan may
 * have which costs the target or less, and the cheapest way to fill each; the dual says what the rest costs at least.
 *
 * A component is built from its branches: a branch hangs by one job of which its nodes hold some groups, and is otherwise filled
 * to the last core but for one node. Only branches are listed that are cheap: a component has a job or a node in its middle, where
 * branches meet that cost no more above the dual than a part of what the whole may. (Walk from the node that has something free,
 * always into the branch that costs more than 3/4 of it; where there is none, what lies behind costs less than 1/4.) That is far
 * fewer of them, since their number grows by a factor with each unit of cost.
 */
#ifndef RM_POLICIES_DISTRIB_COMPONENT_H
#define RM_POLICIES_DISTRIB_COMPONENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/distrib/deadline.h"
#include "policies/distrib/dual.h"

enum {
        COMPONENT_MAX_SIDE = 32,   /* jobs, and nodes */
        COMPONENT_MAX_UNITS = 255, /* of a job, and of a node */
};

struct component {
        uint64_t mask;   /* see component_node(), component_job(): what is in it */
        int64_t cost;    /* as prices are */
        int64_t above;   /* more than its jobs and nodes cost the dual at least, as the dual is scaled */
        uint32_t record; /* how it is filled */
};

static inline uint64_t component_node(uint32_t node) {
        return (uint64_t) 1 << node;
}

static inline uint64_t component_job(uint32_t job) {
        return (uint64_t) 1 << (COMPONENT_MAX_SIDE + job);
}

struct components;

/* Is the problem small enough, groups of one size, prices as above, and nothing paid for what is not there? */
bool components_apply(const struct problem *problem);

/* The problem is borrowed. NULL: no memory. */
struct components *components_create(const struct problem *problem);
void components_destroy(struct components *components); /* NULL ok */

/* All components of plans that the dual leaves over. 1: done; 0: not within `max_steps` or the time there is; -ENOMEM. *steps:
 * added to. */
int components_list(struct components *components, const struct dual *dual, const struct deadline *deadline, uint64_t max_steps,
                    uint64_t *steps);

/* After a 0: there is no room for all branches, however long it takes. */
bool components_full(const struct components *components);

/* After a 1; to be sorted at will; valid until the next call. */
struct component *components_all(struct components *components, size_t *ret_n);

/* Components of a plan are above by no more than this together. */
int64_t components_gap(const struct components *components);

/* How the component is filled, into ret_values (n_jobs x n_nodes); other jobs are left alone. */
void components_fill(const struct components *components, const struct component *component, uint32_t *ret_values);

#endif
