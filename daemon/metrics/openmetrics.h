/* Writes metrics as text: OpenMetrics 1.0, or the older text format of Prometheus for clients that
 * ask for that. Pure. */
#ifndef RM_METRICS_OPENMETRICS_H
#define RM_METRICS_OPENMETRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/metrics/counters.h"

enum metrics_format {
        METRICS_OPEN,  /* application/openmetrics-text; version=1.0.0; charset=utf-8 */
        METRICS_PLAIN, /* text/plain; version=0.0.4; charset=utf-8: without units and the end mark */
};

const char *metrics_content_type(enum metrics_format format);
/* The format that a client asks for by its Accept header; NULL: it has none. A header that names no
 * known format gets OpenMetrics. */
enum metrics_format metrics_format_for(const char *accept);

struct openmetrics;

struct openmetrics *openmetrics_create(enum metrics_format format);
/* Ends the text and frees the writer. The caller frees the text. */
char *openmetrics_finish(struct openmetrics *om);

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO, METRIC_HISTOGRAM, METRIC_SUMMARY };

/* Begin a family. `name` ends with `unit` if it has one, and never with "_total": the suffix of
 * counters is added. `unit` NULL: it has none. */
void openmetrics_family(struct openmetrics *om, enum metric_type type, const char *name, const char *unit, const char *help);
/* A sample of a gauge, counter or info; `label` NULL: without a label. The values of labels are
 * escaped. */
void openmetrics_value(struct openmetrics *om, const char *label, const char *value_of_label, double value);
/* The same with two labels. */
void openmetrics_value2(struct openmetrics *om, const char *label, const char *value_of_label, const char *label2,
                        const char *value_of_label2, double value);
/* The samples of a histogram in seconds. */
void openmetrics_histogram(struct openmetrics *om, const struct counters *counters, enum histogram histogram);
/* The samples of a summary in seconds, which has no quantiles. */
void openmetrics_summary(struct openmetrics *om, uint64_t count, uint64_t sum_usec);

#endif
