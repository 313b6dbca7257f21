/* The namespaces and mounts of a capsule. */
#ifndef RM_DAEMON_CAPSULE_INIT_SETUP_H
#define RM_DAEMON_CAPSULE_INIT_SETUP_H

#include "daemon/capsule/init/init.h"

struct rm_error;

/* Reads the file "spec" in the runtime directory. */
int setup_read_spec(const char *runtime_dir, Capsule__Spec **ret, struct rm_error *error);
/* Everything that needs the node's own namespaces, up to the bound control socket; makes CRIU's
 * cache if missing. */
int setup_node_side(struct init *init, const char *runtime_dir, struct rm_error *error);
/* Leaves the node's namespaces (the next fork is PID 1). */
int setup_unshare(struct rm_error *error);
/* Makes the capsule's mounts, names and link; runs as PID 1. */
int setup_capsule_side(struct init *init, struct rm_error *error);

#endif
