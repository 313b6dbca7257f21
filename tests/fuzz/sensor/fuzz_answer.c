/* What a sensor's process tells, against arbitrary bytes: what is taken is within its limits and can be judged. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/sensor/answer.h"
#include "daemon/sensor/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        const struct judge_config config = { .limits = { .readings = 1, .hold_usec = 1 }, .low = NAN, .high = NAN, .margin = NAN };
        struct answer answer;
        struct judge *judge;
        struct rm_error err = { 0 };

        if (answer_parse((const char *) data, size_bytes, &answer, &err) < 0) {
                if (!err.code || !err.text[0])
                        abort();
                return 0;
        }
        judge = judge_create(&config);
        for (uint64_t minute = 0; minute < 4; minute++)
                (void) judge_take(judge, &answer, minute * 60000000);
        if (judge_word(judge) > RM_SENSOR_CRITICAL || !text_is_plain(judge_text(judge)))
                abort();
        judge_destroy(judge);
        answer_finish(&answer);
        return 0;
}
