#include "policies/distrib/large.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "placement/cost.h"
#include "placement/relaxation.h"
#include "policies/distrib/anneal_large.h"
#include "policies/distrib/dive.h"
#include "policies/distrib/lagrangian.h"
#include "policies/distrib/repair.h"

enum {
        LEAST_STEPS = 2,  /* of the bound: so many are better than none */
        STEPS = 20,       /* between two looks at the clock */
        BOUND_PART = 3,   /* one part in so many of the time left is for the bound, */
        DIVE_PART = 2,    /* the dive takes at most one, */
        PRICES_PART = 3,  /* prices for annealing too */
        DIVES = 2,
        CLOSE = 20000,    /* a gap of one in so many is close enough */
        PLACE_USEC = 50,  /* of annealing, at first, for each place that jobs have */
        IDLE_TURNS = 3,   /* without a gain */
};

/* The temperatures of annealing: the first, the factor where one turn gained nothing, and the last,
 * as part of the first. */
static const double hot = 0.01, milder = 0.4, cold = 0.02;

struct large {
        const struct rm_snapshot *snapshot;
        const struct deadline *deadline;
        int64_t until_usec;
        struct relaxation relaxation;
        struct lagrangian *lagrangian; /* NULL where they are of no use */
        struct rm_plan *plan;
        struct large_result *result;
};

static int64_t left_usec(const struct large *large) {
        return deadline_left_usec(large->deadline) - large->until_usec;
}

static bool is_open(const struct large *large) {
        return large->result->cost - large->result->bound > large->result->cost / CLOSE && left_usec(large) > 0;
}

static void raise_bound(struct large *large) {
        int64_t until_usec = large->until_usec + left_usec(large) - left_usec(large) / BOUND_PART;

        large->lagrangian = lagrangian_create(&large->relaxation, large->snapshot);
        if (large->lagrangian && LEAST_STEPS * lagrangian_work_usec(large->lagrangian) > (double) left_usec(large) / BOUND_PART) {
                lagrangian_destroy(large->lagrangian);
                large->lagrangian = NULL;
        }
        while (large->lagrangian && is_open(large) && !lagrangian_is_settled(large->lagrangian) &&
               deadline_left_usec(large->deadline) > until_usec) {
                int64_t bound = lagrangian_raise(large->lagrangian, large->result->cost, large->deadline, until_usec, STEPS);

                large->result->bound = bound > large->result->bound ? bound : large->result->bound;
        }
}

/* Another plan, as prices tell; `seed`: another one, another plan. It is taken when it costs
 * less. */
static int build(struct large *large, uint64_t seed) {
        struct portion *portions = NULL;
        uint32_t n = 0;
        int r = 0;

        if (large->lagrangian &&
            dive_work_usec(large->lagrangian, large->snapshot->n_nodes) < (double) left_usec(large) / DIVE_PART)
                r = dive_run(large->lagrangian, large->snapshot, large->deadline, large->until_usec, seed, &portions, &n);
        if (r == 0 && repair_work_usec(large->snapshot, &large->relaxation, portions, n) < (double) left_usec(large) / DIVE_PART)
                r = repair_run(large->snapshot, &large->relaxation, portions, n, large->plan, &large->result->cost);
        free(portions);
        return r;
}

/* A turn of annealing. `seed`: another one, another walk. */
static int anneal(struct large *large, int64_t usec, double heat, uint64_t seed) {
        struct anneal_large *anneal = anneal_large_create(large->snapshot, large->plan, seed);
        int r = 0;

        if (!anneal)
                return 0;
        usec = usec * anneal_large_places(anneal);
        if (large->lagrangian && anneal_large_prices_work_usec(anneal, large->lagrangian) < (double) left_usec(large) / PRICES_PART)
                r = anneal_large_set_prices(anneal, large->lagrangian);
        if (r == 0 && anneal_large_run(anneal, large->deadline, large->until_usec, usec, heat, heat * cold) > 0) {
                r = anneal_large_write(anneal, large->plan);
                if (r == 0)
                        r = cost_plan(large->snapshot, large->plan, &large->result->cost);
        }
        anneal_large_destroy(anneal);
        return r;
}

/* Ever longer turns; until nothing was gained in some, and for as long as it took to the last
 * gain. */
static int anneal_in_turns(struct large *large) {
        int64_t begin = left_usec(large), gained_at = begin, place_usec = PLACE_USEC, turn_usec = 0;
        double heat = hot;
        int r = 0;

        /* The time of the first turn is unknown; afterwards the one before tells. */
        for (uint64_t seed = 0, idle = 0; r == 0 && is_open(large) && left_usec(large) > turn_usec; seed++, place_usec *= 2) {
                int64_t cost = large->result->cost, turn_begin = left_usec(large);

                r = anneal(large, place_usec, heat, seed);
                turn_usec = (turn_begin - left_usec(large)) / 2;
                if (large->result->cost < cost) {
                        gained_at = left_usec(large);
                        idle = 0;
                        continue;
                }
                heat *= milder;
                if (++idle >= IDLE_TURNS && gained_at - left_usec(large) > begin - gained_at)
                        break;
        }
        return r;
}

int large_run(const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec, struct rm_plan *plan,
              struct large_result *result) {
        struct large large = {
                .snapshot = snapshot, .deadline = deadline, .until_usec = until_usec, .plan = plan, .result = result
        };
        int r = relaxation_init(&large.relaxation, snapshot, plan);

        if (r == 0)
                r = cost_plan(snapshot, plan, &result->cost);
        if (r == 0) {
                result->bound = relaxation_bound(&large.relaxation, snapshot->params.distribution_weight);
                if (is_open(&large))
                        raise_bound(&large);
                for (uint64_t seed = 0; r == 0 && seed < DIVES && is_open(&large); seed++)
                        r = build(&large, seed);
                if (r == 0)
                        r = anneal_in_turns(&large);
        }
        lagrangian_destroy(large.lagrangian);
        relaxation_finish(&large.relaxation);
        return r;
}
