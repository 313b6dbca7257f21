/*
 * treematch: ranks that talk much get cores that are near to each other (Jeannot & Mercier 2010),
 * over the whole tree from the network down to packages. What it makes small is the sum of bytes
 * times hops.
 *
 * The jobs that run and wait are chosen by the packing that all policies share. New jobs are mapped
 * onto the cores that are left, starting from ranks by slot, so the answer never costs more than
 * that; where nothing is known of the traffic, it is that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/memory.h"
#include "placement/pack.h"
#include "placement/topology/map_context.h"
#include "placement/topology/slots.h"
#include "placement/topology/within_node.h"
#include "policies/treematch/cores_by_traffic.h"
#include "policies/treematch/place_new.h"
#include "policies/treematch/replace.h"
#include "rm/policy.h"

/* The mapping looks at cores. The packing, with which it begins, goes over the memory of no
 * node. */
static bool within_memory(const struct map_context *context) {
        int32_t over;

        return memory_find_over(context->snapshot, context->plan, &over) == 0 && over == RM_NO_NODE;
}

static void place_by_traffic(struct map_context *context) {
        enum { BEFORE, AFTER, N_PLANS };
        const struct rm_plan *plans[N_PLANS] = { [AFTER] = context->plan };
        struct plan_bytes bytes[N_PLANS];

        within_node_assign(context, NULL);
        plans[BEFORE] = context_copy_plan(context);
        replace_running(context, context->snapshot->params.move_budget);
        place_new(context);
        cores_by_traffic(context);
        context_measure(context, plans, N_PLANS, bytes);
        if (bytes[AFTER].hop_bytes > bytes[BEFORE].hop_bytes || !within_memory(context)) {
                context_go_back(context, plans[BEFORE]);
                bytes[AFTER] = bytes[BEFORE];
        }
        (void) snprintf(context->plan->method, sizeof(context->plan->method), "treematch, %.2f of %s",
                        bytes[BEFORE].hop_bytes > 0 ? bytes[AFTER].hop_bytes / bytes[BEFORE].hop_bytes : 1.0,
                        any_job_runs(context->snapshot) ? "leaving all where it is" : "by slot");
}

static int treematch_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct pool pool;
        struct map_context context;
        const struct rm_plan *packed;
        int r = pack_plan(snapshot, plan, true);

        (void) self;
        if (r < 0)
                return r;
        pool_init(&pool);
        context_make(&pool, snapshot, run, plan, &context);
        packed = context_copy_plan(&context);
        (void) slots_place(&context, false);
        if (!within_memory(&context))
                context_go_back(&context, packed);
        if (context_has_traffic(&context))
                place_by_traffic(&context);
        else {
                within_node_assign(&context, NULL);
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
                .description = "ranks that communicate much get cores near each other: maps traffic onto the tree of the cluster",
        },
        .place = treematch_place,
};
