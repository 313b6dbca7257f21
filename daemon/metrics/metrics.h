/*
 * The figures of this node and of the cluster that are scraped over HTTP. Counts and times only: no
 * name of a user or a job, no command line, no directory, no reason, and of nodes only the own
 * name.
 */
#ifndef RM_METRICS_METRICS_H
#define RM_METRICS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/metrics/counters.h"
#include "daemon/metrics/openmetrics.h"
#include "daemon/state/state_index.h"
#include "proto/peer.pb-c.h"

struct metrics;

/* `run`: a number that no other rmd of this node has; `now_usec`: now_usec(), when this rmd is
 * started. All functions take NULL `metrics`, and do nothing. */
struct metrics *metrics_create(const char *node, uint64_t run, uint64_t now_usec);
void metrics_destroy(struct metrics *metrics);

/* ---- what is counted here ---- */
/* The state came as a whole. */
void metrics_installed(struct metrics *metrics, const Rm__State *state);
/* An entry of the log was applied. */
void metrics_applied(struct metrics *metrics, const Rm__State *state, const struct state_result *result);
/* See tally_policy(). */
void metrics_policy(struct metrics *metrics, uint64_t usec, bool failed);

/* ---- what nodes tell the leader ---- */
/* Fills the report in, whose numbers are borrowed from `metrics`. */
void metrics_report(const struct metrics *metrics, uint64_t now_usec, Rm__NodeCounters *ret);
/* This node begins to lead. */
void metrics_lead(struct metrics *metrics);
/* A node reports to the leader, which leads since `led_usec`. `report` NULL: it does not count. */
void metrics_reported(struct metrics *metrics, const char *node, const Rm__NodeCounters *report, uint64_t led_usec);
/* On the leader, now and then: nodes that were removed are forgotten. One that reports may not be
 * in the state yet. */
void metrics_forget(struct metrics *metrics, const Rm__State *state);

/* ---- what is shown ---- */
/* Facts that this node knows of itself, beside the state. */
struct metrics_own {
        const char *version;
        const char *node;
        bool leads;
        bool synced;
        bool tracking; /* moves from it can track memory */
        uint64_t start_real_usec;
        uint64_t cpu_usec; /* of this rmd */
        uint64_t resident_bytes;
};

/* The caller frees the text. */
char *metrics_node_text(const struct metrics *metrics, const struct state_index *index, const struct metrics_own *own,
                        enum metrics_format format);
/* On the leader, which alone has what the nodes report. */
struct metrics_cluster {
        uint64_t log_usec;
        uint64_t (*interval_usec)(const void *context,
                                  const Rm__Job *job); /* from one checkpoint of the job to the next; 0: none */
        const void *context;
};
char *metrics_cluster_text(const struct metrics *metrics, const struct state_index *index, const struct metrics_cluster *cluster,
                           enum metrics_format format);

#endif
