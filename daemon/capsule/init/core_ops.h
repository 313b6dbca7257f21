/* The operations of the core that its modules have (core.h). */
#ifndef RM_DAEMON_CAPSULE_INIT_CORE_OPS_H
#define RM_DAEMON_CAPSULE_INIT_CORE_OPS_H

#include "daemon/capsule/init/core.h"

/* Each operation is for the `core` in a `struct init` that is complete. */
extern const struct core_ops core_ops;

#endif
