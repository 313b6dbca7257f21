/*
 * Plans: their storage, and the answer of a policy in JSON:
 *
 *      { "policy": "distrib", "method": "message passing, 12 branches", "cost": 120,
 *        "bound": 120, "proven": true, "time_usec": 1234,
 *        "placement": [ { "job": "j1", "node": "n1", "ranks": 8 } ],
 *        "waiting": [ "j2" ], "reasons": { "j2": "..." },
 *        "mapping": { "j1": [ [0, "n1", 3] ] },
 *        "traffic": { "hop_bytes": 4000, "inter_node_bytes": 0,
 *                     "by_slot": { "hop_bytes": 6000, "inter_node_bytes": 1000 } } }
 *
 * The runs of "placement" name a job's groups in order, as "placed" does in a snapshot. "bound" is
 * null when there is none, "mapping" (rank, node, core) only there when the policy chose cores.
 * "traffic" is only there when something is known of it: what it costs in bytes times hops and in
 * bytes between nodes, over the jobs that are placed, and what it would by slot ("by_slot" is
 * missing where they do not fit so). Pure.
 */
#ifndef RM_SCHED_PLAN_H
#define RM_SCHED_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "rm/policy.h"

/* With arrays of the sizes of `snapshot`, every job waiting. plan_destroy() frees all of it; NULL
 * ok. */
struct rm_plan *plan_create(const struct rm_snapshot *snapshot);
void plan_destroy(struct rm_plan *plan);
static inline void plan_destroyp(struct rm_plan **plan) {
        plan_destroy(*plan);
}
#define cleanup_plan __attribute__((cleanup(plan_destroyp)))

/* A plan and the policy that made it. */
struct plan_answer {
        char policy[64];
        int64_t cost;       /* by the objective of rm/policy.h */
        uint64_t time_usec; /* that the policy took */
        struct rm_plan *plan;
};
void plan_answer_finish(struct plan_answer *answer); /* NULL ok */

/* Strict: any bytes give a plan of the right shape for `snapshot` or one clear error. Whether the
 * plan may be carried out is for plan_validate(). */
int plan_parse(const void *data, size_t size_bytes, const struct rm_snapshot *snapshot, struct plan_answer *ret_answer,
               struct rm_error *err);
json_t *plan_to_json(const struct plan_answer *answer, const struct rm_snapshot *snapshot);

/*
 * May the plan be carried out on this snapshot? Every job is placed or waits; jobs that run are
 * placed; all groups of placed jobs are on nodes there are; no node gets more ranks than cores, no
 * job more on a node than its limit; pinned groups stay; cores given to ranks are on their node and
 * given once; groups that come to a node take no more than its free memory. Nothing in `plan` is
 * trusted. 0 or -EINVAL, the error names job and node.
 */
int plan_validate(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct rm_error *err);

#endif
