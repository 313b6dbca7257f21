/* The check of a DrainNode, wherever it comes from. Pure. */
#ifndef RM_REQUESTS_DRAIN_NODE_H
#define RM_REQUESTS_DRAIN_NODE_H

#include "common/error.h"
#include "proto/local.pb-c.h"

/* -EINVAL: what is wrong, and what is allowed. */
int drain_node_check(const Rm__DrainNode *in, struct rm_error *err);

#endif
