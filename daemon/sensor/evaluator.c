#include "daemon/sensor/evaluator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

/* Names of readings may change with each answer: what is remembered of them is bounded. */
#define ENTRIES_MAX (2U * RM_SENSOR_READINGS_MAX)

struct entry {
        char name[RM_SENSOR_NAME_BYTES], unit[RM_SENSOR_UNIT_BYTES];
        bool reported; /* in the last answer */
        struct rule rule;
        struct growth *growth; /* of a counter, else NULL */
        struct rule_thresholds thresholds;
        double value; /* that the thresholds are for */
};

struct evaluator {
        struct evaluator_config config;
        struct entry *entries;
        size_t n_entries;
        bool evaluates; /* the sensor itself */
        struct rule own;
        char own_text[RM_SENSOR_TEXT_BYTES];
        enum rm_sensor_status status;
        char text[EVALUATOR_TEXT_BYTES];
};

const char *sensor_status_text(enum rm_sensor_status status) {
        static const char *const words[] = { "ok", "warn", "failing", "critical", "unknown" };

        return (size_t) status < ARRAY_SIZE(words) ? words[status] : "unknown";
}

struct evaluator *evaluator_create(const struct evaluator_config *config) {
        struct evaluator *evaluator = xcalloc(1, sizeof(*evaluator));

        evaluator->config = *config;
        return evaluator;
}

void evaluator_destroy(struct evaluator *evaluator) {
        if (!evaluator)
                return;
        for (size_t i = 0; i < evaluator->n_entries; i++)
                free(evaluator->entries[i].growth);
        free(evaluator->entries);
        free(evaluator);
}

/* A sensor names its readings in the same order each time: `hint` is where this one should be.
 * NULL: there are too many. */
static struct entry *find(struct evaluator *evaluator, const struct answer_reading *reading, size_t hint) {
        struct entry *entry;

        if (hint < evaluator->n_entries && strcmp(evaluator->entries[hint].name, reading->name) == 0)
                return &evaluator->entries[hint];
        for (size_t i = 0; i < evaluator->n_entries; i++)
                if (strcmp(evaluator->entries[i].name, reading->name) == 0)
                        return &evaluator->entries[i];
        if (evaluator->n_entries >= ENTRIES_MAX)
                return NULL;
        evaluator->entries = xrealloc(evaluator->entries, (evaluator->n_entries + 1) * sizeof(*evaluator->entries));
        entry = &evaluator->entries[evaluator->n_entries++];
        *entry = (struct entry) { 0 };
        (void) strcpy(entry->name, reading->name);
        return entry;
}

static struct rule_thresholds thresholds_of(const struct evaluator_config *config, const struct answer_reading *reading) {
        struct rule_thresholds thresholds = {
                .low = reading->low, .high = reading->high, .margin = NAN, .at_low = reading->at_low, .at_high = reading->at_high
        };

        if (reading->fixed)
                return thresholds;
        thresholds.margin = config->margin;
        if (!isnan(config->low))
                thresholds.low = config->low;
        if (!isnan(config->high))
                thresholds.high = config->high;
        if (config->at_low != RM_SENSOR_OK)
                thresholds.at_low = config->at_low;
        if (config->at_high != RM_SENSOR_OK)
                thresholds.at_high = config->at_high;
        if (thresholds.at_high < thresholds.at_low)
                thresholds.at_high = thresholds.at_low;
        return thresholds;
}

static void take_reading(struct evaluator *evaluator, const struct answer_reading *reading, size_t hint, uint64_t now_usec) {
        struct entry *entry = find(evaluator, reading, hint);
        enum rm_sensor_status says;
        bool at_once;

        if (!entry || entry->reported)
                return;
        entry->reported = true;
        (void) strcpy(entry->unit, reading->unit);
        entry->thresholds = thresholds_of(&evaluator->config, reading);
        entry->value = reading->value;
        if (reading->counter) {
                if (!entry->growth)
                        entry->growth = xcalloc(1, sizeof(*entry->growth));
                entry->value = growth_step(entry->growth, reading->value, now_usec);
        }
        says = rule_says(&entry->thresholds, entry->rule.status, entry->value, &at_once);
        (void) rule_step(&entry->rule, &evaluator->config.limits, says, at_once, now_usec);
}

/* Readings that are gone, and were well, are forgotten. */
static void see_untold(struct evaluator *evaluator, uint64_t now_usec) {
        size_t kept = 0;

        for (size_t i = 0; i < evaluator->n_entries; i++) {
                struct entry *entry = &evaluator->entries[i];

                if (!entry->reported)
                        (void) rule_step(&entry->rule, &evaluator->config.limits, RM_SENSOR_OK, false, now_usec);
                if (entry->reported || entry->rule.status > RM_SENSOR_OK)
                        evaluator->entries[kept++] = *entry;
                else
                        free(entry->growth);
        }
        evaluator->n_entries = kept;
}

static void take_own(struct evaluator *evaluator, const struct answer *answer, uint64_t now_usec) {
        enum rm_sensor_status says = answer->evaluates ? answer->status : RM_SENSOR_OK;
        bool was_bad = evaluator->own.status > RM_SENSOR_OK;

        (void) rule_step(&evaluator->own, &evaluator->config.limits, says, says == RM_SENSOR_CRITICAL, now_usec);
        /* While a bad status holds, its reason is told, and not that all is well. */
        if (says >= evaluator->own.status || !was_bad)
                (void) strcpy(evaluator->own_text, answer->text);
        evaluator->evaluates = answer->evaluates || evaluator->own.status > RM_SENSOR_OK;
}

/* How near a value is to its thresholds: 0 at 0, 1 at the low one. */
static double nearness(const struct entry *entry) {
        double threshold = isnan(entry->thresholds.low) ? entry->thresholds.high : entry->thresholds.low;

        return isnan(threshold) || threshold <= 0 ? -HUGE_VAL : entry->value / threshold;
}

static const struct entry *worst_entry(const struct evaluator *evaluator) {
        const struct entry *worst = NULL;

        for (size_t i = 0; i < evaluator->n_entries; i++) {
                const struct entry *entry = &evaluator->entries[i];

                if (!worst || entry->rule.status > worst->rule.status ||
                    (entry->rule.status == worst->rule.status && nearness(entry) > nearness(worst)))
                        worst = entry;
        }
        return worst;
}

enum { VALUE_BYTES = 32 };

/* A value as people want it: "61", "87.8"; and no hundred digits of a number that is nonsense. */
static const char *value_text(double value, char *buffer) {
        size_t length;

        if (fabs(value) >= 1e9) {
                (void) snprintf(buffer, VALUE_BYTES, "%.3g", value);
                return buffer;
        }
        (void) snprintf(buffer, VALUE_BYTES, "%.1f", value);
        length = strlen(buffer);
        if (strcmp(buffer + length - 2, ".0") == 0)
                buffer[length - 2] = '\0';
        return buffer;
}

static void set_text(struct evaluator *evaluator, const struct entry *entry) {
        char value[VALUE_BYTES], threshold[VALUE_BYTES];
        bool high;
        double at;

        if (!entry || (evaluator->evaluates && evaluator->own.status >= entry->rule.status)) {
                (void) text_format(evaluator->text, sizeof(evaluator->text), "%s", evaluator->own_text);
                return;
        }
        high = isnan(entry->thresholds.low) || (!isnan(entry->thresholds.high) && entry->rule.status > RM_SENSOR_OK &&
                                                entry->rule.status >= entry->thresholds.at_high);
        at = high ? entry->thresholds.high : entry->thresholds.low;
        if (!entry->reported)
                (void) text_format(evaluator->text, sizeof(evaluator->text), "%s: not told any more", entry->name);
        else if (isnan(at))
                (void) text_format(evaluator->text, sizeof(evaluator->text), "%s: %s %s", entry->name,
                                   value_text(entry->value, value), entry->unit);
        else
                (void) text_format(evaluator->text, sizeof(evaluator->text), "%s: %s %s (%s threshold %s)", entry->name,
                                   value_text(entry->value, value), entry->unit, high ? "high" : "low", value_text(at, threshold));
}

bool evaluator_take(struct evaluator *evaluator, const struct answer *answer, uint64_t now_usec) {
        enum rm_sensor_status before = evaluator->status;
        const struct entry *worst;

        for (size_t i = 0; i < evaluator->n_entries; i++)
                evaluator->entries[i].reported = false;
        for (size_t i = 0; i < answer->n_readings; i++)
                take_reading(evaluator, &answer->readings[i], i, now_usec);
        see_untold(evaluator, now_usec);
        take_own(evaluator, answer, now_usec);
        worst = worst_entry(evaluator);
        evaluator->status = worst && worst->rule.status > evaluator->own.status ? worst->rule.status : evaluator->own.status;
        set_text(evaluator, worst);
        return evaluator->status != before;
}

enum rm_sensor_status evaluator_status(const struct evaluator *evaluator) {
        return evaluator->status;
}

const char *evaluator_text(const struct evaluator *evaluator) {
        return evaluator->text;
}
