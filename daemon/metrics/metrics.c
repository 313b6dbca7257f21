#include "daemon/metrics/metrics.h"

#include <stdlib.h>

#include "common/util.h"
#include "daemon/metrics/metrics_internal.h"

struct metrics *metrics_create(const char *node, uint64_t run) {
        struct metrics *metrics = xcalloc(1, sizeof(*metrics));

        metrics->run = run;
        metrics->tally = tally_create(node);
        metrics->totals = totals_create();
        return metrics;
}

void metrics_destroy(struct metrics *metrics) {
        if (!metrics)
                return;
        tally_destroy(metrics->tally);
        totals_destroy(metrics->totals);
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

void metrics_report(const struct metrics *metrics, Rm__NodeCounters *ret) {
        if (!metrics)
                return;
        ret->run = metrics->run;
        ret->changes = tally_changes(metrics->tally);
        ret->values = (uint64_t *) tally_counters(metrics->tally)->values;
        ret->n_values = COUNTERS;
}

/* A node that is removed reports no more, and there may be others of its name. */
void metrics_reported(struct metrics *metrics, const char *node, const Rm__NodeCounters *report, const Rm__State *state) {
        if (!metrics || !report)
                return;
        totals_add(metrics->totals, node, report);
        if (totals_nodes(metrics->totals) > state->n_nodes)
                totals_forget(metrics->totals, state);
}
