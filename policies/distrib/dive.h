/* A plan out of prices of pieces: nodes of which it is clear what they are to hold are filled, some
 * at a time, and prices follow what is left. */
#ifndef RM_POLICIES_DISTRIB_DIVE_H
#define RM_POLICIES_DISTRIB_DIVE_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/lagrangian.h"

/* Ranks of a job on a node. */
struct portion {
        uint32_t demand; /* of the relaxation */
        uint32_t node; /* in the snapshot */
        uint32_t ranks;
};

/* For jobs all of which may be put anywhere, as if nodes were empty. Most of the ranks are placed,
 * in sizes that groups make up; what is difficult is left. Stops when `until_usec` are left.
 * `seed`: another one, other portions. `ret_portions`: to be freed. -ENOMEM. */
int dive_run(struct lagrangian *lagrangian, const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec,
             uint64_t seed, struct portion **ret_portions, uint32_t *ret_n);

/* About how long it takes. */
double dive_work_usec(const struct lagrangian *lagrangian, uint32_t n_nodes);

#endif
