#include "policies/distrib/wishes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/vectorised.h"

enum {
        MOST_WISHES = 100, /* of a job */
        LANES = 8,         /* that a loop is vectorised by */
};

/* Of looking at a number of ranks of a job on a node. */
static const double look_usec = 0.0005;

/* What it takes to make them. */
struct listing {
        struct pieces *pieces;
        struct wishes *wishes;
        struct wish *all;   /* of one job: each class */
        int32_t *least;     /* of so many ranks of it */
        float *extra;       /* most_cores - x: what x ranks cost more on a node of the penalty than in the cheapest cut */
        float *worth;       /* penalties x (most_cores + 1): of so many cores of a node of it */
        struct arena arena;
};

/* ---- making ---- */

static int compare_wishes(const void *a, const void *b) {
        const struct wish *x = a, *y = b;

        if (x->loss != y->loss)
                return x->loss < y->loss ? -1 : 1;
        return x->class < y->class ? -1 : x->class > y->class;
}

/* The least of a[i] - b[i]. */
VECTORISED static float least_difference(const float *restrict a, const float *restrict b, uint32_t n) {
        float lanes[LANES], least = INFINITY;
        uint32_t i = 0;

        for (int k = 0; k < LANES; k++)
                lanes[k] = INFINITY;
        for (; i + LANES <= n; i += LANES)
                for (uint32_t k = 0; k < LANES; k++) {
                        float difference = a[i + k] - b[i + k];

                        lanes[k] = difference < lanes[k] ? difference : lanes[k];
                }
        for (; i < n; i++)
                least = a[i] - b[i] < least ? a[i] - b[i] : least;
        for (int k = 0; k < LANES; k++)
                least = lanes[k] < least ? lanes[k] : least;
        return least;
}

/* x ranks of the demand on a node with c cores lose extra[x] + worth[c] - worth[c - x]: for all classes of a penalty. */
static void wish_at(struct listing *listing, uint32_t demand, uint32_t penalty) {
        const struct pieces *pieces = listing->pieces;
        const struct relaxation *classes = pieces->classes;
        const float *worth = listing->worth + penalty * (pieces->most_cores + 1ul);
        uint32_t ranks = classes->demands[demand].ranks;
        double each = (double) classes->demands[demand].priority;

        for (uint32_t x = 1; x <= pieces->most_cores; x++) {
                float *extra = &listing->extra[pieces->most_cores - x];

                *extra = x > ranks ? INFINITY
                                   : (float) (each * ((double) pieces->weight + (double) pieces->penalties[penalty] * x) -
                                              ldexp(listing->least[ranks] - listing->least[ranks - x], -pieces->shift));
        }
        for (uint32_t i = 0; i < classes->n_classes; i++)
                if (pieces->penalty_of[i] == penalty) {
                        uint32_t cores = classes->classes[i].cores;
                        const float *extra = listing->extra + pieces->most_cores - cores;

                        listing->all[i] = (struct wish) { i, worth[cores] + least_difference(extra, worth, cores) };
                }
}

static void wish(struct listing *listing, uint32_t demand) {
        struct pieces *pieces = listing->pieces;
        struct wishes *wishes = listing->wishes;
        uint32_t n = pieces->classes->n_classes, ranks = pieces->classes->demands[demand].ranks;

        pieces_cut(pieces, demand, ranks, listing->least);
        wishes->ideal[demand] = ldexp(listing->least[ranks], -pieces->shift);
        for (uint32_t k = 0; k < pieces->n_penalties; k++)
                wish_at(listing, demand, k);
        qsort(listing->all, n, sizeof(*listing->all), compare_wishes);
        n = n < MOST_WISHES ? n : MOST_WISHES;
        memcpy(wishes->wishes + wishes->first[demand], listing->all, sizeof(*listing->all) * n);
        wishes->first[demand + 1] = wishes->first[demand] + n;
}

static bool wish_all(struct wishes *wishes, struct pieces *pieces) {
        struct listing listing = { .pieces = pieces, .wishes = wishes };
        size_t n_worth = pieces->n_penalties * (pieces->most_cores + 1ul);
        bool done;

        listing.all = arena_alloc(&listing.arena, wishes->classes->n_classes, sizeof(*listing.all));
        listing.least = arena_alloc(&listing.arena, pieces->most_ranks + 1ul, sizeof(*listing.least));
        listing.extra = arena_alloc(&listing.arena, pieces->most_cores + 1ul, sizeof(*listing.extra));
        listing.worth = arena_alloc(&listing.arena, n_worth, sizeof(*listing.worth));
        done = !listing.arena.failed;
        if (done)
                memcpy(pieces->price, pieces->best_price, sizeof(*pieces->price) * pieces->n_prices);
        for (size_t i = 0; done && i < n_worth; i++)
                listing.worth[i] = (float) ldexp(pieces->best_worth[i], -pieces->shift);
        for (uint32_t t = 0; done && t < wishes->classes->n_demands; t++)
                wish(&listing, t);
        arena_finish(&listing.arena);
        return done;
}

struct wishes *wishes_create(struct pieces *pieces, const struct rm_snapshot *snapshot, int64_t usec) {
        const struct relaxation *classes = pieces->classes;
        struct wishes *wishes;
        double looks = 0;

        for (uint32_t i = 0; i < classes->n_classes; i++)
                looks += (double) classes->classes[i].cores * classes->n_demands;
        if (pieces->has_groups || pieces->homes.n_sites > 0 || looks * look_usec > (double) usec)
                return NULL;
        wishes = calloc(1, sizeof(*wishes));
        if (!wishes)
                return NULL;
        wishes->classes = classes;
        wishes->wishes = arena_alloc(&wishes->arena, (size_t) classes->n_demands * MOST_WISHES, sizeof(*wishes->wishes));
        wishes->first = arena_alloc(&wishes->arena, classes->n_demands + 1ul, sizeof(*wishes->first));
        wishes->ideal = arena_alloc(&wishes->arena, classes->n_demands, sizeof(*wishes->ideal));
        if (wishes->arena.failed || !roster_init(&wishes->roster, &wishes->arena, classes, snapshot) || !wish_all(wishes, pieces)) {
                wishes_destroy(wishes);
                return NULL;
        }
        return wishes;
}

void wishes_destroy(struct wishes *wishes) {
        if (!wishes)
                return;
        arena_finish(&wishes->arena);
        free(wishes);
}
