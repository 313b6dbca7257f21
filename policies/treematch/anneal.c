#include "policies/treematch/anneal.h"

#include <string.h>

enum {
        STEPS = 64, /* of the heat */
        PROBES = 200, /* exchanges that tell where it begins */
        MOST_LEAVES = 1024, /* whose distances are kept in a table */
};

#define BEGIN 0.2 /* times the mean loss of an exchange */
#define COOLER 0.94 /* with each step */

/* A step of a cycle: the vertex that goes, and where to. */
struct leg {
        uint32_t vertex, to;
};

/* An exchange: all go at once, and every leaf holds as many as before. */
struct cycle {
        struct leg leg[3];
        uint32_t n;
};

struct annealing {
        struct pool *pool;
        struct layout *layout;
        uint8_t *distance;    /* leaf by leaf; NULL: there are too many */
        uint32_t *sent;       /* those that are away from home, those of one home in a row */
        uint32_t n_sent;
        uint32_t *first_sent; /* each leaf, as a home; n_leaves: of those that have none */
        uint32_t *place;      /* each vertex: its place in `sent`, TREE_NONE: it is at home */
        double heat;          /* a loss that is accepted about one time in three */
};

/* ---- vertices that were sent ---- */

static uint32_t home_of(const struct annealing *a, uint32_t v) {
        uint32_t home = a->layout->ties->home[v];

        return home == TREE_NONE ? a->layout->tree->n_leaves : home;
}

static bool was_sent(const struct annealing *a, uint32_t v) {
        return a->place[v] != TREE_NONE;
}

static void list_sent(struct annealing *a) {
        const struct layout *layout = a->layout;
        uint32_t n = layout->graph->n, n_leaves = layout->tree->n_leaves;

        a->first_sent = pool_zalloc(a->pool, n_leaves + 3u, sizeof(*a->first_sent));
        a->place = pool_alloc(a->pool, n, sizeof(*a->place));
        for (uint32_t v = 0; v < n; v++) {
                bool away = home_of(a, v) != layout->leaf[v] && !layout_fixed(layout, v);

                a->place[v] = away ? 0 : TREE_NONE;
                a->n_sent += away;
                a->first_sent[home_of(a, v) + 2] += away;
        }
        a->sent = pool_alloc(a->pool, a->n_sent, sizeof(*a->sent));
        for (uint32_t x = 0; x <= n_leaves; x++)
                a->first_sent[x + 2] += a->first_sent[x + 1];
        for (uint32_t v = 0; v < n; v++)
                if (was_sent(a, v)) {
                        a->place[v] = a->first_sent[home_of(a, v) + 1]++;
                        a->sent[a->place[v]] = v;
                }
}

/* Draws one of the vertices on the leaf that were sent there, but not `other`; TREE_NONE when none
 * was drawn. */
static uint32_t draw_sent_to(const struct annealing *a, uint32_t leaf, uint32_t other) {
        for (uint32_t i = 0; i < 3; i++) {
                uint32_t v = layout_members(a->layout, leaf)[pool_random(a->pool, a->layout->used[leaf])];

                if (v != other && was_sent(a, v))
                        return v;
        }
        return TREE_NONE;
}

/* ---- exchanges ---- */

static struct cycle pair_of(uint32_t u, uint32_t u_to, uint32_t v, uint32_t v_to) {
        return (struct cycle) { .leg = { { u, u_to }, { v, v_to } }, .n = 2 };
}

static struct cycle nothing(void) {
        return (struct cycle) { .n = 0 };
}

/* `v`, which was sent, comes to where `w` is, and one that is there goes where v was. */
static struct cycle fetch_sent(const struct annealing *a, uint32_t v, uint32_t w) {
        const uint32_t *leaf = a->layout->leaf;
        uint32_t other = draw_sent_to(a, leaf[w], w);

        if (other == TREE_NONE || home_of(a, v) == leaf[w] || home_of(a, other) == leaf[v])
                return nothing();
        return pair_of(v, leaf[w], other, leaf[v]);
}

/* `v`, which is at home, comes to where `w` is; in its place one that was sent goes home. */
static struct cycle fetch_from_home(const struct annealing *a, uint32_t v, uint32_t w) {
        const uint32_t *leaf = a->layout->leaf;
        uint32_t home = leaf[v], n = a->first_sent[home + 1] - a->first_sent[home], back, other;

        if (n == 0 || layout_fixed(a->layout, v) || a->layout->ties->home[v] != home)
                return nothing();
        back = a->sent[a->first_sent[home] + pool_random(a->pool, n)];
        if (leaf[back] == leaf[w])
                return back == w ? nothing() : pair_of(v, leaf[w], back, home);
        other = draw_sent_to(a, leaf[w], w);
        if (other == TREE_NONE)
                return nothing();
        return (struct cycle) { .leg = { { v, leaf[w] }, { other, leaf[back] }, { back, home } }, .n = 3 };
}

/* `w` goes home, and another goes in its place. */
static struct cycle relieve(const struct annealing *a, uint32_t w) {
        uint32_t home = a->layout->ties->home[w], v;

        if (home == TREE_NONE || a->layout->used[home] == 0)
                return nothing();
        v = layout_members(a->layout, home)[pool_random(a->pool, a->layout->used[home])];
        if (was_sent(a, v) || layout_fixed(a->layout, v) || a->layout->ties->home[v] != home)
                return nothing();
        return pair_of(w, home, v, a->layout->leaf[w]);
}

/* Most draws bring two vertices together that communicate. */
static struct cycle draw(const struct annealing *a) {
        const struct graph *graph = a->layout->graph;
        const uint32_t *leaf = a->layout->leaf;
        uint32_t w = a->sent[pool_random(a->pool, a->n_sent)], v;
        uint64_t degree = graph->first[w + 1] - graph->first[w];

        if (degree == 0 || pool_random(a->pool, 8) == 0)
                return relieve(a, w);
        v = graph->to[graph->first[w] + pool_random(a->pool, (uint32_t) degree)];
        if (leaf[v] == leaf[w])
                return nothing();
        if (was_sent(a, v))
                return fetch_sent(a, v, w);
        if (pool_random(a->pool, 2) == 0)
                return fetch_from_home(a, v, w);
        return leaf[v] == a->layout->ties->home[w] ? relieve(a, w) : fetch_sent(a, w, v);
}

/* ---- what they gain ---- */

static int64_t gain_by_tree(const struct annealing *a, uint32_t v, uint32_t to) {
        const struct layout *layout = a->layout;
        const struct graph *graph = layout->graph;
        int64_t gain = 0;

        a->pool->work += (graph->first[v + 1] - graph->first[v]) * layout->tree->max_depth;
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t there = layout->leaf[graph->to[e]];

                gain += graph->weight[e] * ((int64_t) tree_distance(layout->tree, layout->leaf[v], there) -
                                            (int64_t) tree_distance(layout->tree, to, there));
        }
        return gain;
}

static int64_t gain_of(const struct annealing *a, uint32_t v, uint32_t to) {
        const struct layout *layout = a->layout;
        const struct graph *graph = layout->graph;
        const uint8_t *here, *then;
        int64_t gain = 0;

        if (!a->distance)
                return gain_by_tree(a, v, to);
        here = a->distance + (size_t) layout->leaf[v] * layout->tree->n_leaves;
        then = a->distance + (size_t) to * layout->tree->n_leaves;
        a->pool->work += graph->first[v + 1] - graph->first[v];
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t there = layout->leaf[graph->to[e]];

                gain += graph->weight[e] * (here[there] - then[there]);
        }
        return gain;
}

/* The gain of the cycle is computed as if its legs went one after the other. */
static int64_t gain_of_cycle(const struct annealing *a, const struct cycle *cycle) {
        uint32_t from[3];
        int64_t gain = 0;

        for (uint32_t i = 0; i < cycle->n; i++) {
                from[i] = a->layout->leaf[cycle->leg[i].vertex];
                gain += gain_of(a, cycle->leg[i].vertex, cycle->leg[i].to);
                a->layout->leaf[cycle->leg[i].vertex] = cycle->leg[i].to;
        }
        for (uint32_t i = 0; i < cycle->n; i++)
                a->layout->leaf[cycle->leg[i].vertex] = from[i];
        return gain;
}

static void carry_out(struct annealing *a, const struct cycle *cycle) {
        uint32_t place = TREE_NONE;

        for (uint32_t i = 0; i < cycle->n; i++) {
                const struct leg *leg = &cycle->leg[i];

                layout_move(a->layout, leg->vertex, leg->to);
                if (leg->to != a->layout->ties->home[leg->vertex])
                        continue;
                place = a->place[leg->vertex];
                a->place[leg->vertex] = TREE_NONE;
        }
        /* A vertex that has left its home gets the place of the one that came back. */
        for (uint32_t i = 0; i < cycle->n && place != TREE_NONE; i++) {
                uint32_t v = cycle->leg[i].vertex;

                if (was_sent(a, v) || a->layout->leaf[v] == a->layout->ties->home[v])
                        continue;
                a->place[v] = place;
                a->sent[place] = v;
        }
}

/* ---- heat ---- */

/* A number of exponential distribution, mean 1: the logarithm between powers of two is taken for
 * straight. */
static double draw_exponential(struct pool *pool) {
        uint32_t x = pool_random(pool, UINT32_MAX) | 1, bits = (uint32_t) __builtin_clz(x);

        return 0.6931 * (bits + 2.0 - (double) (x << bits) / 2147483648.0);
}

/* The mean of what some exchanges would lose. */
static double mean_loss(const struct annealing *a) {
        double sum = 0;
        uint32_t n = 0;

        for (uint32_t i = 0; i < PROBES; i++) {
                struct cycle cycle = draw(a);
                int64_t gain = gain_of_cycle(a, &cycle);

                if (gain < 0) {
                        sum -= (double) gain;
                        n++;
                }
        }
        return n > 0 ? sum / n : 0;
}

static void make_distances(struct annealing *a) {
        const struct tree *tree = a->layout->tree;
        uint32_t n = tree->n_leaves, *row;

        if (n > MOST_LEAVES || tree->max_depth > UINT8_MAX / 2)
                return;
        row = pool_alloc(a->pool, n, sizeof(*row));
        a->distance = pool_alloc(a->pool, (size_t) n * n, sizeof(*a->distance));
        for (uint32_t x = 0; x < n; x++) {
                tree_distances(tree, x, row);
                for (uint32_t y = 0; y < n; y++)
                        a->distance[(size_t) x * n + y] = (uint8_t) row[y];
        }
}

void anneal(struct pool *pool, struct layout *layout, const struct limits *limits, uint64_t until) {
        struct pool_mark mark = pool_mark(pool);
        struct annealing a = { .pool = pool, .layout = layout };
        uint64_t begin;

        list_sent(&a);
        if (a.n_sent > 1) {
                make_distances(&a);
                a.heat = BEGIN * mean_loss(&a);
        }
        begin = pool->work < until ? pool->work : until;
        for (uint32_t step = 1; step <= STEPS && a.heat > 0 && !limits_over(limits); step++) {
                uint64_t end = begin + (until - begin) * step / STEPS;

                while (pool->work < end) {
                        struct cycle cycle = draw(&a);
                        int64_t gain = gain_of_cycle(&a, &cycle);

                        pool->work++; /* also when there is nothing to exchange */
                        if (cycle.n > 0 && (gain >= 0 || (double) -gain < a.heat * draw_exponential(pool)))
                                carry_out(&a, &cycle);
                }
                a.heat *= COOLER;
        }
        pool_release(pool, mark);
}
