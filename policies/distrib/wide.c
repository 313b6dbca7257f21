#include "policies/distrib/wide.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/relaxation.h"
#include "policies/distrib/complete.h"
#include "policies/distrib/dive.h"
#include "policies/distrib/drift.h"
#include "policies/distrib/hull.h"
#include "policies/distrib/pieces.h"
#include "policies/distrib/refit.h"
#include "policies/distrib/wishes.h"

enum {
        HULL_STEPS = 4000,
        LEAST_STEPS = 2,  /* so many are better than none */
        FEW_STEPS = 100,  /* to begin with, where another bound follows */
        SHARING = 2,      /* jobs have that much ranks, for a core of the largest node, where nodes are shared */
        STEPS = 20,       /* of the bound by pieces, between two looks at the plan */
        ROUNDS = 16,      /* of refitting, the same */
        CLOSE = 20000,    /* a gap of one in so many is close enough */
        PLACE_USEC = 50,  /* of one method, for each place that jobs have, before it is the other's turn */
        DEARER = 100,     /* a plan out of prices may be one part in so many dearer, to begin with */
        LONG_PLACE_USEC = 2500,
        IDLE_TURNS = 3,   /* without a gain */
};

/* Of a walk: where it begins at first, how much less where one gained nothing, and where it ends, as part of that. */
static const double hot_shared = 0.1, hot_alone = 0.003, hot_completed = 0.01, milder = 0.4, cold = 0.02;

/* A way to better plans. */
struct method {
        int64_t usec; /* for one turn */
        double rate;  /* gained in each of them the last time */
};

struct wide {
        const struct rm_snapshot *snapshot;
        const struct deadline *deadline;
        int64_t until_usec;
        struct relaxation relaxation;
        struct hull *hull;
        struct pieces *pieces; /* NULL where they are of no use */
        struct wishes *wishes; /* NULL: it is not known where jobs would rather be */
        struct rm_plan *plan;
        struct method refit, drift;
        int64_t walk_usec; /* that it takes to begin a walk; to end it, a fraction */
        double hot;
        uint64_t seed;
        struct wide_result *result;
};

static int64_t left_usec(const struct wide *wide) {
        return deadline_left_usec(wide->deadline) - wide->until_usec;
}

static bool is_open(const struct wide *wide) {
        return wide->result->cost - wide->result->bound > wide->result->cost / CLOSE && left_usec(wide) > 0;
}

/* ---- the bound ---- */

static void know_bound(struct wide *wide, int64_t bound) {
        if (bound > wide->result->bound)
                wide->result->bound = bound;
}

/* At most one part in `part` of the time left. */
static void raise_pieces(struct wide *wide, int64_t part, uint32_t steps) {
        int64_t until_usec = wide->until_usec + left_usec(wide) - left_usec(wide) / part;

        for (uint32_t i = 0; i < steps && is_open(wide) && !pieces_is_settled(wide->pieces); i += STEPS) {
                if (deadline_left_usec(wide->deadline) <= until_usec)
                        break;
                know_bound(wide, pieces_raise(wide->pieces, wide->result->cost, wide->deadline, until_usec, STEPS));
        }
}

/* Are most jobs so small that several share a node? */
static bool shares_nodes(const struct wide *wide) {
        const struct relaxation *classes = &wide->relaxation;
        uint64_t ranks = 0;
        uint32_t cores = 0;

        for (uint32_t t = 0; t < classes->n_demands; t++)
                ranks += classes->demands[t].ranks;
        for (uint32_t i = 0; i < classes->n_classes; i++)
                cores = classes->classes[i].cores > cores ? classes->classes[i].cores : cores;
        return ranks < (uint64_t) SHARING * cores * classes->n_demands;
}

/* Is there more to know of jobs and nodes than how large they are: who runs where, or groups that are not split? */
static bool is_particular(const struct wide *wide) {
        return wide->pieces && (wide->pieces->has_groups || wide->pieces->homes.n_sites > 0);
}

/* Jobs by themselves first. Where nodes hold pieces of several jobs there is more to be had, and prices for pieces are wanted anyway. */
static void raise_bound(struct wide *wide) {
        int64_t until_usec = wide->until_usec + left_usec(wide) - left_usec(wide) / 6;
        bool shared = shares_nodes(wide);
        int least_steps;

        if (!any_job_runs(wide->snapshot)) /* it knows nothing of moves */
                wide->hull = hull_create(&wide->relaxation, wide->snapshot->params.distribution_weight);
        if (wide->hull)
                know_bound(wide,
                           hull_raise(wide->hull, wide->result->cost, wide->deadline, until_usec, shared ? FEW_STEPS : HULL_STEPS));
        if (!is_open(wide))
                return;
        wide->pieces = pieces_create(&wide->relaxation, wide->snapshot);
        least_steps = is_particular(wide) ? LEAST_STEPS : FEW_STEPS;
        if (wide->pieces && least_steps * pieces_work_usec(wide->pieces) > (double) left_usec(wide) / 3) {
                pieces_destroy(wide->pieces);
                wide->pieces = NULL;
        }
        if (wide->pieces && (shared || is_particular(wide)))
                raise_pieces(wide, 3, UINT32_MAX);
        else if (wide->pieces)
                know_bound(wide, pieces_raise(wide->pieces, wide->result->cost, wide->deadline, wide->until_usec, 1));
}

/* ---- plans ---- */

/* Where jobs are larger than nodes and penalties differ, the order of priorities says it all. */
static bool is_dive_worth_it(const struct wide *wide) {
        return wide->pieces->n_penalties == 1 || shares_nodes(wide);
}

/* All jobs anew, in order, and once more as pieces tell. */
static int begin_refit(struct wide *wide, struct refit *refit) {
        struct portion *portions = NULL;
        uint32_t n = 0;
        int r = refit_all(refit);

        if (r < 0 || !wide->pieces || !refit_is_whole(refit, &wide->relaxation) || !is_dive_worth_it(wide) ||
            dive_work_usec(wide->pieces, wide->snapshot->n_nodes) > (double) left_usec(wide) / 3)
                return r;
        r = dive_run(wide->pieces, wide->snapshot, wide->deadline, wide->until_usec, &portions, &n);
        if (r == 0)
                r = refit_adopt(refit, portions, n, wide->result->cost / DEARER);
        free(portions);
        return r;
}

static int run_refit(struct wide *wide) {
        struct refit *refit = refit_create(wide->snapshot, wide->plan, wide->seed);
        int64_t begin = left_usec(wide), first_cost = wide->result->cost;
        int r = 0;

        if (!refit)
                return 0;
        if (wide->pieces)
                refit_set_worth(refit, wide->pieces);
        else
                refit_set_prices(refit, &wide->relaxation);
        if (wide->seed == 0)
                r = begin_refit(wide, refit);
        if (r == 0 && wide->wishes)
                r = refit_set_wishes(refit, wide->wishes);
        while (r == 0 && is_open(wide) && begin - left_usec(wide) < wide->refit.usec) {
                r = refit_some(refit, wide->deadline, wide->until_usec, first_cost - wide->result->bound, ROUNDS);
                wide->result->cost = first_cost - refit_gain(refit);
        }
        if (r == 0)
                refit_write(refit, wide->plan);
        refit_destroy(refit);
        return r;
}

static int run_drift(struct wide *wide) {
        struct drift *drift = drift_create(wide->snapshot, wide->plan, wide->seed);
        int r = 0;

        if (!drift)
                return 0;
        if (wide->pieces && (is_particular(wide) || is_dive_worth_it(wide)) &&
            drift_prices_work_usec(drift, wide->pieces) < (double) left_usec(wide) / 3)
                r = drift_set_prices(drift, wide->pieces);
        if (r == 0 && drift_run(drift, wide->deadline, wide->until_usec + wide->walk_usec / 4, wide->drift.usec, wide->hot,
                                wide->hot * cold) > 0)
                r = drift_write(drift, wide->plan);
        drift_destroy(drift);
        return r;
}

/* Where refit does not know what to do: another plan, as pieces tell. */
static int complete(struct wide *wide) {
        struct portion *portions = NULL;
        uint32_t n = 0;
        int r = 0;

        if (dive_work_usec(wide->pieces, wide->snapshot->n_nodes) < (double) left_usec(wide) / 2)
                r = dive_run(wide->pieces, wide->snapshot, wide->deadline, wide->until_usec, &portions, &n);
        if (r == 0 && complete_work_usec(wide->snapshot, &wide->relaxation, portions, n) < (double) left_usec(wide) / 3)
                r = complete_run(wide->snapshot, &wide->relaxation, portions, n, wide->plan, &wide->result->cost);
        free(portions);
        return r;
}

/* A turn of one method. */
static int run(struct wide *wide, int (*method_run)(struct wide *), struct method *method) {
        int64_t begin = left_usec(wide), before = wide->result->cost;
        int r = method_run(wide);

        if (r == 0)
                r = cost_plan(wide->snapshot, wide->plan, &wide->result->cost);
        method->rate = (double) (before - wide->result->cost) / (double) (begin - left_usec(wide) + 1);
        return r;
}

/* Where nodes are shared, one long walk is worth more than many short ones. */
static void set_turns(struct wide *wide) {
        int64_t begin = left_usec(wide);
        struct drift *drift = drift_create(wide->snapshot, wide->plan, 0);
        int64_t places = drift ? (int64_t) drift_places(drift) : 0;
        bool shared = shares_nodes(wide);

        drift_destroy(drift);
        wide->walk_usec = begin - left_usec(wide);
        wide->drift.rate = 1; /* as long as it is not known */
        wide->hot = is_particular(wide) ? hot_completed : shared ? hot_shared : hot_alone;
        wide->refit.usec = PLACE_USEC * places;
        wide->drift.usec = (shared ? LONG_PLACE_USEC : PLACE_USEC) * places;
}

/* Where it gained nothing, not before the other one gains nothing either. */
static bool is_drift_worth_it(const struct wide *wide) {
        return left_usec(wide) > 2 * wide->walk_usec && (wide->drift.rate > 0 || wide->refit.rate <= 0);
}

/* In turn; the one that gains more gets more time. Until nothing was gained for some turns, and for as long as it took to the last gain. */
static int turns(struct wide *wide) {
        int64_t begin = left_usec(wide), gained_at = begin;
        int r = 0;

        if (is_particular(wide))
                r = complete(wide);
        set_turns(wide);
        if (wide->pieces && is_open(wide))
                wide->wishes = wishes_create(wide->pieces, wide->snapshot, left_usec(wide) / 5);
        for (int idle = 0; r == 0 && is_open(wide) && left_usec(wide) > 2 * wide->walk_usec; wide->seed++) {
                int64_t cost = wide->result->cost;

                r = run(wide, run_refit, &wide->refit);
                if (r == 0 && is_open(wide) && is_drift_worth_it(wide)) {
                        r = run(wide, run_drift, &wide->drift);
                        if (wide->drift.rate <= 0)
                                wide->hot *= milder;
                }
                if (wide->refit.rate >= wide->drift.rate)
                        wide->refit.usec *= 2;
                if (wide->drift.rate >= wide->refit.rate)
                        wide->drift.usec *= 2;
                if (wide->result->cost < cost) {
                        gained_at = left_usec(wide);
                        idle = 0;
                } else if (++idle >= IDLE_TURNS && gained_at - left_usec(wide) > begin - gained_at)
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
                r = turns(&wide);
        }
        hull_destroy(wide.hull);
        wishes_destroy(wide.wishes);
        pieces_destroy(wide.pieces);
        relaxation_finish(&wide.relaxation);
        return r;
}
