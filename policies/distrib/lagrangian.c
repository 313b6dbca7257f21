#include "policies/distrib/lagrangian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "policies/distrib/cut.h"
#include "policies/distrib/vectorised.h"

enum {
        MAX_CORES = 1024,
        MAX_RANKS = 1024 * 1024, /* of a job */
        MOST_SHIFT = 12,
        LEAST_SHIFT = 3,
        CLOSE = 16,    /* steps aim at one part in so many above the bound, or less */
        PARTS = 8, /* of the sites, one of which looks at the prices again between two steps */
        HOME_WORK = 20, /* additions, for each size of a piece of a job that runs on a node, besides */
        PATIENCE = 40, /* steps without a gain until the step gets shorter */
};

static const double momentum = 0.7, first_length = 0.1, longest = 0.2, shorter = 0.6, shortest = 0.0005;
/* Where jobs run, first prices are far off, for all sizes of a job alike: it shortens the way to
 * change them together. */
static const double longest_at_home = 0.25, rank_share = 3, piece_share = 30;
/* The time of an addition in a dynamic programme. */
static const double addition_usec = 0.0002;

/* ---- making ---- */

static void list_penalties(struct lagrangian *lagrangian) {
        const struct relaxation *classes = lagrangian->classes;

        for (uint32_t i = 0; i < classes->n_classes; i++) {
                uint32_t k = 0;

                while (k < lagrangian->n_penalties && lagrangian->penalties[k] != classes->classes[i].penalty)
                        k++;
                if (k == lagrangian->n_penalties)
                        lagrangian->penalties[lagrangian->n_penalties++] = classes->classes[i].penalty;
                lagrangian->penalty_of[i] = k;
                lagrangian->nodes[i] = lagrangian->empty[i] = classes->classes[i].nodes;
        }
}

/* Jobs that run somewhere, or whose groups are not split, are of a kind of their own. */
static void list_kinds(struct lagrangian *lagrangian, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = lagrangian->classes;
        bool runs = any_job_runs(snapshot);

        for (uint32_t t = 0; t < classes->n_demands; t++) {
                const struct job_demand *demand = &classes->demands[t];
                uint32_t size = lagrangian->group_size[t] = snapshot->jobs[demand->job].group_size;

                lagrangian->has_groups |= size > 1;
                if (runs || t == 0 || demand->priority != demand[-1].priority || size > 1 || lagrangian->group_size[t - 1] > 1)
                        lagrangian->kinds[lagrangian->n_kinds++].first = t;
                lagrangian->kinds[lagrangian->n_kinds - 1].end = t + 1;
        }
}

static void list_sizes(struct lagrangian *lagrangian) {
        const struct relaxation *classes = lagrangian->classes;

        for (uint32_t i = 0; i < classes->n_classes; i++)
                if (classes->classes[i].cores > lagrangian->most_cores)
                        lagrangian->most_cores = classes->classes[i].cores;
        for (uint32_t t = 0; t < classes->n_demands; t++) {
                uint32_t ranks = classes->demands[t].ranks;

                lagrangian->ranks[t] = ranks;
                lagrangian->largest[t] = ranks < lagrangian->most_cores ? ranks : lagrangian->most_cores;
                lagrangian->most_ranks = ranks > lagrangian->most_ranks ? ranks : lagrangian->most_ranks;
        }
        for (struct kind *kind = lagrangian->kinds; kind < lagrangian->kinds + lagrangian->n_kinds; kind++) {
                for (uint32_t t = kind->first; t < kind->end; t++) {
                        lagrangian->first[t] = lagrangian->n_prices;
                        kind->largest = lagrangian->largest[t] > kind->largest ? lagrangian->largest[t] : kind->largest;
                }
                lagrangian->n_prices += kind->largest + 1u;
        }
}

/* The prices to begin with, by the relaxation: the cost of a piece on the node where that is least.
 * Unscaled, into `ret_price`; returns the highest. */
static double first_prices(const struct lagrangian *lagrangian, double *ret_price) {
        const struct relaxation *classes = lagrangian->classes;
        double highest = 0;
        double each[MAX_CORES + 2];

        for (const struct kind *kind = lagrangian->kinds; kind < lagrangian->kinds + lagrangian->n_kinds; kind++) {
                double priority = (double) classes->demands[kind->first].priority;

                for (uint32_t x = 0; x <= lagrangian->most_cores + 1; x++)
                        each[x] = INFINITY;
                for (uint32_t i = 0; i < classes->n_classes; i++) {
                        const struct node_class *class = &classes->classes[i];

                        each[class->cores] = fmin(each[class->cores], priority * (double) class->penalty +
                                                                              ldexp((double) class->price, -classes->shift));
                }
                for (uint32_t x = lagrangian->most_cores; x > 0; x--) {
                        each[x] = fmin(each[x], each[x + 1]);
                        if (x > kind->largest)
                                continue;
                        ret_price[lagrangian->first[kind->first] + x] = priority * (double) lagrangian->weight + x * each[x];
                        highest = fmax(highest, ret_price[lagrangian->first[kind->first] + x]);
                }
        }
        return highest;
}

/* Prices are kept so low that neither a node full of pieces nor a job made of them exceeds 31 bits.
 * False: they would be too coarse. */
static bool scale_prices(struct lagrangian *lagrangian) {
        double *price = calloc(lagrangian->n_prices + 1, sizeof(*price)), highest;
        uint32_t most = lagrangian->most_ranks / lagrangian->most_cores + 2;

        if (!price)
                return false;
        most = most > lagrangian->most_cores ? most : lagrangian->most_cores;
        lagrangian->most_price = INT32_MAX / 2 / (int32_t) most;
        highest = first_prices(lagrangian, price);
        while (lagrangian->shift < MOST_SHIFT && ldexp(highest, lagrangian->shift + 2) < (double) lagrangian->most_price)
                lagrangian->shift++;
        for (size_t i = 0; lagrangian->shift >= LEAST_SHIFT && i < lagrangian->n_prices; i++)
                lagrangian->price[i] = lagrangian->best_price[i] = (int32_t) ldexp(price[i], lagrangian->shift);
        free(price);
        return lagrangian->shift >= LEAST_SHIFT;
}

/* Rules out sizes that are not made up of whole groups. */
static void rule_out_sizes(struct lagrangian *lagrangian, uint32_t demand, const struct rm_job *job) {
        uint32_t rest = job->ranks % job->group_size;
        size_t first = lagrangian->first[demand];

        for (uint32_t x = 1; x <= lagrangian->largest[demand]; x++)
                if (x % job->group_size != 0 && (x < rest || (x - rest) % job->group_size != 0))
                        lagrangian->price[first + x] = lagrangian->best_price[first + x] = lagrangian->most_price;
}

/* Ranks have been used up, or are there again. */
static void find_most(struct lagrangian *lagrangian) {
        for (struct kind *kind = lagrangian->kinds; kind < lagrangian->kinds + lagrangian->n_kinds; kind++) {
                kind->most = kind->first;
                for (uint32_t t = kind->first + 1; t < kind->end; t++)
                        if (lagrangian->ranks[t] > lagrangian->ranks[kind->most])
                                kind->most = t;
        }
}

static bool make_lists(struct lagrangian *lagrangian, const struct rm_snapshot *snapshot) {
        size_t n_classes = lagrangian->classes->n_classes, n_demands = lagrangian->classes->n_demands;
        struct arena *arena = &lagrangian->arena;

        lagrangian->penalties = arena_alloc(arena, n_classes, sizeof(*lagrangian->penalties));
        lagrangian->penalty_of = arena_alloc(arena, n_classes, sizeof(*lagrangian->penalty_of));
        lagrangian->nodes = arena_alloc(arena, n_classes, sizeof(*lagrangian->nodes));
        lagrangian->empty = arena_alloc(arena, n_classes, sizeof(*lagrangian->empty));
        lagrangian->ranks = arena_alloc(arena, n_demands, sizeof(*lagrangian->ranks));
        lagrangian->largest = arena_alloc(arena, n_demands, sizeof(*lagrangian->largest));
        lagrangian->group_size = arena_alloc(arena, n_demands, sizeof(*lagrangian->group_size));
        lagrangian->first = arena_alloc(arena, n_demands, sizeof(*lagrangian->first));
        lagrangian->kinds = arena_alloc(arena, n_demands, sizeof(*lagrangian->kinds));
        if (arena->failed || n_classes == 0 || n_demands == 0)
                return false;
        list_penalties(lagrangian);
        list_kinds(lagrangian, snapshot);
        list_sizes(lagrangian);
        find_most(lagrangian);
        return lagrangian->most_cores <= MAX_CORES && lagrangian->most_ranks <= MAX_RANKS;
}

static bool make_prices(struct lagrangian *lagrangian) {
        size_t width = lagrangian->most_cores + 1u, n_demands = lagrangian->classes->n_demands;
        struct arena *arena = &lagrangian->arena;

        lagrangian->price = arena_alloc(arena, lagrangian->n_prices, sizeof(*lagrangian->price));
        lagrangian->best_price = arena_alloc(arena, lagrangian->n_prices, sizeof(*lagrangian->best_price));
        lagrangian->over = arena_alloc(arena, lagrangian->n_prices, sizeof(*lagrangian->over));
        lagrangian->direction = arena_alloc(arena, lagrangian->n_prices, sizeof(*lagrangian->direction));
        lagrangian->worth = arena_alloc(arena, lagrangian->n_penalties * width, sizeof(*lagrangian->worth));
        lagrangian->best_worth = arena_alloc(arena, lagrangian->n_penalties * width, sizeof(*lagrangian->best_worth));
        lagrangian->least = arena_alloc(arena, lagrangian->most_ranks + 1u, sizeof(*lagrangian->least));
        lagrangian->group_price = arena_alloc(arena, width, sizeof(*lagrangian->group_price));
        lagrangian->group_least = arena_alloc(arena, lagrangian->most_ranks + 1u, sizeof(*lagrangian->group_least));
        lagrangian->value = arena_alloc(arena, width, sizeof(*lagrangian->value));
        lagrangian->single = arena_alloc(arena, lagrangian->n_kinds * width, sizeof(*lagrangian->single));
        lagrangian->several = arena_alloc(arena, lagrangian->n_kinds * width, sizeof(*lagrangian->several));
        lagrangian->doubled = arena_alloc(arena, width, sizeof(*lagrangian->doubled));
        lagrangian->order = arena_alloc(arena, n_demands, sizeof(*lagrangian->order));
        return !arena->failed && scale_prices(lagrangian);
}

/* Each site is a node of its own. False: no memory. */
static bool make_sites(struct lagrangian *lagrangian, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = lagrangian->classes;
        size_t width = lagrangian->most_cores + 1u, cores = 0;

        if (!homes_init(&lagrangian->homes, classes, snapshot, lagrangian->shift, lagrangian->most_price / 2))
                return false;
        for (uint32_t k = 0; k < lagrangian->homes.n_sites; k++) {
                const struct site *site = &lagrangian->homes.sites[k];
                uint32_t i = relaxation_find(classes, site->penalty, site->cores);

                lagrangian->empty[i]--;
                lagrangian->nodes[i]--;
                cores += site->cores;
        }
        lagrangian->is_open = arena_alloc(&lagrangian->arena, lagrangian->homes.n_sites, sizeof(*lagrangian->is_open));
        lagrangian->site_worth = arena_alloc(&lagrangian->arena, lagrangian->homes.n_sites, sizeof(*lagrangian->site_worth));
        lagrangian->n_sold = arena_alloc(&lagrangian->arena, lagrangian->homes.n_sites, sizeof(*lagrangian->n_sold));
        lagrangian->first_sold = arena_alloc(&lagrangian->arena, lagrangian->homes.n_sites, sizeof(*lagrangian->first_sold));
        lagrangian->sold = arena_alloc(&lagrangian->arena, cores, sizeof(*lagrangian->sold));
        lagrangian->class_sold = arena_alloc(&lagrangian->arena, width, sizeof(*lagrangian->class_sold));
        if (lagrangian->arena.failed)
                return false;
        for (uint32_t k = 0, first = 0; k < lagrangian->homes.n_sites; first += lagrangian->homes.sites[k++].cores)
                lagrangian->first_sold[k] = first;
        memset(lagrangian->is_open, true, sizeof(*lagrangian->is_open) * lagrangian->homes.n_sites);
        lagrangian->gain = arena_alloc(&lagrangian->arena, (classes->n_demands + (size_t) lagrangian->homes.most_homes + 1) * width,
                                       sizeof(*lagrangian->gain));
        return lagrangian->gain;
}

struct lagrangian *lagrangian_create(const struct relaxation *relaxation, const struct rm_snapshot *snapshot) {
        struct lagrangian *lagrangian = calloc(1, sizeof(*lagrangian));

        if (!lagrangian)
                return NULL;
        lagrangian->classes = relaxation;
        lagrangian->weight = snapshot->params.distribution_weight;
        lagrangian->best = INT64_MIN;
        lagrangian->length = first_length;
        if (!make_lists(lagrangian, snapshot) || !make_prices(lagrangian) || !make_sites(lagrangian, snapshot)) {
                lagrangian_destroy(lagrangian);
                return NULL;
        }
        for (uint32_t t = 0; t < relaxation->n_demands; t++)
                rule_out_sizes(lagrangian, t, &snapshot->jobs[relaxation->demands[t].job]);
        return lagrangian;
}

void lagrangian_destroy(struct lagrangian *lagrangian) {
        if (!lagrangian)
                return;
        homes_finish(&lagrangian->homes);
        arena_finish(&lagrangian->arena);
        free(lagrangian);
}

double lagrangian_work_usec(const struct lagrangian *lagrangian) {
        double nodes = (double) lagrangian->n_penalties * lagrangian->most_cores / 2, work = 0;

        for (uint32_t k = 0; k < lagrangian->n_kinds; k++) {
                const struct kind *kind = &lagrangian->kinds[k];

                work += kind->largest * (nodes + lagrangian->ranks[kind->most] + kind->end - kind->first);
        }
        for (uint32_t i = 0; i < lagrangian->homes.n_sites; i++)
                work += lagrangian->homes.sites[i].n_homes * (double) lagrangian->homes.sites[i].cores *
                        (HOME_WORK + lagrangian->homes.sites[i].cores);
        return work * addition_usec;
}

/* ---- what jobs buy ---- */

CUT_DEFINE(cut, int32_t, INT32_MAX)

/* The least that `ranks` cost where one piece has the smaller last group, `rest` of them. */
static int32_t cut_with_rest(const struct lagrangian *lagrangian, uint32_t demand, uint32_t ranks, uint32_t rest) {
        const int32_t *price = lagrangian->price + lagrangian->first[demand];
        uint32_t size = lagrangian->group_size[demand],
                 most = ranks < lagrangian->largest[demand] ? ranks : lagrangian->largest[demand];
        int32_t least = INT32_MAX;

        for (uint32_t x = rest; x <= most; x += size) {
                int32_t sum = price[x] + lagrangian->group_least[(ranks - x) / size];

                least = sum < least ? sum : least;
        }
        return least;
}

/* Full groups by themselves: then it is clear what goes with the smaller last one, of which there
 * is one only. */
static void cut_groups(const struct lagrangian *lagrangian, uint32_t demand, uint32_t ranks, int32_t *least) {
        uint32_t size = lagrangian->group_size[demand], rest = lagrangian->classes->demands[demand].ranks % size;
        const int32_t *price = lagrangian->price + lagrangian->first[demand];

        for (uint32_t k = 0; k * size <= lagrangian->largest[demand]; k++)
                lagrangian->group_price[k] = price[k * size];
        cut(lagrangian->group_least, ranks / size, lagrangian->group_price, lagrangian->largest[demand] / size);
        for (uint32_t m = 0; m <= ranks; m++)
                if (m % size == 0)
                        least[m] = lagrangian->group_least[m / size];
                else
                        least[m] = m % size == rest ? cut_with_rest(lagrangian, demand, m, rest) : lagrangian->most_price;
}

void lagrangian_cut(const struct lagrangian *lagrangian, uint32_t demand, uint32_t ranks, int32_t *least) {
        if (lagrangian->group_size[demand] == 1)
                cut(least, ranks, lagrangian->price + lagrangian->first[demand], lagrangian->largest[demand]);
        else
                cut_groups(lagrangian, demand, ranks, least);
}

/* Returns what the job pays, when it is known what any number of ranks does. */
static int64_t buy(struct lagrangian *lagrangian, uint32_t demand) {
        const int32_t *price = lagrangian->price + lagrangian->first[demand], *least = lagrangian->least;
        uint32_t left = lagrangian->ranks[demand];
        int64_t paid = least[left];

        while (left > 0) {
                uint32_t x = left < lagrangian->largest[demand] ? left : lagrangian->largest[demand];

                while (x > 1 && (!lagrangian_is_possible(lagrangian, demand, left, x) || least[left - x] + price[x] != least[left]))
                        x--;
                lagrangian->over[lagrangian->first[demand] + x]++;
                left -= x;
        }
        return paid;
}

/* Returns what jobs of the kind pay. */
static int64_t buy_all(struct lagrangian *lagrangian, const struct kind *kind) {
        int64_t sum = 0;

        lagrangian_cut(lagrangian, kind->most, lagrangian->ranks[kind->most], lagrangian->least);
        for (uint32_t t = kind->first; t < kind->end; t++)
                if (lagrangian->ranks[t] > 0)
                        sum += buy(lagrangian, t);
        return sum;
}

/* ---- what nodes sell ---- */

VECTORISED static void choose(const int32_t *restrict from, int32_t *restrict to, const int32_t *value, uint32_t largest,
                              uint32_t cores) {
        int32_t most = 0;

        memcpy(to, from, sizeof(*to) * (cores + 1u));
        for (uint32_t x = 1; x <= largest; x++) {
                int32_t gain = value[x];
                int32_t *restrict above = to + x;
                size_t n = cores - x + 1u;

                if (gain <= most) /* no more than a smaller one brings */
                        continue;
                most = gain;
                for (size_t i = 0; i < n; i++) {
                        int32_t sum = from[i] + gain;

                        above[i] = sum > above[i] ? sum : above[i];
                }
        }
}

void lagrangian_choose(const int32_t *from, int32_t *to, const int32_t *value, uint32_t largest, uint32_t cores) {
        choose(from, to, value, largest, cores);
}

bool lagrangian_cost(const struct lagrangian *lagrangian, uint32_t demand, int64_t penalty, int32_t *ret_fixed, int32_t *ret_each) {
        int64_t priority = lagrangian->classes->demands[demand].priority, scale = (int64_t) 1 << lagrangian->shift;
        int64_t fixed = priority * lagrangian->weight * scale, each = priority * penalty * scale;

        if (fixed < lagrangian->most_price)
                *ret_fixed = (int32_t) fixed;
        if (each < lagrangian->most_price)
                *ret_each = (int32_t) each;
        return fixed < lagrangian->most_price && each < lagrangian->most_price;
}

/* The gain of nodes of the penalty by each piece of the job: value[x]. False: none. */
static bool value_pieces(struct lagrangian *lagrangian, uint32_t demand, int64_t penalty, uint32_t largest) {
        const int32_t *price = lagrangian->price + lagrangian->first[demand];
        int32_t most = 0, cost, each;

        if (!lagrangian_cost(lagrangian, demand, penalty, &cost, &each))
                return false;
        for (uint32_t x = 1; x <= largest; x++) {
                cost += each;
                lagrangian->value[x] = price[x] < lagrangian->most_price ? price[x] - cost : 0;
                most = lagrangian->value[x] > most ? lagrangian->value[x] : most;
        }
        return most > 0;
}

static uint32_t largest_left(const struct lagrangian *lagrangian, uint32_t demand, uint32_t cores) {
        uint32_t largest = lagrangian->largest[demand] < cores ? lagrangian->largest[demand] : cores;

        return largest < lagrangian->ranks[demand] ? largest : lagrangian->ranks[demand];
}

static bool has_several(const struct kind *kind) {
        return kind->end - kind->first > 1;
}

/* Combines as many pieces of the kind as the node likes, out of the gain of each of them: in twos,
 * fours and so on. */
static void combine(struct lagrangian *lagrangian, uint32_t k, uint32_t largest, uint32_t cores) {
        size_t width = lagrangian->most_cores + 1u;
        int32_t *single = lagrangian->single + k * width, *several = lagrangian->several + k * width;

        memset(single, 0, sizeof(*single) * width);
        memcpy(single + 1, lagrangian->value + 1, sizeof(*single) * largest);
        several[0] = 0;
        for (uint32_t c = 1; c <= cores; c++)
                several[c] = single[c] > several[c - 1] ? single[c] : several[c - 1];
        for (;;) {
                choose(several, lagrangian->doubled, several, cores, cores);
                if (memcmp(several, lagrangian->doubled, sizeof(*several) * (cores + 1u)) == 0)
                        return;
                memcpy(several, lagrangian->doubled, sizeof(*several) * (cores + 1u));
        }
}

/* The rows of gain, for nodes of a penalty with up to `cores`. Returns how many follow the
 * first. */
static uint32_t fill_rows(struct lagrangian *lagrangian, int64_t penalty, uint32_t cores) {
        size_t width = lagrangian->most_cores + 1u;
        uint32_t n = 0;

        memset(lagrangian->gain, 0, sizeof(*lagrangian->gain) * width);
        for (uint32_t k = 0; k < lagrangian->n_kinds; k++) {
                const struct kind *kind = &lagrangian->kinds[k];
                uint32_t largest = largest_left(lagrangian, kind->most, cores);
                int32_t *from = lagrangian->gain + n * width;

                if (largest == 0 || !value_pieces(lagrangian, kind->first, penalty, largest))
                        continue;
                if (has_several(kind)) {
                        combine(lagrangian, k, largest, cores);
                        choose(from, from + width, lagrangian->several + k * width, cores, cores);
                } else
                        choose(from, from + width, lagrangian->value, largest, cores);
                lagrangian->order[n++] = k;
        }
        return n;
}

/* The largest piece by which the row reaches what it does with `left` cores. */
static uint32_t trace_piece(const struct lagrangian *lagrangian, const int32_t *from, const int32_t *value, uint32_t left,
                            uint32_t largest) {
        uint32_t width = lagrangian->most_cores + 1, x = largest;

        while (x > 1 && from[left - x] + value[x] != from[width + left])
                x--;
        return x;
}

/* Appends to `sold`, which has `n` entries, the pieces of the kind that gain most on so many cores.
 * Returns its new length. */
static uint32_t split(const struct lagrangian *lagrangian, uint32_t k, uint32_t cores, uint32_t *sold, uint32_t n) {
        size_t width = lagrangian->most_cores + 1u;
        const int32_t *single = lagrangian->single + k * width, *several = lagrangian->several + k * width;

        for (uint32_t x; several[cores] > 0; cores -= x) {
                while (several[cores] == several[cores - 1])
                        cores--;
                x = cores;
                if (single[cores] != several[cores])
                        for (x = 1; single[x] + several[cores - x] != several[cores];)
                                x++;
                sold[n++] = (uint32_t) lagrangian->first[lagrangian->kinds[k].first] + x;
        }
        return n;
}

/* Follow the rows back from where `left` cores of a node of the penalty are used. Which prices its
 * pieces have, into `sold`. Returns how many there are. */
static uint32_t sell(struct lagrangian *lagrangian, uint32_t n_rows, int64_t penalty, uint32_t left, uint32_t *sold) {
        size_t width = lagrangian->most_cores + 1u;
        uint32_t n = 0;

        for (uint32_t row = n_rows; row-- > 0 && left > 0;) {
                const int32_t *from = lagrangian->gain + row * width;
                uint32_t k = lagrangian->order[row], x;
                const struct kind *kind = &lagrangian->kinds[k];

                if (from[width + left] == from[left])
                        continue;
                if (has_several(kind)) {
                        x = trace_piece(lagrangian, from, lagrangian->several + k * width, left, left);
                        n = split(lagrangian, k, x, sold, n);
                } else {
                        x = largest_left(lagrangian, kind->most, left);
                        (void) value_pieces(lagrangian, kind->first, penalty, x);
                        x = trace_piece(lagrangian, from, lagrangian->value, left, x);
                        sold[n++] = (uint32_t) lagrangian->first[kind->first] + x;
                }
                left -= x;
        }
        return n;
}

/* As value_pieces(), where groups of the job run on the node. Costs beyond what this is made for
 * count less. */
static bool value_at_home(struct lagrangian *lagrangian, const struct home *home, int64_t penalty, uint32_t largest) {
        const int32_t *price = lagrangian->price + lagrangian->first[home->demand];
        int32_t most = 0, cost = lagrangian->most_price, each = lagrangian->most_price;

        (void) lagrangian_cost(lagrangian, home->demand, penalty, &cost, &each);
        for (uint32_t x = 1; x <= largest; x++) {
                cost += each;
                lagrangian->value[x] = price[x] < lagrangian->most_price ? price[x] - cost + home_saves(home, x) : 0;
                most = lagrangian->value[x] > most ? lagrangian->value[x] : most;
        }
        return most > 0;
}

/* Rows for the jobs that run on the node, behind those of all jobs: a job that has a place by the
 * latter does better by the former, so none gets two. Returns the last one: what the node gains. */
static int32_t *add_site_rows(struct lagrangian *lagrangian, const struct site *site, uint32_t n_rows) {
        size_t width = lagrangian->most_cores + 1u;
        int32_t *from = lagrangian->gain + n_rows * width;

        for (uint32_t k = 0; k < site->n_homes; k++, from += width) {
                uint32_t largest = largest_left(lagrangian, site->homes[k].demand, site->cores);

                if (value_at_home(lagrangian, &site->homes[k], site->penalty, largest))
                        choose(from, from + width, lagrangian->value, largest, site->cores);
                else
                        memcpy(from + width, from, sizeof(*from) * (site->cores + 1u));
        }
        return from;
}

/* Computes the pieces that the site sells, and its gain by that. */
static void sell_site(struct lagrangian *lagrangian, uint32_t i, uint32_t n_rows) {
        const struct site *site = &lagrangian->homes.sites[i];
        const int32_t *from = add_site_rows(lagrangian, site, n_rows);
        uint32_t *sold = lagrangian->sold + lagrangian->first_sold[i], n = 0, left = site->cores;
        size_t width = lagrangian->most_cores + 1u;

        lagrangian->site_worth[i] = from[left];

        for (uint32_t k = site->n_homes; k-- > 0 && left > 0;) {
                uint32_t t = site->homes[k].demand, x = largest_left(lagrangian, t, left);

                from -= width;
                if (from[width + left] == from[left] || !value_at_home(lagrangian, &site->homes[k], site->penalty, x))
                        continue;
                x = trace_piece(lagrangian, from, lagrangian->value, left, x);
                sold[n++] = (uint32_t) lagrangian->first[t] + x;
                left -= x;
        }
        lagrangian->n_sold[i] = n + sell(lagrangian, n_rows, site->penalty, left, sold + n);
}

/* Is there a node of it? */
static bool is_sold(const struct lagrangian *lagrangian, uint32_t class) {
        return lagrangian->nodes[class] > 0 || lagrangian->empty[class] < lagrangian->classes->classes[class].nodes;
}

static uint32_t most_cores_of(const struct lagrangian *lagrangian, uint32_t penalty) {
        const struct relaxation *classes = lagrangian->classes;
        uint32_t cores = 0;

        for (uint32_t i = 0; i < classes->n_classes; i++)
                if (lagrangian->penalty_of[i] == penalty && is_sold(lagrangian, i) && classes->classes[i].cores > cores)
                        cores = classes->classes[i].cores;
        return cores;
}

/* Returns what nodes of the penalty gain on which no job runs. Leaves the rows of gain. */
static int64_t sell_empty(struct lagrangian *lagrangian, uint32_t penalty, uint32_t *ret_n_rows) {
        const struct relaxation *classes = lagrangian->classes;
        size_t width = lagrangian->most_cores + 1u;
        int32_t *worth = lagrangian->worth + penalty * width, *last;
        uint32_t cores = most_cores_of(lagrangian, penalty), n;
        int64_t sum = 0;

        n = fill_rows(lagrangian, lagrangian->penalties[penalty], cores);
        last = lagrangian->gain + n * width;
        for (uint32_t c = 0; c < width; c++)
                worth[c] = last[c < cores ? c : cores];
        for (uint32_t i = 0; n > 0 && i < classes->n_classes; i++)
                if (lagrangian->penalty_of[i] == penalty && lagrangian->nodes[i] > 0) {
                        uint32_t n_sold = sell(lagrangian, n, lagrangian->penalties[penalty], classes->classes[i].cores,
                                               lagrangian->class_sold);

                        sum += (int64_t) last[classes->classes[i].cores] * lagrangian->nodes[i];
                        for (uint32_t k = 0; k < n_sold; k++)
                                lagrangian->over[lagrangian->class_sold[k]] -= (int32_t) lagrangian->nodes[i];
                }
        *ret_n_rows = n;
        return sum;
}

/* Computes the sales of one in `parts` of the sites again, of those that are alike to `part`; the
 * others sell as before. Returns the gain of all nodes of the penalty, which is true if all sell
 * again. */
static int64_t sell_all(struct lagrangian *lagrangian, uint32_t penalty, uint32_t part, uint32_t parts) {
        uint32_t n_rows = 0;
        int64_t sum = sell_empty(lagrangian, penalty, &n_rows);

        for (uint32_t i = 0; i < lagrangian->homes.n_sites; i++) {
                if (!lagrangian->is_open[i] || lagrangian->homes.sites[i].penalty != lagrangian->penalties[penalty])
                        continue;
                if (i % parts == part)
                        sell_site(lagrangian, i, n_rows);
                sum += lagrangian->site_worth[i];
                for (uint32_t k = 0; k < lagrangian->n_sold[i]; k++)
                        lagrangian->over[lagrangian->sold[lagrangian->first_sold[i] + k]]--;
        }
        return sum;
}

/* ---- raising ---- */

static int64_t evaluate(struct lagrangian *lagrangian, uint32_t part, uint32_t parts) {
        int64_t sum = lagrangian->homes.moved;

        memset(lagrangian->over, 0, sizeof(*lagrangian->over) * lagrangian->n_prices);
        find_most(lagrangian);
        for (uint32_t k = 0; k < lagrangian->n_kinds; k++)
                if (lagrangian->ranks[lagrangian->kinds[k].most] > 0)
                        sum += buy_all(lagrangian, &lagrangian->kinds[k]);
        for (uint32_t k = 0; k < lagrangian->n_penalties; k++)
                sum -= sell_all(lagrangian, k, part, parts);
        return sum;
}

int64_t lagrangian_evaluate(struct lagrangian *lagrangian) {
        return evaluate(lagrangian, 0, 1);
}

/* Sets the direction: the excess of each piece, and besides, for all sizes of a kind, as much of
 * the excess of ranks and pieces as the shares say. */
static double turn(struct lagrangian *lagrangian, const struct kind *kind) {
        const int32_t *over = lagrangian->over + lagrangian->first[kind->first];
        float *direction = lagrangian->direction + lagrangian->first[kind->first];
        double ranks = 0, n = 0, square = 0;
        uint32_t largest = kind->largest;

        for (uint32_t x = 1; x <= largest && lagrangian->homes.n_sites > 0; x++) {
                ranks += (double) x * over[x];
                n += over[x];
        }
        ranks *= rank_share / largest / largest;
        n *= piece_share / largest;
        for (uint32_t x = 1; x <= largest; x++) {
                direction[x] = (float) (momentum * direction[x] + (1 - momentum) * (over[x] + ranks * x + n));
                square += direction[x] * (double) over[x];
        }
        return square;
}

void lagrangian_step(struct lagrangian *lagrangian, int64_t slack, double length) {
        double square = 0, factor;

        for (uint32_t k = 0; k < lagrangian->n_kinds; k++)
                square += turn(lagrangian, &lagrangian->kinds[k]);
        if (square <= 0) {
                memset(lagrangian->direction, 0, sizeof(*lagrangian->direction) * lagrangian->n_prices);
                return;
        }
        factor = length * (double) slack / square;
        for (size_t i = 0; i < lagrangian->n_prices; i++) {
                double price = lagrangian->price[i] + lagrangian->direction[i] * factor;

                if (lagrangian->price[i] < lagrangian->most_price)
                        lagrangian->price[i] = (int32_t) fmin(fmax(price, 0), lagrangian->most_price - 1);
        }
}

void lagrangian_restart(struct lagrangian *lagrangian) {
        for (uint32_t i = 0; i < lagrangian->classes->n_classes; i++)
                lagrangian->nodes[i] = lagrangian->empty[i];
        for (uint32_t t = 0; t < lagrangian->classes->n_demands; t++)
                lagrangian->ranks[t] = lagrangian->classes->demands[t].ranks;
        memset(lagrangian->is_open, true, sizeof(*lagrangian->is_open) * lagrangian->homes.n_sites);
        memcpy(lagrangian->price, lagrangian->best_price, sizeof(*lagrangian->price) * lagrangian->n_prices);
        memset(lagrangian->direction, 0, sizeof(*lagrangian->direction) * lagrangian->n_prices);
}

bool lagrangian_is_settled(const struct lagrangian *lagrangian) {
        return lagrangian->length <= shortest;
}

static void keep(struct lagrangian *lagrangian, int64_t bound) {
        size_t n_worth = lagrangian->n_penalties * (lagrangian->most_cores + 1u);

        lagrangian->best = bound;
        lagrangian->idle = 0;
        lagrangian->length = fmin(lagrangian->length * 1.1, lagrangian->homes.n_sites > 0 ? longest_at_home : longest);
        memcpy(lagrangian->best_price, lagrangian->price, sizeof(*lagrangian->price) * lagrangian->n_prices);
        memcpy(lagrangian->best_worth, lagrangian->worth, sizeof(*lagrangian->worth) * n_worth);
}

/* Back to the best prices, for shorter steps from there. Returns the bound. */
static int64_t shorten(struct lagrangian *lagrangian) {
        lagrangian->idle = 0;
        lagrangian->length *= shorter;
        memcpy(lagrangian->price, lagrangian->best_price, sizeof(*lagrangian->price) * lagrangian->n_prices);
        memset(lagrangian->direction, 0, sizeof(*lagrangian->direction) * lagrangian->n_prices);
        return lagrangian_evaluate(lagrangian);
}

/* Where jobs run, the first plans are so bad that what they cost says little. */
static int64_t slack_of(const struct lagrangian *lagrangian, int64_t goal, int64_t bound) {
        int64_t most = (lagrangian->best > 0 ? lagrangian->best : goal) / CLOSE;

        return lagrangian->homes.n_sites == 0 || goal - bound < most ? goal - bound : most;
}

/* No plan costs less. */
static int64_t known(const struct lagrangian *lagrangian) {
        return -(-lagrangian->best >> lagrangian->shift);
}

int64_t lagrangian_raise(struct lagrangian *lagrangian, int64_t cost, const struct deadline *deadline, int64_t until_usec,
                         uint32_t steps) {
        int64_t goal = cost * ((int64_t) 1 << lagrangian->shift), slack = 0;
        uint32_t parts = lagrangian->homes.n_sites > 0 ? PARTS : 1;

        for (uint32_t i = 0;
             i < steps && !lagrangian_is_settled(lagrangian) && (i == 0 || deadline_left_usec(deadline) > until_usec); i++) {
                if (i % parts == 0) {
                        int64_t bound = evaluate(lagrangian, 0, 1);

                        if (bound > lagrangian->best)
                                keep(lagrangian, bound);
                        else if ((lagrangian->idle += (int) parts) > PATIENCE)
                                bound = shorten(lagrangian);
                        if (bound >= goal)
                                break;
                        slack = slack_of(lagrangian, goal, bound);
                } else
                        (void) evaluate(lagrangian, i % parts, parts);
                lagrangian_step(lagrangian, slack, lagrangian->length);
        }
        return known(lagrangian);
}

const int32_t *lagrangian_best_worth(const struct lagrangian *lagrangian, int64_t penalty) {
        for (uint32_t k = 0; k < lagrangian->n_penalties; k++)
                if (lagrangian->penalties[k] == penalty)
                        return lagrangian->best_worth + k * (lagrangian->most_cores + 1u);
        return NULL;
}

void lagrangian_list_site_worth(struct lagrangian *lagrangian, int32_t *ret_worth) {
        size_t width = lagrangian->most_cores + 1u;

        find_most(lagrangian);
        for (uint32_t k = 0; k < lagrangian->n_penalties; k++) {
                uint32_t n_rows = fill_rows(lagrangian, lagrangian->penalties[k], most_cores_of(lagrangian, k));

                for (uint32_t i = 0; i < lagrangian->homes.n_sites; i++) {
                        const struct site *site = &lagrangian->homes.sites[i];

                        if (site->penalty == lagrangian->penalties[k])
                                memcpy(ret_worth + i * width, add_site_rows(lagrangian, site, n_rows),
                                       sizeof(*ret_worth) * (site->cores + 1u));
                }
        }
}
