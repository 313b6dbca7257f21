/* The common functions of rmctl's verbs about nodes. */
#ifndef RM_LAUNCHER_RMCTL_NODE_H
#define RM_LAUNCHER_RMCTL_NODE_H

#include "launcher/rmctl/verb.h"

/* The nodes of `hosts` (all when empty), a NodeList. */
int node_fetch(struct call *call, const struct hostlist *hosts, Rm__LocalReply **ret_reply);

/* Sends a request about the nodes of the command line, which are put into it at `names`, and tells
 * what has become of them: "n[1-2] resumed", or as JSON the names under `key`. */
int node_change(struct call *call, ProtobufCMessage *body, char ***names, size_t *n_names, const char *what, const char *key);
/* "failing" */
const char *node_condition_name(Rm__Condition condition);

#endif
