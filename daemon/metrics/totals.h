/*
 * The totals are the counters of all nodes, added up from what they report. A node that begins
 * again with its counters at 0 takes nothing away from the sum, and what a node reports twice is
 * counted once: so the sum never runs back while this rmd lives, also when it leads, follows and
 * leads again. Pure.
 */
#ifndef RM_METRICS_TOTALS_H
#define RM_METRICS_TOTALS_H

#include "daemon/state/state.h"
#include "daemon/metrics/counters.h"
#include "proto/peer.pb-c.h"

struct totals;

struct totals *totals_create(void);
void totals_destroy(struct totals *totals); /* NULL ok */

/* What one node reports. Numbers that this version does not know are dropped; those that the node
 * does not know stay as they are. */
void totals_add(struct totals *totals, const char *node, const Rm__NodeCounters *report);
/* Forgets what nodes reported that are not in the cluster any more; the sum stays. */
void totals_forget(struct totals *totals, const Rm__State *state);

/* Valid as long as the totals are. */
const struct counters *totals_counters(const struct totals *totals);
/* Of how many nodes there is a report. */
size_t totals_nodes(const struct totals *totals);

#endif
