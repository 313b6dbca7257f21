#include "policies/treematch/descend.h"

#include <stdbool.h>

#include "policies/treematch/bisect.h"

struct descent {
        struct pool *pool;
        const struct tree *tree;
        const struct limits *limits;
        uint32_t *leaf; /* each vertex of the whole graph */
        uint32_t ways;
};

/* Brothers that share some vertices out among them. */
struct brothers {
        const uint32_t *child;
        uint32_t n;
        uint64_t space;
};

static void go_down(struct descent *d, uint32_t top, const struct graph *graph, const uint32_t *name);

static struct brothers make_brothers(const struct tree *tree, const uint32_t *child, uint32_t n) {
        struct brothers all = { .child = child, .n = n };

        for (uint32_t i = 0; i < n; i++)
                all.space += tree->space[child[i]];
        return all;
}

static void share_out(struct descent *d, const struct brothers *all, const struct graph *graph, const uint32_t *name);

/* The vertices on `side` of `graph` are for `some`. */
static void share_side(struct descent *d, const struct brothers *some, const struct graph *graph, const uint32_t *name,
                       const uint8_t *side, uint8_t which, uint32_t *number) {
        struct pool_mark mark = pool_mark(d->pool);
        uint32_t *vertices = pool_alloc(d->pool, graph->n, sizeof(*vertices)), n = 0;
        uint32_t *sub_name = pool_alloc(d->pool, graph->n, sizeof(*sub_name));
        struct graph sub;

        for (uint32_t v = 0; v < graph->n; v++)
                if (side[v] == which) {
                        sub_name[n] = name[v];
                        vertices[n++] = v;
                }
        graph_induce(d->pool, graph, vertices, n, number, &sub);
        share_out(d, some, &sub, sub_name);
        pool_release(d->pool, mark);
}

/* Sides of all vertices, none larger than the room of its brothers. */
static void split(const struct descent *d, const struct graph *graph, const struct brothers *some, uint8_t *side) {
        uint32_t low = graph->n > some[1].space ? graph->n - (uint32_t) some[1].space : 0;
        uint32_t high = graph->n < some[0].space ? graph->n : (uint32_t) some[0].space;

        if (!limits_over(d->limits))
                (void) bisect(d->pool, graph, low, high, side);
        else
                for (uint32_t v = 0; v < graph->n; v++)
                        side[v] = v >= high;
}

static void share_out(struct descent *d, const struct brothers *all, const struct graph *graph, const uint32_t *name) {
        struct pool_mark mark = pool_mark(d->pool);
        uint32_t left = all->n / 2;
        struct brothers some[2];
        uint32_t *number;
        uint8_t *side;

        if (graph->n == 0)
                return;
        if (all->n == 1) {
                go_down(d, all->child[0], graph, name);
                return;
        }
        if (all->n % 3 == 0 && (all->n % 2 == 1 || (all->n % 4 == 2 && (d->ways & DESCEND_THIRDS))))
                left = all->n / 3;
        some[0] = make_brothers(d->tree, all->child, left);
        some[1] = make_brothers(d->tree, all->child + left, all->n - left);
        number = pool_alloc(d->pool, graph->n, sizeof(*number));
        side = pool_alloc(d->pool, graph->n, sizeof(*side));
        for (uint32_t v = 0; v < graph->n; v++)
                number[v] = UINT32_MAX;
        split(d, graph, some, side);
        share_side(d, &some[0], graph, name, side, 0, number);
        share_side(d, &some[1], graph, name, side, 1, number);
        pool_release(d->pool, mark);
}

static void shuffle(struct pool *pool, uint32_t *child, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = pool_random(pool, i + 1), was = child[i];

                child[i] = child[at];
                child[at] = was;
        }
}

/* More than leaves is below it. */
static bool is_high(const struct tree *tree, uint32_t v) {
        for (uint32_t c = v + 1; c < tree->end[v]; c++)
                if (tree->end[c] > c + 1)
                        return true;
        return false;
}

static void go_down(struct descent *d, uint32_t top, const struct graph *graph, const uint32_t *name) {
        struct pool_mark mark = pool_mark(d->pool);
        const struct tree *tree = d->tree;
        uint32_t *child, n = 0;
        struct brothers all;

        if (tree->end[top] == top + 1) {
                for (uint32_t v = 0; v < graph->n; v++)
                        d->leaf[name[v]] = tree->leaf_first[top];
                return;
        }
        child = pool_alloc(d->pool, tree->end[top] - top, sizeof(*child));
        for (uint32_t c = top + 1; c < tree->end[top];)
                if ((d->ways & DESCEND_FLAT) && is_high(tree, c))
                        c++;
                else {
                        if (tree->space[c] > 0)
                                child[n++] = c;
                        c = tree->end[c];
                }
        if (d->ways & DESCEND_SHUFFLED)
                shuffle(d->pool, child, n);
        all = make_brothers(tree, child, n);
        share_out(d, &all, graph, name);
        pool_release(d->pool, mark);
}

void descend(struct pool *pool, const struct tree *tree, uint32_t top, const struct graph *graph, const struct limits *limits,
             const uint32_t *vertices, uint32_t n, uint32_t *number, uint32_t ways, uint32_t *ret_leaf) {
        struct pool_mark mark = pool_mark(pool);
        struct descent d = { .pool = pool, .tree = tree, .limits = limits, .leaf = ret_leaf, .ways = ways };
        struct graph sub;

        if (n == 0)
                return;
        graph_induce(pool, graph, vertices, n, number, &sub);
        go_down(&d, top, &sub, vertices);
        pool_release(pool, mark);
}
