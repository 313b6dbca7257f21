/* Fiduccia and Mattheyses: improving a bisection by moving vertices across, the best first, also
 * uphill, and going back to the best. */
#ifndef RM_TREEMATCH_FM_H
#define RM_TREEMATCH_FM_H

#include <stdint.h>

#include "placement/topology/graph.h"

/* Two sides, 0 and 1; the sizes of side 0 should be within low..high. */
struct fm_goal {
        uint32_t low, high;
        uint32_t slack; /* how far outside it may go on its way; at least 1 */
        uint32_t passes;
        uint32_t patience; /* moves without a gain after which a pass ends */
};

/* How good it is: less is better, by imbalance (how far side 0 is outside) and then by the weight
 * cut. */
struct fm_score {
        uint32_t imbalance;
        int64_t cut;
};

static inline int fm_better(struct fm_score a, struct fm_score b) {
        return a.imbalance != b.imbalance ? a.imbalance < b.imbalance : a.cut < b.cut;
}

/* The refinement never makes the partition worse. */
struct fm_score fm_refine(struct pool *pool, const struct graph *graph, const struct fm_goal *goal, uint8_t *side);

#endif
