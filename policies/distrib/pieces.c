#include "policies/distrib/pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
        MAX_CORES = 1024,
        MAX_RANKS = 1024 * 1024, /* of a job */
        MOST_SHIFT = 12,
        LEAST_SHIFT = 3,
        PATIENCE = 40, /* steps without a gain until the step gets shorter */
};

static const double momentum = 0.7, first_length = 0.1, longest = 0.2, shorter = 0.6, shortest = 0.0005;
/* Of an addition in a dynamic programme. */
static const double addition_usec = 0.0002;

/* ---- making ---- */

static void list_penalties(struct pieces *pieces) {
        const struct staircase *stairs = pieces->stairs;

        for (uint32_t i = 0; i < stairs->n_stairs; i++) {
                uint32_t k = 0;

                while (k < pieces->n_penalties && pieces->penalties[k] != stairs->stairs[i].penalty)
                        k++;
                if (k == pieces->n_penalties)
                        pieces->penalties[pieces->n_penalties++] = stairs->stairs[i].penalty;
                pieces->penalty_of[i] = k;
                pieces->nodes[i] = stairs->stairs[i].nodes;
        }
}

static void list_sizes(struct pieces *pieces) {
        const struct staircase *stairs = pieces->stairs;

        for (uint32_t i = 0; i < stairs->n_stairs; i++)
                if (stairs->stairs[i].cores > pieces->most_cores)
                        pieces->most_cores = stairs->stairs[i].cores;
        for (uint32_t t = 0; t < stairs->n_treads; t++) {
                uint32_t ranks = stairs->treads[t].ranks;

                pieces->ranks[t] = ranks;
                pieces->largest[t] = ranks < pieces->most_cores ? ranks : pieces->most_cores;
                pieces->first[t] = pieces->n_prices;
                pieces->n_prices += pieces->largest[t] + 1u;
                pieces->most_ranks = ranks > pieces->most_ranks ? ranks : pieces->most_ranks;
        }
}

/* By the staircase: a piece costs what it does on the node where that is least. Unscaled, into `ret_price`; returns the highest. */
static double first_prices(const struct pieces *pieces, double *ret_price) {
        const struct staircase *stairs = pieces->stairs;
        double highest = 0;
        double each[MAX_CORES + 2];

        for (uint32_t t = 0; t < stairs->n_treads; t++) {
                double priority = (double) stairs->treads[t].priority;

                for (uint32_t x = 0; x <= pieces->most_cores + 1; x++)
                        each[x] = INFINITY;
                for (uint32_t i = 0; i < stairs->n_stairs; i++) {
                        const struct stair *stair = &stairs->stairs[i];

                        each[stair->cores] = fmin(each[stair->cores], priority * (double) stair->penalty +
                                                                              ldexp((double) stair->price, -stairs->shift));
                }
                for (uint32_t x = pieces->most_cores; x > 0; x--) {
                        each[x] = fmin(each[x], each[x + 1]);
                        if (x > pieces->largest[t])
                                continue;
                        ret_price[pieces->first[t] + x] = priority * (double) pieces->weight + x * each[x];
                        highest = fmax(highest, ret_price[pieces->first[t] + x]);
                }
        }
        return highest;
}

/* Prices are kept so low that neither a node full of pieces nor a job made of them exceeds 31 bits. False: they would be too coarse. */
static bool scale_prices(struct pieces *pieces) {
        double *price = calloc(pieces->n_prices + 1, sizeof(*price)), highest;
        uint32_t most = pieces->most_ranks / pieces->most_cores + 2;

        if (!price)
                return false;
        most = most > pieces->most_cores ? most : pieces->most_cores;
        pieces->most_price = INT32_MAX / 2 / (int32_t) most;
        highest = first_prices(pieces, price);
        while (pieces->shift < MOST_SHIFT && ldexp(highest, pieces->shift + 2) < (double) pieces->most_price)
                pieces->shift++;
        for (size_t i = 0; pieces->shift >= LEAST_SHIFT && i < pieces->n_prices; i++)
                pieces->price[i] = pieces->best_price[i] = (int32_t) ldexp(price[i], pieces->shift);
        free(price);
        return pieces->shift >= LEAST_SHIFT;
}

/* What is not made up of whole groups. */
static void rule_out_sizes(struct pieces *pieces, uint32_t tread, const struct rm_job *job) {
        uint32_t rest = job->ranks % job->group_size;
        size_t first = pieces->first[tread];

        pieces->has_groups |= job->group_size > 1;
        for (uint32_t x = 1; x <= pieces->largest[tread]; x++)
                if (x % job->group_size != 0 && (x < rest || (x - rest) % job->group_size != 0))
                        pieces->price[first + x] = pieces->best_price[first + x] = pieces->most_price;
}

static bool make_lists(struct pieces *pieces) {
        size_t n_stairs = pieces->stairs->n_stairs, n_treads = pieces->stairs->n_treads;
        struct arena *arena = &pieces->arena;

        pieces->penalties = arena_alloc(arena, n_stairs, sizeof(*pieces->penalties));
        pieces->penalty_of = arena_alloc(arena, n_stairs, sizeof(*pieces->penalty_of));
        pieces->nodes = arena_alloc(arena, n_stairs, sizeof(*pieces->nodes));
        pieces->ranks = arena_alloc(arena, n_treads, sizeof(*pieces->ranks));
        pieces->largest = arena_alloc(arena, n_treads, sizeof(*pieces->largest));
        pieces->first = arena_alloc(arena, n_treads, sizeof(*pieces->first));
        if (arena->failed || n_stairs == 0 || n_treads == 0)
                return false;
        list_penalties(pieces);
        list_sizes(pieces);
        return pieces->most_cores <= MAX_CORES && pieces->most_ranks <= MAX_RANKS;
}

static bool make_prices(struct pieces *pieces) {
        size_t width = pieces->most_cores + 1u, n_treads = pieces->stairs->n_treads;
        struct arena *arena = &pieces->arena;

        pieces->price = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->price));
        pieces->best_price = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->best_price));
        pieces->over = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->over));
        pieces->direction = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->direction));
        pieces->worth = arena_alloc(arena, pieces->n_penalties * width, sizeof(*pieces->worth));
        pieces->best_worth = arena_alloc(arena, pieces->n_penalties * width, sizeof(*pieces->best_worth));
        pieces->least = arena_alloc(arena, pieces->most_ranks + 1u, sizeof(*pieces->least));
        pieces->value = arena_alloc(arena, width, sizeof(*pieces->value));
        pieces->gain = arena_alloc(arena, (n_treads + 1) * width, sizeof(*pieces->gain));
        pieces->order = arena_alloc(arena, n_treads, sizeof(*pieces->order));
        return !arena->failed && scale_prices(pieces);
}

struct pieces *pieces_create(const struct staircase *staircase, const struct rm_snapshot *snapshot) {
        struct pieces *pieces = calloc(1, sizeof(*pieces));

        if (!pieces)
                return NULL;
        pieces->stairs = staircase;
        pieces->weight = snapshot->params.distribution_weight;
        pieces->best = INT64_MIN;
        pieces->length = first_length;
        if (!make_lists(pieces) || !make_prices(pieces)) {
                pieces_destroy(pieces);
                return NULL;
        }
        for (uint32_t t = 0; t < staircase->n_treads; t++)
                rule_out_sizes(pieces, t, &snapshot->jobs[staircase->treads[t].job]);
        return pieces;
}

void pieces_destroy(struct pieces *pieces) {
        if (!pieces)
                return;
        arena_finish(&pieces->arena);
        free(pieces);
}

double pieces_work_usec(const struct pieces *pieces) {
        double nodes = (double) pieces->n_penalties * pieces->most_cores / 2, work = 0;

        for (uint32_t t = 0; t < pieces->stairs->n_treads; t++)
                work += pieces->largest[t] * (nodes + pieces->ranks[t]);
        return work * addition_usec;
}

/* ---- what jobs buy ---- */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx2", "default")))
#endif
static void
cut(int32_t *least, uint32_t ranks, const int32_t *price, uint32_t largest) {
        least[0] = 0;
        for (uint32_t m = 1; m <= ranks; m++)
                least[m] = INT32_MAX;
        for (uint32_t m = 0; m < ranks; m++) {
                uint32_t most = ranks - m < largest ? ranks - m : largest;
                int32_t base = least[m];
                int32_t *restrict to = least + m;

                for (size_t x = 1; x <= most; x++) {
                        int32_t sum = base + price[x];

                        to[x] = sum < to[x] ? sum : to[x];
                }
        }
}

void pieces_cut(const struct pieces *pieces, uint32_t tread, uint32_t ranks, int32_t *least) {
        cut(least, ranks, pieces->price + pieces->first[tread], pieces->largest[tread]);
}

/* Returns what the job pays. */
static int64_t buy(struct pieces *pieces, uint32_t tread) {
        const int32_t *price = pieces->price + pieces->first[tread], *least = pieces->least;
        uint32_t left = pieces->ranks[tread];
        int64_t paid;

        pieces_cut(pieces, tread, left, pieces->least);
        paid = least[left];
        while (left > 0) {
                uint32_t x = left < pieces->largest[tread] ? left : pieces->largest[tread];

                while (x > 1 && least[left - x] + price[x] != least[left])
                        x--;
                pieces->over[pieces->first[tread] + x]++;
                left -= x;
        }
        return paid;
}

/* ---- what nodes sell ---- */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx2", "default")))
#endif
static void
choose(const int32_t *restrict from, int32_t *restrict to, const int32_t *value, uint32_t largest, uint32_t cores) {
        memcpy(to, from, sizeof(*to) * (cores + 1u));
        for (uint32_t x = 1; x <= largest; x++) {
                int32_t gain = value[x];
                int32_t *restrict above = to + x;
                size_t n = cores - x + 1u;

                for (size_t i = 0; gain > 0 && i < n; i++) {
                        int32_t sum = from[i] + gain;

                        above[i] = sum > above[i] ? sum : above[i];
                }
        }
}

void pieces_choose(const int32_t *from, int32_t *to, const int32_t *value, uint32_t largest, uint32_t cores) {
        choose(from, to, value, largest, cores);
}

/* What nodes of the penalty gain by each piece of the job: value[x]. False: nothing. */
static bool value_pieces(struct pieces *pieces, uint32_t tread, int64_t penalty, uint32_t largest) {
        int64_t priority = pieces->stairs->treads[tread].priority, scale = (int64_t) 1 << pieces->shift;
        int64_t fixed = priority * pieces->weight * scale, each = priority * penalty * scale;
        const int32_t *price = pieces->price + pieces->first[tread];
        int32_t most = 0, cost;

        if (fixed >= pieces->most_price || each >= pieces->most_price)
                return false;
        cost = (int32_t) fixed;
        for (uint32_t x = 1; x <= largest; x++) {
                cost += (int32_t) each;
                pieces->value[x] = price[x] < pieces->most_price ? price[x] - cost : 0;
                most = pieces->value[x] > most ? pieces->value[x] : most;
        }
        return most > 0;
}

static uint32_t largest_left(const struct pieces *pieces, uint32_t tread, uint32_t cores) {
        uint32_t largest = pieces->largest[tread] < cores ? pieces->largest[tread] : cores;

        return largest < pieces->ranks[tread] ? largest : pieces->ranks[tread];
}

/* The rows of gain, for nodes of a penalty with up to `cores`. Returns how many follow the first. */
static uint32_t fill_rows(struct pieces *pieces, int64_t penalty, uint32_t cores) {
        size_t width = pieces->most_cores + 1u;
        uint32_t n = 0;

        memset(pieces->gain, 0, sizeof(*pieces->gain) * width);
        for (uint32_t t = 0; t < pieces->stairs->n_treads; t++) {
                uint32_t largest = largest_left(pieces, t, cores);
                int32_t *from = pieces->gain + n * width;

                if (largest == 0 || !value_pieces(pieces, t, penalty, largest))
                        continue;
                choose(from, from + width, pieces->value, largest, cores);
                pieces->order[n++] = t;
        }
        return n;
}

/* Follow the rows back from where all of a node is used. */
static void sell(struct pieces *pieces, uint32_t n_rows, uint32_t stair) {
        int64_t penalty = pieces->penalties[pieces->penalty_of[stair]], scale = (int64_t) 1 << pieces->shift;
        uint32_t left = pieces->stairs->stairs[stair].cores;
        size_t width = pieces->most_cores + 1u;

        for (uint32_t k = n_rows; k-- > 0 && left > 0;) {
                const int32_t *from = pieces->gain + k * width, *to = from + width;
                uint32_t t = pieces->order[k], x = largest_left(pieces, t, left);
                int64_t priority = pieces->stairs->treads[t].priority, fixed = priority * pieces->weight * scale;
                const int32_t *price = pieces->price + pieces->first[t];

                if (to[left] == from[left])
                        continue;
                while (x > 1 && (price[x] == pieces->most_price ||
                                 from[left - x] + price[x] - fixed - priority * penalty * scale * x != to[left]))
                        x--;
                pieces->over[pieces->first[t] + x] -= (int32_t) pieces->nodes[stair];
                left -= x;
        }
}

/* Returns what nodes of the penalty gain. */
static int64_t sell_all(struct pieces *pieces, uint32_t penalty) {
        const struct staircase *stairs = pieces->stairs;
        size_t width = pieces->most_cores + 1u;
        int32_t *worth = pieces->worth + penalty * width, *last;
        uint32_t cores = 0, n;
        int64_t sum = 0;

        for (uint32_t i = 0; i < stairs->n_stairs; i++)
                if (pieces->penalty_of[i] == penalty && pieces->nodes[i] > 0 && stairs->stairs[i].cores > cores)
                        cores = stairs->stairs[i].cores;
        n = fill_rows(pieces, pieces->penalties[penalty], cores);
        last = pieces->gain + n * width;
        for (uint32_t c = 0; c < width; c++)
                worth[c] = last[c < cores ? c : cores];
        for (uint32_t i = 0; n > 0 && i < stairs->n_stairs; i++)
                if (pieces->penalty_of[i] == penalty && pieces->nodes[i] > 0) {
                        sum += (int64_t) last[stairs->stairs[i].cores] * pieces->nodes[i];
                        sell(pieces, n, i);
                }
        return sum;
}

/* ---- raising ---- */

int64_t pieces_evaluate(struct pieces *pieces) {
        int64_t sum = 0;

        memset(pieces->over, 0, sizeof(*pieces->over) * pieces->n_prices);
        for (uint32_t t = 0; t < pieces->stairs->n_treads; t++)
                if (pieces->ranks[t] > 0)
                        sum += buy(pieces, t);
        for (uint32_t k = 0; k < pieces->n_penalties; k++)
                sum -= sell_all(pieces, k);
        return sum;
}

void pieces_step(struct pieces *pieces, int64_t slack, double length) {
        double square = 0, factor;

        for (size_t i = 0; i < pieces->n_prices; i++) {
                pieces->direction[i] = (float) (momentum * pieces->direction[i] + (1 - momentum) * pieces->over[i]);
                square += pieces->direction[i] * (double) pieces->over[i];
        }
        if (square <= 0) {
                memset(pieces->direction, 0, sizeof(*pieces->direction) * pieces->n_prices);
                return;
        }
        factor = length * (double) slack / square;
        for (size_t i = 0; i < pieces->n_prices; i++) {
                double price = pieces->price[i] + pieces->direction[i] * factor;

                if (pieces->price[i] < pieces->most_price)
                        pieces->price[i] = (int32_t) fmin(fmax(price, 0), pieces->most_price - 1);
        }
}

void pieces_restart(struct pieces *pieces) {
        for (uint32_t i = 0; i < pieces->stairs->n_stairs; i++)
                pieces->nodes[i] = pieces->stairs->stairs[i].nodes;
        for (uint32_t t = 0; t < pieces->stairs->n_treads; t++)
                pieces->ranks[t] = pieces->stairs->treads[t].ranks;
        memcpy(pieces->price, pieces->best_price, sizeof(*pieces->price) * pieces->n_prices);
        memset(pieces->direction, 0, sizeof(*pieces->direction) * pieces->n_prices);
}

bool pieces_is_settled(const struct pieces *pieces) {
        return pieces->length <= shortest;
}

static void keep(struct pieces *pieces, int64_t bound) {
        size_t n_worth = pieces->n_penalties * (pieces->most_cores + 1u);

        pieces->best = bound;
        pieces->idle = 0;
        pieces->length = fmin(pieces->length * 1.1, longest);
        memcpy(pieces->best_price, pieces->price, sizeof(*pieces->price) * pieces->n_prices);
        memcpy(pieces->best_worth, pieces->worth, sizeof(*pieces->worth) * n_worth);
}

/* Back to the best prices, for shorter steps from there. Returns the bound. */
static int64_t shorten(struct pieces *pieces) {
        pieces->idle = 0;
        pieces->length *= shorter;
        memcpy(pieces->price, pieces->best_price, sizeof(*pieces->price) * pieces->n_prices);
        memset(pieces->direction, 0, sizeof(*pieces->direction) * pieces->n_prices);
        return pieces_evaluate(pieces);
}

int64_t pieces_raise(struct pieces *pieces, int64_t cost, const struct deadline *deadline, int64_t until_usec, uint32_t steps) {
        int64_t goal = cost * ((int64_t) 1 << pieces->shift);

        for (uint32_t i = 0; i < steps && !pieces_is_settled(pieces) && (i == 0 || deadline_left_usec(deadline) > until_usec);
             i++) {
                int64_t bound = pieces_evaluate(pieces);

                if (bound > pieces->best)
                        keep(pieces, bound);
                else if (++pieces->idle > PATIENCE)
                        bound = shorten(pieces);
                if (bound >= goal)
                        break;
                pieces_step(pieces, goal - bound, pieces->length);
        }
        return -(-pieces->best >> pieces->shift);
}

const int32_t *pieces_best_worth(const struct pieces *pieces, int64_t penalty) {
        for (uint32_t k = 0; k < pieces->n_penalties; k++)
                if (pieces->penalties[k] == penalty)
                        return pieces->best_worth + k * (pieces->most_cores + 1u);
        return NULL;
}

double pieces_worth(const struct pieces *pieces, int64_t penalty, uint32_t free_cores) {
        const int32_t *worth = pieces_best_worth(pieces, penalty);

        return worth && free_cores <= pieces->most_cores ? ldexp(worth[free_cores], -pieces->shift) : 0;
}
