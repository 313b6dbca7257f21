/*
 * The sensors of this node: each is asked every now and then, in a process of its own
 * (rm-plugin-host), and its status is told when it changes. A sensor that hangs, crashes, fails or
 * writes too much has a fault; its status stays as it was, and it is asked less often. Nothing here
 * blocks.
 */
#ifndef RM_SENSOR_SENSORS_H
#define RM_SENSOR_SENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/config/sensors.h"
#include "rm/sensor.h"

struct event_base;
struct sensors;

struct sensors_ops {
        /* A sensor's status has changed, or is its first one. A negative errno: it could not be
         * taken; it is told again after the next answer. */
        int (*on_status)(void *context, const char *sensor, enum rm_sensor_status status, const char *text);
        /* Called after each answer and each fault, for tests; NULL: not used. */
        void (*on_asked)(void *context, const char *sensor, const char *fault);
};

struct sensors_config {
        const struct sensor_configs *sensors;
        const char *host_program, *directory, *root; /* NULL: the installed ones, and the node's own /sys and /proc */
        uint64_t first_usec; /* from the start to the first question */
};

/* Both must outlive it. */
struct sensors *sensors_create(struct event_base *base, const struct sensors_config *config, const struct sensors_ops *ops,
                               void *context);
/* Runs that are under way are killed. NULL ok. */
void sensors_destroy(struct sensors *sensors);

struct sensor_view {
        const char *name;
        const char *status; /* "" before the first answer */
        const char *text;
        const char *fault; /* "": none */
        uint64_t since_usec; /* of the status; wall clock */
};

/* NULL ok: 0. */
size_t sensors_count(const struct sensors *sensors);
/* Valid until the event loop goes on. */
struct sensor_view sensors_view(const struct sensors *sensors, size_t i);

/* Pure. From the end of a run to the next one, after so many faults in a row: it doubles, up to 16
 * times the interval. */
uint64_t sensors_pause_usec(uint64_t interval_usec, unsigned faults);

#endif
