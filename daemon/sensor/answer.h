/* The answer of a run of rm-plugin-host, as JSON:
 *
 *      { "readings": [ { "name": "...", "unit": "...", "value": 1.5, "low": 2, "high": 3,
 *                        "flags": 0, "at_low": 1, "at_high": 3 }, ... ],
 *        "status": 0, "text": "...", "log": [ { "level": 4, "text": "..." }, ... ] }
 *
 * low, high, status and text may be missing. It comes from a process that is not trusted: all is
 * checked. Pure. */
#ifndef RM_SENSOR_ANSWER_H
#define RM_SENSOR_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "rm/sensor.h"

#define ANSWER_MOST_BYTES (256U << 10) /* more than all of the below take */
#define ANSWER_LOG_LINES 20U
#define ANSWER_LOG_BYTES 400U

struct answer_reading {
        char name[RM_SENSOR_NAME_BYTES], unit[RM_SENSOR_UNIT_BYTES]; /* plain text, as of text_is_plain() */
        double value;
        double low, high; /* NAN: none */
        enum rm_sensor_status at_low, at_high; /* warn to critical */
        bool counter, fixed;
};

struct answer {
        struct answer_reading *readings;
        size_t n_readings;
        bool evaluates; /* it has told a status: */
        enum rm_sensor_status status; /* ok to critical */
        char text[RM_SENSOR_TEXT_BYTES];
        struct {
                int level; /* of syslog */
                char text[ANSWER_LOG_BYTES];
        } log[ANSWER_LOG_LINES];
        size_t n_log;
};

/* -EBADMSG with what is wrong. Free with answer_finish(). */
int answer_parse(const char *text, size_t size_bytes, struct answer *ret_answer, struct rm_error *err);
void answer_finish(struct answer *answer);

#endif
