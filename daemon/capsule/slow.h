/* A control group of a capsule's payload with the controller "cpu", for as long as the payload is
 * slowed down. It has none otherwise: ranks that wait leave their core to others of their
 * scheduling group only (launcher/yield), and each group with that controller is one. */
#ifndef RM_DAEMON_CAPSULE_SLOW_H
#define RM_DAEMON_CAPSULE_SLOW_H

struct capsule_ctx;

/* Undoes what capsule_slow_begin() has done for the capsule of this id, whose groups are in
 * `cgroup_dir`; it is no error if that is nothing. Its payload, if there is one, has no limit any
 * more. */
void slow_group_remove(const struct capsule_ctx *ctx, const char *id, const char *cgroup_dir);

#endif
