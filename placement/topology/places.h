/* The cluster of a snapshot as a tree of places, and which cores each leaf stands for. */
#ifndef RM_PLACEMENT_PLACES_H
#define RM_PLACEMENT_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/topology/tree.h"
#include "rm/policy.h"

/* A leaf holds the cores of its node whose number modulo `wrap` is within first .. first+count-1
 * and less than the node's cores: a node may have fewer cores to use than its topology has (the
 * first ones), and more while jobs are folded: then each leaf is one core, which ranks share. */
struct place {
        uint32_t node;
        uint32_t first, count, wrap;
};

struct places {
        struct tree tree;
        struct place *leaf; /* each leaf */
        uint32_t *node_vertex; /* each node: its vertex; its leaves are those below */
};

/* How many of the first `cores` cores of its node belong to the place. */
static inline uint32_t place_cores(const struct place *place, uint32_t cores) {
        uint32_t whole = cores / place->wrap, rest = cores % place->wrap, more = rest > place->first ? rest - place->first : 0;

        return whole * place->count + (more < place->count ? more : place->count);
}

/* `down_to_cores`: what is known of the insides of nodes is there too, else nodes are the
 * leaves. */
void places_make(struct pool *pool, const struct rm_snapshot *snapshot, bool down_to_cores, struct places *ret_places);

/* Hops between two cores of different ranks: 2 more than between their leaves. */
static inline uint32_t places_hops(const struct places *places, uint32_t leaf_a, uint32_t leaf_b) {
        return 2 + tree_distance(&places->tree, leaf_a, leaf_b);
}

#endif
