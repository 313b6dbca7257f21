#include "policies/distrib/filling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/vectorised.h"

enum {
        SPARE_NODES = 60, /* nodes of the largest size looked at beyond what a job needs, all penalties together, */
        LEAST_SPARE = 12, /* but at least so many */
        CLASS_BUNDLES = 18, /* of a class, on the average */
        PIECE_TRIES = 16,
};

bool filling_init(struct filling *filling, struct fitting *fitting) {
        size_t classes = shelf_classes(&fitting->shelf), ranks = fitting->most_ranks + 1ul;
        struct arena *arena = &fitting->arena;

        *filling = (struct filling) { .fitting = fitting, .max_bundles = (uint32_t) classes * CLASS_BUNDLES };
        filling->offers = arena_alloc(arena, classes + 1, sizeof(*filling->offers));
        filling->trace = arena_alloc(arena, classes + 1, sizeof(*filling->trace));
        filling->bundles = arena_alloc(arena, filling->max_bundles + 1ul, sizeof(*filling->bundles));
        filling->least = arena_alloc(arena, ranks, sizeof(*filling->least));
        filling->next = arena_alloc(arena, ranks, sizeof(*filling->next));
        return !arena->failed;
}

void filling_finish(struct filling *filling) {
        free(filling->taken);
}

double filling_price(const struct fitting *fitting, const struct fit_job *job, uint32_t class) {
        uint32_t free_cores = class % fitting->shelf.stride, ranks = free_cores < job->left ? free_cores : job->left;
        int64_t penalty = fitting->shelf.penalties[class / fitting->shelf.stride];

        return (double) job->priority * ((double) fitting->weight + (double) penalty * ranks) + fitting->worth[class];
}

static int compare_offers(const void *a, const void *b) {
        const struct offer *x = a, *y = b;
        double price_x = x->price / x->free_cores, price_y = y->price / y->free_cores;

        if (price_x != price_y)
                return price_x < price_y ? -1 : 1;
        return x->class < y->class ? -1 : 1;
}

/* The classes there are, the cheapest for each core first; as many of them are used as the job could need. */
static void list_offers(struct filling *filling, const struct fit_job *job) {
        const struct shelf *shelf = &filling->fitting->shelf;
        uint32_t spare = SPARE_NODES / shelf->n_penalties > LEAST_SPARE ? SPARE_NODES / shelf->n_penalties : LEAST_SPARE;
        uint64_t enough = job->left + (uint64_t) spare * shelf->stride, cores = 0;

        filling->n_offers = 0;
        for (uint32_t p = 0; p < shelf->n_penalties; p++)
                for (uint32_t f = 1; f <= shelf->top[p]; f++) {
                        uint32_t class = p * shelf->stride + f;

                        if (shelf->count[class] > 0)
                                filling->offers[filling->n_offers++] =
                                        (struct offer) { .class = class,
                                                         .free_cores = f,
                                                         .count = shelf->count[class],
                                                         .price = filling_price(filling->fitting, job, class) };
                }
        qsort(filling->offers, filling->n_offers, sizeof(*filling->offers), compare_offers);
        for (filling->n_used = 0; filling->n_used < filling->n_offers && cores < enough; filling->n_used++) {
                const struct offer *offer = &filling->offers[filling->n_used];

                cores += (uint64_t) offer->free_cores * offer->count;
        }
}

/* Nodes to be filled, in bundles of 1, 2, 4, .. so that every number can be had. */
static int list_bundles(struct filling *filling, uint32_t ranks) {
        size_t bytes;

        filling->n_bundles = 0;
        for (uint32_t i = 0; i < filling->n_used; i++) {
                const struct offer *offer = &filling->offers[i];
                uint32_t left = ranks / offer->free_cores < offer->count ? ranks / offer->free_cores : offer->count;

                for (uint32_t k = 1; left > 0; k *= 2) {
                        uint32_t nodes = k < left ? k : left;

                        if (filling->n_bundles == filling->max_bundles)
                                return -ENOMEM;
                        filling->bundles[filling->n_bundles++] = (struct bundle) { i, nodes };
                        left -= nodes;
                }
        }
        bytes = (size_t) filling->n_bundles * (ranks + 1u);
        if (bytes > filling->taken_bytes) {
                free(filling->taken);
                filling->taken = malloc(2 * bytes);
                filling->taken_bytes = filling->taken ? 2 * bytes : 0;
                if (!filling->taken)
                        return -ENOMEM;
        }
        return 0;
}

/* With nodes that hold `size` ranks together for `price`, where that is less than without them. */
VECTORISED static void take(const float *restrict from, float *restrict to, uint8_t *restrict taken, uint32_t size, uint32_t ranks,
                            float price) {
        memcpy(to, from, sizeof(*to) * size);
        memset(taken, 0, size);
        for (size_t m = size; m <= ranks; m++) {
                float with = from[m - size] + price;

                to[m] = with < from[m] ? with : from[m];
        }
        for (size_t m = size; m <= ranks; m++)
                taken[m] = to[m] < from[m];
}

/* least[m]: of filling nodes with m ranks together. */
static void fill(struct filling *filling, uint32_t ranks) {
        for (uint32_t m = 0; m <= ranks; m++)
                filling->least[m] = m == 0 ? 0 : INFINITY;
        for (uint32_t i = 0; i < filling->n_bundles; i++) {
                const struct bundle *bundle = &filling->bundles[i];
                const struct offer *offer = &filling->offers[bundle->offer];
                float *swap = filling->least;

                take(filling->least, filling->next, filling->taken + (size_t) i * (ranks + 1u), bundle->nodes * offer->free_cores,
                     ranks, (float) (bundle->nodes * offer->price));
                filling->least = filling->next;
                filling->next = swap;
        }
}

/* How many nodes of each offer are filled to get `ranks` together. */
static void trace_fill(struct filling *filling, uint32_t ranks, uint32_t stride) {
        memset(filling->trace, 0, sizeof(*filling->trace) * (filling->n_offers + 1u));
        for (uint32_t i = filling->n_bundles; i-- > 0 && ranks > 0;)
                if (filling->taken[(size_t) i * stride + ranks]) {
                        filling->trace[filling->bundles[i].offer] += filling->bundles[i].nodes;
                        ranks -= filling->bundles[i].nodes * filling->offers[filling->bundles[i].offer].free_cores;
                }
}

/* How many ranks on a node of the offer that has room for more, where the others fill nodes, cost less than `*best`, all together: that
 * is the new best. 0: none do. */
static uint32_t best_part(const struct filling *filling, const struct fit_job *job, const struct offer *offer, double *best) {
        const struct fitting *fitting = filling->fitting;
        const float *least = filling->least + job->left;
        const double *worth = fitting->worth + offer->class;
        uint32_t row = offer->class / fitting->shelf.stride, part = 0;
        double piece = (double) job->priority * (double) fitting->weight + *worth;
        double rank = (double) job->priority * (double) fitting->shelf.penalties[row];

        for (uint32_t x = 1; x < offer->free_cores && x <= job->left; x++, least--, worth--) {
                double price = least[-1] + piece + rank * x - worth[-1];

                if (price < *best) {
                        *best = price;
                        part = x;
                }
        }
        return part;
}

/* Nodes filled, and at most one in part. */
static int choose_part(struct filling *filling, const struct fit_job *job, uint32_t *ret_part) {
        for (uint32_t i = 0; i < filling->n_used; i++)
                filling->offers[i].banned = false;
        for (int tries = 0; tries < PIECE_TRIES; tries++) {
                double best = filling->least[job->left];
                uint32_t offer = filling->n_offers, part = 0, x;

                for (uint32_t i = 0; i < filling->n_used; i++)
                        if (!filling->offers[i].banned && (x = best_part(filling, job, &filling->offers[i], &best)) > 0) {
                                offer = i;
                                part = x;
                        }
                if (isinf(best))
                        return -ENOSPC;
                trace_fill(filling, job->left - part, job->left + 1);
                *ret_part = part;
                if (part == 0 || filling->trace[offer] < filling->offers[offer].count)
                        return (int) offer;
                filling->offers[offer].banned = true;
        }
        return -ENOSPC;
}

int filling_choose(struct filling *filling, const struct fit_job *job, uint32_t *ret_part) {
        int r = list_bundles(filling, job->left);

        if (r < 0)
                return r;
        fill(filling, job->left);
        return choose_part(filling, job, ret_part);
}

/* On a node of the class. */
static void put_piece(struct filling *filling, struct fit_job *job, uint32_t class, uint32_t ranks) {
        fitting_add_piece(filling->fitting, job, (uint32_t) filling->fitting->shelf.first[class], ranks);
}

int filling_put_left(struct filling *filling, struct fit_job *job) {
        uint32_t part = 0;
        int offer;

        list_offers(filling, job);
        offer = filling_choose(filling, job, &part);
        if (offer < 0)
                return offer;
        /* The part first: its class must not have been emptied. */
        if (part > 0)
                put_piece(filling, job, filling->offers[offer].class, part);
        for (uint32_t i = 0; i < filling->n_used; i++)
                for (uint32_t k = 0; k < filling->trace[i]; k++)
                        put_piece(filling, job, filling->offers[i].class, filling->offers[i].free_cores);
        job->left = 0;
        fitting_settle(filling->fitting, job);
        return 0;
}

int filling_put(struct filling *filling, struct fit_job *job) {
        job->n_pieces = 0;
        job->left = job->ranks;
        return filling_put_left(filling, job);
}

/* All of it, by these pieces. */
static void put_wanted(struct filling *filling, struct fit_job *job, const struct fit_piece *wanted, uint32_t n_wanted) {
        job->n_pieces = 0;
        for (uint32_t i = 0; i < n_wanted; i++)
                fitting_add_piece(filling->fitting, job, wanted[i].node, wanted[i].ranks);
        fitting_settle(filling->fitting, job);
}

int filling_put_anew(struct filling *filling, struct fit_job *jobs[], uint32_t n, const struct fit_piece *wanted,
                     uint32_t n_wanted) {
        struct fitting *fitting = filling->fitting;
        int64_t before = 0, after = 0;
        uint32_t in = 0;
        int r = 0;

        for (uint32_t i = 0; i < n; i++) {
                fitting_remember(jobs[i]);
                before += jobs[i]->cost;
                fitting_take_out(fitting, jobs[i]);
        }
        for (; in < n && after <= before; after += jobs[in++]->cost) {
                if (in == 0 && n_wanted > 0)
                        put_wanted(filling, jobs[0], wanted, n_wanted);
                else if ((r = filling_put(filling, jobs[in])) < 0)
                        break;
        }
        if (in == n && after <= before) {
                fitting->gain += before - after;
                return 0;
        }
        for (uint32_t i = 0; i < in; i++)
                fitting_take_out(fitting, jobs[i]);
        for (uint32_t i = 0; i < n; i++)
                fitting_restore(fitting, jobs[i]);
        return r == -ENOSPC ? 0 : r;
}
