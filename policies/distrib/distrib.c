/*
 * distrib: the integer program of Reghenzani 2016 (section 5.3), in its tight form (distrib.mod), over whole groups, plus what it
 * costs to move groups from where they are. Who waits is decided before, by priority and age.
 */
#include <errno.h>
#include <glpk.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "policies/distrib/deadline.h"
#include "policies/distrib/problem.h"
#include "policies/distrib/search.h"
#include "policies/place/cost.h"
#include "policies/place/pack.h"
#include "rm/policy.h"

enum {
        MAX_PRICES = 4 * 1000 * 1000,
        RESERVE_USEC = 10 * 1000,
};

static int refine(const struct problem *problem, const struct deadline *deadline, struct rm_plan *plan) {
        uint32_t *values = calloc((size_t) problem->n_jobs * problem->n_nodes + 1, sizeof(*values));
        struct search_result result = { .bound = INT64_MIN };
        int r;

        if (!values)
                return -ENOMEM;
        result.cost = problem_read_plan(problem, plan, values);
        r = search_run(problem, deadline, values, &result);
        if (r == 0)
                r = problem_write_plan(problem, values, plan);
        if (r == 0) {
                plan->proven = result.bound >= result.cost;
                plan->bound = plan->proven ? result.cost : result.bound;
                (void) snprintf(plan->method, sizeof(plan->method), "message passing, %" PRIu64 " nodes", result.nodes);
        }
        free(values);
        return r;
}

static int distrib_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct deadline deadline = { .run = run, .reserve_usec = RESERVE_USEC };
        struct problem problem;
        struct pack pack;
        int r = pack_init(&pack, snapshot, plan);

        (void) self;
        if (r == 0)
                r = pack_running(&pack, NULL, NULL);
        if (r == 0)
                r = pack_waiting(&pack, true);
        pack_finish(&pack);
        if (r < 0)
                return r;
        (void) snprintf(plan->method, sizeof(plan->method), "packing");
        r = problem_init(&problem, snapshot, plan, MAX_PRICES);
        if (r == 0)
                r = refine(&problem, &deadline, plan);
        problem_finish(&problem);
        (void) glp_free_env();
        return r == -EFBIG ? 0 : r;
}

RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
const struct rm_policy_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_policy_plugin),
                .name = "distrib",
                .kind = RM_POLICY_KIND,
                .kind_abi = RM_POLICY_ABI,
                .description = "fewest nodes for each job on the least penalised nodes, by integer programming (Reghenzani 2016)",
        },
        .place = distrib_place,
};
