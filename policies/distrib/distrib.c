/*
 * distrib: the integer program of Reghenzani 2016 (section 5.3), in its tight form (distrib.mod),
 * over whole groups, plus what it costs to move groups from where they are. The jobs that wait are
 * chosen before, by priority and age.
 */
#include <errno.h>
#include <glpk.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "placement/memory.h"
#include "placement/pack.h"
#include "policies/distrib/deadline.h"
#include "policies/distrib/dual.h"
#include "policies/distrib/large.h"
#include "policies/distrib/problem.h"
#include "policies/distrib/search.h"
#include "rm/policy.h"

enum {
        MAX_PRICES = 200 * 1000, /* beyond, one pass over all cells takes the time there is */
        MANY_CELLS = 1000,        /* from here on, a plan made for large problems is a good start */
        RESERVE_USEC = 10 * 1000,
};

static void set_answer(struct rm_plan *plan, int64_t cost, int64_t bound) {
        plan->proven = bound >= cost;
        plan->bound = plan->proven ? cost : bound;
}

/* Which way proved it, or helped to; else the ways that were gone. */
static void name_method(const struct search_result *result, struct rm_plan *plan) {
        const char *name = result->by_patterns                          ? "patterns"
                           : result->pattern_nodes > 0 && !plan->proven ? "message passing and patterns"
                                                                        : "message passing";

        (void) snprintf(plan->method, sizeof(plan->method), "%s", name);
        if (result->nodes > 1)
                (void) snprintf(plan->method, sizeof(plan->method), "%s, %" PRIu64 " branches", name, result->nodes);
}

/* Prove the plan, or find a better one, as far as time allows. `bound`: known already. */
static int search(const struct problem *problem, const struct deadline *deadline, int64_t bound, struct rm_plan *plan) {
        uint32_t *values = calloc((size_t) problem->n_jobs * problem->n_nodes + 1, sizeof(*values));
        struct search_result result = { .bound = bound };
        int r;

        if (!values)
                return -ENOMEM;
        result.cost = problem_read_plan(problem, plan, values);
        r = search_run(problem, deadline, values, &result);
        if (r == 0)
                r = problem_write_plan(problem, values, plan);
        if (r == 0) {
                set_answer(plan, result.cost, result.bound);
                name_method(&result, plan);
        }
        free(values);
        return r;
}

static int large(const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec, struct rm_plan *plan) {
        struct large_result result;
        int r = large_run(snapshot, deadline, until_usec, plan, &result);

        if (r == 0) {
                set_answer(plan, result.cost, result.bound);
                (void) snprintf(plan->method, sizeof(plan->method), "repair and annealing, bound by prices");
        }
        return r;
}

static int refine(const struct rm_snapshot *snapshot, const struct deadline *deadline, struct rm_plan *plan) {
        struct problem problem;
        int r = problem_init(&problem, snapshot, plan, MAX_PRICES);

        if (r == -EFBIG || (r == 0 && dual_most_layers(&problem) == 0))
                r = large(snapshot, deadline, 0, plan);
        else if (r == 0) {
                int64_t left = deadline_left_usec(deadline);

                if (problem.n_jobs * problem.n_nodes >= MANY_CELLS)
                        r = large(snapshot, deadline, left - left / 8, plan);
                if (r == 0 && !plan->proven)
                        r = search(&problem, deadline, plan->bound, plan);
        }
        problem_finish(&problem);
        return r;
}

/* The program knows memory only as a limit of each job. Where several jobs together go over it, the
 * answer is the packing, which minds it. The bound holds for that too, since it is on the same jobs
 * and more room. */
static int keep_to_memory(const struct rm_snapshot *snapshot, struct rm_plan *plan) {
        int32_t over;
        int r = memory_find_over(snapshot, plan, &over);

        if (r < 0 || over == RM_NO_NODE)
                return r;
        plan->proven = 0;
        (void) snprintf(plan->method, sizeof(plan->method), "packing, for want of memory");
        return pack_plan(snapshot, plan, true);
}

static int distrib_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct deadline deadline = { .run = run, .reserve_usec = RESERVE_USEC };
        int r = pack_plan(snapshot, plan, true);

        (void) self;
        if (r < 0)
                return r;
        (void) snprintf(plan->method, sizeof(plan->method), "packing");
        if (deadline_left_usec(&deadline) > 0)
                r = refine(snapshot, &deadline, plan);
        if (r == 0)
                r = keep_to_memory(snapshot, plan);
        (void) glp_free_env();
        return r;
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
