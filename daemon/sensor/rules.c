#include "daemon/sensor/rules.h"

#include <math.h>
#include <string.h>

#define MARGIN_PART 0.05
#define MINUTE_USEC UINT64_C(60000000)

/* A word that the mark has brought about holds until the value is below it by the margin. */
static bool is_at(double value, double mark, double margin, bool held) {
        if (isnan(mark))
                return false;
        if (isnan(margin))
                margin = fabs(mark) * MARGIN_PART;
        return value >= mark || (held && value > mark - margin);
}

enum rm_sensor_word rule_says(const struct rule_marks *marks, enum rm_sensor_word word, double value, bool *ret_at_once) {
        *ret_at_once = !isnan(marks->high) && value >= marks->high;
        if (is_at(value, marks->high, marks->margin, word >= marks->at_high))
                return marks->at_high;
        if (is_at(value, marks->low, marks->margin, word >= marks->at_low))
                return marks->at_low;
        return RM_SENSOR_OK;
}

static bool change(struct rule *rule, enum rm_sensor_word word) {
        *rule = (struct rule) { .word = word };
        return true;
}

static bool step_worse(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_word says, bool at_once) {
        rule->better = false;
        if (at_once)
                return change(rule, says);
        if (rule->worse++ == 0 || says < rule->worse_word)
                rule->worse_word = says;
        return rule->worse >= limits->readings && change(rule, rule->worse_word);
}

static bool step_better(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_word says, uint64_t now_usec) {
        rule->worse = 0;
        if (!rule->better) {
                rule->better = true;
                rule->better_since_usec = now_usec;
                rule->better_word = says;
        } else if (says > rule->better_word) {
                rule->better_word = says;
        }
        return now_usec - rule->better_since_usec >= limits->hold_usec && change(rule, rule->better_word);
}

bool rule_step(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_word says, bool at_once, uint64_t now_usec) {
        if (says > rule->word)
                return step_worse(rule, limits, says, at_once);
        if (says < rule->word)
                return step_better(rule, limits, says, now_usec);
        rule->worse = 0;
        rule->better = false;
        return false;
}

/* What is older than an hour goes. */
static void forget(struct growth *growth, uint64_t minute) {
        uint64_t passed = minute - growth->minute;

        for (uint64_t i = 1; i <= passed && i <= GROWTH_SLOTS; i++)
                growth->grown[(growth->minute + i) % GROWTH_SLOTS] = 0;
        growth->minute = minute;
}

double growth_step(struct growth *growth, double counter, uint64_t now_usec) {
        uint64_t minute = now_usec / MINUTE_USEC;
        double sum = 0;

        if (!growth->begun) {
                growth->begun = true;
                growth->counter = counter;
                growth->minute = minute;
        }
        forget(growth, minute);
        growth->grown[minute % GROWTH_SLOTS] += counter >= growth->counter ? counter - growth->counter : counter;
        growth->counter = counter;
        for (unsigned i = 0; i < GROWTH_SLOTS; i++)
                sum += growth->grown[i];
        return sum;
}
