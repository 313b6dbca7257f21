#include "policies/treematch/blocks.h"

#include <stdbool.h>
#include <string.h>

#include "policies/treematch/layout.h"
#include "policies/treematch/pair.h"

enum { ROUNDS = 10, MOST_KINDS = 32 };

/* All subtrees of one height, as vertices of a smaller graph on the leaves of a smaller tree: on
 * what is above them. */
struct blocks {
        struct pool *pool;
        const struct tree *tree;
        uint32_t *top, n; /* the vertices of the tree that they hang on */
        uint32_t *kind;   /* alike in shape and space */
        uint32_t n_kinds;
        uint32_t *of_leaf; /* each leaf of the tree: the block it is in */
        struct tree above;
        uint32_t *start, *at; /* each block: its leaf above, at first and now */
};

/* ---- which ---- */

static uint32_t *find_heights(struct pool *pool, const struct tree *tree) {
        uint32_t *height = pool_zalloc(pool, tree->n, sizeof(*height));

        for (uint32_t v = tree->n - 1; v > 0; v--)
                if (height[tree->parent[v]] < height[v] + 1)
                        height[tree->parent[v]] = height[v] + 1;
        return height;
}

static bool are_alike(const struct tree *tree, uint32_t a, uint32_t b) {
        uint32_t n = tree->end[a] - a;

        if (tree->end[b] - b != n || memcmp(tree->space + a, tree->space + b, sizeof(*tree->space) * n) != 0)
                return false;
        for (uint32_t i = 1; i < n; i++)
                if (tree->parent[a + i] - a != tree->parent[b + i] - b)
                        return false;
        return true;
}

static void find_kinds(struct blocks *b) {
        uint32_t first[MOST_KINDS];

        for (uint32_t i = 0; i < b->n; i++) {
                uint32_t k;

                for (k = 0; k < b->n_kinds && !are_alike(b->tree, first[k], b->top[i]); k++)
                        ;
                if (k == b->n_kinds && k < MOST_KINDS)
                        first[b->n_kinds++] = b->top[i];
                b->kind[i] = k; /* MOST_KINDS: those stay */
        }
}

/* Blocks of that height. False: some place is below none, or hangs on the same vertex as a block
 * and is none. */
static bool find_blocks(struct blocks *b, const uint32_t *height, uint32_t which) {
        const struct tree *tree = b->tree;
        uint32_t *number = pool_alloc(b->pool, tree->n, sizeof(*number)), *parent = pool_alloc(b->pool, tree->n, sizeof(*parent));
        uint32_t *space = pool_zalloc(b->pool, tree->n, sizeof(*space)), n_above = 0;

        for (uint32_t v = 0; v < tree->n;) {
                if (height[v] < which)
                        return false;
                if (height[v] > which) {
                        parent[n_above] = v == 0 ? TREE_NONE : number[tree->parent[v]];
                        number[v++] = n_above++;
                        continue;
                }
                for (uint32_t x = tree->leaf_first[v]; x < tree->leaf_end[v]; x++)
                        b->of_leaf[x] = b->n;
                space[number[tree->parent[v]]]++;
                b->top[b->n++] = v;
                v = tree->end[v];
        }
        for (uint32_t i = 0; i < n_above; i++)
                if (i > 0 && space[parent[i]] > 0)
                        return false;
        tree_make(b->pool, n_above, parent, space, &b->above);
        for (uint32_t i = 0; i < b->n; i++)
                b->start[i] = b->at[i] = b->above.leaf_first[number[tree->parent[b->top[i]]]];
        return true;
}

/* ---- changing places ---- */

static void exchange_kind(struct blocks *b, const struct graph *graph, uint32_t kind, uint64_t until) {
        struct pool_mark mark = pool_mark(b->pool);
        uint32_t *home = pool_alloc(b->pool, b->n, sizeof(*home)), movable = 0;
        bool *fixed = pool_alloc(b->pool, b->n, sizeof(*fixed));
        struct layout_ties ties = { .home = home, .worth = pool_zalloc(b->pool, b->n, sizeof(*ties.worth)), .fixed = fixed };
        struct layout layout;

        for (uint32_t i = 0; i < b->n; i++) {
                home[i] = TREE_NONE;
                fixed[i] = b->kind[i] != kind;
                movable += !fixed[i];
        }
        if (movable > 1) {
                layout_make(b->pool, &b->above, graph, &ties, b->at, &layout);
                (void) pair_refine(b->pool, &layout, ROUNDS, until);
        }
        pool_release(b->pool, mark);
}

/* A block whose place block i takes: of those of its kind that began where it is now, one that is
 * not taken yet. */
static uint32_t take_place(const struct blocks *b, uint32_t i, bool *taken) {
        for (uint32_t k = 0; k < b->n; k++)
                if (!taken[k] && b->kind[k] == b->kind[i] && b->start[k] == b->at[i]) {
                        taken[k] = true;
                        return k;
                }
        return i;
}

static void carry_out(const struct blocks *b, uint32_t n, uint32_t *leaf) {
        uint32_t *place = pool_alloc(b->pool, b->n, sizeof(*place));
        bool *taken = pool_zalloc(b->pool, b->n, sizeof(*taken));

        for (uint32_t i = 0; i < b->n; i++)
                taken[i] = b->at[i] == b->start[i];
        for (uint32_t i = 0; i < b->n; i++)
                place[i] = b->at[i] == b->start[i] ? i : take_place(b, i, taken);
        for (uint32_t v = 0; v < n; v++) {
                uint32_t from = b->of_leaf[leaf[v]];

                leaf[v] += b->tree->leaf_first[b->top[place[from]]] - b->tree->leaf_first[b->top[from]];
        }
}

static int64_t refine_height(struct pool *pool, const struct tree *tree, const struct graph *graph, const uint32_t *height,
                             uint32_t which, uint64_t until, uint32_t *leaf) {
        struct pool_mark mark = pool_mark(pool);
        struct blocks b = { .pool = pool,
                            .tree = tree,
                            .top = pool_alloc(pool, tree->n, sizeof(*b.top)),
                            .kind = pool_alloc(pool, tree->n, sizeof(*b.kind)),
                            .of_leaf = pool_alloc(pool, tree->n_leaves, sizeof(*b.of_leaf)),
                            .start = pool_alloc(pool, tree->n, sizeof(*b.start)),
                            .at = pool_alloc(pool, tree->n, sizeof(*b.at)) };
        uint32_t *block = pool_alloc(pool, graph->n, sizeof(*block));
        int64_t gained = 0;
        struct graph small;

        if (find_blocks(&b, height, which)) {
                find_kinds(&b);
                for (uint32_t v = 0; v < graph->n; v++)
                        block[v] = b.of_leaf[leaf[v]];
                graph_contract(pool, graph, block, b.n, &small);
                gained = layout_cost(pool, &b.above, &small, b.start);
                for (uint32_t k = 0; k < b.n_kinds && pool->work < until; k++)
                        exchange_kind(&b, &small, k, until);
                gained -= layout_cost(pool, &b.above, &small, b.at);
                carry_out(&b, graph->n, leaf);
        }
        pool_release(pool, mark);
        return gained;
}

int64_t blocks_refine(struct pool *pool, const struct tree *tree, const struct graph *graph, uint64_t until, uint32_t *leaf) {
        struct pool_mark mark = pool_mark(pool);
        const uint32_t *height = find_heights(pool, tree);
        int64_t gained = 0;

        /* Right below the root it makes no difference where a block is. */
        for (uint32_t which = height[0] > 1 ? height[0] - 1 : 0; which-- > 0 && pool->work < until;)
                gained += refine_height(pool, tree, graph, height, which, until, leaf);
        pool_release(pool, mark);
        return gained;
}
