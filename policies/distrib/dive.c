#include "policies/distrib/dive.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/rng.h"

enum {
        ROUNDS = 40,
        STEPS = 25,   /* of prices, in a round */
        HOME_ROUNDS = 60, /* where jobs run already: a step takes longer then, and there is less to gain by one */
        HOME_STEPS = 2,
        PART = 16,      /* one node in so many is looked at in a round, */
        SCAN = 20,     /* but at least so many */
        LEAVE = 50,    /* one rank in so many is left */
};

static const double length = 0.1;     /* of a step */
static const double gap = 0.003;      /* between the bound and what steps aim at */
static const double tolerance = 6e-6; /* of all costs, by how much less than it is worth a node may gain, at first */
/* How much work there is, usually. */
static const double usual_rounds = 10;
/* The time of a step of the dynamic programme for one node. */
static const double step_usec = 0.0003;

#define NO_SITE UINT32_MAX

struct dive_node {
        uint32_t node, class;
        uint32_t site; /* of the homes of pieces */
        double key;
};

struct dive {
        struct lagrangian *lagrangian;
        struct dive_node *nodes; /* those not yet filled */
        uint32_t n_nodes, n_useful; /* useful ones first */
        uint64_t ranks, left;
        int32_t *least; /* each demand, each number of ranks up to what is left of it */
        size_t *first;  /* each demand, in least */
        struct portion *portions;
        uint32_t n_portions, max_portions;
        uint64_t random;
        struct arena arena;
};

static uint32_t random_below(struct dive *dive, uint32_t n) {
        return rng_below(&dive->random, n);
}

double dive_work_usec(const struct lagrangian *lagrangian, uint32_t n_nodes) {
        double cores = lagrangian->most_cores;

        return usual_rounds * (lagrangian->homes.n_sites > 0 ? HOME_STEPS : STEPS) * lagrangian_work_usec(lagrangian) +
               n_nodes * 1.5 * cores * cores / 4 * lagrangian->classes->n_demands * step_usec;
}

/* ---- making ---- */

static void list_nodes(struct dive *dive, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = dive->lagrangian->classes;
        const struct homes *homes = &dive->lagrangian->homes;

        for (uint32_t s = 0, site = 0; s < snapshot->n_nodes; s++) {
                struct dive_node node = { .node = s, .site = NO_SITE };

                while (site < homes->n_sites && homes->sites[site].node < s)
                        site++;
                if (site < homes->n_sites && homes->sites[site].node == s)
                        node.site = site;
                node.class = relaxation_find(classes, snapshot->nodes[s].penalty, snapshot->nodes[s].cores);
                if (node.class < classes->n_classes)
                        dive->nodes[dive->n_nodes++] = node;
        }
}

static bool init(struct dive *dive, struct lagrangian *lagrangian, const struct rm_snapshot *snapshot) {
        uint32_t n_demands = lagrangian->classes->n_demands;

        dive->lagrangian = lagrangian;
        for (uint32_t t = 0; t < n_demands; t++)
                dive->ranks += lagrangian->ranks[t];
        dive->left = dive->ranks;
        dive->nodes = arena_alloc(&dive->arena, snapshot->n_nodes, sizeof(*dive->nodes));
        dive->first = arena_alloc(&dive->arena, n_demands, sizeof(*dive->first));
        dive->least = arena_alloc(&dive->arena, dive->ranks + n_demands, sizeof(*dive->least));
        if (dive->arena.failed)
                return false;
        list_nodes(dive, snapshot);
        for (uint32_t t = 0, first = 0; t < n_demands; t++) {
                dive->first[t] = first;
                first += lagrangian->ranks[t] + 1;
        }
        return true;
}

/* ---- one node ---- */

/* value[x]: what the job saves by x ranks on the node, beyond what they cost. False: nothing. */
static bool value_ranks(struct dive *dive, uint32_t demand, const struct dive_node *node, uint32_t largest) {
        struct lagrangian *lagrangian = dive->lagrangian;
        const int32_t *least = dive->least + dive->first[demand] + lagrangian->ranks[demand];
        const struct home *home = node->site == NO_SITE ? NULL : site_home(&lagrangian->homes.sites[node->site], demand);
        int32_t most = 0, cost, each;

        if (!lagrangian_cost(lagrangian, demand, lagrangian->classes->classes[node->class].penalty, &cost, &each))
                return false;
        for (uint32_t x = 1; x <= largest; x++) {
                cost += each;
                lagrangian->value[x] = lagrangian_is_possible(lagrangian, demand, lagrangian->ranks[demand], x)
                                               ? least[0] - *(least - x) - cost + (home ? home_saves(home, x) : 0)
                                               : 0;
                most = lagrangian->value[x] > most ? lagrangian->value[x] : most;
        }
        return most > 0;
}

static uint32_t largest_left(const struct dive *dive, uint32_t demand, uint32_t cores) {
        return dive->lagrangian->ranks[demand] < cores ? dive->lagrangian->ranks[demand] : cores;
}

/* How many rows of gain follow the first: the last ends with what the node can gain. */
static uint32_t fill_rows(struct dive *dive, const struct dive_node *node) {
        struct lagrangian *lagrangian = dive->lagrangian;
        const struct node_class *class = &lagrangian->classes->classes[node->class];
        size_t width = lagrangian->most_cores + 1u;
        uint32_t n = 0;

        memset(lagrangian->gain, 0, sizeof(*lagrangian->gain) * width);
        for (uint32_t t = 0; t < lagrangian->classes->n_demands; t++) {
                uint32_t largest = largest_left(dive, t, class->cores);
                int32_t *from = lagrangian->gain + n * width;

                if (largest == 0 || !value_ranks(dive, t, node, largest))
                        continue;
                lagrangian_choose(from, from + width, lagrangian->value, largest, class->cores);
                lagrangian->order[n++] = t;
        }
        return n;
}

static int add_portion(struct dive *dive, struct portion portion) {
        if (dive->n_portions == dive->max_portions) {
                uint32_t most = 2 * dive->max_portions + 64;
                struct portion *portions = reallocarray(dive->portions, most, sizeof(*portions));

                if (!portions)
                        return -ENOMEM;
                dive->portions = portions;
                dive->max_portions = most;
        }
        dive->portions[dive->n_portions++] = portion;
        return 0;
}

/* Follow the rows back. */
static int fill_node(struct dive *dive, uint32_t n_rows, const struct dive_node *node) {
        struct lagrangian *lagrangian = dive->lagrangian;
        uint32_t left = lagrangian->classes->classes[node->class].cores;
        size_t width = lagrangian->most_cores + 1u;
        int r = 0;

        for (uint32_t k = n_rows; k-- > 0 && left > 0 && r == 0;) {
                const int32_t *from = lagrangian->gain + k * width;
                uint32_t t = lagrangian->order[k], x = largest_left(dive, t, left);
                int32_t goal = from[width + left];

                if (goal == from[left] || !value_ranks(dive, t, node, x))
                        continue;
                while (x > 1 && from[left - x] + lagrangian->value[x] != goal)
                        x--;
                r = add_portion(dive, (struct portion) { t, node->node, x });
                lagrangian->ranks[t] -= x;
                dive->left -= x;
                left -= x;
        }
        if (node->site == NO_SITE)
                lagrangian->nodes[node->class]--;
        else
                lagrangian->is_open[node->site] = false;
        return r;
}

/* ---- rounds ---- */

/* Prices for what is left, and what jobs pay by them. */
static void follow(struct dive *dive) {
        struct lagrangian *lagrangian = dive->lagrangian;
        double slack = gap * (double) lagrangian->best * (double) dive->left / (double) dive->ranks;

        int steps = lagrangian->homes.n_sites > 0 ? HOME_STEPS : STEPS;

        for (int i = 0; i < steps; i++) {
                (void) lagrangian_evaluate(lagrangian);
                if (i < steps - 1)
                        lagrangian_step(lagrangian, (int64_t) slack, length);
        }
        for (uint32_t t = 0; t < lagrangian->classes->n_demands; t++)
                lagrangian_cut(lagrangian, t, lagrangian->ranks[t], dive->least + dive->first[t]);
}

static void swap(struct dive *dive, uint32_t a, uint32_t b) {
        struct dive_node node = dive->nodes[a];

        dive->nodes[a] = dive->nodes[b];
        dive->nodes[b] = node;
}

static int32_t worth(const struct dive *dive, const struct dive_node *node) {
        const struct lagrangian *lagrangian = dive->lagrangian;

        if (node->site != NO_SITE)
                return lagrangian->site_worth[node->site];
        return lagrangian->worth[lagrangian->penalty_of[node->class] * (lagrangian->most_cores + 1u) +
                                 lagrangian->classes->classes[node->class].cores];
}

static int compare_keys(const void *a, const void *b) {
        const struct dive_node *x = a, *y = b;

        if (x->key != y->key)
                return x->key > y->key ? -1 : 1;
        return x->node < y->node ? -1 : x->node > y->node;
}

/* Some of the nodes that are worth anything, the dearest cores first. Returns how many. */
static uint32_t draw_nodes(struct dive *dive) {
        uint32_t scan;

        dive->n_useful = 0;
        for (uint32_t i = 0; i < dive->n_nodes; i++)
                if (worth(dive, &dive->nodes[i]) > 0)
                        swap(dive, i, dive->n_useful++);
        scan = dive->n_useful / PART > SCAN ? dive->n_useful / PART : SCAN;
        scan = scan < dive->n_useful ? scan : dive->n_useful;
        for (uint32_t i = 0; i < scan; i++) {
                swap(dive, i, i + random_below(dive, dive->n_useful - i));
                dive->nodes[i].key =
                        worth(dive, &dive->nodes[i]) / (double) dive->lagrangian->classes->classes[dive->nodes[i].class].cores;
        }
        qsort(dive->nodes, scan, sizeof(*dive->nodes), compare_keys);
        return scan;
}

/* Fill those of the first `look` nodes that then gain what they are worth, nearly. */
static int fill_clear_ones(struct dive *dive, uint32_t scan, double loss, const struct deadline *deadline, int64_t until_usec) {
        size_t width = dive->lagrangian->most_cores + 1u;
        uint32_t kept = 0;
        int r = 0;

        for (uint32_t i = 0; i < dive->n_nodes; i++) {
                const struct dive_node *node = &dive->nodes[i];
                const struct node_class *class = &dive->lagrangian->classes->classes[node->class];

                if (i < scan && r == 0 && deadline_left_usec(deadline) > until_usec) {
                        uint32_t n_rows = fill_rows(dive, node);
                        int32_t gain = dive->lagrangian->gain[n_rows * width + class->cores];

                        if (worth(dive, node) - (double) gain <= loss) {
                                r = fill_node(dive, n_rows, node);
                                continue;
                        }
                }
                dive->nodes[kept++] = *node;
        }
        dive->n_nodes = kept;
        return r;
}

int dive_run(struct lagrangian *lagrangian, const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec,
             uint64_t seed, struct portion **ret_portions, uint32_t *ret_n) {
        int rounds = lagrangian->homes.n_sites > 0 ? HOME_ROUNDS : ROUNDS;
        struct dive dive = { .random = RNG_BEGIN + seed };
        int r = 0;

        lagrangian_restart(lagrangian);
        if (!init(&dive, lagrangian, snapshot))
                r = -ENOMEM;
        for (int round = 0; r == 0 && round < rounds && dive.left > dive.ranks / LEAVE; round++) {
                double loss = tolerance * (double) lagrangian->best * (1 + round * 0.5);

                if (deadline_left_usec(deadline) <= until_usec)
                        break;
                follow(&dive);
                r = fill_clear_ones(&dive, draw_nodes(&dive), loss, deadline, until_usec);
        }
        lagrangian_restart(lagrangian);
        arena_finish(&dive.arena);
        if (r < 0) {
                free(dive.portions);
                return r;
        }
        *ret_portions = dive.portions;
        *ret_n = dive.n_portions;
        return 0;
}
