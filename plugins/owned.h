/* Is a program one that only an administrator can have put there? For plugins that run one; linked
 * into each. */
#ifndef RM_PLUGINS_OWNED_H
#define RM_PLUGINS_OWNED_H

#include "rm/plugin.h"

/* 0, or a negative errno after the reason has gone to the host's log as RM_PLUGIN_ERROR: `path`
 * must be absolute, a file of root's (or of this process's user) that no other user can write, and
 * so must be all directories above it. `key` names the path in messages. */
int owned_check(const struct rm_plugin_host *host, const char *key, const char *path);

#endif
