#include "policies/distrib/market.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
        MAX_PIVOTS = 20000,
        MOST_IDLE = 60,  /* turns without a better bound, until it ends */
        PATIENCE = 4,    /* turns without a better bound, until prices are to be nearer */
        NARROWEST = 50,  /* but not nearer than one part in so many of what is near at first */
};

static const double close_enough = 5e-6; /* of the bound, is what the program promises */
static const double first_reach = 0.002; /* of what a job pays */
static const double kept = 0.3;          /* of a promise, is enough to reach further */
static const double wider = 1.5, narrower = 0.9;
static const double used = 1e-6; /* less of a column is none */

struct market {
        struct pieces *pieces;
        struct pieces_listener listener;
        struct ledger ledger;
        glp_smcp simplex;
        int *column_of; /* each row of a price: of what is missing; what is too much follows */
        uint32_t n_boxed; /* rows of prices that have these columns */
        struct arena arena;
};

static double unscaled(const struct market *market, int64_t price) {
        return ldexp((double) price, -market->pieces->shift);
}

/* What is missing can be had elsewhere, and what is too much be sold, at prices that set_box() sets. */
static void box_rows(struct market *market) {
        struct ledger *ledger = &market->ledger;

        for (; market->n_boxed < ledger->n_row_prices; market->n_boxed++) {
                int columns = glp_add_cols(ledger->lp, 2), indices[2] = { 0, ledger->row_of[ledger->row_price[market->n_boxed]] };
                double one[2] = { 0, 1 };

                market->column_of[market->n_boxed] = columns;
                for (int i = 0; i < 2; i++, one[1] = -1) {
                        glp_set_col_bnds(ledger->lp, columns + i, GLP_LO, 0, 0);
                        glp_set_mat_col(ledger->lp, columns + i, 1, indices, one);
                }
                /* until now all of it was missing, or too much */
                glp_set_row_stat(ledger->lp, indices[1], GLP_NS);
                if (ledger_first_is_sale(ledger, ledger->row_price[market->n_boxed]))
                        columns++;
                glp_set_col_stat(ledger->lp, columns, GLP_BS);
        }
}

/* What nobody buys is worth the least there is in the box, what nobody sells has to be had elsewhere. */
static double one_sided_cost(const struct market *market, const struct entry *entry, double reach) {
        const struct pieces *pieces = market->pieces;
        double cost = 0;

        for (uint32_t i = 0; i < entry->n; i++) {
                double price = unscaled(market, pieces->best_price[entry->prices[i]]);

                if (market->ledger.row_of[entry->prices[i]] == 0)
                        cost += entry->is_sale ? -fmax(price - reach, 0) : price + reach;
        }
        return cost;
}

/* The program may choose prices that are so close to the best ones known. */
static void set_box(struct market *market, double reach) {
        struct ledger *ledger = &market->ledger;

        box_rows(market);
        for (uint32_t i = 0; i < market->n_boxed; i++) {
                double price = unscaled(market, market->pieces->best_price[ledger->row_price[i]]);

                glp_set_obj_coef(ledger->lp, market->column_of[i], price + reach);
                glp_set_obj_coef(ledger->lp, market->column_of[i] + 1, -fmax(price - reach, 0));
        }
        for (uint32_t i = 0; i < ledger->n_entries; i++) {
                const struct entry *entry = &ledger->entries[i];

                glp_set_obj_coef(ledger->lp, entry->column, entry->cost + one_sided_cost(market, entry, reach));
        }
}

static void note_bought(void *context, uint32_t demand, uint32_t *prices, uint32_t n) {
        (void) ledger_buy(&((struct market *) context)->ledger, demand, prices, n);
}

static void note_sold(void *context, uint32_t class, uint32_t *prices, uint32_t n) {
        (void) ledger_sell(&((struct market *) context)->ledger, class, prices, n);
}

struct market *market_create(struct pieces *pieces) {
        struct market *market = calloc(1, sizeof(*market));

        if (!market)
                return NULL;
        market->pieces = pieces;
        market->listener = (struct pieces_listener) { market, note_bought, note_sold };
        market->column_of = arena_alloc(&market->arena, pieces->n_prices, sizeof(*market->column_of));
        if (!ledger_init(&market->ledger, pieces) || market->arena.failed) {
                market_destroy(market);
                return NULL;
        }
        glp_init_smcp(&market->simplex);
        market->simplex.msg_lev = GLP_MSG_OFF;
        market->simplex.it_lim = MAX_PIVOTS;
        market->simplex.pricing = GLP_PT_STD;
        pieces->listener = &market->listener;
        return market;
}

void market_destroy(struct market *market) {
        if (!market)
                return;
        if (market->pieces->listener == &market->listener)
                market->pieces->listener = NULL;
        ledger_finish(&market->ledger);
        arena_finish(&market->arena);
        free(market);
}

static bool solve(struct market *market) {
        int r = glp_simplex(market->ledger.lp, &market->simplex);

        if (r != 0 && r != GLP_EITLIM && r != GLP_ETMLIM) {
                glp_std_basis(market->ledger.lp);
                r = glp_simplex(market->ledger.lp, &market->simplex);
        }
        return r == 0 && glp_get_status(market->ledger.lp) == GLP_OPT;
}

static uint32_t n_one_sided(const struct ledger *ledger, const struct entry *entry) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < entry->n; i++)
                n += ledger->row_of[entry->prices[i]] == 0;
        return n;
}

/* The price of what is only bought, or only sold: as near the best one as this column lets it be. */
static void set_one_sided_price(struct market *market, const struct entry *entry, uint32_t price, int32_t off) {
        struct pieces *pieces = market->pieces;
        int32_t best = pieces->best_price[price], *now = &pieces->price[price];

        if (entry->is_sale && best - off < *now)
                *now = best > off ? best - off : 0;
        if (!entry->is_sale && best + off > *now)
                *now = off < pieces->most_price - best ? best + off : pieces->most_price - 1;
}

/* Those of the program; where it has none, as near the best ones as its columns let them be. */
static void set_prices(struct market *market, double reach) {
        const struct ledger *ledger = &market->ledger;
        struct pieces *pieces = market->pieces;

        memcpy(pieces->price, pieces->best_price, sizeof(*pieces->price) * pieces->n_prices);
        for (uint32_t i = 0; i < ledger->n_entries; i++) {
                const struct entry *entry = &ledger->entries[i];
                uint32_t n = n_one_sided(ledger, entry); /* which share what the column has left */
                double off = n > 0 ? ldexp(reach - glp_get_col_dual(ledger->lp, entry->column) / n, pieces->shift) : 0;

                for (uint32_t k = 0; k < entry->n && off > 0; k++)
                        if (ledger->row_of[entry->prices[k]] == 0)
                                set_one_sided_price(market, entry, entry->prices[k], (int32_t) fmin(off, pieces->most_price));
        }
        for (uint32_t i = 0; i < ledger->n_row_prices; i++) {
                double price = ldexp(glp_get_row_dual(ledger->lp, ledger->row_of[ledger->row_price[i]]), pieces->shift);

                pieces->price[ledger->row_price[i]] = (int32_t) fmin(fmax(price, 0), pieces->most_price - 1);
        }
}

/* How near the best prices the program chooses. */
struct reach {
        double first, now; /* of a price, unscaled */
        int idle;          /* turns without a better bound */
};

/* The program has promised `promise` more than was known, and `gain` is what became of it. */
static void adapt(struct reach *reach, bool is_new, double promise, double gain) {
        reach->idle = gain > 0 ? 0 : reach->idle + 1;
        if (gain > kept * promise || !is_new)
                reach->now *= wider;
        else if (-gain > promise || reach->idle > PATIENCE)
                reach->now *= narrower;
        reach->now = fmax(reach->now, reach->first / NARROWEST);
}

int64_t market_raise(struct market *market, const struct deadline *deadline, int64_t until_usec) {
        struct pieces *pieces = market->pieces;
        struct reach reach = { .first = unscaled(market, pieces->best) * first_reach / pieces->classes->n_demands };

        reach.now = reach.first;
        for (int64_t left; reach.idle < MOST_IDLE && (left = deadline_left_usec(deadline) - until_usec) > 0;) {
                double best = unscaled(market, pieces->best), promise, gain;
                uint32_t n_entries = market->ledger.n_entries;

                set_box(market, reach.now);
                market->simplex.tm_lim = left / 1000 < INT_MAX ? (int) (left / 1000) + 1 : INT_MAX;
                if (!solve(market))
                        break;
                promise = glp_get_obj_val(market->ledger.lp) - best;
                if (promise < close_enough * best && reach.now >= reach.first)
                        break;
                set_prices(market, reach.now);
                gain = unscaled(market, pieces_look(pieces)) - best;
                adapt(&reach, market->ledger.n_entries > n_entries, promise, gain);
        }
        return pieces_known(pieces);
}

void market_list_used(const struct market *market, struct ledger *ledger) {
        for (uint32_t i = 0; i < market->ledger.n_entries; i++)
                if (glp_get_col_prim(market->ledger.lp, market->ledger.entries[i].column) > used)
                        (void) ledger_add(ledger, &market->ledger.entries[i]);
}
