#include "daemon/metrics/metrics.h"

#include <stdlib.h>

#include "common/util.h"
#include "daemon/metrics/metrics_internal.h"

struct metrics *metrics_create(const char *node, uint64_t run, uint64_t now_usec) {
        struct metrics *metrics = xcalloc(1, sizeof(*metrics));

        metrics->node = xstrdup(node);
        metrics->run = run;
        metrics->start_usec = now_usec;
        metrics->tally = tally_create(node);
        metrics->totals = totals_create();
        return metrics;
}

void metrics_destroy(struct metrics *metrics) {
        if (!metrics)
                return;
        tally_destroy(metrics->tally);
        totals_destroy(metrics->totals);
        free(metrics->node);
        free(metrics);
}

void metrics_installed(struct metrics *metrics, const Rm__State *state) {
        if (metrics)
                tally_learn(metrics->tally, state);
}

void metrics_applied(struct metrics *metrics, const Rm__State *state, const struct state_result *result) {
        for (size_t i = 0; metrics && i < result->n_events; i++)
                tally_event(metrics->tally, state, result->events[i]);
}

void metrics_policy(struct metrics *metrics, uint64_t usec, bool failed) {
        if (metrics)
                tally_policy(metrics->tally, usec, failed);
}

void metrics_report(const struct metrics *metrics, uint64_t now_usec, Rm__NodeCounters *ret) {
        if (!metrics)
                return;
        ret->run = metrics->run;
        ret->age_usec = now_usec - metrics->start_usec;
        ret->changes = tally_changes(metrics->tally);
        ret->values = (uint64_t *) tally_counters(metrics->tally)->values;
        ret->n_values = COUNTERS;
}

/* The counts of this node until now are known here, so no report of it is waited for. */
void metrics_lead(struct metrics *metrics) {
        Rm__NodeCounters own = RM__NODE_COUNTERS__INIT;

        if (!metrics)
                return;
        metrics_report(metrics, metrics->start_usec, &own);
        totals_begin(metrics->totals);
        totals_add(metrics->totals, metrics->node, &own, false);
}

void metrics_reported(struct metrics *metrics, const char *node, const Rm__NodeCounters *report, uint64_t led_usec) {
        if (metrics && report)
                totals_add(metrics->totals, node, report, report->age_usec < led_usec);
}

void metrics_forget(struct metrics *metrics, const Rm__State *state) {
        if (metrics)
                totals_forget(metrics->totals, state);
}
