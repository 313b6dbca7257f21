/* Which of the capsule's control groups a process of it is in: the two leaves, in every hierarchy
 * that limits it. */
#ifndef RM_DAEMON_CAPSULE_INIT_BASE_GROUPS_H
#define RM_DAEMON_CAPSULE_INIT_BASE_GROUPS_H

#include <sys/types.h>

struct core;
struct rm_error;

enum leaf {
        LEAF_INIT,    /* PID 1 and what it starts for itself; not frozen, not limited */
        LEAF_PAYLOAD, /* what the user runs, and CRIU while it makes that */
};

/* Opens their directories, while the node's mounts are there. */
int groups_open(struct core *core, struct rm_error *error);
/* Moves a process (0: the caller) in all of them. 0 or negative errno. */
int groups_enter(const struct core *core, enum leaf leaf, pid_t pid);

#endif
