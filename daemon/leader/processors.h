/* Nodes that a job cannot come to, since their processors lack instruction sets that it may use:
 * those of the nodes where its capsules run now, or where its checkpoint was made. Pure. */
#ifndef RM_LEADER_PROCESSORS_H
#define RM_LEADER_PROCESSORS_H

#include <stddef.h>

#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"
#include "daemon/state/state.h"

struct processors {
        const Rm__Node **nodes; /* one for each list of instruction sets that the job may use; of the state */
        size_t n;
};

/* A job that has neither capsules nor a checkpoint needs none. `checkpoint`: what a waiting job
 * goes on from; NULL: it has none. */
void processors_needed(const Rm__State *state, const Rm__Job *job, const Rm__Checkpoint *checkpoint, struct processors *ret);
void processors_finish(struct processors *processors);

/* "node n2 lacks avx512f, which node n1 has"; malloc'ed. NULL: the job can go there, as far as is
 * known. */
char *processors_against(const struct processors *processors, const Rm__Node *node);

/* The same of all nodes that jobs may use: "node n2 lacks ...; others that lack some: 3".
 * malloc'ed; NULL: there are none. */
char *processors_reason(const Rm__State *state, const Rm__Job *job);

/* The kinds of nodes that there are, in the snapshot's memory; NULL: no node lacks what another
 * has. */
const struct round_kinds *processors_kinds(const Rm__State *state, struct snapshot *snapshot);

#endif
