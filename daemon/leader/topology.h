/* The switches of the leader's configuration become known to all. */
#ifndef RM_LEADER_TOPOLOGY_H
#define RM_LEADER_TOPOLOGY_H

#include <stdbool.h>

#include "daemon/context.h"

/* Proposes them, if the state has others; true: it has. Only for the leader. */
bool topology_tell(struct rmd *rmd);

#endif
