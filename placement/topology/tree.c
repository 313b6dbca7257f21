#include "placement/topology/tree.h"

#include <string.h>

void tree_make(struct pool *pool, uint32_t n, const uint32_t *parent, const uint32_t *space, struct tree *ret_tree) {
        struct tree tree = {
                .n = n,
                .parent = pool_alloc(pool, n, sizeof(uint32_t)),
                .end = pool_alloc(pool, n, sizeof(uint32_t)),
                .depth = pool_zalloc(pool, n, sizeof(uint32_t)),
                .leaf_first = pool_alloc(pool, n, sizeof(uint32_t)),
                .leaf_end = pool_alloc(pool, n, sizeof(uint32_t)),
                .space = pool_zalloc(pool, n, sizeof(uint32_t)),
                .leaf = pool_alloc(pool, n, sizeof(uint32_t)),
        };

        memcpy(tree.parent, parent, sizeof(*parent) * n);
        for (uint32_t v = 0; v < n; v++) {
                tree.end[v] = v + 1;
                if (v > 0)
                        tree.depth[v] = tree.depth[parent[v]] + 1;
                if (tree.depth[v] > tree.max_depth)
                        tree.max_depth = tree.depth[v];
        }
        for (uint32_t v = n - 1; v > 0; v--)
                if (tree.end[v] > tree.end[parent[v]])
                        tree.end[parent[v]] = tree.end[v];
        for (uint32_t v = 0; v < n; v++) {
                tree.leaf_first[v] = tree.n_leaves;
                if (tree.end[v] > v + 1)
                        continue;
                tree.space[v] = space[v];
                tree.leaf[tree.n_leaves++] = v;
        }
        for (uint32_t v = n; v-- > 0;) {
                tree.leaf_end[v] = tree.end[v] < n ? tree.leaf_first[tree.end[v]] : tree.n_leaves;
                if (v > 0)
                        tree.space[parent[v]] += tree.space[v];
        }
        tree.even_depth = true;
        for (uint32_t x = 0; x < tree.n_leaves; x++)
                tree.even_depth &= tree.depth[tree.leaf[x]] == tree.max_depth;
        *ret_tree = tree;
}

void tree_with_space(struct pool *pool, const struct tree *tree, const uint32_t *leaf_space, struct tree *ret_tree) {
        struct tree other = *tree;

        other.space = pool_zalloc(pool, tree->n, sizeof(*other.space));
        for (uint32_t x = 0; x < tree->n_leaves; x++)
                other.space[tree->leaf[x]] = leaf_space[x];
        for (uint32_t v = tree->n - 1; v > 0; v--)
                other.space[tree->parent[v]] += other.space[v];
        *ret_tree = other;
}

uint32_t tree_meet(const struct tree *tree, uint32_t leaf_a, uint32_t leaf_b) {
        uint32_t a = tree->leaf[leaf_a], b = tree->leaf[leaf_b];

        while (a != b)
                if (a > b) /* what is above has the lower number */
                        a = tree->parent[a];
                else
                        b = tree->parent[b];
        return a;
}

void tree_distances(const struct tree *tree, uint32_t leaf, uint32_t *ret_distance) {
        uint32_t here = tree->leaf[leaf], below = TREE_NONE;

        for (uint32_t at = here; at != TREE_NONE; below = at, at = tree->parent[at])
                for (uint32_t x = tree->leaf_first[at]; x < tree->leaf_end[at]; x++) {
                        if (below != TREE_NONE && x == tree->leaf_first[below] && x < tree->leaf_end[below])
                                x = tree->leaf_end[below];
                        if (x < tree->leaf_end[at])
                                ret_distance[x] = tree->depth[here] + tree->depth[tree->leaf[x]] - 2 * tree->depth[at];
                }
}
