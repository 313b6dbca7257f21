/* Feeds the parser of sensors' answers with arbitrary bytes: an answer that is taken is within its
 * limits and can be evaluated. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/sensor/answer.h"
#include "daemon/sensor/evaluator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        const struct evaluator_config config = {
                .limits = { .readings = 1, .hold_usec = 1 }, .low = NAN, .high = NAN, .margin = NAN
        };
        struct answer answer;
        struct evaluator *evaluator;
        struct rm_error err = { 0 };

        if (answer_parse((const char *) data, size_bytes, &answer, &err) < 0) {
                if (!err.code || !err.text[0])
                        abort();
                return 0;
        }
        evaluator = evaluator_create(&config);
        for (uint64_t minute = 0; minute < 4; minute++)
                (void) evaluator_take(evaluator, &answer, minute * 60000000);
        if (evaluator_status(evaluator) > RM_SENSOR_CRITICAL || !text_is_plain(evaluator_text(evaluator)))
                abort();
        evaluator_destroy(evaluator);
        answer_finish(&answer);
        return 0;
}
