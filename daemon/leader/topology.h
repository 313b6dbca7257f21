/* The leader's file with the switches is read, and its contents become known to all nodes. */
#ifndef RM_LEADER_TOPOLOGY_H
#define RM_LEADER_TOPOLOGY_H

#include <stdbool.h>

#include "daemon/context.h"
#include "daemon/leader/switches_file.h"

/* Proposes it, if the state has something else; true: it has. Only for the leader. */
bool topology_report(struct rmd *rmd, const struct switches_file *file);

#endif
