/* The consequences of a lost node for the jobs that have capsules there, by their contract
 * (rm-mpirun --on-node-loss). Pure. */
#ifndef RM_LEADER_NODE_LOSSES_H
#define RM_LEADER_NODE_LOSSES_H

#include "daemon/state/state_index.h"

enum loss_answer {
        LOSS_END,     /* without the capsule its mpirun would wait indefinitely */
        LOSS_RESTART, /* from its beginning */
        LOSS_FENCE,   /* the same, once its node has been fenced by the plugin */
};

/* A job that has lost what it had on a node. */
struct loss {
        uint64_t job;
        const Rm__Node *node; /* that was lost; the state's */
        enum loss_answer answer;
        uint32_t attempt; /* LOSS_RESTART, LOSS_FENCE: the one that follows */
};

/* When a node that is DOWN is lost. */
struct node_losses_rule {
        uint64_t grace_usec; /* for a job that ends with it: it may be back soon */
        /* Asked for a job that starts again: none of its capsules runs there any more
         * (cluster_fence_safe_usec()). */
        bool (*has_fenced)(void *userdata, const char *node);
        void *userdata;
        bool must_fence; /* and by the plugin: not only by the lease, which a node that is broken may not keep */
};

/* Finds the jobs with a capsule on a lost node, in the order of nodes; each job once if it ends,
 * once for each such node if it starts again, and one job for each node that is to be fenced first.
 * An array that the caller frees; NULL when there are none. `now_usec`: real time. */
struct loss *losses_find(const struct state_index *index, const struct node_losses_rule *rule, uint64_t now_usec, size_t *ret_n);

/* Why it ends, or starts again: one line for people, malloc'ed. */
char *loss_reason(const struct loss *loss, const Rm__Job *job);

#endif
