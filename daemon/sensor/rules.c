#include "daemon/sensor/rules.h"

#include <math.h>
#include <string.h>

#define MARGIN_PART 0.05
#define MINUTE_USEC UINT64_C(60000000)

/* A status that the threshold has brought about holds until the value is below it by the margin. */
static bool is_at(double value, double threshold, double margin, bool held) {
        if (isnan(threshold))
                return false;
        if (isnan(margin))
                margin = fabs(threshold) * MARGIN_PART;
        return value >= threshold || (held && value > threshold - margin);
}

enum rm_sensor_status rule_says(const struct rule_thresholds *thresholds, enum rm_sensor_status status, double value,
                                bool *ret_at_once) {
        *ret_at_once = !isnan(thresholds->high) && value >= thresholds->high;
        if (is_at(value, thresholds->high, thresholds->margin, status >= thresholds->at_high))
                return thresholds->at_high;
        if (is_at(value, thresholds->low, thresholds->margin, status >= thresholds->at_low))
                return thresholds->at_low;
        return RM_SENSOR_OK;
}

static bool change(struct rule *rule, enum rm_sensor_status status) {
        *rule = (struct rule) { .status = status };
        return true;
}

static bool step_worse(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_status says, bool at_once) {
        rule->better = false;
        if (at_once)
                return change(rule, says);
        if (rule->worse++ == 0 || says < rule->worse_status)
                rule->worse_status = says;
        return rule->worse >= limits->readings && change(rule, rule->worse_status);
}

static bool step_better(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_status says, uint64_t now_usec) {
        rule->worse = 0;
        if (!rule->better) {
                rule->better = true;
                rule->better_since_usec = now_usec;
                rule->better_status = says;
        } else if (says > rule->better_status) {
                rule->better_status = says;
        }
        return now_usec - rule->better_since_usec >= limits->hold_usec && change(rule, rule->better_status);
}

bool rule_step(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_status says, bool at_once, uint64_t now_usec) {
        if (says > rule->status)
                return step_worse(rule, limits, says, at_once);
        if (says < rule->status)
                return step_better(rule, limits, says, now_usec);
        rule->worse = 0;
        rule->better = false;
        return false;
}

/* Forgets growth that is older than an hour. */
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
