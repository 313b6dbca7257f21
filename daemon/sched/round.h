/*
 * A round of scheduling, from what is to what is to be done. Pure: no I/O, no clock, the same
 * answer to the same question.
 *
 *      round_create()          the real snapshot, and what is moving  -> capacities as running jobs
 *                              see them (fold.h)
 *      for each pass           one for each policy that jobs asked for, the cluster's own first:
 *        round_prepare()         -> the snapshot for that policy; the caller has the policy answer
 *                                it
 *        round_accept()          the plan, validated; or round_skip() when no policy gave one:
 *                                nothing of its jobs changes but what must
 *      further passes          for jobs that may overtake (backfill.h), when the snapshot's
 *                              params.backfill is ROUND_BACKFILL_LIMITS
 *      round_finish()          -> actions, and for each job whether it waits, is folded, and why
 *
 * Every answer may be thrown away and the round made again from the newest snapshot: the last edit
 * wins. An action is given only when it can begin now. A capsule that moves is not touched: it
 * counts where it goes, and the next round takes it from there.
 */
#ifndef RM_SCHED_ROUND_H
#define RM_SCHED_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/snapshot.h"
#include "daemon/sched/steps.h"

#define ROUND_HEAD (-1) /* the group number of the capsule that holds mpirun */

/* In rm_params.backfill of the snapshot given, beside the values of rm/policy.h: a job may overtake
 * when by its time limit it ends before the first that waits could start for certain, or takes only
 * room that that one will not need then. Policies never see it. */
#define ROUND_BACKFILL_LIMITS 2u

struct round;

/* Kinds of processors. A program that ran on a node may use what nodes of another kind lack. */
struct round_kinds {
        uint32_t n;
        const uint32_t *of_node; /* n_nodes entries */
        const bool *lacks; /* n * n entries, [from * n + to]: no group goes from a node of that kind to one of this */
};

/* A group on node `from` (RM_NO_NODE: on none) cannot go to node `to`. NULL ok: all nodes are
 * alike. */
static inline bool round_kinds_bar(const struct round_kinds *kinds, int32_t from, int32_t to) {
        return kinds && from >= 0 && to >= 0 && kinds->lacks[kinds->of_node[from] * kinds->n + kinds->of_node[to]];
}

/* A job's part in the round, beside its entry in the snapshot. In the order of the snapshot's
 * jobs. */
struct round_job {
        int32_t head_node; /* where its head capsule is, RM_NO_NODE: it has none yet */
        int32_t head_moving_to; /* RM_NO_NODE: it is not moving */
        bool head_stays; /* though the job's limit of its node is 0: that only keeps others from coming */
        /* n_groups entries, RM_NO_NODE: not moving; NULL: none is. In the snapshot such a group is
         * where it comes from. */
        const int32_t *group_moving_to;
        bool pinned; /* no capsule of it may move now (it starts, or ends) */
        uint64_t left_usec; /* of its time limit; 0: it has none, or does not run */
        uint32_t spares; /* nodes to be kept free for it (spare.h) */
        uint32_t n_spare_nodes;
        const int32_t *spare_nodes; /* that are, RM_NO_NODE for those that are known no more */
        /* n_nodes entries: by a warning nothing of it begins there, nor is that node kept free for
         * it; NULL: nowhere */
        const bool *kept_off;
        const uint64_t *group_move_usec; /* n_groups entries, the freezes of its last moves, 0: not known; NULL: none is */
        struct steps steps; /* all 0: its program counts none, or nothing was measured yet */
        /* n_nodes entries, the same of all jobs: nodes that are kept free for those that need room
         * (spare.h); NULL: none is */
        const bool *pool;
        bool uses_pool; /* it may have one of these: it runs, or starts again */
        const struct round_kinds *kinds; /* the same of all jobs; NULL: all nodes are alike */
        uint64_t checkpoint; /* the caller's number of what its groups were taken from, which the result repeats */
};

/* Why a capsule moves. */
enum round_cause {
        ROUND_NEEDED, /* its job may use no core of its node any more */
        ROUND_RETURN, /* ranks share cores on its node, or would if they were not parked, and there are free ones elsewhere */
        ROUND_CHOICE, /* only a better place; the others come before it */
};

enum round_action_kind {
        ROUND_START, /* make the capsules of a waiting job and start it */
        ROUND_MOVE, /* one capsule */
        ROUND_RESERVE, /* keep these nodes free for a running job, and no others */
};

struct round_action {
        enum round_action_kind kind;
        uint32_t job; /* index in the snapshot given */
        int32_t group; /* ROUND_MOVE: group number, or ROUND_HEAD */
        int32_t from, to; /* ROUND_MOVE: nodes */
        int32_t head_node; /* ROUND_START */
        int32_t *group_node; /* ROUND_START: n_groups nodes */
        uint32_t n_spare_nodes;
        int32_t *spare_nodes; /* ROUND_START, ROUND_RESERVE: to be kept free for it */
        enum round_cause cause; /* ROUND_MOVE */
        char reason[RM_REASON_BYTES]; /* the cause for people: "node 'n1' is to be left" */
};

struct round_job_result {
        bool waits; /* it has no node, and is not started by an action of this round */
        bool lost; /* it waits because others were served or it does not fit: its age rises */
        bool folded; /* after the actions it has more ranks than usable cores on some node */
        uint32_t kept; /* groups that its policy wanted to have on other nodes, which was not worth the moves */
        uint64_t start_usec; /* it waits, is served next, and starts by then at the latest, from now; 0: not known */
        char policy[64]; /* that placed it; empty: none did */
        uint64_t checkpoint; /* as given */
        int32_t *group_node; /* where its groups are to be */
        int32_t *rank_core; /* the cores there that its ranks get, RM_NO_CORE: any. NULL: its policy did not choose cores */
        char reason[RM_REASON_BYTES]; /* why it waits, or stays on a node that it should leave; empty: nothing to say */
        char stays_on[64]; /* the node, if the reason is what keeps it there until that has changed; else empty */
        char measured
                [RM_REASON_BYTES]; /* what of its steps has counted, in figures that are others in each round; empty: nothing */
};

struct round_result {
        struct round_action *actions; /* moves that must be first, then other moves, then spare nodes, then starts */
        size_t n_actions;
        struct round_job_result *jobs; /* one for each job of the snapshot */
        uint32_t n_jobs;
        bool short_of_memory; /* a job that needs memory waits, or a group stays for want of it on a node that it should leave */
};
void round_result_destroy(struct round_result *result); /* NULL ok */
/* Adds an action without nodes; valid until the next one is added. */
struct round_action *round_add_action(struct round_result *result);

/* `snapshot`: real capacities (cores usable now; nodes that are DRAINING, DRAINED or DOWN count as
 * 0). Borrowed until round_destroy(). `jobs`: n_jobs entries, or NULL when nothing is special; used
 * during the call only. -EINVAL: snapshot_check() or the moves are wrong; -ENOSPC: a running job
 * has groups without a node and there are no cores. */
int round_create(const struct rm_snapshot *snapshot, const struct round_job *jobs, struct round **ret_round, struct rm_error *err);
/* Like round_create(), for a snapshot that is known to pass snapshot_check(). */
int round_create_checked(const struct rm_snapshot *snapshot, const struct round_job *jobs, struct round **ret_round,
                         struct rm_error *err);
void round_destroy(struct round *round); /* NULL ok */

/* The snapshot that the policies of a round see, with all jobs in one: nodes to be left have no
 * cores, capacities are as folded, groups that move are where they go. For saving (`rmctl
 * snapshot`) and for plans that are only looked at; on the real one a policy could only say that
 * running jobs do not fit. As round_create(); the caller owns it, and `snapshot` must outlive
 * it. */
int round_policy_snapshot(const struct rm_snapshot *snapshot, const struct round_job *jobs, struct snapshot **ret_snapshot,
                          struct rm_error *err);

/* How many times a policy is to be asked; 0 when there are no jobs. It may grow when the last pass
 * is decided. The name of the policy, NULL: the cluster's. */
uint32_t round_passes(const struct round *round);
const char *round_policy(const struct round *round, uint32_t pass);

/* Passes go in order, each prepare followed by accept or skip. The snapshot belongs to the round
 * and is valid until the next prepare. */
const struct rm_snapshot *round_prepare(struct round *round, uint32_t pass);
/* `policy`: its name, for the records. -EINVAL: the plan is not valid, and nothing has changed:
 * ask another policy, or skip. */
int round_accept(struct round *round, uint32_t pass, const char *policy, const struct rm_plan *plan, struct rm_error *err);
/* Running jobs stay, or go where the fold found room; waiting ones wait, and `why` (NULL ok) is
 * what they are told. */
void round_skip(struct round *round, uint32_t pass, const char *why);

/* Finishes the round after the last pass; passes that were not decided are skipped. */
void round_finish(struct round *round, struct round_result **ret_result);

#endif
