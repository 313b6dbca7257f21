#include "daemon/sensor/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Names of readings may change with each answer: what is remembered of them is bounded. */
#define ENTRIES_MAX (2U * RM_SENSOR_READINGS_MAX)

struct entry {
        char name[RM_SENSOR_NAME_BYTES], unit[RM_SENSOR_UNIT_BYTES];
        bool told; /* in the last answer */
        struct rule rule;
        struct growth *growth; /* of a counter, else NULL */
        struct rule_marks marks;
        double value; /* that the marks are for */
};

struct judge {
        struct judge_config config;
        struct entry *entries;
        size_t n_entries;
        bool judges; /* the sensor itself */
        struct rule own;
        char own_text[RM_SENSOR_TEXT_BYTES];
        enum rm_sensor_word word;
        char text[JUDGE_TEXT_BYTES];
};

const char *sensor_word_text(enum rm_sensor_word word) {
        static const char *const words[] = { "ok", "warn", "failing", "critical", "unknown" };

        return (size_t) word < ARRAY_SIZE(words) ? words[word] : "unknown";
}

struct judge *judge_create(const struct judge_config *config) {
        struct judge *judge = xcalloc(1, sizeof(*judge));

        judge->config = *config;
        return judge;
}

void judge_destroy(struct judge *judge) {
        if (!judge)
                return;
        for (size_t i = 0; i < judge->n_entries; i++)
                free(judge->entries[i].growth);
        free(judge->entries);
        free(judge);
}

/* A sensor names its readings in the same order each time: `hint` is where this one should be. NULL: there are too many. */
static struct entry *find(struct judge *judge, const struct answer_reading *reading, size_t hint) {
        struct entry *entry;

        if (hint < judge->n_entries && strcmp(judge->entries[hint].name, reading->name) == 0)
                return &judge->entries[hint];
        for (size_t i = 0; i < judge->n_entries; i++)
                if (strcmp(judge->entries[i].name, reading->name) == 0)
                        return &judge->entries[i];
        if (judge->n_entries >= ENTRIES_MAX)
                return NULL;
        judge->entries = xrealloc(judge->entries, (judge->n_entries + 1) * sizeof(*judge->entries));
        entry = &judge->entries[judge->n_entries++];
        *entry = (struct entry) { 0 };
        (void) strcpy(entry->name, reading->name);
        return entry;
}

static struct rule_marks marks_of(const struct judge_config *config, const struct answer_reading *reading) {
        struct rule_marks marks = {
                .low = reading->low, .high = reading->high, .margin = NAN, .at_low = reading->at_low, .at_high = reading->at_high
        };

        if (reading->fixed)
                return marks;
        marks.margin = config->margin;
        if (!isnan(config->low))
                marks.low = config->low;
        if (!isnan(config->high))
                marks.high = config->high;
        if (config->at_low != RM_SENSOR_OK)
                marks.at_low = config->at_low;
        if (config->at_high != RM_SENSOR_OK)
                marks.at_high = config->at_high;
        if (marks.at_high < marks.at_low)
                marks.at_high = marks.at_low;
        return marks;
}

static void take_reading(struct judge *judge, const struct answer_reading *reading, size_t hint, uint64_t now_usec) {
        struct entry *entry = find(judge, reading, hint);
        enum rm_sensor_word says;
        bool at_once;

        if (!entry || entry->told)
                return;
        entry->told = true;
        (void) strcpy(entry->unit, reading->unit);
        entry->marks = marks_of(&judge->config, reading);
        entry->value = reading->value;
        if (reading->counter) {
                if (!entry->growth)
                        entry->growth = xcalloc(1, sizeof(*entry->growth));
                entry->value = growth_step(entry->growth, reading->value, now_usec);
        }
        says = rule_says(&entry->marks, entry->rule.word, entry->value, &at_once);
        (void) rule_step(&entry->rule, &judge->config.limits, says, at_once, now_usec);
}

/* Those that are gone, and well, are forgotten. */
static void see_untold(struct judge *judge, uint64_t now_usec) {
        size_t kept = 0;

        for (size_t i = 0; i < judge->n_entries; i++) {
                struct entry *entry = &judge->entries[i];

                if (!entry->told)
                        (void) rule_step(&entry->rule, &judge->config.limits, RM_SENSOR_OK, false, now_usec);
                if (entry->told || entry->rule.word > RM_SENSOR_OK)
                        judge->entries[kept++] = *entry;
                else
                        free(entry->growth);
        }
        judge->n_entries = kept;
}

static void take_own(struct judge *judge, const struct answer *answer, uint64_t now_usec) {
        enum rm_sensor_word says = answer->judges ? answer->word : RM_SENSOR_OK;
        bool was_bad = judge->own.word > RM_SENSOR_OK;

        (void) rule_step(&judge->own, &judge->config.limits, says, says == RM_SENSOR_CRITICAL, now_usec);
        /* While a bad word holds, its reason is told, and not that all is well. */
        if (says >= judge->own.word || !was_bad)
                (void) strcpy(judge->own_text, answer->text);
        judge->judges = answer->judges || judge->own.word > RM_SENSOR_OK;
}

/* How near a value is to its marks: 0 at 0, 1 at the low one. */
static double nearness(const struct entry *entry) {
        double mark = isnan(entry->marks.low) ? entry->marks.high : entry->marks.low;

        return isnan(mark) || mark <= 0 ? -HUGE_VAL : entry->value / mark;
}

static const struct entry *worst_entry(const struct judge *judge) {
        const struct entry *worst = NULL;

        for (size_t i = 0; i < judge->n_entries; i++) {
                const struct entry *entry = &judge->entries[i];

                if (!worst || entry->rule.word > worst->rule.word ||
                    (entry->rule.word == worst->rule.word && nearness(entry) > nearness(worst)))
                        worst = entry;
        }
        return worst;
}

enum { VALUE_BYTES = 32 };

/* As people want it: "61", "87.8"; and no hundred digits of a number that is nonsense. */
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

static void set_text(struct judge *judge, const struct entry *entry) {
        char value[VALUE_BYTES], mark[VALUE_BYTES];
        bool high;
        double at;

        if (!entry || (judge->judges && judge->own.word >= entry->rule.word)) {
                (void) snprintf(judge->text, sizeof(judge->text), "%s", judge->own_text);
                return;
        }
        high = isnan(entry->marks.low) ||
               (!isnan(entry->marks.high) && entry->rule.word > RM_SENSOR_OK && entry->rule.word >= entry->marks.at_high);
        at = high ? entry->marks.high : entry->marks.low;
        if (!entry->told)
                (void) snprintf(judge->text, sizeof(judge->text), "%s: not told any more", entry->name);
        else if (isnan(at))
                (void) snprintf(judge->text, sizeof(judge->text), "%s: %s %s", entry->name, value_text(entry->value, value),
                                entry->unit);
        else
                (void) snprintf(judge->text, sizeof(judge->text), "%s: %s %s (%s mark %s)", entry->name,
                                value_text(entry->value, value), entry->unit, high ? "high" : "low", value_text(at, mark));
}

bool judge_take(struct judge *judge, const struct answer *answer, uint64_t now_usec) {
        enum rm_sensor_word before = judge->word;
        const struct entry *worst;

        for (size_t i = 0; i < judge->n_entries; i++)
                judge->entries[i].told = false;
        for (size_t i = 0; i < answer->n_readings; i++)
                take_reading(judge, &answer->readings[i], i, now_usec);
        see_untold(judge, now_usec);
        take_own(judge, answer, now_usec);
        worst = worst_entry(judge);
        judge->word = worst && worst->rule.word > judge->own.word ? worst->rule.word : judge->own.word;
        set_text(judge, worst);
        return judge->word != before;
}

enum rm_sensor_word judge_word(const struct judge *judge) {
        return judge->word;
}

const char *judge_text(const struct judge *judge) {
        return judge->text;
}
