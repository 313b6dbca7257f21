#include "daemon/metrics/openmetrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define USEC_PER_SEC 1e6
/* Up to here every whole number is itself in a double, and is written as one. */
#define WHOLE_MOST 9007199254740992.0

struct openmetrics {
        enum metrics_format format;
        enum metric_type type;
        const char *name; /* of the family */
        FILE *file;
        char *text;
        size_t bytes;
};

const char *metrics_content_type(enum metrics_format format) {
        return format == METRICS_OPEN ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                      : "text/plain; version=0.0.4; charset=utf-8";
}

enum metrics_format metrics_format_for(const char *accept) {
        if (!accept || strstr(accept, "application/openmetrics-text") || !strstr(accept, "text/plain"))
                return METRICS_OPEN;
        return METRICS_PLAIN;
}

struct openmetrics *openmetrics_create(enum metrics_format format) {
        struct openmetrics *om = xcalloc(1, sizeof(*om));

        om->format = format;
        om->file = open_memstream(&om->text, &om->bytes);
        if (!om->file)
                abort();
        return om;
}

char *openmetrics_finish(struct openmetrics *om) {
        char *text;

        if (om->format == METRICS_OPEN)
                (void) fputs("# EOF\n", om->file);
        if (fclose(om->file) != 0)
                abort();
        text = om->text;
        free(om);
        return text;
}

/* The older format has no type info, and the type line of a counter has the name of its sample. */
void openmetrics_family(struct openmetrics *om, enum metric_type type, const char *name, const char *unit, const char *help) {
        static const char *const types[] = { [METRIC_GAUGE] = "gauge",
                                             [METRIC_COUNTER] = "counter",
                                             [METRIC_INFO] = "info",
                                             [METRIC_HISTOGRAM] = "histogram",
                                             [METRIC_SUMMARY] = "summary" };
        bool open = om->format == METRICS_OPEN;
        const char *suffix = "";

        if (!open && type == METRIC_COUNTER)
                suffix = "_total";
        else if (!open && type == METRIC_INFO)
                suffix = "_info";
        om->type = type;
        om->name = name;
        (void) fprintf(om->file, "# TYPE %s%s %s\n", name, suffix, !open && type == METRIC_INFO ? "gauge" : types[type]);
        if (open && unit)
                (void) fprintf(om->file, "# UNIT %s %s\n", name, unit);
        (void) fprintf(om->file, "# HELP %s%s %s\n", name, suffix, help);
}

static void write_escaped(FILE *file, const char *text) {
        for (; *text; text++) {
                if (*text == '\\' || *text == '"')
                        (void) fputc('\\', file);
                if (*text == '\n')
                        (void) fputs("\\n", file);
                else
                        (void) fputc(*text, file);
        }
}

static void write_label(struct openmetrics *om, const char *before, const char *label, const char *value) {
        (void) fprintf(om->file, "%s%s=\"", before, label);
        write_escaped(om->file, value);
        (void) fputc('"', om->file);
}

static void write_number(struct openmetrics *om, double value) {
        bool whole = value >= 0 && value < WHOLE_MOST && floor(value) == value;

        (void) fprintf(om->file, whole ? " %.0f\n" : " %.12g\n", value);
}

static void begin_sample(struct openmetrics *om) {
        (void) fprintf(om->file, "%s%s", om->name, om->type == METRIC_COUNTER ? "_total" : om->type == METRIC_INFO ? "_info" : "");
}

void openmetrics_value(struct openmetrics *om, const char *label, const char *value_of_label, double value) {
        begin_sample(om);
        if (label) {
                write_label(om, "{", label, value_of_label);
                (void) fputc('}', om->file);
        }
        write_number(om, value);
}

void openmetrics_value2(struct openmetrics *om, const char *label, const char *value_of_label, const char *label2,
                        const char *value_of_label2, double value) {
        begin_sample(om);
        write_label(om, "{", label, value_of_label);
        write_label(om, ",", label2, value_of_label2);
        (void) fputc('}', om->file);
        write_number(om, value);
}

static double seconds(uint64_t usec) {
        return (double) usec / USEC_PER_SEC;
}

/* A bound is a number of its own kind: a whole one has its ".0", as the standard wants it. */
static void write_bucket(struct openmetrics *om, double bound, uint64_t n) {
        char text[32] = "+Inf";

        if (isfinite(bound))
                (void) snprintf(text, sizeof(text), floor(bound) == bound ? "%.1f" : "%g", bound);
        (void) fprintf(om->file, "%s_bucket{le=\"%s\"}", om->name, text);
        write_number(om, (double) n);
}

void openmetrics_histogram(struct openmetrics *om, const struct counters *counters, enum histogram histogram) {
        const uint64_t *bounds = histogram_bounds(histogram);
        uint64_t n = 0;

        for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
                n += counters->values[histogram_bucket(histogram, bucket)];
                write_bucket(om, bucket < HISTOGRAM_BUCKETS - 1 ? seconds(bounds[bucket]) : HUGE_VAL, n);
        }
        openmetrics_summary(om, n, counters->values[histogram_sum(histogram)]);
}

void openmetrics_summary(struct openmetrics *om, uint64_t count, uint64_t sum_usec) {
        (void) fprintf(om->file, "%s_count", om->name);
        write_number(om, (double) count);
        (void) fprintf(om->file, "%s_sum", om->name);
        write_number(om, seconds(sum_usec));
}
