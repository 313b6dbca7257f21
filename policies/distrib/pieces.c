#include "policies/distrib/pieces.h"

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
        PARTS = 8, /* of the sites, one of which looks at the prices anew between two steps */
        HOME_WORK = 20, /* additions, for each size of a piece of a job that runs on a node, besides */
        PATIENCE = 40, /* steps without a gain until the step gets shorter */
};

static const double momentum = 0.7, first_length = 0.1, longest = 0.2, shorter = 0.6, shortest = 0.0005;
/* Where jobs run, first prices are far off, for all sizes of a job alike: it shortens the way to change them together. */
static const double longest_at_home = 0.25, rank_share = 3, piece_share = 30;
/* Of an addition in a dynamic programme. */
static const double addition_usec = 0.0002;

/* ---- making ---- */

static void list_penalties(struct pieces *pieces) {
        const struct relaxation *classes = pieces->classes;

        for (uint32_t i = 0; i < classes->n_classes; i++) {
                uint32_t k = 0;

                while (k < pieces->n_penalties && pieces->penalties[k] != classes->classes[i].penalty)
                        k++;
                if (k == pieces->n_penalties)
                        pieces->penalties[pieces->n_penalties++] = classes->classes[i].penalty;
                pieces->penalty_of[i] = k;
                pieces->nodes[i] = pieces->empty[i] = classes->classes[i].nodes;
        }
}

/* Jobs that run somewhere, or whose groups are not split, are of a kind of their own. */
static void list_kinds(struct pieces *pieces, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = pieces->classes;
        bool runs = any_job_runs(snapshot);

        for (uint32_t t = 0; t < classes->n_demands; t++) {
                const struct job_demand *demand = &classes->demands[t];
                uint32_t size = pieces->group_size[t] = snapshot->jobs[demand->job].group_size;

                pieces->has_groups |= size > 1;
                if (runs || t == 0 || demand->priority != demand[-1].priority || size > 1 || pieces->group_size[t - 1] > 1)
                        pieces->kinds[pieces->n_kinds++].first = t;
                pieces->kinds[pieces->n_kinds - 1].end = t + 1;
        }
}

static void list_sizes(struct pieces *pieces) {
        const struct relaxation *classes = pieces->classes;

        for (uint32_t i = 0; i < classes->n_classes; i++)
                if (classes->classes[i].cores > pieces->most_cores)
                        pieces->most_cores = classes->classes[i].cores;
        for (uint32_t t = 0; t < classes->n_demands; t++) {
                uint32_t ranks = classes->demands[t].ranks;

                pieces->ranks[t] = ranks;
                pieces->largest[t] = ranks < pieces->most_cores ? ranks : pieces->most_cores;
                pieces->most_ranks = ranks > pieces->most_ranks ? ranks : pieces->most_ranks;
        }
        for (struct kind *kind = pieces->kinds; kind < pieces->kinds + pieces->n_kinds; kind++) {
                for (uint32_t t = kind->first; t < kind->end; t++) {
                        pieces->first[t] = pieces->n_prices;
                        kind->largest = pieces->largest[t] > kind->largest ? pieces->largest[t] : kind->largest;
                }
                pieces->n_prices += kind->largest + 1u;
        }
}

/* By the relaxation: a piece costs what it does on the node where that is least. Unscaled, into `ret_price`; returns the highest. */
static double first_prices(const struct pieces *pieces, double *ret_price) {
        const struct relaxation *classes = pieces->classes;
        double highest = 0;
        double each[MAX_CORES + 2];

        for (const struct kind *kind = pieces->kinds; kind < pieces->kinds + pieces->n_kinds; kind++) {
                double priority = (double) classes->demands[kind->first].priority;

                for (uint32_t x = 0; x <= pieces->most_cores + 1; x++)
                        each[x] = INFINITY;
                for (uint32_t i = 0; i < classes->n_classes; i++) {
                        const struct node_class *class = &classes->classes[i];

                        each[class->cores] = fmin(each[class->cores], priority * (double) class->penalty +
                                                                              ldexp((double) class->price, -classes->shift));
                }
                for (uint32_t x = pieces->most_cores; x > 0; x--) {
                        each[x] = fmin(each[x], each[x + 1]);
                        if (x > kind->largest)
                                continue;
                        ret_price[pieces->first[kind->first] + x] = priority * (double) pieces->weight + x * each[x];
                        highest = fmax(highest, ret_price[pieces->first[kind->first] + x]);
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
static void rule_out_sizes(struct pieces *pieces, uint32_t demand, const struct rm_job *job) {
        uint32_t rest = job->ranks % job->group_size;
        size_t first = pieces->first[demand];

        for (uint32_t x = 1; x <= pieces->largest[demand]; x++)
                if (x % job->group_size != 0 && (x < rest || (x - rest) % job->group_size != 0))
                        pieces->price[first + x] = pieces->best_price[first + x] = pieces->most_price;
}

/* Ranks have been used up, or are there again. */
static void find_most(struct pieces *pieces) {
        for (struct kind *kind = pieces->kinds; kind < pieces->kinds + pieces->n_kinds; kind++) {
                kind->most = kind->first;
                for (uint32_t t = kind->first + 1; t < kind->end; t++)
                        if (pieces->ranks[t] > pieces->ranks[kind->most])
                                kind->most = t;
        }
}

static bool make_lists(struct pieces *pieces, const struct rm_snapshot *snapshot) {
        size_t n_classes = pieces->classes->n_classes, n_demands = pieces->classes->n_demands;
        struct arena *arena = &pieces->arena;

        pieces->penalties = arena_alloc(arena, n_classes, sizeof(*pieces->penalties));
        pieces->penalty_of = arena_alloc(arena, n_classes, sizeof(*pieces->penalty_of));
        pieces->nodes = arena_alloc(arena, n_classes, sizeof(*pieces->nodes));
        pieces->empty = arena_alloc(arena, n_classes, sizeof(*pieces->empty));
        pieces->ranks = arena_alloc(arena, n_demands, sizeof(*pieces->ranks));
        pieces->largest = arena_alloc(arena, n_demands, sizeof(*pieces->largest));
        pieces->group_size = arena_alloc(arena, n_demands, sizeof(*pieces->group_size));
        pieces->first = arena_alloc(arena, n_demands, sizeof(*pieces->first));
        pieces->kinds = arena_alloc(arena, n_demands, sizeof(*pieces->kinds));
        if (arena->failed || n_classes == 0 || n_demands == 0)
                return false;
        list_penalties(pieces);
        list_kinds(pieces, snapshot);
        list_sizes(pieces);
        find_most(pieces);
        return pieces->most_cores <= MAX_CORES && pieces->most_ranks <= MAX_RANKS;
}

static bool make_prices(struct pieces *pieces) {
        size_t width = pieces->most_cores + 1u, n_demands = pieces->classes->n_demands;
        struct arena *arena = &pieces->arena;

        pieces->price = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->price));
        pieces->best_price = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->best_price));
        pieces->over = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->over));
        pieces->direction = arena_alloc(arena, pieces->n_prices, sizeof(*pieces->direction));
        pieces->worth = arena_alloc(arena, pieces->n_penalties * width, sizeof(*pieces->worth));
        pieces->best_worth = arena_alloc(arena, pieces->n_penalties * width, sizeof(*pieces->best_worth));
        pieces->least = arena_alloc(arena, pieces->most_ranks + 1u, sizeof(*pieces->least));
        pieces->group_price = arena_alloc(arena, width, sizeof(*pieces->group_price));
        pieces->group_least = arena_alloc(arena, pieces->most_ranks + 1u, sizeof(*pieces->group_least));
        pieces->value = arena_alloc(arena, width, sizeof(*pieces->value));
        pieces->single = arena_alloc(arena, pieces->n_kinds * width, sizeof(*pieces->single));
        pieces->several = arena_alloc(arena, pieces->n_kinds * width, sizeof(*pieces->several));
        pieces->doubled = arena_alloc(arena, width, sizeof(*pieces->doubled));
        pieces->order = arena_alloc(arena, n_demands, sizeof(*pieces->order));
        return !arena->failed && scale_prices(pieces);
}

/* Each site is a node of its own. False: no memory. */
static bool make_sites(struct pieces *pieces, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = pieces->classes;
        size_t width = pieces->most_cores + 1u, cores = 0;

        if (!homes_init(&pieces->homes, classes, snapshot, pieces->shift, pieces->most_price / 2))
                return false;
        for (uint32_t k = 0; k < pieces->homes.n_sites; k++) {
                const struct site *site = &pieces->homes.sites[k];
                uint32_t i = relaxation_find(classes, site->penalty, site->cores);

                pieces->empty[i]--;
                pieces->nodes[i]--;
                cores += site->cores;
        }
        pieces->is_open = arena_alloc(&pieces->arena, pieces->homes.n_sites, sizeof(*pieces->is_open));
        pieces->site_worth = arena_alloc(&pieces->arena, pieces->homes.n_sites, sizeof(*pieces->site_worth));
        pieces->n_sold = arena_alloc(&pieces->arena, pieces->homes.n_sites, sizeof(*pieces->n_sold));
        pieces->first_sold = arena_alloc(&pieces->arena, pieces->homes.n_sites, sizeof(*pieces->first_sold));
        pieces->sold = arena_alloc(&pieces->arena, cores, sizeof(*pieces->sold));
        pieces->class_sold = arena_alloc(&pieces->arena, width, sizeof(*pieces->class_sold));
        if (pieces->arena.failed)
                return false;
        for (uint32_t k = 0, first = 0; k < pieces->homes.n_sites; first += pieces->homes.sites[k++].cores)
                pieces->first_sold[k] = first;
        memset(pieces->is_open, true, sizeof(*pieces->is_open) * pieces->homes.n_sites);
        pieces->gain = arena_alloc(&pieces->arena, (classes->n_demands + (size_t) pieces->homes.most_homes + 1) * width,
                                   sizeof(*pieces->gain));
        return pieces->gain;
}

struct pieces *pieces_create(const struct relaxation *relaxation, const struct rm_snapshot *snapshot) {
        struct pieces *pieces = calloc(1, sizeof(*pieces));

        if (!pieces)
                return NULL;
        pieces->classes = relaxation;
        pieces->weight = snapshot->params.distribution_weight;
        pieces->best = INT64_MIN;
        pieces->length = first_length;
        if (!make_lists(pieces, snapshot) || !make_prices(pieces) || !make_sites(pieces, snapshot)) {
                pieces_destroy(pieces);
                return NULL;
        }
        for (uint32_t t = 0; t < relaxation->n_demands; t++)
                rule_out_sizes(pieces, t, &snapshot->jobs[relaxation->demands[t].job]);
        return pieces;
}

void pieces_destroy(struct pieces *pieces) {
        if (!pieces)
                return;
        homes_finish(&pieces->homes);
        arena_finish(&pieces->arena);
        free(pieces);
}

double pieces_work_usec(const struct pieces *pieces) {
        double nodes = (double) pieces->n_penalties * pieces->most_cores / 2, work = 0;

        for (uint32_t k = 0; k < pieces->n_kinds; k++) {
                const struct kind *kind = &pieces->kinds[k];

                work += kind->largest * (nodes + pieces->ranks[kind->most] + kind->end - kind->first);
        }
        for (uint32_t i = 0; i < pieces->homes.n_sites; i++)
                work += pieces->homes.sites[i].n_homes * (double) pieces->homes.sites[i].cores *
                        (HOME_WORK + pieces->homes.sites[i].cores);
        return work * addition_usec;
}

/* ---- what jobs buy ---- */

CUT_DEFINE(cut, int32_t, INT32_MAX)

/* The least that `ranks` cost where one piece has the smaller last group, `rest` of them. */
static int32_t cut_with_rest(const struct pieces *pieces, uint32_t demand, uint32_t ranks, uint32_t rest) {
        const int32_t *price = pieces->price + pieces->first[demand];
        uint32_t size = pieces->group_size[demand], most = ranks < pieces->largest[demand] ? ranks : pieces->largest[demand];
        int32_t least = INT32_MAX;

        for (uint32_t x = rest; x <= most; x += size) {
                int32_t sum = price[x] + pieces->group_least[(ranks - x) / size];

                least = sum < least ? sum : least;
        }
        return least;
}

/* Full groups by themselves: then it is clear what goes with the smaller last one, of which there is one only. */
static void cut_groups(const struct pieces *pieces, uint32_t demand, uint32_t ranks, int32_t *least) {
        uint32_t size = pieces->group_size[demand], rest = pieces->classes->demands[demand].ranks % size;
        const int32_t *price = pieces->price + pieces->first[demand];

        for (uint32_t k = 0; k * size <= pieces->largest[demand]; k++)
                pieces->group_price[k] = price[k * size];
        cut(pieces->group_least, ranks / size, pieces->group_price, pieces->largest[demand] / size);
        for (uint32_t m = 0; m <= ranks; m++)
                if (m % size == 0)
                        least[m] = pieces->group_least[m / size];
                else
                        least[m] = m % size == rest ? cut_with_rest(pieces, demand, m, rest) : pieces->most_price;
}

void pieces_cut(const struct pieces *pieces, uint32_t demand, uint32_t ranks, int32_t *least) {
        if (pieces->group_size[demand] == 1)
                cut(least, ranks, pieces->price + pieces->first[demand], pieces->largest[demand]);
        else
                cut_groups(pieces, demand, ranks, least);
}

/* Returns what the job pays, when it is known what any number of ranks does. */
static int64_t buy(struct pieces *pieces, uint32_t demand) {
        const int32_t *price = pieces->price + pieces->first[demand], *least = pieces->least;
        uint32_t left = pieces->ranks[demand];
        int64_t paid = least[left];

        while (left > 0) {
                uint32_t x = left < pieces->largest[demand] ? left : pieces->largest[demand];

                while (x > 1 && (!pieces_is_possible(pieces, demand, left, x) || least[left - x] + price[x] != least[left]))
                        x--;
                pieces->over[pieces->first[demand] + x]++;
                left -= x;
        }
        return paid;
}

/* Returns what jobs of the kind pay. */
static int64_t buy_all(struct pieces *pieces, const struct kind *kind) {
        int64_t sum = 0;

        pieces_cut(pieces, kind->most, pieces->ranks[kind->most], pieces->least);
        for (uint32_t t = kind->first; t < kind->end; t++)
                if (pieces->ranks[t] > 0)
                        sum += buy(pieces, t);
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

void pieces_choose(const int32_t *from, int32_t *to, const int32_t *value, uint32_t largest, uint32_t cores) {
        choose(from, to, value, largest, cores);
}

bool pieces_cost(const struct pieces *pieces, uint32_t demand, int64_t penalty, int32_t *ret_fixed, int32_t *ret_each) {
        int64_t priority = pieces->classes->demands[demand].priority, scale = (int64_t) 1 << pieces->shift;
        int64_t fixed = priority * pieces->weight * scale, each = priority * penalty * scale;

        if (fixed < pieces->most_price)
                *ret_fixed = (int32_t) fixed;
        if (each < pieces->most_price)
                *ret_each = (int32_t) each;
        return fixed < pieces->most_price && each < pieces->most_price;
}

/* What nodes of the penalty gain by each piece of the job: value[x]. False: nothing. */
static bool value_pieces(struct pieces *pieces, uint32_t demand, int64_t penalty, uint32_t largest) {
        const int32_t *price = pieces->price + pieces->first[demand];
        int32_t most = 0, cost, each;

        if (!pieces_cost(pieces, demand, penalty, &cost, &each))
                return false;
        for (uint32_t x = 1; x <= largest; x++) {
                cost += each;
                pieces->value[x] = price[x] < pieces->most_price ? price[x] - cost : 0;
                most = pieces->value[x] > most ? pieces->value[x] : most;
        }
        return most > 0;
}

static uint32_t largest_left(const struct pieces *pieces, uint32_t demand, uint32_t cores) {
        uint32_t largest = pieces->largest[demand] < cores ? pieces->largest[demand] : cores;

        return largest < pieces->ranks[demand] ? largest : pieces->ranks[demand];
}

static bool has_several(const struct kind *kind) {
        return kind->end - kind->first > 1;
}

/* As many pieces of the kind as the node likes, out of what each of them brings: in twos, fours and so on. */
static void combine(struct pieces *pieces, uint32_t k, uint32_t largest, uint32_t cores) {
        size_t width = pieces->most_cores + 1u;
        int32_t *single = pieces->single + k * width, *several = pieces->several + k * width;

        memset(single, 0, sizeof(*single) * width);
        memcpy(single + 1, pieces->value + 1, sizeof(*single) * largest);
        several[0] = 0;
        for (uint32_t c = 1; c <= cores; c++)
                several[c] = single[c] > several[c - 1] ? single[c] : several[c - 1];
        for (;;) {
                choose(several, pieces->doubled, several, cores, cores);
                if (memcmp(several, pieces->doubled, sizeof(*several) * (cores + 1u)) == 0)
                        return;
                memcpy(several, pieces->doubled, sizeof(*several) * (cores + 1u));
        }
}

/* The rows of gain, for nodes of a penalty with up to `cores`. Returns how many follow the first. */
static uint32_t fill_rows(struct pieces *pieces, int64_t penalty, uint32_t cores) {
        size_t width = pieces->most_cores + 1u;
        uint32_t n = 0;

        memset(pieces->gain, 0, sizeof(*pieces->gain) * width);
        for (uint32_t k = 0; k < pieces->n_kinds; k++) {
                const struct kind *kind = &pieces->kinds[k];
                uint32_t largest = largest_left(pieces, kind->most, cores);
                int32_t *from = pieces->gain + n * width;

                if (largest == 0 || !value_pieces(pieces, kind->first, penalty, largest))
                        continue;
                if (has_several(kind)) {
                        combine(pieces, k, largest, cores);
                        choose(from, from + width, pieces->several + k * width, cores, cores);
                } else
                        choose(from, from + width, pieces->value, largest, cores);
                pieces->order[n++] = k;
        }
        return n;
}

/* The largest piece by which the row reaches what it does with `left` cores. */
static uint32_t trace_piece(const struct pieces *pieces, const int32_t *from, const int32_t *value, uint32_t left,
                            uint32_t largest) {
        uint32_t width = pieces->most_cores + 1, x = largest;

        while (x > 1 && from[left - x] + value[x] != from[width + left])
                x--;
        return x;
}

/* Of which pieces of the kind so many cores hold the most. Returns how many are sold then. */
static uint32_t split(const struct pieces *pieces, uint32_t k, uint32_t cores, uint32_t *sold, uint32_t n) {
        size_t width = pieces->most_cores + 1u;
        const int32_t *single = pieces->single + k * width, *several = pieces->several + k * width;

        for (uint32_t x; several[cores] > 0; cores -= x) {
                while (several[cores] == several[cores - 1])
                        cores--;
                x = cores;
                if (single[cores] != several[cores])
                        for (x = 1; single[x] + several[cores - x] != several[cores];)
                                x++;
                sold[n++] = (uint32_t) pieces->first[pieces->kinds[k].first] + x;
        }
        return n;
}

/* Follow the rows back from where `left` cores of a node of the penalty are used. Which prices its pieces have, into `sold`. Returns
 * how many there are. */
static uint32_t sell(struct pieces *pieces, uint32_t n_rows, int64_t penalty, uint32_t left, uint32_t *sold) {
        size_t width = pieces->most_cores + 1u;
        uint32_t n = 0;

        for (uint32_t row = n_rows; row-- > 0 && left > 0;) {
                const int32_t *from = pieces->gain + row * width;
                uint32_t k = pieces->order[row], x;
                const struct kind *kind = &pieces->kinds[k];

                if (from[width + left] == from[left])
                        continue;
                if (has_several(kind)) {
                        x = trace_piece(pieces, from, pieces->several + k * width, left, left);
                        n = split(pieces, k, x, sold, n);
                } else {
                        x = largest_left(pieces, kind->most, left);
                        (void) value_pieces(pieces, kind->first, penalty, x);
                        x = trace_piece(pieces, from, pieces->value, left, x);
                        sold[n++] = (uint32_t) pieces->first[kind->first] + x;
                }
                left -= x;
        }
        return n;
}

/* As value_pieces(), where groups of the job run on the node. Costs beyond what this is made for count less. */
static bool value_at_home(struct pieces *pieces, const struct home *home, int64_t penalty, uint32_t largest) {
        const int32_t *price = pieces->price + pieces->first[home->demand];
        int32_t most = 0, cost = pieces->most_price, each = pieces->most_price;

        (void) pieces_cost(pieces, home->demand, penalty, &cost, &each);
        for (uint32_t x = 1; x <= largest; x++) {
                cost += each;
                pieces->value[x] = price[x] < pieces->most_price ? price[x] - cost + home_saves(home, x) : 0;
                most = pieces->value[x] > most ? pieces->value[x] : most;
        }
        return most > 0;
}

/* Rows for the jobs that run on the node, behind those of all jobs: who has a place by the latter does better by the former, so
 * nobody gets two. Returns the last one: what the node gains. */
static int32_t *add_site_rows(struct pieces *pieces, const struct site *site, uint32_t n_rows) {
        size_t width = pieces->most_cores + 1u;
        int32_t *from = pieces->gain + n_rows * width;

        for (uint32_t k = 0; k < site->n_homes; k++, from += width) {
                uint32_t largest = largest_left(pieces, site->homes[k].demand, site->cores);

                if (value_at_home(pieces, &site->homes[k], site->penalty, largest))
                        choose(from, from + width, pieces->value, largest, site->cores);
                else
                        memcpy(from + width, from, sizeof(*from) * (site->cores + 1u));
        }
        return from;
}

/* What the site sells, and what it gains by that. */
static void sell_site(struct pieces *pieces, uint32_t i, uint32_t n_rows) {
        const struct site *site = &pieces->homes.sites[i];
        const int32_t *from = add_site_rows(pieces, site, n_rows);
        uint32_t *sold = pieces->sold + pieces->first_sold[i], n = 0, left = site->cores;
        size_t width = pieces->most_cores + 1u;

        pieces->site_worth[i] = from[left];

        for (uint32_t k = site->n_homes; k-- > 0 && left > 0;) {
                uint32_t t = site->homes[k].demand, x = largest_left(pieces, t, left);

                from -= width;
                if (from[width + left] == from[left] || !value_at_home(pieces, &site->homes[k], site->penalty, x))
                        continue;
                x = trace_piece(pieces, from, pieces->value, left, x);
                sold[n++] = (uint32_t) pieces->first[t] + x;
                left -= x;
        }
        pieces->n_sold[i] = n + sell(pieces, n_rows, site->penalty, left, sold + n);
}

/* Is there a node of it? */
static bool is_sold(const struct pieces *pieces, uint32_t class) {
        return pieces->nodes[class] > 0 || pieces->empty[class] < pieces->classes->classes[class].nodes;
}

static uint32_t most_cores_of(const struct pieces *pieces, uint32_t penalty) {
        const struct relaxation *classes = pieces->classes;
        uint32_t cores = 0;

        for (uint32_t i = 0; i < classes->n_classes; i++)
                if (pieces->penalty_of[i] == penalty && is_sold(pieces, i) && classes->classes[i].cores > cores)
                        cores = classes->classes[i].cores;
        return cores;
}

/* Returns what nodes of the penalty gain that nobody runs on. Leaves the rows of gain. */
static int64_t sell_empty(struct pieces *pieces, uint32_t penalty, uint32_t *ret_n_rows) {
        const struct relaxation *classes = pieces->classes;
        size_t width = pieces->most_cores + 1u;
        int32_t *worth = pieces->worth + penalty * width, *last;
        uint32_t cores = most_cores_of(pieces, penalty), n;
        int64_t sum = 0;

        n = fill_rows(pieces, pieces->penalties[penalty], cores);
        last = pieces->gain + n * width;
        for (uint32_t c = 0; c < width; c++)
                worth[c] = last[c < cores ? c : cores];
        for (uint32_t i = 0; n > 0 && i < classes->n_classes; i++)
                if (pieces->penalty_of[i] == penalty && pieces->nodes[i] > 0) {
                        uint32_t n_sold =
                                sell(pieces, n, pieces->penalties[penalty], classes->classes[i].cores, pieces->class_sold);

                        sum += (int64_t) last[classes->classes[i].cores] * pieces->nodes[i];
                        for (uint32_t k = 0; k < n_sold; k++)
                                pieces->over[pieces->class_sold[k]] -= (int32_t) pieces->nodes[i];
                }
        *ret_n_rows = n;
        return sum;
}

/* One in `parts` of the sites sells anew, those that are alike to `part`, and the others what they did before. Returns what all nodes of
 * the penalty gain, which is true if all sell anew. */
static int64_t sell_all(struct pieces *pieces, uint32_t penalty, uint32_t part, uint32_t parts) {
        uint32_t n_rows = 0;
        int64_t sum = sell_empty(pieces, penalty, &n_rows);

        for (uint32_t i = 0; i < pieces->homes.n_sites; i++) {
                if (!pieces->is_open[i] || pieces->homes.sites[i].penalty != pieces->penalties[penalty])
                        continue;
                if (i % parts == part)
                        sell_site(pieces, i, n_rows);
                sum += pieces->site_worth[i];
                for (uint32_t k = 0; k < pieces->n_sold[i]; k++)
                        pieces->over[pieces->sold[pieces->first_sold[i] + k]]--;
        }
        return sum;
}

/* ---- raising ---- */

static int64_t evaluate(struct pieces *pieces, uint32_t part, uint32_t parts) {
        int64_t sum = pieces->homes.moved;

        memset(pieces->over, 0, sizeof(*pieces->over) * pieces->n_prices);
        find_most(pieces);
        for (uint32_t k = 0; k < pieces->n_kinds; k++)
                if (pieces->ranks[pieces->kinds[k].most] > 0)
                        sum += buy_all(pieces, &pieces->kinds[k]);
        for (uint32_t k = 0; k < pieces->n_penalties; k++)
                sum -= sell_all(pieces, k, part, parts);
        return sum;
}

int64_t pieces_evaluate(struct pieces *pieces) {
        return evaluate(pieces, 0, 1);
}

/* What is over, and besides, for all sizes of a kind, so much of the ranks and of the pieces that are over as the shares say. */
static double turn(struct pieces *pieces, const struct kind *kind) {
        const int32_t *over = pieces->over + pieces->first[kind->first];
        float *direction = pieces->direction + pieces->first[kind->first];
        double ranks = 0, n = 0, square = 0;
        uint32_t largest = kind->largest;

        for (uint32_t x = 1; x <= largest && pieces->homes.n_sites > 0; x++) {
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

void pieces_step(struct pieces *pieces, int64_t slack, double length) {
        double square = 0, factor;

        for (uint32_t k = 0; k < pieces->n_kinds; k++)
                square += turn(pieces, &pieces->kinds[k]);
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
        for (uint32_t i = 0; i < pieces->classes->n_classes; i++)
                pieces->nodes[i] = pieces->empty[i];
        for (uint32_t t = 0; t < pieces->classes->n_demands; t++)
                pieces->ranks[t] = pieces->classes->demands[t].ranks;
        memset(pieces->is_open, true, sizeof(*pieces->is_open) * pieces->homes.n_sites);
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
        pieces->length = fmin(pieces->length * 1.1, pieces->homes.n_sites > 0 ? longest_at_home : longest);
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

/* Where jobs run, the first plans are so bad that what they cost says little. */
static int64_t slack_of(const struct pieces *pieces, int64_t goal, int64_t bound) {
        int64_t most = (pieces->best > 0 ? pieces->best : goal) / CLOSE;

        return pieces->homes.n_sites == 0 || goal - bound < most ? goal - bound : most;
}

/* No plan costs less. */
static int64_t known(const struct pieces *pieces) {
        return -(-pieces->best >> pieces->shift);
}

int64_t pieces_raise(struct pieces *pieces, int64_t cost, const struct deadline *deadline, int64_t until_usec, uint32_t steps) {
        int64_t goal = cost * ((int64_t) 1 << pieces->shift), slack = 0;
        uint32_t parts = pieces->homes.n_sites > 0 ? PARTS : 1;

        for (uint32_t i = 0; i < steps && !pieces_is_settled(pieces) && (i == 0 || deadline_left_usec(deadline) > until_usec);
             i++) {
                if (i % parts == 0) {
                        int64_t bound = evaluate(pieces, 0, 1);

                        if (bound > pieces->best)
                                keep(pieces, bound);
                        else if ((pieces->idle += (int) parts) > PATIENCE)
                                bound = shorten(pieces);
                        if (bound >= goal)
                                break;
                        slack = slack_of(pieces, goal, bound);
                } else
                        (void) evaluate(pieces, i % parts, parts);
                pieces_step(pieces, slack, pieces->length);
        }
        return known(pieces);
}

const int32_t *pieces_best_worth(const struct pieces *pieces, int64_t penalty) {
        for (uint32_t k = 0; k < pieces->n_penalties; k++)
                if (pieces->penalties[k] == penalty)
                        return pieces->best_worth + k * (pieces->most_cores + 1u);
        return NULL;
}

void pieces_list_site_worth(struct pieces *pieces, int32_t *ret_worth) {
        size_t width = pieces->most_cores + 1u;

        find_most(pieces);
        for (uint32_t k = 0; k < pieces->n_penalties; k++) {
                uint32_t n_rows = fill_rows(pieces, pieces->penalties[k], most_cores_of(pieces, k));

                for (uint32_t i = 0; i < pieces->homes.n_sites; i++) {
                        const struct site *site = &pieces->homes.sites[i];

                        if (site->penalty == pieces->penalties[k])
                                memcpy(ret_worth + i * width, add_site_rows(pieces, site, n_rows),
                                       sizeof(*ret_worth) * (site->cores + 1u));
                }
        }
}
