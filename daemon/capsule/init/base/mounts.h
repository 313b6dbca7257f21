/* Makes the node's file systems read-only in the capsule, except for the directories of
 * spec->writable. */
#ifndef RM_DAEMON_CAPSULE_INIT_BASE_MOUNTS_H
#define RM_DAEMON_CAPSULE_INIT_BASE_MOUNTS_H

#include <stdbool.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

/* PID 1 makes all mounts read-only after it has made the capsule's own, but for these, /dev and
 * what lies in the directories of spec->writable; directories that the node does not have are
 * skipped. Only existing mounts are seen: one that the node makes later (an automounter) arrives
 * with the node's flags, so this is called again before a restore. */
int mounts_protect(const Capsule__Spec *spec, struct rm_error *error);

/* The paths of the mounts below directories of spec->writable that others see too, malloc'ed as the
 * list is. Returns how many. */
size_t mounts_list_writable(const Capsule__Spec *spec, char ***ret);

struct mount_seen {
        const char *path, *type;
        bool read_only; /* the mount, whatever its file system is */
};

/* Calls `fn` for each mount that this process sees, in the order of mountinfo (proc(5)), until one
 * fails: 0, its error, or -errno. */
typedef int (*mounts_fn)(const struct mount_seen *mount, void *arg, struct rm_error *error);
int mounts_each(mounts_fn fn, void *arg, struct rm_error *error);

/* Is `path` the directory or below it? */
bool path_is_below(const char *path, const char *directory);
/* Decodes the octal escapes of /proc/self/mountinfo in place. */
void mounts_unescape(char *path);

#endif
