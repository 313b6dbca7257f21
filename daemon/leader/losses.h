/* What a lost node means for the jobs that have capsules there, by their contract (rm-mpirun --on-node-loss). Pure. */
#ifndef RM_LEADER_LOSSES_H
#define RM_LEADER_LOSSES_H

#include "daemon/cluster/state_index.h"

/* A running job that is to end. That is what all contracts come to that a job can be submitted with: without the capsule its mpirun would
 * wait for ever. */
struct loss {
        uint64_t job;
        const Rm__Node *node; /* that was lost; the state's */
};

/* Those with a capsule on a node that has been DOWN for `grace_usec`; in the order of nodes, each job once. An array that the caller
 * frees; NULL when there are none. `now_usec`: real time. */
struct loss *losses_find(const struct state_index *index, uint64_t grace_usec, uint64_t now_usec, size_t *ret_n);

#endif
