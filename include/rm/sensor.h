/*
 * rm/sensor.h: plugins that tell how healthy a node is, so that rmd can take work off it before it
 * fails.
 *
 * rmd asks each plugin that `[sensors] load` names every now and then. A plugin tells readings, or
 * a status, or both:
 *
 *   - A reading is a number with a unit, such as a temperature, with two thresholds. rmd compares
 *     it, and decides when the sensor's status changes: to a worse one when the reading has been at
 *     its low threshold a few times in a row, or at once when it is at its high threshold; to a
 *     better one when it has been clearly below for a while.
 *   - A status (ok, warn, failing, critical) with a text, from a plugin that evaluates by itself.
 *     The same holds for it; critical counts at once.
 *
 * The sensor's status is the worst of these. Values are bad when they are high: what is bad when it
 * is low is told as what is missing.
 *
 * Each call is a run of its own: a new process calls create(), read() once, and destroy(). A plugin
 * keeps nothing between calls, and need not: of what only grows, such as a number of errors, it
 * tells the counter, and rmd compares by how much that has grown in the last hour.
 *
 * The process is that of user nobody, unless `[sensors] NAME_user` names another; it is not
 * confined otherwise. It has a time limit and a limit on what it may tell. When it exceeds one, rmd
 * kills it and all of its process group; that, a crash and a failure are shown as a fault of the
 * sensor, whose status stays as it was, and rmd waits longer before it asks again, twice as long
 * each time.
 */
#ifndef RM_SENSOR_H
#define RM_SENSOR_H

#include <stdint.h>

#include "rm/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RM_SENSOR_KIND "sensor"
#define RM_SENSOR_ABI 1u

#define RM_SENSOR_READINGS_MAX 512u /* of one call */
#define RM_SENSOR_NAME_BYTES 64u    /* of a reading, with the NUL; more is cut off */
#define RM_SENSOR_UNIT_BYTES 16u
#define RM_SENSOR_TEXT_BYTES 256u /* with a status */

/* The statuses of a sensor from good to bad; the last one is not in that order. */
enum rm_sensor_status {
        RM_SENSOR_OK = 0,
        RM_SENSOR_WARN = 1,     /* the node is to get no new work */
        RM_SENSOR_FAILING = 2,  /* its work is to move to other nodes */
        RM_SENSOR_CRITICAL = 3, /* at once */
        RM_SENSOR_UNKNOWN = 4,  /* nothing can be said: a fault of the sensor */
};

enum rm_sensor_flags {
        RM_SENSOR_COUNTER = 1u << 0, /* it only grows: the thresholds are for its growth in an hour */
        RM_SENSOR_FIXED = 1u << 1,   /* the configuration's thresholds are not for this one */
};

/* Owned by the plugin, copied during the call. */
struct rm_sensor_reading {
        uint32_t size; /* sizeof(struct rm_sensor_reading) of the plugin */
        uint32_t flags; /* of enum rm_sensor_flags */
        const char *name; /* which of the sensor's; the same in each call, and no two alike */
        const char *unit; /* as it is shown behind the value, such as "C" or "%"; NULL: none */
        double value; /* finite */
        /* Used where the configuration gives none; NAN: there is none. Temperatures have those of
         * their chip, for example. */
        double low_threshold, high_threshold;
        /* The status of a value that is at the threshold, unless the configuration sets it;
         * RM_SENSOR_WARN to RM_SENSOR_CRITICAL. */
        enum rm_sensor_status at_low, at_high;
};

/* Owned by the host, read only, valid during one call. Texts are never NULL. */
struct rm_sensor_request {
        uint32_t size; /* sizeof(struct rm_sensor_request) of the host */
        uint32_t reserved;
        const char *root; /* put it before paths such as /sys and /proc: "", or for tests a directory with a recorded tree */
        const char *args; /* [sensors] NAME_args, for the plugin to understand; may be empty */
        void *context; /* pass it back as it is */
        /* Time left, microseconds, 0 when it is over. */
        uint64_t (*left_usec)(void *context);
        /* Tell a reading. 0, -EINVAL (it is not told), or -E2BIG after RM_SENSOR_READINGS_MAX. */
        int (*reading)(void *context, const struct rm_sensor_reading *reading);
        /* Tell a status; the last one counts. `text` is one line for people, NULL ok; copied, cut
         * off when it is longer than RM_SENSOR_TEXT_BYTES. With RM_SENSOR_UNKNOWN it is the reason
         * of the fault. 0 or -EINVAL. */
        int (*status)(void *context, enum rm_sensor_status status, const char *text);
};

/* The descriptor of a sensor. */
struct rm_sensor_plugin {
        struct rm_plugin plugin; /* kind = RM_SENSOR_KIND, kind_abi = RM_SENSOR_ABI */

        /* 0: what there is has been told. Or a negative errno, a fault of the sensor: say why
         * through the host's log, as RM_PLUGIN_ERROR, which people are shown; what has been told
         * before is not used. To have nothing to tell is a failure too. */
        int (*read)(void *self, const struct rm_sensor_request *request);
};

#ifdef __cplusplus
}
#endif

#endif
