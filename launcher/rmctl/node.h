/* What rmctl's verbs about nodes share. */
#ifndef RM_LAUNCHER_RMCTL_NODE_H
#define RM_LAUNCHER_RMCTL_NODE_H

#include "launcher/rmctl/verb.h"

/* The nodes of `hosts` (all when empty), a NodeList. */
int node_fetch(struct call *call, const struct hostlist *hosts, Rm__LocalReply **ret_reply);

/* "n[1-2] drained", or as JSON the names under `key`. */
void node_report(const struct call *call, const struct hostlist *hosts, const char *what, const char *key);
/* "failing" */
const char *node_condition_word(Rm__Condition condition);

#endif
