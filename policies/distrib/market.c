#include "policies/distrib/market.h"

#include <glpk.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
        MAX_COLUMNS = 30000,
        KNOWN = 1 << 17, /* entries of the table of columns */
        MAX_PRICES = 50000,
        MAX_PIVOTS = 20000,
        MOST_IDLE = 60,  /* turns without a better bound, until it ends */
        PATIENCE = 4,    /* turns without a better bound, until prices are to be nearer */
        NARROWEST = 50,  /* but not nearer than one part in so many of what is near at first */
};

static const double close_enough = 5e-6; /* of the bound, is what the program promises */
static const double first_reach = 0.002; /* of what a job pays */
static const double kept = 0.3;          /* of a promise, is enough to reach further */
static const double wider = 1.5, narrower = 0.9;

struct market {
        struct pieces *pieces;
        struct pieces_listener listener;
        glp_prob *lp; /* rows: treads, stairs, prices as they were wanted first */
        glp_smcp simplex;
        int *row_of; /* each price; 0: none yet */
        uint32_t *price_of; /* each row after those of treads and stairs */
        int *column_of;     /* each of these rows: of what is missing; what is too much follows */
        uint32_t n_price_rows;
        uint64_t *known; /* hashes of columns; 0: free */
        uint32_t n_added;
        int *indices;
        double *coefficients;
        struct arena arena;
};

static uint64_t mix(uint64_t hash, uint64_t value) {
        hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
        return hash ^ (hash >> 29);
}

/* Remembers it. Two that are taken for one do no harm: one of them is missing. */
static bool is_known(struct market *market, uint64_t hash) {
        uint32_t i = (uint32_t) (hash >> 40) % KNOWN;

        hash += hash == 0;
        while (market->known[i] != 0 && market->known[i] != hash)
                i = (i + 1) % KNOWN;
        if (market->known[i] == hash)
                return true;
        market->known[i] = hash;
        return false;
}

static double unscaled(const struct market *market, int64_t price) {
        return ldexp((double) price, -market->pieces->shift);
}

static uint32_t tread_of(const struct pieces *pieces, uint32_t price) {
        uint32_t low = 0, high = pieces->stairs->n_treads;

        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;

                if (pieces->first[middle] <= price)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

/* A row for the price; what is missing can be had elsewhere, and what is too much be sold, at prices that set_box() sets. */
static int row_of_price(struct market *market, uint32_t price) {
        int row = market->row_of[price], columns, indices[2] = { 0 };
        double one[2] = { 0, 1 };

        if (row > 0)
                return row;
        market->row_of[price] = row = glp_add_rows(market->lp, 1);
        market->column_of[market->n_price_rows] = columns = glp_add_cols(market->lp, 2);
        market->price_of[market->n_price_rows++] = price;
        glp_set_row_bnds(market->lp, row, GLP_FX, 0, 0);
        indices[1] = row;
        for (int i = 0; i < 2; i++, one[1] = -1) {
                glp_set_col_bnds(market->lp, columns + i, GLP_LO, 0, 0);
                glp_set_mat_col(market->lp, columns + i, 1, indices, one);
        }
        return row;
}

/* The program may choose prices that are so close to the best ones known. */
static void set_box(struct market *market, double reach) {
        for (uint32_t i = 0; i < market->n_price_rows; i++) {
                double price = unscaled(market, market->pieces->best_price[market->price_of[i]]);

                glp_set_obj_coef(market->lp, market->column_of[i], price + reach);
                glp_set_obj_coef(market->lp, market->column_of[i] + 1, -fmax(price - reach, 0));
        }
}

static int compare_prices(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return x < y ? -1 : x > y;
}

/* Of a tread or stair, with `sign` for each piece. */
static void add_column(struct market *market, int owner, double sign, double cost, uint32_t *prices, uint32_t n) {
        uint64_t hash = mix(1, (uint64_t) owner);
        int length = 0, column;

        qsort(prices, n, sizeof(*prices), compare_prices);
        for (uint32_t i = 0; i < n; i++)
                hash = mix(hash, prices[i]);
        if (n == 0 || glp_get_num_cols(market->lp) >= MAX_COLUMNS || is_known(market, hash))
                return;
        for (uint32_t i = 0; i < n; i++)
                if (i > 0 && prices[i] == prices[i - 1])
                        market->coefficients[length] += sign;
                else {
                        market->indices[++length] = row_of_price(market, prices[i]);
                        market->coefficients[length] = sign;
                }
        market->indices[++length] = owner;
        market->coefficients[length] = 1;
        column = glp_add_cols(market->lp, 1);
        glp_set_col_bnds(market->lp, column, GLP_LO, 0, 0);
        glp_set_obj_coef(market->lp, column, cost);
        glp_set_mat_col(market->lp, column, length, market->indices, market->coefficients);
        market->n_added++;
}

static void note_bought(void *context, uint32_t tread, uint32_t *prices, uint32_t n) {
        add_column(context, (int) tread + 1, -1, 0, prices, n);
}

static void note_sold(void *context, uint32_t stair, uint32_t *prices, uint32_t n) {
        struct market *market = context;
        const struct pieces *pieces = market->pieces;
        const struct staircase *stairs = pieces->stairs;
        double cost = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t tread = tread_of(pieces, prices[i]);
                int64_t ranks = (int64_t) (prices[i] - pieces->first[tread]);

                cost += (double) (stairs->treads[tread].priority * (stairs->stairs[stair].penalty * ranks + pieces->weight));
        }
        add_column(market, (int) (stairs->n_treads + stair) + 1, 1, cost, prices, n);
}

struct market *market_create(struct pieces *pieces) {
        const struct staircase *stairs = pieces->stairs;
        struct market *market = calloc(1, sizeof(*market));
        size_t most;

        if (!market)
                return NULL;
        market->pieces = pieces;
        market->listener = (struct pieces_listener) { market, note_bought, note_sold };
        most = (pieces->most_ranks > pieces->most_cores ? pieces->most_ranks : pieces->most_cores) + 3ul;
        market->row_of = arena_alloc(&market->arena, pieces->n_prices, sizeof(*market->row_of));
        market->price_of = arena_alloc(&market->arena, pieces->n_prices, sizeof(*market->price_of));
        market->column_of = arena_alloc(&market->arena, pieces->n_prices, sizeof(*market->column_of));
        market->known = arena_alloc(&market->arena, KNOWN, sizeof(*market->known));
        market->indices = arena_alloc(&market->arena, most, sizeof(*market->indices));
        market->coefficients = arena_alloc(&market->arena, most, sizeof(*market->coefficients));
        if (market->arena.failed || pieces->n_prices > MAX_PRICES || pieces->homes.n_sites > 0) {
                market_destroy(market);
                return NULL;
        }
        (void) glp_term_out(GLP_OFF);
        market->lp = glp_create_prob();
        glp_init_smcp(&market->simplex);
        market->simplex.msg_lev = GLP_MSG_OFF;
        market->simplex.it_lim = MAX_PIVOTS;
        market->simplex.pricing = GLP_PT_STD;
        glp_set_obj_dir(market->lp, GLP_MIN);
        glp_add_rows(market->lp, (int) (stairs->n_treads + stairs->n_stairs));
        for (uint32_t t = 0; t < stairs->n_treads; t++)
                glp_set_row_bnds(market->lp, (int) t + 1, GLP_FX, 1, 1);
        for (uint32_t i = 0; i < stairs->n_stairs; i++)
                glp_set_row_bnds(market->lp, (int) (stairs->n_treads + i) + 1, GLP_UP, 0, stairs->stairs[i].nodes);
        pieces->listener = &market->listener;
        return market;
}

void market_destroy(struct market *market) {
        if (!market)
                return;
        if (market->pieces->listener == &market->listener)
                market->pieces->listener = NULL;
        if (market->lp)
                glp_delete_prob(market->lp);
        arena_finish(&market->arena);
        free(market);
}

static bool solve(struct market *market) {
        int r = glp_simplex(market->lp, &market->simplex);

        if (r != 0 && r != GLP_EITLIM && r != GLP_ETMLIM) {
                glp_std_basis(market->lp);
                r = glp_simplex(market->lp, &market->simplex);
        }
        return r == 0 && glp_get_status(market->lp) == GLP_OPT;
}

/* Those of the program, the best ones where it has none. */
static void set_prices(struct market *market) {
        struct pieces *pieces = market->pieces;
        int first = (int) (pieces->stairs->n_treads + pieces->stairs->n_stairs) + 1;

        memcpy(pieces->price, pieces->best_price, sizeof(*pieces->price) * pieces->n_prices);
        for (uint32_t i = 0; i < market->n_price_rows; i++) {
                double price = ldexp(glp_get_row_dual(market->lp, first + (int) i), pieces->shift);

                pieces->price[market->price_of[i]] = (int32_t) fmin(fmax(price, 0), pieces->most_price - 1);
        }
}

/* How near the best prices the program chooses. */
struct reach {
        double first, now; /* of a price, unscaled */
        int idle;          /* turns without a better bound */
};

/* The program has promised `promise` more than was known, and `gain` is what became of it. */
static void adapt(struct reach *reach, const struct market *market, double promise, double gain) {
        reach->idle = gain > 0 ? 0 : reach->idle + 1;
        if (gain > kept * promise || market->n_added == 0)
                reach->now *= wider;
        else if (-gain > promise || reach->idle > PATIENCE)
                reach->now *= narrower;
        reach->now = fmax(reach->now, reach->first / NARROWEST);
}

int64_t market_raise(struct market *market, const struct deadline *deadline, int64_t until_usec) {
        struct pieces *pieces = market->pieces;
        struct reach reach = { .first = unscaled(market, pieces->best) * first_reach / pieces->stairs->n_treads };

        reach.now = reach.first;
        for (int64_t left; reach.idle < MOST_IDLE && (left = deadline_left_usec(deadline) - until_usec) > 0;) {
                double best = unscaled(market, pieces->best), promise;

                set_box(market, reach.now);
                market->simplex.tm_lim = left / 1000 < INT_MAX ? (int) (left / 1000) + 1 : INT_MAX;
                if (!solve(market))
                        break;
                promise = glp_get_obj_val(market->lp) - best;
                if (promise < close_enough * best && reach.now >= reach.first)
                        break;
                set_prices(market);
                market->n_added = 0;
                adapt(&reach, market, promise, unscaled(market, pieces_look(pieces)) - best);
        }
        return pieces_known(pieces);
}
