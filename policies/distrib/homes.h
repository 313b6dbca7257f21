/* Nodes that jobs run on already, and what it saves to leave them there: costs of moves, as a node
 * sees them. */
#ifndef RM_POLICIES_DISTRIB_HOMES_H
#define RM_POLICIES_DISTRIB_HOMES_H

#include <stddef.h>
#include <stdint.h>

#include "placement/relaxation.h"
#include "policies/distrib/arena.h"

/* Groups of a job on a node that they run on. */
struct home {
        uint32_t demand;  /* of the relaxation */
        uint32_t most;   /* ranks from which on nothing more is saved */
        int32_t *saved;  /* by any x ranks of the job there, 0 .. most; scaled */
};

struct site {
        uint32_t node; /* in the snapshot */
        uint32_t cores;
        int64_t penalty;
        const struct home *homes;
        uint32_t n_homes;
};

struct homes {
        struct site *sites;
        uint32_t n_sites;
        uint32_t most_homes; /* of a site */
        int64_t moved;       /* what it costs when everything moves; scaled */
        struct arena arena;
};

/* The homes of the jobs of the relaxation. Costs are scaled by 2^shift, and those of moves taken
 * for at most `most` a rank then: no plan costs less than they say. False: no memory.
 * homes_finish() is fine after it. */
bool homes_init(struct homes *homes, const struct relaxation *relaxation, const struct rm_snapshot *snapshot, int shift,
                int32_t most);
void homes_finish(struct homes *homes);

/* NULL: the job does not run there. */
static inline const struct home *site_home(const struct site *site, uint32_t demand) {
        for (uint32_t k = 0; k < site->n_homes; k++)
                if (site->homes[k].demand == demand)
                        return &site->homes[k];
        return NULL;
}

/* The saving by x ranks that stay there. */
static inline int32_t home_saves(const struct home *home, uint32_t x) {
        return home->saved[x < home->most ? x : home->most];
}

#endif
