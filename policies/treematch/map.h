/* Mapping a graph onto a tree: several ways, the best of them refined. Pure; the same arguments give the same mapping. */
#ifndef RM_TREEMATCH_MAP_H
#define RM_TREEMATCH_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/treematch/graph.h"
#include "policies/treematch/tree.h"

struct map_limits {
        bool (*over)(void *context); /* asked now and then: the time is over, answer what there is. NULL: it never is */
        void *context;
        uint64_t
                work; /* more attempts are made until this many row entries were looked at (some 15 ns each); the first one is always made */
};

/* `leaf`: on entry a mapping (by slot, say), on return one that costs no more. Vertices of size 1, as many as there is room for. */
void map_improve(struct arena *arena, const struct tree *tree, const struct graph *graph, const struct map_limits *limits,
                 uint32_t *leaf);

#endif
