/* Fences of lost nodes, on the leader: which nodes the plugin of [fence] is asked for, how often,
 * and what came of it. That goes into the log (CmdNodeFence); what is under way here ends with the
 * leadership, and the next leader begins it again. */
#ifndef RM_LEADER_FENCES_H
#define RM_LEADER_FENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/context.h"
#include "proto/state.pb-c.h"

struct fences *fences_create(struct rmd *rmd);
/* NULL ok. */
void fences_destroy(struct fences *fences);

/* Must a node be fenced by a plugin before its jobs start again? */
bool fences_configured(const struct fences *fences);

/* In turn, every now and then: begin, one call for each node (DOWN, not fenced, with jobs that only
 * wait for this), end. What runs for a node that is not named any more is killed. */
void fences_scan_begin(struct fences *fences);
void fences_want(struct fences *fences, const Rm__Node *node);
void fences_scan_end(struct fences *fences);

/* Pure. From the end of one try to the next, when so many have failed, at least one: it doubles, up
 * to 16 times `retry_usec`. */
uint64_t fences_pause_usec(uint64_t retry_usec, unsigned failures);

#endif
