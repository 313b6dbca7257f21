/* The control groups of a capsule: freezing and killing. Used by rmd and by the capsule's PID 1. */
#ifndef RM_DAEMON_CAPSULE_CGROUP_H
#define RM_DAEMON_CAPSULE_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct rm_error;

/*
 * A capsule's directory holds two leaf groups: "init" (PID 1 and what it starts for itself) and
 * "payload", the one that is frozen. All functions take a descriptor of the directory meant, so
 * that they work after the mounts have changed.
 */

/* Finds the place where capsules go when the configuration does not say: below our own group in the
 * cgroup v2 tree, or else in the v1 freezer tree. malloc'ed. -ENOTSUP when the node has neither. */
int cgroup_find_parent(char **ret_path, struct rm_error *error);
/* True when `path` is in a v1 hierarchy. Negative errno when it is in none. */
int cgroup_is_v1(const char *path);

/* Makes DIR, DIR/init and DIR/payload; what exists is fine. */
int cgroup_make(const char *path, struct rm_error *error);
/* Removes them; -EBUSY while processes remain. Gone is fine. */
int cgroup_remove(const char *path);

/* Moves a process (0: the caller). */
int cgroup_enter(int dir_fd, pid_t pid);
/* Asks for it; it may take a while until it is so. */
int cgroup_set_frozen(int dir_fd, bool v1, bool frozen);
/* Lets processes with the supplementary group CGROUP_FREEZER_GID freeze and thaw it as well: the
 * CRIU that dumps it, which is not root. No user is in that group. 0 or negative errno. */
int cgroup_share_freezer(int dir_fd, bool v1);
#define CGROUP_FREEZER_GID ((gid_t) - 2)
/* 1 all stand still, 0 not yet, negative errno. */
int cgroup_is_frozen(int dir_fd, bool v1);
/* Descriptor that reports POLLPRI when the answer of cgroup_is_frozen may have changed; -ENOTSUP on
 * v1. */
int cgroup_open_events(int dir_fd);
/* 1 there are processes in it, 0 none. */
int cgroup_is_populated(int dir_fd, bool v1);
/* SIGKILL (or with `signo` another one, without the guarantee against forks) to all. */
int cgroup_kill(int dir_fd, bool v1);
int cgroup_signal(int dir_fd, int signo);

#endif
