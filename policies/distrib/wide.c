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
#include "policies/distrib/ejection.h"
#include "policies/distrib/hall.h"
#include "policies/distrib/hull.h"
#include "policies/distrib/market.h"
#include "policies/distrib/merge.h"
#include "policies/distrib/pieces.h"
#include "policies/distrib/rankwise.h"
#include "policies/distrib/refit.h"
#include "policies/distrib/wishes.h"

enum {
        HULL_STEPS = 4000,
        LEAST_STEPS = 2,  /* so many are better than none */
        FEW_STEPS = 100,  /* to begin with, where another bound follows */
        MANY_STEPS = 600, /* of the bound by pieces, where linear programming follows, */
        MARKET_PART = 2,  /* which takes one part in so many of the time left at most */
        SHARING = 2,      /* jobs have that much ranks, for a core of the largest node, where nodes are shared */
        STEPS = 20,       /* of the bound by pieces, between two looks at the plan */
        ROUNDS = 16,      /* of refitting, the same */
        CLOSE = 20000,    /* a gap of one in so many is close enough */
        PLACE_USEC = 50,  /* of one method, for each place that jobs have, before it is the other's turn */
        DEARER = 100,     /* a plan out of prices may be one part in so many dearer, to begin with */
        LONG_PLACE_USEC = 2500,
        IDLE_TURNS = 3,   /* without a gain */
        WALKS = 24,       /* that are merged, at once */
        WALK_USEC = 5000, /* of the first ones */
        VAIN_PART = 4,    /* walks may take one part in so many of the time without a gain */
        WALKS_LEAVE = 3,  /* one part in so many of the time left, at least, for merging */
        MERGE_USEC = 3,   /* for each two jobs, is the least that is worth it */
        MERGE_PART = 3,   /* merging takes at most that much longer than the walks did, */
        MERGE_LEAVES = 5, /* and leaves one part in so many of the time */
        REST = 10,        /* one part in so many of it is for walks from the best plan on */
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
        struct merge *merge; /* NULL where nothing is merged */
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

/* Are prices of pieces by linear programming worth it, and walks with a hall? */
static bool uses_market(const struct wide *wide) {
        return wide->pieces && shares_nodes(wide) && hall_applies(wide->pieces, wide->snapshot);
}

/* Steps by themselves get stuck: the rest by linear programming, which begins with what was bought and sold last. What is bought and
 * sold at last is what plans are merged with. */
static void raise_pieces_by_market(struct wide *wide) {
        struct market *market;

        raise_pieces(wide, 3, MANY_STEPS);
        if (!is_open(wide))
                return;
        market = market_create(wide->pieces);
        raise_pieces(wide, 3, market ? STEPS : UINT32_MAX);
        if (market && is_open(wide)) {
                know_bound(wide, market_raise(market, wide->deadline,
                                              wide->until_usec + left_usec(wide) - left_usec(wide) / MARKET_PART));
                wide->merge = merge_create(wide->pieces, wide->snapshot);
                if (wide->merge)
                        market_list_used(market, merge_ledger(wide->merge));
        }
        market_destroy(market);
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
        if (uses_market(wide))
                raise_pieces_by_market(wide);
        else if (wide->pieces && (shared || is_particular(wide)))
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

        if (uses_market(wide)) /* a walk with a hall needs no better plan to begin with */
                return r;
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

static void adopt(struct wide *wide, const int32_t *nodes, int64_t cost) {
        if (cost >= wide->result->cost)
                return;
        rankwise_write(&wide->relaxation, nodes, wide->plan);
        wide->result->cost = cost;
}

/* Returns what the plan costs. */
static int64_t walk(struct wide *wide, struct hall *hall, int64_t usec) {
        int64_t until_usec = wide->until_usec + left_usec(wide) / WALKS_LEAVE;
        int64_t cost = hall_walk(hall, wide->deadline, until_usec, usec, wide->seed++);

        merge_add(wide->merge, hall_nodes(hall), cost);
        adopt(wide, hall_nodes(hall), cost);
        return cost;
}

/* Some walks, twice as long after each that leads nowhere. Returns how long they shall be from now on. */
static int64_t walk_some(struct wide *wide, struct hall *hall, int64_t first_cost, int64_t usec) {
        int64_t begin = left_usec(wide), enough = begin / WALKS_LEAVE;

        for (int i = 0; i < WALKS && left_usec(wide) > enough; i++) {
                if (walk(wide, hall, usec) >= first_cost)
                        usec *= 2;
                if (wide->result->cost == first_cost && begin - left_usec(wide) > begin / VAIN_PART)
                        break;
        }
        return usec;
}

/* What can be made of all plans so far, where the last walks took so long. */
static void merge(struct wide *wide, int64_t walked_usec) {
        int64_t usable = left_usec(wide) - left_usec(wide) / MERGE_LEAVES, cost;
        const int32_t *nodes = merge_solve(wide->merge, wide->deadline,
                                           MERGE_PART * walked_usec < usable ? MERGE_PART * walked_usec : usable, &cost);

        if (nodes)
                adopt(wide, nodes, cost);
}

/* What is lost in it here and there. */
static void eject(struct wide *wide, struct ejection *ejection) {
        int64_t gain;
        const int32_t *nodes = ejection_run(ejection, wide->plan, wide->deadline, wide->until_usec, &gain);

        if (!nodes)
                return;
        merge_add(wide->merge, nodes, wide->result->cost - gain);
        adopt(wide, nodes, wide->result->cost - gain);
}

/* Many short walks with a hall, merged; then longer ones. Until little time is left, or as turns() does. */
static void gather(struct wide *wide, struct hall *hall, struct ejection *ejection) {
        int64_t begin = left_usec(wide), gained_at = begin, usec = WALK_USEC, first_cost = wide->result->cost;

        for (int idle = 0; is_open(wide) && left_usec(wide) > begin / REST; usec += usec / 2) {
                int64_t cost = wide->result->cost, turn = left_usec(wide);

                usec = walk_some(wide, hall, first_cost, usec);
                if (wide->result->cost == first_cost)
                        break;
                merge(wide, turn - left_usec(wide));
                if (is_open(wide))
                        eject(wide, ejection);
                if (wide->result->cost < cost) {
                        gained_at = left_usec(wide);
                        idle = 0;
                } else if (++idle >= IDLE_TURNS && gained_at - left_usec(wide) > begin - gained_at)
                        break;
        }
}

/* With a hall: short walks where there is time to merge them, else one long one. */
static void walk_with_hall(struct wide *wide) {
        struct hall *hall = hall_create(wide->pieces, wide->snapshot, left_usec(wide) / 3, wide->plan);
        int64_t n_demands = wide->relaxation.n_demands;
        bool merges = hall && left_usec(wide) > MERGE_USEC * n_demands * n_demands;
        struct ejection *ejection = merges ? ejection_create(wide->pieces, wide->snapshot) : NULL;

        if (ejection)
                gather(wide, hall, ejection);
        else if (hall)
                walk(wide, hall, left_usec(wide));
        ejection_destroy(ejection);
        hall_destroy(hall);
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
        wide->hot = is_particular(wide) || uses_market(wide) ? hot_completed : shared ? hot_shared : hot_alone;
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
        if (r == 0 && wide->merge) {
                walk_with_hall(wide);
                r = cost_plan(wide->snapshot, wide->plan, &wide->result->cost);
        }
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
        merge_destroy(wide.merge);
        wishes_destroy(wide.wishes);
        pieces_destroy(wide.pieces);
        relaxation_finish(&wide.relaxation);
        return r;
}
