/* The word of one sensor: the worst of those of its readings, and of what it says itself. Pure. */
#ifndef RM_SENSOR_JUDGE_H
#define RM_SENSOR_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sensor/answer.h"
#include "daemon/sensor/rules.h"

#define JUDGE_TEXT_BYTES 384U

struct judge;

struct judge_config {
        struct rule_limits limits;
        double low, high; /* NAN: as the readings have it, like the margin and the words */
        double margin;
        enum rm_sensor_word at_low, at_high; /* RM_SENSOR_OK: as the readings have it */
};

struct judge *judge_create(const struct judge_config *config);
/* NULL ok. */
void judge_destroy(struct judge *judge);

/* An answer counts. Returns whether the word has changed. A reading that is not told any more counts as one that is well. */
bool judge_take(struct judge *judge, const struct answer *answer, uint64_t now_usec);

enum rm_sensor_word judge_word(const struct judge *judge);
/* What the word is about, as of the last answer, such as "coretemp0 temp1: 81.0 C (low mark 80.0 C)"; or the reading that is nearest to its marks,
 * or the sensor's own text. "" before the first answer. */
const char *judge_text(const struct judge *judge);

const char *sensor_word_text(enum rm_sensor_word word);

#endif
