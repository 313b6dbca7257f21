/*
 * rm/policy.h: what a placement policy sees, and what it answers.
 *
 * A policy is a pure function: a snapshot of the cluster in, a plan out. It does no input or
 * output, reads no clock (the host tells it how much time is left) and keeps no state that changes
 * its answers. So a policy can be tested, replayed (`rmctl snapshot`, `rm-policy-run`) and
 * simulated.
 *
 * It runs in a process of its own with limits on time and memory. If it crashes, exceeds its time
 * or returns an invalid plan, rmd logs a warning and uses `greedy` instead. Every plan is validated
 * before anything is done.
 *
 * Units: cores and ranks are counts; times are microseconds; memory is in bytes; costs, penalties
 * and weights are whole numbers without a unit, compared only with each other. A snapshot whose
 * costs could exceed 2^53 in sum is refused before a policy sees it, so sums of costs neither
 * overflow an int64_t nor lose a digit in a double.
 *
 * The objective that `distrib` minimises (Reghenzani 2016, section 5.3) and that a plan's `cost` is
 * expressed in:
 *
 *      sum over jobs a, nodes s that hold ranks of a:
 *              priority(a) * (penalty(s) * ranks(a, s) + distribution_weight)
 *      + sum over groups that have a node and are planned elsewhere:
 *              move_cost(group)
 *
 * over the jobs that are placed. Waiting jobs cost nothing: which jobs wait is decided first, by
 * priority and age.
 */
#ifndef RM_POLICY_H
#define RM_POLICY_H

#include <stdint.h>

#include "rm/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RM_POLICY_KIND "policy"
#define RM_POLICY_ABI 2u

#define RM_NO_NODE (-1)              /* an index that points nowhere */
#define RM_NO_LIMIT UINT32_MAX       /* in rm_job.node_limit */
#define RM_NO_MEMORY_LIMIT INT64_MAX /* in rm_node.memory and .memory_free */
#define RM_NO_BOUND INT64_MIN        /* in rm_plan.bound */
#define RM_NO_CORE (-1)              /* in rm_plan_job.rank_core */
#define RM_METHOD_BYTES 64
#define RM_REASON_BYTES 160

/* The states of nodes as `rmctl list-nodes` shows them. Only `cores` says how much of a node may be
 * used. */
enum rm_node_state {
        RM_NODE_IDLE = 0,
        RM_NODE_MIXED,
        RM_NODE_ALLOCATED,
        RM_NODE_DRAINING,
        RM_NODE_DRAINED,
        RM_NODE_DOWN,
};

/* A node. Source of each value in brackets. */
struct rm_node {
        const char *name;
        /* The number of cores that may be used now [the least of hardware, availability file; 0
         * when draining or down]. While jobs are folded it can exceed the hardware's number. */
        uint32_t cores;
        uint32_t state; /* enum rm_node_state */
        int64_t penalty; /* >= 0: the cost of running one rank here, for each unit of priority [health, configuration] */
        const char *topology; /* hwloc synthetic description, "package:2 core:8"; NULL when not known */
        int32_t switch_index; /* the switch it is plugged into, in rm_snapshot.switches; RM_NO_NODE when not known */
        uint32_t reserved;
        int64_t memory; /* that groups may have on it in all, RM_NO_MEMORY_LIMIT when not known [what the node reports] */
        /* The part of `memory` that groups which come to the node may take together. Memory of
         * groups that are there has been subtracted, also that of groups that leave it: it is free
         * when they have left. */
        int64_t memory_free;
};

/* A switch. Parents never form a cycle. */
struct rm_switch {
        const char *name;
        int32_t parent; /* RM_NO_NODE at the top */
        uint32_t reserved;
};

#define RM_GROUP_PINNED 1u /* must stay on its node (it is moving there, or its node cannot be reached) */

/* The ranks of one capsule. Groups of a job are numbered from 0 and hold consecutive ranks; all
 * have the job's group_size but the last, which may be smaller. A group is never split. */
struct rm_group {
        uint32_t first_rank;
        uint32_t ranks; /* >= 1 */
        int32_t node; /* where it runs now, RM_NO_NODE when it has not been started */
        uint32_t flags; /* RM_GROUP_* */
        int64_t move_cost; /* >= 0: of moving it away from `node` [measured freeze times, scaled by configuration] */
        /* >= 0: what it takes of the memory_free of a node that it comes to; where it is, it takes
         * nothing more. [when it waits: what its job has asked for; when it runs: what it needs
         * during a move] */
        int64_t memory;
};

/* Bytes that pairs of ranks exchange, as measured and reckoned for rmd's [sched] horizon, or as
 * declared. Symmetric, compressed sparse rows: the partners of rank r are peer[offset[r]] ..
 * peer[offset[r + 1] - 1], ascending, r itself not among them; every pair stands in both rows with
 * the sum of both directions. All three are NULL when nothing is known. */
struct rm_traffic {
        const uint64_t *offset; /* ranks + 1 entries */
        const uint32_t *peer; /* offset[ranks] entries */
        const uint64_t *bytes; /* offset[ranks] entries, each <= 2^53 */
};

struct rm_job {
        const char *name; /* unique in the snapshot */
        uint32_t ranks; /* >= 1 */
        uint32_t group_size; /* 1 .. ranks */
        uint32_t n_groups; /* ceil(ranks / group_size) */
        uint32_t age; /* rounds it has lost since it was submitted or last placed */
        int64_t priority; /* >= 0, higher is served first and weighs more */
        const struct rm_group *groups;
        /* The job's own availability, and what memory allows it: ranks it may have on each node,
         * n_nodes entries, RM_NO_LIMIT where it has no limit. NULL when it has none. */
        const uint32_t *node_limit;
        /* The policy it asked for, NULL for the cluster's. A policy may ignore it: it gets only
         * jobs that it is to place, and others with all groups pinned. */
        const char *policy;
        uint64_t time_limit_usec; /* 0 = none */
        struct rm_traffic traffic;
};

struct rm_params {
        int64_t distribution_weight; /* K of the objective: the cost of each node a job uses. Default 10 */
        int64_t age_weight; /* priority gained for each round lost, when it is decided which jobs wait. Default 1 */
        /* 0: no job starts before one that waits, unless that one would not fit on the empty
         * cluster; 1: a job that fits may. Default 0. */
        uint32_t backfill;
        /* Groups that treematch may move in one plan beyond those that must, to bring ranks nearer
         * to each other; each saves more bytes times hops than its move_cost times bytes_per_cost.
         * Default 0. */
        uint32_t move_budget;
        int64_t bytes_per_cost; /* so many bytes less over one hop are worth one unit of move_cost. 1 .. 2^32. Default 1 */
};

/* Owned by the host, read only, valid during one call. */
struct rm_snapshot {
        uint32_t size; /* sizeof(struct rm_snapshot) of the host; elements of arrays change only with the abi */
        uint32_t n_nodes;
        uint32_t n_switches;
        uint32_t n_jobs;
        const struct rm_node *nodes;
        const struct rm_switch *switches;
        /* Waiting ones that start again since they lost a node, then running ones and other waiting
         * ones in the order of submission. Waiting ones that cannot be placed now, for want of
         * cores or because one before them needs them, may be left out. */
        const struct rm_job *jobs;
        struct rm_params params;
};

enum rm_decision {
        RM_WAIT = 0, /* only for jobs none of whose groups has a node */
        RM_PLACE = 1,
};

struct rm_plan_job {
        uint32_t decision; /* enum rm_decision; RM_WAIT when the policy is called */
        uint32_t reserved;
        int32_t *group_node; /* n_groups entries, the node of each group; valid with RM_PLACE */
        /* `ranks` entries: the core on its node (0 .. cores-1 in the order of the topology), or all
         * RM_NO_CORE when the policy has no opinion, as at the call. */
        int32_t *rank_core;
        char reason[RM_REASON_BYTES]; /* shown to users: why it waits. Empty at the call; the scheduler appends the figures */
};

/* The answer. The host allocates and owns all arrays; the policy fills them in. */
struct rm_plan {
        uint32_t size; /* sizeof(struct rm_plan) of the host */
        uint32_t n_jobs; /* that of the snapshot */
        struct rm_plan_job *jobs;
        int64_t bound; /* no plan that places the same jobs costs less; RM_NO_BOUND when not known, as at the call */
        uint32_t proven; /* 1: no plan is cheaper that lets the same jobs wait */
        char method[RM_METHOD_BYTES]; /* shown to users: how the plan was found; empty at the call */
};

/* Arguments of one call. */
struct rm_policy_run {
        uint32_t size;
        uint32_t reserved;
        void *context;
        /* Time left to answer in, 0 when it is over. A policy that answers later is killed and its
         * plan discarded. */
        uint64_t (*left_usec)(void *context);
};

/* The descriptor of a policy. */
struct rm_policy_plugin {
        struct rm_plugin plugin; /* kind = RM_POLICY_KIND, kind_abi = RM_POLICY_ABI */

        /* Fill `plan` for `snapshot`. For every job with a group that has a node: RM_PLACE. Ranks
         * on a node never exceed its cores, ranks of a job on a node never its node_limit, pinned
         * groups stay (where these alone exceed the one or the other, nothing else may be put). The
         * memory of all groups that come to a node never exceeds its memory_free; the host has
         * lowered each job's node_limit to what that allows the job alone, so a policy that looks
         * at cores only seldom breaks this rule. 0, or a negative errno with the plan ignored
         * (-ENOSPC: running jobs do not fit; anything else: say why through the host's log). */
        int (*place)(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan);
};

#ifdef __cplusplus
}
#endif

#endif
