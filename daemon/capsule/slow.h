/* A control group of a capsule's payload with the controller "cpu", for as long as the payload is slowed down. It has none otherwise: ranks that wait
 * leave their core to others of their scheduling group only (launcher/yield), and each group with that controller is one. */
#ifndef RM_DAEMON_CAPSULE_SLOW_H
#define RM_DAEMON_CAPSULE_SLOW_H

struct capsule_ctx;

/* `cgroup_dir`: of the capsule. Returns the group whose limit may be set, malloc'ed, or NULL: this host has none. */
char *slow_group_make(const char *id, const char *cgroup_dir);
/* Without a limit again. What there is none of is fine; `cgroup_parent` is that of all capsules. */
void slow_group_remove(const char *id, const char *cgroup_parent, const char *cgroup_dir);

#endif
