/*
 * The choice of vertices that leave nodes which hold too much, and of their destinations (the two
 * steps of Cores 2015, section 5.3), on nodes as leaves. Both at once: first it is settled which
 * nodes send how many to which leaves, so that vertices from nodes that communicate come together;
 * then which vertices go, by their traffic with those they will meet and with those they leave.
 * Exchanges that leave the number of moves alone follow.
 */
#ifndef RM_TREEMATCH_EVACUATE_H
#define RM_TREEMATCH_EVACUATE_H

#include <stdint.h>

#include "placement/topology/graph.h"
#include "placement/topology/limits.h"
#include "placement/topology/tree.h"

struct evacuation {
        const struct tree *tree; /* its spaces are what may be used, at least what is fixed there */
        const struct graph *graph;
        const uint32_t *home; /* each vertex: where it is, TREE_NONE when it is nowhere yet */
        const bool *fixed;    /* each vertex: must stay */
        const int64_t *price; /* each vertex: what a move that need not be must at least save, in weight times hops */
        uint32_t budget;      /* of moves beyond those that must be */
        const struct limits *limits;
};

/* All vertices on leaves, none over full: the fewest moves that makes possible, and at most
 * `budget` more, each of which pays. There must be room for all. Returns how many of the budget
 * were used. */
uint32_t evacuate_solve(struct pool *pool, const struct evacuation *evacuation, uint32_t *ret_leaf);

#endif
