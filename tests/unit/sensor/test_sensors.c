/* Sensors that hang, crash, flood and tell nonsense are faults; good ones have their status told
 * once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/sensor/sensors.h"

struct fixture {
        struct event_base *base;
        struct sensor_config list[2];
        struct sensor_configs configs;
        struct sensors_config config;
        struct sensors *sensors;
        unsigned asked, asked_requested, statuses;
        char fault[1024], status_text[512];
        enum rm_sensor_status status;
        int take; /* what on_status() returns */
        char *root;
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        f->base = event_base_new();
        for (size_t i = 0; i < ARRAY_SIZE(f->list); i++)
                f->list[i] = (struct sensor_config) { .name = (char *) "broken",
                                                      .loaded = true,
                                                      .interval_usec = 10000,
                                                      .timeout_usec = 30000000,
                                                      .hold_usec = 1000000,
                                                      .readings = 1,
                                                      .low = NAN,
                                                      .high = NAN,
                                                      .margin = NAN,
                                                      .user = (char *) "root" };
        f->configs = (struct sensor_configs) { .list = f->list, .n = 1 };
        f->root = xasprintf("%s/sensors/failing", getenv("TEST_DATA_DIR"));
        f->config = (struct sensors_config) { .sensors = &f->configs,
                                              .host_program = getenv("TEST_SENSOR_HOST"),
                                              .directory = getenv("TEST_BROKEN_DIR"),
                                              .root = f->root };
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        sensors_destroy(f->sensors);
        (void) event_base_dispatch(f->base); /* until what was killed has ended */
        event_base_free(f->base);
        free(f->root);
        free(f);
        return 0;
}

static int on_status(void *context, const char *sensor, enum rm_sensor_status status, const char *text) {
        struct fixture *f = context;

        f->statuses++;
        f->status = status;
        (void) snprintf(f->status_text, sizeof(f->status_text), "%s: %s", sensor, text);
        return f->take;
}

static void on_asked(void *context, const char *sensor, const char *fault) {
        struct fixture *f = context;

        (void) snprintf(f->fault, sizeof(f->fault), "%s", fault);
        if (++f->asked == f->asked_requested)
                (void) event_base_loopbreak(f->base);
}

/* Until it has been asked so often. */
static void run(struct fixture *f, unsigned times) {
        static const struct sensors_ops ops = { on_status, on_asked };

        f->asked = 0;
        f->asked_requested = times;
        if (!f->sensors)
                f->sensors = sensors_create(f->base, &f->config, &ops, f);
        (void) event_base_dispatch(f->base);
        assert_true(f->asked >= times);
}

static void test_hung_one_is_killed(void **state) {
        struct fixture *f = *state;
        uint64_t begun = now_usec();

        f->list[0].args = (char *) "hang";
        f->list[0].timeout_usec = 500000;
        run(f, 1);
        assert_string_equal(f->fault, "killed after 0.5 s");
        assert_in_range(now_usec() - begun, 500000, 15000000);
        assert_string_equal(sensors_view(f->sensors, 0).fault, f->fault);
        assert_string_equal(sensors_view(f->sensors, 0).status, "");
        run(f, 1); /* it is asked again */
        assert_int_equal(f->statuses, 0);
}

static void test_crash_is_a_fault(void **state) {
        struct fixture *f = *state;

        f->list[0].args = (char *) "crash";
        run(f, 2);
        assert_string_equal(f->fault, "crashed (Segmentation fault)");
}

static void test_flood_is_a_fault(void **state) {
        struct fixture *f = *state;

        f->list[0].args = (char *) "flood";
        run(f, 1);
        assert_string_equal(f->fault, "killed: it wrote more than it may");
}

static void test_silence_is_a_fault(void **state) {
        struct fixture *f = *state;

        f->list[0].args = (char *) "";
        run(f, 1);
        assert_string_equal(f->fault, "it tells nothing");
}

static void test_nonsense_is_left_out(void **state) {
        struct fixture *f = *state;

        f->list[0].args = (char *) "nonsense";
        run(f, 1);
        assert_string_equal(f->fault, "");
        assert_int_equal(f->status, RM_SENSOR_OK);
        assert_string_equal(f->status_text, "broken: good\\n\\x1b[31m: 1 a unit that is ");
}

static void test_runs_as_nobody(void **state) {
        struct fixture *f = *state;

        f->list[0].args = (char *) "who";
        f->list[0].user = NULL;
        run(f, 1);
        if (geteuid() == 0 && !strstr(f->fault, "Permission denied")) /* nobody may not be able to read the build directory */
                assert_string_equal(f->status_text, "broken: user 65534 for ever");
}

/* The status is reported once, and again for as long as it could not be taken. */
static void test_status_is_told_once(void **state) {
        struct fixture *f = *state;

        f->config.directory = getenv("TEST_SENSOR_DIR");
        f->list[0].name = (char *) "hwmon";
        f->take = -EAGAIN;
        run(f, 2);
        assert_int_equal(f->statuses, 2);
        f->take = 0;
        run(f, 3);
        assert_int_equal(f->statuses, 3);
        assert_int_equal(f->status, RM_SENSOR_CRITICAL);
        assert_string_equal(f->status_text, "hwmon: k10temp0 temp1 Tctl: 96.2 C (high threshold 95)");
        assert_string_equal(sensors_view(f->sensors, 0).status, "critical");
        assert_true(sensors_view(f->sensors, 0).since_usec > 0);
}

/* A fault changes no status, and nothing of the other sensor. */
static void test_fault_changes_no_word(void **state) {
        struct fixture *f = *state;

        f->config.directory = getenv("TEST_SENSOR_DIR");
        f->list[0].name = (char *) "hwmon";
        f->list[1].name = (char *) "psi";
        f->configs.n = 2;
        run(f, 20);
        assert_int_equal(sensors_count(f->sensors), 2);
        assert_string_equal(sensors_view(f->sensors, 0).status, "critical");
        assert_string_equal(sensors_view(f->sensors, 0).fault, "");
        assert_string_equal(sensors_view(f->sensors, 1).status, "");
        assert_string_equal(sensors_view(f->sensors, 1).fault, "not as expected: /proc/pressure/memory");
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
        struct fixture *f = arg;

        (void) event_base_loopbreak(f->base);
}

/* The loop goes on while one hangs: a timer of 10 ms fires again and again before that is
 * killed. */
static void test_loop_is_not_held_up(void **state) {
        struct fixture *f = *state;
        struct event *tick = evtimer_new(f->base, on_tick, f);
        static const struct sensors_ops ops = { on_status, on_asked };

        f->list[0].args = (char *) "hang";
        f->list[0].timeout_usec = 60000000;
        f->sensors = sensors_create(f->base, &f->config, &ops, f);
        for (int i = 0; i < 10; i++) {
                timer_arm(tick, 10000);
                (void) event_base_dispatch(f->base);
        }
        assert_int_equal(f->asked, 0);
        event_free(tick);
}

static void test_pause(void **state) {
        (void) state;
        assert_int_equal(sensors_pause_usec(1000, 0), 1000);
        assert_int_equal(sensors_pause_usec(1000, 1), 1000);
        assert_int_equal(sensors_pause_usec(1000, 2), 2000);
        assert_int_equal(sensors_pause_usec(1000, 5), 16000);
        assert_int_equal(sensors_pause_usec(1000, 500), 16000);
        assert_int_equal(sensors_count(NULL), 0);
        sensors_destroy(NULL);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_hung_one_is_killed),   T(test_crash_is_a_fault),      T(test_flood_is_a_fault),
                T(test_silence_is_a_fault),   T(test_nonsense_is_left_out),  T(test_runs_as_nobody),
                T(test_status_is_told_once),  T(test_fault_changes_no_word), T(test_loop_is_not_held_up),
                cmocka_unit_test(test_pause),
        };

        return cmocka_run_group_tests_name("sensors", tests, NULL, NULL);
}
