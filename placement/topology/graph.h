/* Traffic between vertices, as a graph in compressed sparse rows: symmetric, no loops, every vertex
 * with a size. */
#ifndef RM_PLACEMENT_GRAPH_H
#define RM_PLACEMENT_GRAPH_H

#include <stdint.h>

#include "placement/topology/pool.h"

struct graph {
        uint32_t n;
        uint32_t total;  /* of all sizes */
        uint64_t *first; /* n + 1 entries: the row of v is first[v] .. first[v + 1] - 1 */
        uint32_t *to;
        int64_t *weight; /* > 0 */
        uint32_t *size;  /* each vertex, >= 1 */
};

/* Finds among the entries low .. high - 1, which ascend, the first that is `v` or more, or high. */
static inline uint64_t graph_first_from(const uint32_t *to, uint64_t low, uint64_t high, uint32_t v) {
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;

                if (to[middle] < v)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* An empty graph for `n` vertices of size 1 and up to `entries` row entries, in the pool. first[0]
 * is 0. */
void graph_make(struct pool *pool, uint32_t n, uint64_t entries, struct graph *ret_graph);

/* The subgraph of the `n` vertices `vertices`, in that order. `number`: an entry for each vertex of
 * `graph`, all UINT32_MAX; left so. */
void graph_induce(struct pool *pool, const struct graph *graph, const uint32_t *vertices, uint32_t n, uint32_t *number,
                  struct graph *ret_graph);

/* The graph that is left when every vertex becomes part of `coarse[v]`, 0 .. n_coarse-1. */
void graph_contract(struct pool *pool, const struct graph *graph, const uint32_t *coarse, uint32_t n_coarse,
                    struct graph *ret_graph);

/* Vertices with more than `most` partners keep the heaviest ones; an edge stays when either end
 * keeps it. Rows must ascend. When there are none, it is the same graph. */
void graph_thin(struct pool *pool, const struct graph *graph, uint32_t most, struct graph *ret_graph);

#endif
