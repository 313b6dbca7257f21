/*
 * greedy: an answer in milliseconds, whatever the size. What runs stays; what must move or is new
 * goes where it is cheapest at that moment. The scheduler falls back to it when another policy
 * fails, so it does nothing clever.
 */
#include <errno.h>
#include <stdio.h>

#include "placement/cost.h"
#include "placement/pack.h"
#include "placement/relaxation.h"
#include "rm/policy.h"

static int set_bound(const struct rm_snapshot *snapshot, struct rm_plan *plan) {
        struct relaxation relaxation;
        int64_t cost;
        int r = relaxation_init(&relaxation, snapshot, plan);

        if (r == 0)
                r = cost_plan(snapshot, plan, &cost);
        if (r == 0) {
                plan->bound = relaxation_bound(&relaxation, snapshot->params.distribution_weight);
                plan->proven = plan->bound >= cost;
        }
        relaxation_finish(&relaxation);
        return r;
}

static int greedy_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        int r = pack_plan(snapshot, plan, false);

        (void) self;
        (void) run;
        if (r == 0)
                r = set_bound(snapshot, plan);
        if (r == 0)
                (void) snprintf(plan->method, sizeof(plan->method), "greedy");
        return r;
}

RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
const struct rm_policy_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_policy_plugin),
                .name = "greedy",
                .kind = RM_POLICY_KIND,
                .kind_abi = RM_POLICY_ABI,
                .description = "moves no running group; places new ones where they cost least; milliseconds at any size",
        },
        .place = greedy_place,
};
