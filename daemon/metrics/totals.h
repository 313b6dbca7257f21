/*
 * The totals are what the nodes have counted while this one led, added up from what they report.
 * What a node counted before is not in them: the leader of that time has it, and Prometheus, which
 * adds up what the figures of all leaders have grown by, would have it twice. A node that begins
 * again with its counters at 0 takes nothing away, and what a node reports twice is counted once,
 * so that the sum never runs back while this rmd lives. Pure.
 */
#ifndef RM_METRICS_TOTALS_H
#define RM_METRICS_TOTALS_H

#include <stdbool.h>

#include "daemon/metrics/counters.h"
#include "daemon/state/state.h"
#include "proto/peer.pb-c.h"

struct totals;

struct totals *totals_create(void);
void totals_destroy(struct totals *totals); /* NULL ok */

/* This node begins to lead: what nodes have counted until now counts no more. */
void totals_begin(struct totals *totals);
/* Adds the report of one node; `whole`: its rmd is younger than the leadership, so that all of it
 * counts. Numbers that this version does not know are dropped; those that the node does not know
 * stay as they are. */
void totals_add(struct totals *totals, const char *node, const Rm__NodeCounters *report, bool whole);
/* Forgets what nodes reported that are not in the cluster any more; the sum stays. */
void totals_forget(struct totals *totals, const Rm__State *state);

/* Valid as long as the totals are. */
const struct counters *totals_counters(const struct totals *totals);
/* The number of nodes of which there is a report. */
size_t totals_nodes(const struct totals *totals);

#endif
