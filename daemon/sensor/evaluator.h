/* The status of one sensor: the worst of those of its readings, and of what it says itself.
 * Pure. */
#ifndef RM_SENSOR_EVALUATOR_H
#define RM_SENSOR_EVALUATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sensor/answer.h"
#include "daemon/sensor/rules.h"

#define EVALUATOR_TEXT_BYTES 384U

struct evaluator;

struct evaluator_config {
        struct rule_limits limits;
        double low, high; /* NAN: as the readings have it, like the margin and the statuses */
        double margin;
        enum rm_sensor_status at_low, at_high; /* RM_SENSOR_OK: as the readings have it */
};

struct evaluator *evaluator_create(const struct evaluator_config *config);
/* NULL ok. */
void evaluator_destroy(struct evaluator *evaluator);

/* An answer counts. Returns whether the status has changed. A reading that is not told any more
 * counts as one that is well. */
bool evaluator_take(struct evaluator *evaluator, const struct answer *answer, uint64_t now_usec);

enum rm_sensor_status evaluator_status(const struct evaluator *evaluator);
/* The reason of the status, as of the last answer, such as "coretemp0 temp1: 81.0 C (low threshold
 * 80.0 C)"; or the reading that is nearest to its thresholds, or the sensor's own text. "" before
 * the first answer. */
const char *evaluator_text(const struct evaluator *evaluator);

const char *sensor_status_text(enum rm_sensor_status status);

#endif
