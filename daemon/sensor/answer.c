#include "daemon/sensor/answer.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "common/text.h"
#include "common/util.h"

static int bad(struct rm_error *err, const char *what) {
        return error_set(err, -EBADMSG, "its answer is broken: %s", what);
}

/* Plain text that fits whole. */
static bool get_text(const json_t *object, const char *key, char *out, size_t size_bytes) {
        const char *text = json_string_value(json_object_get(object, key));

        if (!text || strlen(text) >= size_bytes || !text_is_plain(text))
                return false;
        (void) strcpy(out, text);
        return true;
}

static bool get_int(const json_t *object, const char *key, int min, int max, int *ret) {
        const json_t *value = json_object_get(object, key);
        json_int_t number = json_integer_value(value);

        if (!json_is_integer(value) || number < min || number > max)
                return false;
        *ret = (int) number;
        return true;
}

static bool get_real(const json_t *object, const char *key, double *ret) {
        const json_t *value = json_object_get(object, key);

        if (!json_is_number(value) || !isfinite(json_number_value(value)))
                return false;
        *ret = json_number_value(value);
        return true;
}

static bool get_threshold(const json_t *object, const char *key, double *ret) {
        *ret = NAN;
        return !json_object_get(object, key) || get_real(object, key, ret);
}

static bool get_reading(const json_t *object, struct answer_reading *reading) {
        int flags, at_low, at_high;

        if (!get_text(object, "name", reading->name, sizeof(reading->name)) || !reading->name[0] ||
            !get_text(object, "unit", reading->unit, sizeof(reading->unit)) || !get_real(object, "value", &reading->value) ||
            !get_threshold(object, "low", &reading->low) || !get_threshold(object, "high", &reading->high) ||
            !get_int(object, "flags", 0, RM_SENSOR_COUNTER | RM_SENSOR_FIXED, &flags) ||
            !get_int(object, "at_low", RM_SENSOR_WARN, RM_SENSOR_CRITICAL, &at_low) ||
            !get_int(object, "at_high", RM_SENSOR_WARN, RM_SENSOR_CRITICAL, &at_high))
                return false;
        reading->at_low = (enum rm_sensor_status) at_low;
        reading->at_high = (enum rm_sensor_status) at_high;
        reading->counter = (unsigned) flags & RM_SENSOR_COUNTER;
        reading->fixed = (unsigned) flags & RM_SENSOR_FIXED;
        return true;
}

static int get_readings(const json_t *list, struct answer *answer, struct rm_error *err) {
        if (!json_is_array(list) || json_array_size(list) > RM_SENSOR_READINGS_MAX)
                return bad(err, "no list of readings, or too long a one");
        answer->readings = xcalloc(json_array_size(list), sizeof(*answer->readings));
        for (; answer->n_readings < json_array_size(list); answer->n_readings++)
                if (!get_reading(json_array_get(list, answer->n_readings), &answer->readings[answer->n_readings]))
                        return bad(err, "a reading");
        return 0;
}

static int get_status(const json_t *root, struct answer *answer, struct rm_error *err) {
        int status;

        answer->evaluates = json_object_get(root, "status") != NULL;
        if (!answer->evaluates)
                return answer->n_readings > 0 ? 0 : bad(err, "nothing is told");
        if (!get_int(root, "status", RM_SENSOR_OK, RM_SENSOR_CRITICAL, &status) ||
            !get_text(root, "text", answer->text, sizeof(answer->text)))
                return bad(err, "the status");
        answer->status = (enum rm_sensor_status) status;
        return 0;
}

static int get_log(const json_t *list, struct answer *answer, struct rm_error *err) {
        if (!json_is_array(list) || json_array_size(list) > ANSWER_LOG_LINES)
                return bad(err, "no list of log lines, or too long a one");
        for (; answer->n_log < json_array_size(list); answer->n_log++) {
                const json_t *line = json_array_get(list, answer->n_log);

                if (!get_int(line, "level", LOG_ERR, LOG_DEBUG, &answer->log[answer->n_log].level) ||
                    !get_text(line, "text", answer->log[answer->n_log].text, ANSWER_LOG_BYTES))
                        return bad(err, "a log line");
        }
        return 0;
}

int answer_parse(const char *text, size_t size_bytes, struct answer *ret_answer, struct rm_error *err) {
        json_error_t json_error;
        json_t *root = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &json_error);
        struct answer answer = { 0 };
        int r;

        if (!json_is_object(root)) {
                json_decref(root);
                return bad(err, "not a JSON object");
        }
        r = get_readings(json_object_get(root, "readings"), &answer, err);
        if (r == 0)
                r = get_status(root, &answer, err);
        if (r == 0)
                r = get_log(json_object_get(root, "log"), &answer, err);
        json_decref(root);
        if (r < 0)
                answer_finish(&answer);
        else
                *ret_answer = answer;
        return r;
}

void answer_finish(struct answer *answer) {
        free(answer->readings);
        *answer = (struct answer) { 0 };
}
