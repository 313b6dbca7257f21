/* What of the node's file systems the capsule may write. */
#ifndef RM_DAEMON_CAPSULE_INIT_WORLD_H
#define RM_DAEMON_CAPSULE_INIT_WORLD_H

#include <stdbool.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

/* As PID 1, after the capsule's own mounts are made: every other mount becomes read-only, but for /dev and what lies in the
 * directories of spec->writable; those that the node does not have are passed over. Works on the mounts that there are: one that the node makes later
 * (an automounter) arrives as the node has it, so it is called again before a restore. */
int world_protect(const Capsule__Spec *spec, struct rm_error *error);

/* Is `path` the directory or below it? */
bool world_below(const char *path, const char *directory);
/* Decodes the octal escapes of /proc/self/mountinfo in place. */
void world_unescape(char *path);

#endif
