#include "policies/distrib/hull.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/arena.h"
#include "policies/distrib/cut.h"

enum {
        MAX_CORES = 4096,
        PATIENCE = 30, /* steps without a gain until the step gets shorter */
};

static const double momentum = 0.7, first_length = 0.3, longest = 0.4, shorter = 0.7, shortest = 0.0005;
/* Of one evaluation: additions in its dynamic programmes. */
static const double max_work = 2e8;

struct hull {
        struct relaxation *classes;
        int64_t weight;
        uint32_t most_cores, most_ranks;
        int64_t *price, *best_price; /* each class */
        int64_t best;                /* scaled */
        uint64_t *wanted;            /* each class: cores that jobs take at the prices */
        double *direction;           /* each class */
        int64_t *rank_cost;          /* each number of ranks together on one node: the least cost of each */
        uint32_t *rank_class;        /* and where */
        int64_t *node_cost;          /* of so many ranks on one node */
        int64_t *least;              /* of so many ranks of a job */
        double length;               /* of a step; it goes on from call to call */
        int idle;                    /* steps without a gain */
        struct arena arena;
};

static double evaluation_work(const struct hull *hull) {
        double work = 0;

        for (uint32_t t = 0; t < hull->classes->n_demands; t++)
                if (t == 0 || hull->classes->demands[t].priority != hull->classes->demands[t - 1].priority)
                        work += (double) hull->most_ranks * hull->most_cores;
        return work;
}

struct hull *hull_create(struct relaxation *relaxation, int64_t distribution_weight) {
        struct hull *hull = calloc(1, sizeof(*hull));
        size_t n = relaxation->n_classes;

        if (!hull)
                return NULL;
        hull->classes = relaxation;
        hull->weight = distribution_weight;
        for (uint32_t i = 0; i < n; i++)
                if (relaxation->classes[i].cores > hull->most_cores)
                        hull->most_cores = relaxation->classes[i].cores;
        for (uint32_t t = 0; t < relaxation->n_demands; t++)
                if (relaxation->demands[t].ranks > hull->most_ranks)
                        hull->most_ranks = relaxation->demands[t].ranks;
        hull->price = arena_alloc(&hull->arena, n, sizeof(*hull->price));
        hull->best_price = arena_alloc(&hull->arena, n, sizeof(*hull->best_price));
        hull->wanted = arena_alloc(&hull->arena, n, sizeof(*hull->wanted));
        hull->direction = arena_alloc(&hull->arena, n, sizeof(*hull->direction));
        hull->rank_cost = arena_alloc(&hull->arena, hull->most_cores + 2u, sizeof(*hull->rank_cost));
        hull->rank_class = arena_alloc(&hull->arena, hull->most_cores + 2u, sizeof(*hull->rank_class));
        hull->node_cost = arena_alloc(&hull->arena, hull->most_cores + 2u, sizeof(*hull->node_cost));
        hull->least = arena_alloc(&hull->arena, hull->most_ranks + 1u, sizeof(*hull->least));
        if (hull->arena.failed || n == 0 || hull->most_cores > MAX_CORES || evaluation_work(hull) > max_work) {
                hull_destroy(hull);
                return NULL;
        }
        for (uint32_t i = 0; i < n; i++)
                hull->price[i] = hull->best_price[i] = relaxation->classes[i].price;
        hull->best = INT64_MIN;
        hull->length = first_length;
        return hull;
}

void hull_destroy(struct hull *hull) {
        if (!hull)
                return;
        arena_finish(&hull->arena);
        free(hull);
}

/* ---- what jobs pay ---- */

/* node_cost[x]: x ranks of a job of this priority on the best node that has so many cores. */
static void price_nodes(struct hull *hull, int64_t priority) {
        int64_t scale = (int64_t) 1 << hull->classes->shift;

        for (uint32_t x = 0; x <= hull->most_cores + 1; x++)
                hull->rank_cost[x] = INT64_MAX;
        for (uint32_t i = 0; i < hull->classes->n_classes; i++) {
                const struct node_class *class = &hull->classes->classes[i];
                int64_t cost = priority * class->penalty * scale + hull->price[i];

                if (cost < hull->rank_cost[class->cores]) {
                        hull->rank_cost[class->cores] = cost;
                        hull->rank_class[class->cores] = i;
                }
        }
        for (uint32_t x = hull->most_cores; x > 0; x--) {
                if (hull->rank_cost[x + 1] < hull->rank_cost[x]) {
                        hull->rank_cost[x] = hull->rank_cost[x + 1];
                        hull->rank_class[x] = hull->rank_class[x + 1];
                }
                hull->node_cost[x] = priority * hull->weight * scale + x * hull->rank_cost[x];
        }
}

CUT_DEFINE(cut, int64_t, INT64_MAX)

static void count_wanted(struct hull *hull, uint32_t ranks) {
        while (ranks > 0) {
                uint32_t most = ranks < hull->most_cores ? ranks : hull->most_cores, x = most;

                while (x > 1 && hull->least[ranks - x] + hull->node_cost[x] != hull->least[ranks])
                        x--;
                hull->wanted[hull->rank_class[x]] += x;
                ranks -= x;
        }
}

/* The bound at the prices, scaled. */
static int64_t evaluate(struct hull *hull) {
        const struct relaxation *classes = hull->classes;
        int64_t sum = 0;

        memset(hull->wanted, 0, sizeof(*hull->wanted) * classes->n_classes);
        for (uint32_t i = 0; i < classes->n_classes; i++)
                sum -= hull->price[i] * classes->classes[i].cores * classes->classes[i].nodes;
        for (uint32_t first = 0, end; first < classes->n_demands; first = end) {
                uint32_t most = 0;

                for (end = first; end < classes->n_demands && classes->demands[end].priority == classes->demands[first].priority;
                     end++)
                        if (classes->demands[end].ranks > most)
                                most = classes->demands[end].ranks;
                price_nodes(hull, classes->demands[first].priority);
                cut(hull->least, most, hull->node_cost, hull->most_cores);
                for (uint32_t t = first; t < end; t++) {
                        sum += hull->least[classes->demands[t].ranks];
                        count_wanted(hull, classes->demands[t].ranks);
                }
        }
        return sum;
}

/* ---- raising ---- */

static void step(struct hull *hull, int64_t slack, double length) {
        double square = 0;

        for (uint32_t i = 0; i < hull->classes->n_classes; i++) {
                double cores = (double) hull->classes->classes[i].cores * hull->classes->classes[i].nodes;
                double over = (double) hull->wanted[i] - cores;

                if (over < 0 && hull->price[i] == 0)
                        over = 0;
                hull->direction[i] = momentum * hull->direction[i] + over;
                square += hull->direction[i] * hull->direction[i];
        }
        if (square <= 0)
                return;
        for (uint32_t i = 0; i < hull->classes->n_classes; i++) {
                hull->price[i] += llround(hull->direction[i] * length * (double) slack / square);
                if (hull->price[i] < 0)
                        hull->price[i] = 0;
        }
}

static void keep(struct hull *hull, int64_t bound) {
        hull->best = bound;
        memcpy(hull->best_price, hull->price, sizeof(*hull->price) * hull->classes->n_classes);
}

bool hull_is_settled(const struct hull *hull) {
        return hull->length <= shortest;
}

/* Back to the best prices, for shorter steps from there. */
static void shorten(struct hull *hull) {
        hull->idle = 0;
        hull->length *= shorter;
        memcpy(hull->price, hull->best_price, sizeof(*hull->price) * hull->classes->n_classes);
        memset(hull->direction, 0, sizeof(*hull->direction) * hull->classes->n_classes);
}

int64_t hull_raise(struct hull *hull, int64_t cost, const struct deadline *deadline, int64_t until_usec, uint32_t steps) {
        int64_t goal = cost * ((int64_t) 1 << hull->classes->shift);

        for (uint32_t i = 0; i < steps && !hull_is_settled(hull) && (i == 0 || deadline_left_usec(deadline) > until_usec); i++) {
                int64_t bound = evaluate(hull);

                if (bound > hull->best) {
                        keep(hull, bound);
                        hull->idle = 0;
                        hull->length = fmin(hull->length * 1.1, longest);
                } else if (++hull->idle > PATIENCE) {
                        shorten(hull);
                        bound = evaluate(hull);
                }
                if (bound >= goal)
                        break;
                step(hull, goal - bound, hull->length);
        }
        for (uint32_t i = 0; i < hull->classes->n_classes; i++)
                hull->classes->classes[i].price = hull->best_price[i];
        return -(-hull->best >> hull->classes->shift);
}
