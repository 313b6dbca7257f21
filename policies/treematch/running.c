#include "policies/treematch/running.h"

#include "policies/place/cost.h"
#include "policies/treematch/crowd.h"
#include "policies/treematch/leave.h"

/* Sums of traffic are below. */
#define MOST_BYTES 0x1p60

/* What holds the groups of a crowd, group after group. */
struct holds {
        uint32_t *home;
        bool *fixed;
        int64_t *price;
};

/* What a move must at least save, in weight times hops. */
static int64_t price_of(const struct scene *scene, const struct rm_group *group) {
        double bytes = (double) group->move_cost * (double) scene->snapshot->params.bytes_per_cost;

        return (int64_t) (bytes < MOST_BYTES ? bytes : MOST_BYTES) >> scene->shift;
}

static struct holds find_holds(const struct crowd *crowd) {
        const struct scene *scene = crowd->scene;
        struct holds holds = { pool_alloc(scene->pool, crowd->n_groups, sizeof(*holds.home)),
                               pool_alloc(scene->pool, crowd->n_groups, sizeof(*holds.fixed)),
                               pool_alloc(scene->pool, crowd->n_groups, sizeof(*holds.price)) };
        const struct places *places = crowd->places;
        uint32_t at = 0;

        for (uint32_t i = 0; i < crowd->n_jobs; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[crowd->job[i]];

                for (uint32_t g = 0; g < crowd_groups(job); g++, at++) {
                        const struct rm_group *group = &job->groups[g];

                        holds.home[at] = group->node < 0 ? TREE_NONE : places->tree.leaf_first[places->node_vertex[group->node]];
                        holds.fixed[at] = group->node >= 0 && (group->flags & RM_GROUP_PINNED);
                        holds.price[at] = price_of(scene, group);
                }
        }
        return holds;
}

/* What is pinned is there, even where it has no room. */
static void make_room_for_fixed(const struct crowd *crowd, const struct holds *holds) {
        struct pool_mark mark = pool_mark(crowd->scene->pool);
        uint32_t *fixed = pool_zalloc(crowd->scene->pool, crowd->places->tree.n_leaves, sizeof(*fixed));

        for (uint32_t v = 0; v < crowd->n_groups; v++)
                if (holds->fixed[v] && ++fixed[holds->home[v]] > crowd->room[holds->home[v]])
                        crowd->room[holds->home[v]] = fixed[holds->home[v]];
        pool_release(crowd->scene->pool, mark);
}

/* Returns how much of the budget was used. */
static uint32_t solve_crowd(struct scene *scene, const uint32_t *jobs, uint32_t n_jobs, uint32_t budget) {
        struct leave leave = { .budget = budget, .limits = &scene->limits };
        struct holds holds;
        struct crowd crowd;
        struct tree tree;
        uint32_t used;

        crowd_make(scene, jobs, n_jobs, false, &crowd);
        holds = find_holds(&crowd);
        make_room_for_fixed(&crowd, &holds);
        tree_with_room(scene->pool, &crowd.places->tree, crowd.room, &tree);
        leave.tree = &tree;
        leave.graph = &crowd.graph;
        leave.home = holds.home;
        leave.fixed = holds.fixed;
        leave.price = holds.price;
        used = leave_solve(scene->pool, &leave, crowd.leaf);
        crowd_take(&crowd);
        return used;
}

void running_place(struct scene *scene, uint32_t budget) {
        uint32_t *jobs = pool_alloc(scene->pool, scene->snapshot->n_jobs, sizeof(*jobs)), n = 0, crowd;

        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];

                if (scene_places(scene, j) && job_runs(job) && job_has_traffic(job) && job->n_groups > 1)
                        jobs[n++] = j;
        }
        for (; n > 0; jobs += crowd, n -= crowd) {
                crowd = crowd_select(scene, jobs, n);
                budget -= solve_crowd(scene, jobs, crowd, budget);
        }
}
