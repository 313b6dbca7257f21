#include "policies/distrib/wide.h"

#include <errno.h>
#include <stdbool.h>

#include "policies/distrib/hull.h"
#include "policies/distrib/refit.h"
#include "policies/place/cost.h"
#include "policies/place/staircase.h"

enum {
        FIRST_STEPS = 40, /* of raising the bound, before plans are made by its prices */
        STEPS = 20,       /* and in turn with them */
        ROUNDS = 64,
        CLOSE = 20000,    /* a gap of one in so many is close enough */
        IDLE_TURNS = 400, /* without a gain */
};

struct wide {
        const struct deadline *deadline;
        int64_t until_usec;
        struct staircase staircase;
        struct hull *hull;
        struct refit *refit;
        int64_t first_cost;
        struct wide_result *result;
};

static bool is_open(const struct wide *wide) {
        return wide->result->cost - wide->result->bound > wide->result->cost / CLOSE &&
               deadline_left_usec(wide->deadline) > wide->until_usec;
}

static void raise_bound(struct wide *wide, uint32_t steps) {
        int64_t bound;

        if (!wide->hull)
                return;
        bound = hull_raise(wide->hull, wide->result->cost, wide->deadline, wide->until_usec, steps);
        if (bound > wide->result->bound)
                wide->result->bound = bound;
}

/* Bound and plan in turn: each is what the other goes by. */
static int turns(struct wide *wide) {
        int r = 0;

        if (wide->refit) {
                refit_set_prices(wide->refit, &wide->staircase);
                r = refit_all(wide->refit);
        }
        for (int idle = 0; r == 0 && idle < IDLE_TURNS && is_open(wide); idle++) {
                int64_t cost = wide->result->cost, bound = wide->result->bound;

                if (wide->refit) {
                        r = refit_some(wide->refit, wide->deadline, wide->until_usec, wide->first_cost - bound, ROUNDS);
                        wide->result->cost = wide->first_cost - refit_gain(wide->refit);
                }
                if (idle % 8 == 0) {
                        raise_bound(wide, STEPS);
                        if (wide->refit)
                                refit_set_prices(wide->refit, &wide->staircase);
                }
                if (wide->result->cost < cost || wide->result->bound > bound)
                        idle = 0;
        }
        return r;
}

int wide_run(const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec, struct rm_plan *plan,
             struct wide_result *result) {
        struct wide wide = { .deadline = deadline, .until_usec = until_usec, .result = result };
        int r = staircase_init(&wide.staircase, snapshot, plan);

        if (r == 0)
                r = cost_plan(snapshot, plan, &wide.first_cost);
        if (r == 0) {
                *result = (struct wide_result) { .cost = wide.first_cost,
                                                 .bound = staircase_bound(&wide.staircase, snapshot->params.distribution_weight) };
                wide.hull = hull_create(&wide.staircase, snapshot->params.distribution_weight);
                wide.refit = refit_create(snapshot, plan);
                if (is_open(&wide))
                        raise_bound(&wide, FIRST_STEPS);
                if (is_open(&wide))
                        r = turns(&wide);
                if (r == 0 && wide.refit) {
                        refit_write(wide.refit, plan);
                        r = cost_plan(snapshot, plan, &result->cost);
                }
        }
        hull_destroy(wide.hull);
        refit_destroy(wide.refit);
        staircase_finish(&wide.staircase);
        return r;
}
