#include "policies/distrib/wide.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "placement/cost.h"
#include "placement/relaxation.h"
#include "policies/distrib/complete.h"
#include "policies/distrib/dive.h"
#include "policies/distrib/drift.h"
#include "policies/distrib/pieces.h"

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

/* Of annealing: where it begins at first, how much less where one turn gained nothing, and where it ends, as part of that. */
static const double hot = 0.01, milder = 0.4, cold = 0.02;

struct wide {
        const struct rm_snapshot *snapshot;
        const struct deadline *deadline;
        int64_t until_usec;
        struct relaxation relaxation;
        struct pieces *pieces; /* NULL where they are of no use */
        struct rm_plan *plan;
        struct wide_result *result;
};

static int64_t left_usec(const struct wide *wide) {
        return deadline_left_usec(wide->deadline) - wide->until_usec;
}

static bool is_open(const struct wide *wide) {
        return wide->result->cost - wide->result->bound > wide->result->cost / CLOSE && left_usec(wide) > 0;
}

static void raise_bound(struct wide *wide) {
        int64_t until_usec = wide->until_usec + left_usec(wide) - left_usec(wide) / BOUND_PART;

        wide->pieces = pieces_create(&wide->relaxation, wide->snapshot);
        if (wide->pieces && LEAST_STEPS * pieces_work_usec(wide->pieces) > (double) left_usec(wide) / BOUND_PART) {
                pieces_destroy(wide->pieces);
                wide->pieces = NULL;
        }
        while (wide->pieces && is_open(wide) && !pieces_is_settled(wide->pieces) &&
               deadline_left_usec(wide->deadline) > until_usec) {
                int64_t bound = pieces_raise(wide->pieces, wide->result->cost, wide->deadline, until_usec, STEPS);

                wide->result->bound = bound > wide->result->bound ? bound : wide->result->bound;
        }
}

/* Another plan, as prices tell; `seed`: another one, another plan. It is taken when it costs less. */
static int build(struct wide *wide, uint64_t seed) {
        struct portion *portions = NULL;
        uint32_t n = 0;
        int r = 0;

        if (wide->pieces && dive_work_usec(wide->pieces, wide->snapshot->n_nodes) < (double) left_usec(wide) / DIVE_PART)
                r = dive_run(wide->pieces, wide->snapshot, wide->deadline, wide->until_usec, seed, &portions, &n);
        if (r == 0 && complete_work_usec(wide->snapshot, &wide->relaxation, portions, n) < (double) left_usec(wide) / DIVE_PART)
                r = complete_run(wide->snapshot, &wide->relaxation, portions, n, wide->plan, &wide->result->cost);
        free(portions);
        return r;
}

/* A turn of annealing. `seed`: another one, another walk. */
static int anneal(struct wide *wide, int64_t usec, double heat, uint64_t seed) {
        struct drift *drift = drift_create(wide->snapshot, wide->plan, seed);
        int r = 0;

        if (!drift)
                return 0;
        usec = usec * drift_places(drift);
        if (wide->pieces && drift_prices_work_usec(drift, wide->pieces) < (double) left_usec(wide) / PRICES_PART)
                r = drift_set_prices(drift, wide->pieces);
        if (r == 0 && drift_run(drift, wide->deadline, wide->until_usec, usec, heat, heat * cold) > 0) {
                r = drift_write(drift, wide->plan);
                if (r == 0)
                        r = cost_plan(wide->snapshot, wide->plan, &wide->result->cost);
        }
        drift_destroy(drift);
        return r;
}

/* Ever longer turns; until nothing was gained in some, and for as long as it took to the last gain. */
static int anneal_in_turns(struct wide *wide) {
        int64_t begin = left_usec(wide), gained_at = begin, place_usec = PLACE_USEC, turn_usec = 0;
        double heat = hot;
        int r = 0;

        /* What a turn takes to begin with, the one before tells. */
        for (uint64_t seed = 0, idle = 0; r == 0 && is_open(wide) && left_usec(wide) > turn_usec; seed++, place_usec *= 2) {
                int64_t cost = wide->result->cost, turn_begin = left_usec(wide);

                r = anneal(wide, place_usec, heat, seed);
                turn_usec = (turn_begin - left_usec(wide)) / 2;
                if (wide->result->cost < cost) {
                        gained_at = left_usec(wide);
                        idle = 0;
                        continue;
                }
                heat *= milder;
                if (++idle >= IDLE_TURNS && gained_at - left_usec(wide) > begin - gained_at)
                        break;
        }
        return r;
}

int wide_run(const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec, struct rm_plan *plan,
             struct wide_result *result) {
        struct wide wide = { .snapshot = snapshot, .deadline = deadline, .until_usec = until_usec, .plan = plan, .result = result };
        int r = relaxation_init(&wide.relaxation, snapshot, plan);

        if (r == 0)
                r = cost_plan(snapshot, plan, &result->cost);
        if (r == 0) {
                result->bound = relaxation_bound(&wide.relaxation, snapshot->params.distribution_weight);
                if (is_open(&wide))
                        raise_bound(&wide);
                for (uint64_t seed = 0; r == 0 && seed < DIVES && is_open(&wide); seed++)
                        r = build(&wide, seed);
                if (r == 0)
                        r = anneal_in_turns(&wide);
        }
        pieces_destroy(wide.pieces);
        relaxation_finish(&wide.relaxation);
        return r;
}
