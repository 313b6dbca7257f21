/* Answers of rm-plugin-host about sensors, good and broken. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/sensor/answer.h"

#define READING "{\"name\":\"a\",\"unit\":\"C\",\"value\":1.5,\"low\":2,\"high\":3,\"flags\":1,\"at_low\":1,\"at_high\":3}"

static int parse(const char *text, struct answer *ret, struct rm_error *err) {
        *err = (struct rm_error) { 0 };
        return answer_parse(text, strlen(text), ret, err);
}

static void test_good(void **state) {
        struct answer a;
        struct rm_error err;

        assert_int_equal(parse("{\"readings\":[" READING "],\"log\":[{\"level\":4,\"text\":\"hm\"}]}", &a, &err), 0);
        assert_int_equal(a.n_readings, 1);
        assert_string_equal(a.readings[0].name, "a");
        assert_string_equal(a.readings[0].unit, "C");
        assert_true(a.readings[0].value == 1.5 && a.readings[0].low == 2 && a.readings[0].high == 3);
        assert_true(a.readings[0].counter);
        assert_false(a.readings[0].fixed);
        assert_int_equal(a.readings[0].at_high, RM_SENSOR_CRITICAL);
        assert_false(a.evaluates);
        assert_int_equal(a.n_log, 1);
        assert_string_equal(a.log[0].text, "hm");
        answer_finish(&a);

        assert_int_equal(parse("{\"readings\":[],\"log\":[],\"status\":1,\"text\":\"hot\"}", &a, &err), 0);
        assert_true(a.evaluates);
        assert_int_equal(a.status, RM_SENSOR_WARN);
        assert_string_equal(a.text, "hot");
        answer_finish(&a);

        assert_int_equal(parse("{\"readings\":[{\"name\":\"a\",\"unit\":\"\",\"value\":-1,\"flags\":0,\"at_low\":1,\"at_high\":1}],"
                               "\"log\":[]}",
                               &a, &err),
                         0);
        assert_true(isnan(a.readings[0].low) && isnan(a.readings[0].high));
        answer_finish(&a);
}

static void test_broken(void **state) {
        static const char *const texts[] = {
                "",
                "[]",
                "{",
                "{}",
                "{\"readings\":[],\"log\":[]}",
                "{\"readings\":{},\"log\":[],\"status\":0,\"text\":\"\"}",
                "{\"readings\":[],\"log\":[],\"status\":4,\"text\":\"\"}",
                "{\"readings\":[],\"log\":[],\"status\":-1,\"text\":\"\"}",
                "{\"readings\":[],\"log\":[],\"status\":1.0,\"text\":\"\"}",
                "{\"readings\":[],\"log\":[],\"status\":1}",
                "{\"readings\":[],\"log\":[],\"status\":1,\"text\":\"a\\nb\"}",
                "{\"readings\":[],\"log\":[],\"status\":1,\"text\":\"\\u001b[31m\"}",
                "{\"readings\":[],\"status\":1,\"text\":\"\"}",
                "{\"readings\":[],\"log\":[{\"level\":0,\"text\":\"\"}],\"status\":1,\"text\":\"\"}",
                "{\"readings\":[1],\"log\":[]}",
                "{\"readings\":[{\"name\":\"\",\"unit\":\"\",\"value\":1,\"flags\":0,\"at_low\":1,\"at_high\":1}],\"log\":[]}",
                "{\"readings\":[{\"name\":\"a\",\"unit\":\"12345678901234567\",\"value\":1,\"flags\":0,\"at_low\":1,\"at_high\":1}]"
                ",\"log\":[]}",
                "{\"readings\":[{\"name\":\"a\",\"unit\":\"\",\"value\":\"1\",\"flags\":0,\"at_low\":1,\"at_high\":1}],\"log\":[]}",
                "{\"readings\":[{\"name\":\"a\",\"unit\":\"\",\"value\":1,\"flags\":4,\"at_low\":1,\"at_high\":1}],\"log\":[]}",
                "{\"readings\":[{\"name\":\"a\",\"unit\":\"\",\"value\":1,\"flags\":0,\"at_low\":0,\"at_high\":1}],\"log\":[]}",
                "{\"readings\":[{\"name\":\"a\",\"unit\":\"\",\"value\":1,\"low\":null,\"flags\":0,\"at_low\":1,\"at_high\":1}],"
                "\"log\":[]}",
        };
        struct answer a;
        struct rm_error err;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                if (parse(texts[i], &a, &err) != -EBADMSG)
                        fail_msg("'%s' is taken", texts[i]);
                assert_memory_equal(err.text, "its answer is broken", 20);
        }
}

static void test_too_many(void **state) {
        cleanup_free char *text = xcalloc(RM_SENSOR_READINGS_MAX + 2, sizeof(READING) + 1);
        struct answer a;
        struct rm_error err;

        for (unsigned n = RM_SENSOR_READINGS_MAX; n <= RM_SENSOR_READINGS_MAX + 1; n++) {
                char *at = stpcpy(text, "{\"log\":[],\"readings\":[" READING);

                for (unsigned i = 1; i < n; i++)
                        at = stpcpy(at, "," READING);
                (void) strcpy(at, "]}");
                assert_int_equal(parse(text, &a, &err), n > RM_SENSOR_READINGS_MAX ? -EBADMSG : 0);
                if (n <= RM_SENSOR_READINGS_MAX)
                        answer_finish(&a);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_good), cmocka_unit_test(test_broken),
                                            cmocka_unit_test(test_too_many) };

        return cmocka_run_group_tests_name("sensor-answer", tests, NULL, NULL);
}
