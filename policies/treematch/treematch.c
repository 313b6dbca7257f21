/*
 * treematch: ranks that talk much get cores that are near to each other (Jeannot & Mercier 2010), over the whole tree from the network down to
 * packages. What it makes small is the sum of bytes times hops.
 *
 * Who runs and who waits is decided by the packing that all policies share. New jobs are mapped onto the cores that are left, starting
 * from ranks by slot, so the answer never costs more than that; where nothing is known of the traffic, it is that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policies/place/cost.h"
#include "policies/place/pack.h"
#include "policies/treematch/fresh.h"
#include "policies/treematch/inside.h"
#include "policies/treematch/running.h"
#include "policies/treematch/scene.h"
#include "policies/treematch/slots.h"

/* Of all jobs in the plan. */
static bool any_traffic(const struct scene *scene) {
        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++)
                if (scene_places(scene, j) && job_has_traffic(&scene->snapshot->jobs[j]))
                        return true;
        return false;
}

/* Copies of a plan's nodes and cores, to go back to. */
struct keepsake {
        int32_t **node, **core;
};

static struct keepsake keep(const struct scene *scene) {
        uint32_t n = scene->snapshot->n_jobs;
        struct keepsake kept = { pool_zalloc(scene->pool, n, sizeof(*kept.node)), pool_zalloc(scene->pool, n, sizeof(*kept.core)) };

        for (uint32_t j = 0; j < n; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];

                kept.node[j] = pool_alloc(scene->pool, job->n_groups, sizeof(**kept.node));
                kept.core[j] = pool_alloc(scene->pool, job->ranks, sizeof(**kept.core));
                memcpy(kept.node[j], scene->plan->jobs[j].group_node, sizeof(**kept.node) * job->n_groups);
                memcpy(kept.core[j], scene->plan->jobs[j].rank_core, sizeof(**kept.core) * job->ranks);
        }
        return kept;
}

static void go_back(const struct scene *scene, const struct keepsake *kept) {
        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];

                memcpy(scene->plan->jobs[j].group_node, kept->node[j], sizeof(**kept->node) * job->n_groups);
                memcpy(scene->plan->jobs[j].rank_core, kept->core[j], sizeof(**kept->core) * job->ranks);
        }
}

static void place_by_traffic(struct scene *scene) {
        struct scene_bytes before, after;
        struct keepsake kept;

        inside_assign(scene, false);
        before = scene_measure(scene);
        kept = keep(scene);
        running_place(scene, scene->snapshot->params.move_budget);
        fresh_place(scene);
        inside_assign(scene, true);
        after = scene_measure(scene);
        if (after.hop_bytes > before.hop_bytes) {
                go_back(scene, &kept);
                after = before;
        }
        (void) snprintf(scene->plan->method, sizeof(scene->plan->method), "treematch, %.2f of %s",
                        before.hop_bytes > 0 ? after.hop_bytes / before.hop_bytes : 1.0,
                        any_job_runs(scene->snapshot) ? "leaving all where it is" : "by slot");
}

static int treematch_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct pool pool;
        struct scene scene;
        int r = pack_plan(snapshot, plan, true);

        (void) self;
        if (r < 0)
                return r;
        pool_init(&pool);
        scene_make(&pool, snapshot, run, plan, &scene);
        (void) slots_place(&scene, false);
        if (any_traffic(&scene))
                place_by_traffic(&scene);
        else {
                inside_assign(&scene, false);
                (void) snprintf(plan->method, sizeof(plan->method), "by slot, no traffic is known");
        }
        pool_finish(&pool);
        return 0;
}

RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
const struct rm_policy_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_policy_plugin),
                .name = "treematch",
                .kind = RM_POLICY_KIND,
                .kind_abi = RM_POLICY_ABI,
                .description = "ranks that talk to each other get cores near to each other, over the whole tree of the cluster",
        },
        .place = treematch_place,
};
