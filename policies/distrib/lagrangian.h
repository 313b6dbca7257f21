/*
 * A bound for large problems by Lagrangian relaxation, and what plans are made by. A job buys
 * pieces, so many of its ranks together on one node, at a price for each size; a node sells the
 * pieces that gain it the most. A price rises where more is bought than sold, by steps along the
 * subgradient. In whole numbers. Where a job runs already, a piece costs less by the moves that it
 * saves, so such nodes sell each for itself.
 */
#ifndef RM_POLICIES_DISTRIB_LAGRANGIAN_H
#define RM_POLICIES_DISTRIB_LAGRANGIAN_H

#include <stdbool.h>

#include "placement/relaxation.h"
#include "policies/distrib/arena.h"
#include "policies/distrib/deadline.h"
#include "policies/distrib/homes.h"

/*
 * Jobs of one priority, which are demands one after another: to a node a piece of one is as good as
 * one of another, so these have the same prices. A node may sell several to a job that way, which
 * costs no less than one piece of their ranks: the bound stays one.
 */
struct kind {
        uint32_t first, end; /* demands */
        uint32_t largest;    /* piece of any of them */
        uint32_t most;       /* demand: it has the most ranks now */
};

/* Fields are the interface, to be read only but by dive.c, which uses up `nodes`, `ranks` and
 * sites. Prices and sums of them are scaled by 2^shift. */
struct lagrangian {
        const struct relaxation *classes;
        int64_t weight;
        int shift;
        uint32_t most_cores, most_ranks, n_penalties;
        int32_t most_price; /* of sizes that no groups make up */
        bool has_groups; /* of several ranks */
        int64_t *penalties;
        uint32_t *penalty_of; /* each class: index into penalties */
        uint32_t *nodes; /* each class: how many there are on which no job runs */
        uint32_t *empty; /* the same, to go back to */
        uint32_t *ranks; /* each demand: how many there are */
        uint32_t *largest; /* each demand: its largest piece */
        uint32_t *group_size; /* each demand: ranks in a full group */
        struct kind *kinds;
        uint32_t n_kinds;
        size_t *first; /* each demand: price[first + x] is that of a piece of x ranks; the same for all of a kind */
        size_t n_prices;
        int32_t *price, *best_price;
        int32_t *over; /* as price: wanted less sold */
        float *direction; /* as price */
        int64_t best;
        int32_t *worth, *best_worth; /* penalties x (most_cores + 1): what a node gains by its cores */
        int32_t *least; /* of so many ranks of a job */
        int32_t *group_price, *group_least; /* the same by full groups, of the job in hand */
        int32_t *value; /* of a piece to a node */
        int32_t *gain; /* (demands + homes of a site + 1) x (most_cores + 1) */
        int32_t *single, *several; /* kinds x (most_cores + 1): of one piece to a node, and of as many as it likes */
        int32_t *doubled;
        uint32_t *order; /* kinds of the rows of gain */
        struct homes homes;
        bool *is_open; /* each site of homes: is it there? */
        int32_t *site_worth; /* what it gains by its cores */
        uint32_t *sold; /* indices of the prices of what it sells: */
        uint32_t *first_sold, *n_sold; /* which of them are whose */
        uint32_t *class_sold; /* by a node on which no job runs */
        double length;
        int idle;
        struct arena arena;
};

/* Prices begin at those of the relaxation. Groups are not split, so some sizes are never
 * bought or sold. Both are borrowed. NULL: no memory, or more than this is made for. */
struct lagrangian *lagrangian_create(const struct relaxation *relaxation, const struct rm_snapshot *snapshot);
void lagrangian_destroy(struct lagrangian *lagrangian); /* NULL ok */

/* `cost`: of the best plan known. At most `steps`, fewer when time is over before `until_usec` are
 * left. Returns the bound: no plan costs less. */
int64_t lagrangian_raise(struct lagrangian *lagrangian, int64_t cost, const struct deadline *deadline, int64_t until_usec,
                         uint32_t steps);

/* More steps would gain nothing worth the time. */
bool lagrangian_is_settled(const struct lagrangian *lagrangian);

/* About how long an evaluation takes. */
double lagrangian_work_usec(const struct lagrangian *lagrangian);

/* The value of a node by its free cores, scaled, most_cores + 1 entries; NULL: there are no such
 * nodes. */
const int32_t *lagrangian_best_worth(const struct lagrangian *lagrangian, int64_t penalty);

/* Sites x (most_cores + 1): what a site gains by its cores at the prices now. */
void lagrangian_list_site_worth(struct lagrangian *lagrangian, int32_t *ret_worth);

/* ---- for dive.c and anneal.c ---- */

/* All nodes and ranks are there again, and the best prices. */
void lagrangian_restart(struct lagrangian *lagrangian);

/* The bound for what `nodes` and `ranks` say, at the prices now, and in `over` what is wanted and
 * not sold. */
int64_t lagrangian_evaluate(struct lagrangian *lagrangian);
/* A step up from there. `slack`: how much there may be to gain. */
void lagrangian_step(struct lagrangian *lagrangian, int64_t slack, double length);
/* Can x ranks be groups, where `left` are left of the job? The smaller last one is there only
 * once. */
static inline bool lagrangian_is_possible(const struct lagrangian *lagrangian, uint32_t demand, uint32_t left, uint32_t x) {
        uint32_t size = lagrangian->group_size[demand];

        return size == 1 || x % size == 0 || x % size == left % size;
}

/* least[m] for m up to `ranks`: the least that m ranks of the demand cost at the prices now. */
void lagrangian_cut(const struct lagrangian *lagrangian, uint32_t demand, uint32_t ranks, int32_t *least);
/* The cost of any piece of the demand on such a node, and of each rank of it besides; scaled.
 * False: more than the method is made for. */
bool lagrangian_cost(const struct lagrangian *lagrangian, uint32_t demand, int64_t penalty, int32_t *ret_fixed, int32_t *ret_each);
/* to[c]: the most of from[c], and of from[c - x] + value[x]. */
void lagrangian_choose(const int32_t *from, int32_t *to, const int32_t *value, uint32_t largest, uint32_t cores);

#endif
