/* The processes that the capsule's MPI daemon (prted) has started, by the process table: memory and
 * files of the processes are the user's, and not read. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_LAUNCHED_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_LAUNCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launched_process {
        pid_t pid, parent;
        bool daemon;
        bool ended; /* only its parent has not seen it yet */
        unsigned group;
        unsigned threads;
};

/* Lists all processes in the capsule now; malloc'ed. Returns how many. */
size_t launched_read(struct launched_process **ret);

/* Moves those to the front that a daemon below `root` has started, and that have not ended: the
 * first process of each rank. Returns how many. */
size_t launched_ranks(struct launched_process *all, size_t n, pid_t root);

/* Children of daemons that are no daemons (one begins as the child of another), are not `known`,
 * and no ancestors of what is: each may be a rank of which nothing is known yet. -1: there is no
 * daemon. `all` is sorted in place. */
int launched_count_unknown(struct launched_process *all, size_t n, const pid_t *known, size_t n_known);

/* As launched_count_unknown(), of all processes that are in the capsule now. */
int launched_scan(const pid_t *known, size_t n_known);

#endif
