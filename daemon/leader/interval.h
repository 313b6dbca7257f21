/* How often a job is to be saved. Pure. */
#ifndef RM_LEADER_INTERVAL_H
#define RM_LEADER_INTERVAL_H

#include <stdint.h>

/* The measurements of a job's checkpoints and of its nodes. Times in microseconds. */
struct interval_facts {
        uint64_t cost_usec;  /* of one checkpoint, to the job; 0: none has been made yet */
        uint64_t mtbf_usec;  /* of one node: from one loss to the next; not 0 */
        uint32_t nodes;      /* that the job runs on: the loss of any is one to the job; at least 1 */
        double foreseen;     /* share of losses that nodes leave before: [0, 1) */
};

/* From the begin of one checkpoint to that of the next, as loses least work: the exact optimum for
 * failures that are exponential (Daly 2006), of which Young 1974 is the first term; with the share
 * p of losses foreseen, the time between failures grows to T_f / (1 - p) (Wang et al. 2012, 5.7).
 * At least INTERVAL_LEAST_USEC, at most INTERVAL_MOST_USEC. */
#define INTERVAL_LEAST_USEC UINT64_C(10000000)
#define INTERVAL_MOST_USEC (UINT64_C(24) * 3600 * 1000000)
uint64_t interval_best(const struct interval_facts *facts);

/* Time between losses of one node: what was seen in `node_usec` of nodes that were up, and
 * `prior_usec`, as if one loss had been seen in that; less, as far as so many losses were unlikely
 * if it were true, so that a wrong prior does not outlive the first of them. Not 0. */
uint64_t interval_mtbf(uint64_t prior_usec, uint64_t node_usec, uint64_t losses);

#endif
