#include "daemon/sensor/sensors.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/log_rate.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/node/child_run.h"
#include "daemon/sensor/answer.h"
#include "daemon/sensor/evaluator.h"

#define HOST "rm-plugin-host"

enum { DOUBLED_AT_MOST = 4, FAULT_BYTES = 600, APART_USEC = 200000 };

struct sensor {
        struct sensors *sensors;
        const struct sensor_config *config;
        struct evaluator *evaluator;
        struct event *timer; /* to the next run */
        struct child_run *run; /* NULL: none */
        bool fault_reported; /* of the run in hand */
        unsigned faults; /* in a row */
        char fault[FAULT_BYTES];
        bool asked, reported; /* it has answered; its status has been taken */
        uint64_t since_usec; /* of the status; wall clock */
        struct log_rate rate;
};

struct sensors {
        struct event_base *base;
        struct sensors_config config;
        const struct sensors_ops *ops;
        void *context;
        struct sensor *list;
        size_t n;
};

uint64_t sensors_pause_usec(uint64_t interval_usec, unsigned faults) {
        unsigned doubled = faults > 0 ? faults - 1 : 0;

        return interval_usec << (doubled < DOUBLED_AT_MOST ? doubled : DOUBLED_AT_MOST);
}

/* The same fault again and again is logged ever less often. */
static bool worth_a_line(const struct sensor *sensor, const char *why) {
        return strcmp(sensor->fault, why) != 0 || (sensor->faults & (sensor->faults - 1)) == 0;
}

static void fail(struct sensor *sensor, const char *why) {
        uint64_t pause = sensors_pause_usec(sensor->config->interval_usec, ++sensor->faults);

        if (worth_a_line(sensor, why))
                log_limited(&sensor->rate, LOG_WARNING, "sensor '%s': %s; next try after %.0f s", sensor->config->name, why,
                            (double) pause / 1e6);
        (void) text_format(sensor->fault, sizeof(sensor->fault), "%s", why);
        timer_arm(sensor->timer, pause);
        if (sensor->sensors->ops->on_asked)
                sensor->sensors->ops->on_asked(sensor->sensors->context, sensor->config->name, sensor->fault);
}

static void succeed(struct sensor *sensor, const struct answer *answer) {
        struct sensors *sensors = sensor->sensors;
        bool changed = evaluator_take(sensor->evaluator, answer, now_usec());
        const char *name = sensor->config->name;

        for (size_t i = 0; i < answer->n_log; i++)
                log_limited(&sensor->rate, answer->log[i].level, "sensor '%s': %s", name, answer->log[i].text);
        if (sensor->faults > 0)
                log_limited(&sensor->rate, LOG_INFO, "sensor '%s' answers again", name);
        sensor->faults = 0;
        sensor->fault[0] = '\0';
        if (changed || !sensor->asked)
                sensor->since_usec = now_real_usec();
        sensor->asked = true;
        if (changed || !sensor->reported)
                sensor->reported = sensors->ops->on_status(sensors->context, name, evaluator_status(sensor->evaluator),
                                                           evaluator_text(sensor->evaluator)) >= 0;
        timer_arm(sensor->timer, sensor->config->interval_usec);
        if (sensors->ops->on_asked)
                sensors->ops->on_asked(sensors->context, name, "");
}

static void fail_as(struct sensor *sensor, const struct child_end *end) {
        struct rm_error err = { 0 };

        (void) child_end_error(end, HOST, sensor->config->timeout_usec, &err);
        error_clean(&err);
        fail(sensor, error_text(&err));
}

/* The process was killed, and may not end yet. */
static void on_killed(void *context, const struct child_end *end) {
        struct sensor *sensor = context;

        sensor->fault_reported = true;
        fail_as(sensor, end);
}

static void on_done(void *context, const struct child_end *end) {
        struct sensor *sensor = context;
        struct answer answer;
        struct rm_error err = { 0 };

        sensor->run = NULL;
        if (sensor->fault_reported)
                return;
        if (child_end_error(end, HOST, sensor->config->timeout_usec, NULL) < 0) {
                fail_as(sensor, end);
        } else if (answer_parse(end->output, end->output_bytes, &answer, &err) < 0) {
                fail(sensor, error_text(&err));
        } else {
                succeed(sensor, &answer);
                answer_finish(&answer);
        }
}

static int start(struct sensor *sensor) {
        const struct sensors_config *config = &sensor->sensors->config;
        const char *user = sensor->config->user, *args = sensor->config->args;
        char time[32];
        char *const argv[] = { (char *) HOST,
                               (char *) "--kind",
                               (char *) "sensor",
                               (char *) "--plugin",
                               (char *) sensor->config->name,
                               (char *) "--dir",
                               (char *) (config->directory ? config->directory : RM_SENSOR_DIR),
                               (char *) "--user",
                               (char *) (user ? user : "nobody"),
                               (char *) "--args",
                               (char *) (args ? args : ""),
                               (char *) "--root",
                               (char *) (config->root ? config->root : ""),
                               (char *) "--time-usec",
                               time,
                               NULL };
        const struct child_run_spec spec = { .program = config->host_program ? config->host_program : RM_LIBEXEC_DIR "/" HOST,
                                             .argv = argv,
                                             .timeout_usec = sensor->config->timeout_usec,
                                             .output_most_bytes = ANSWER_MOST_BYTES,
                                             .ends_group = true,
                                             .done = on_done,
                                             .on_killed = on_killed,
                                             .context = sensor };

        (void) snprintf(time, sizeof(time), "%" PRIu64, sensor->config->timeout_usec);
        sensor->fault_reported = false;
        return child_run_start(sensor->sensors->base, &spec, &sensor->run);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
        struct sensor *sensor = arg;
        struct rm_error err = { 0 };
        int r;

        /* Two runs never overlap: each of them could take a process indefinitely. */
        if (sensor->run) {
                fail(sensor, "it was killed and does not end: what it reads hangs");
                return;
        }
        r = start(sensor);
        if (r == 0)
                return;
        (void) error_sys(&err, r, "cannot start " HOST);
        fail(sensor, error_text(&err));
}

static void sensor_init(struct sensor *sensor, struct sensors *sensors, const struct sensor_config *config) {
        const struct evaluator_config evaluator_config = { .limits = { .readings = config->readings,
                                                                       .hold_usec = config->hold_usec },
                                                           .low = config->low,
                                                           .high = config->high,
                                                           .margin = config->margin,
                                                           .at_low = config->at_low,
                                                           .at_high = config->at_high };

        *sensor = (struct sensor) { .sensors = sensors, .config = config, .evaluator = evaluator_create(&evaluator_config) };
        sensor->timer = evtimer_new(sensors->base, on_timer, sensor);
        if (!sensor->timer)
                abort(); /* no memory, as in xcalloc() */
}

struct sensors *sensors_create(struct event_base *base, const struct sensors_config *config, const struct sensors_ops *ops,
                               void *context) {
        struct sensors *sensors = xcalloc(1, sizeof(*sensors));

        *sensors = (struct sensors) { .base = base, .config = *config, .ops = ops, .context = context };
        sensors->list = xcalloc(config->sensors->n, sizeof(*sensors->list));
        for (size_t i = 0; i < config->sensors->n; i++)
                if (config->sensors->list[i].loaded)
                        sensor_init(&sensors->list[sensors->n++], sensors, &config->sensors->list[i]);
        for (size_t i = 0; i < sensors->n; i++)
                timer_arm(sensors->list[i].timer, config->first_usec + i * APART_USEC);
        return sensors;
}

void sensors_destroy(struct sensors *sensors) {
        if (!sensors)
                return;
        for (size_t i = 0; i < sensors->n; i++) {
                child_run_abandon(sensors->list[i].run);
                event_free(sensors->list[i].timer);
                evaluator_destroy(sensors->list[i].evaluator);
        }
        free(sensors->list);
        free(sensors);
}

size_t sensors_count(const struct sensors *sensors) {
        return sensors ? sensors->n : 0;
}

struct sensor_view sensors_view(const struct sensors *sensors, size_t i) {
        const struct sensor *sensor = &sensors->list[i];

        return (struct sensor_view) { .name = sensor->config->name,
                                      .status = sensor->asked ? sensor_status_text(evaluator_status(sensor->evaluator)) : "",
                                      .text = evaluator_text(sensor->evaluator),
                                      .fault = sensor->fault,
                                      .since_usec = sensor->since_usec };
}
