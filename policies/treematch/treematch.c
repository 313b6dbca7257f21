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

static void place_by_traffic(struct scene *scene) {
        enum { BEFORE, AFTER, N_PLANS };
        const struct rm_plan *plans[N_PLANS] = { [AFTER] = scene->plan };
        struct scene_bytes bytes[N_PLANS];

        inside_assign(scene, false);
        plans[BEFORE] = scene_copy_plan(scene);
        running_place(scene, scene->snapshot->params.move_budget);
        fresh_place(scene);
        inside_assign(scene, true);
        scene_measure(scene, plans, N_PLANS, bytes);
        if (bytes[AFTER].hop_bytes > bytes[BEFORE].hop_bytes) {
                scene_go_back(scene, plans[BEFORE]);
                bytes[AFTER] = bytes[BEFORE];
        }
        (void) snprintf(scene->plan->method, sizeof(scene->plan->method), "treematch, %.2f of %s",
                        bytes[BEFORE].hop_bytes > 0 ? bytes[AFTER].hop_bytes / bytes[BEFORE].hop_bytes : 1.0,
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
        if (scene_has_traffic(&scene))
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
