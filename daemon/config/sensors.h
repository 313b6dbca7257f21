/* [sensors] of rmd.conf: which sensors are loaded, and what is set for each of them, by keys such
 * as hwmon_low. */
#ifndef RM_CONFIG_SENSORS_H
#define RM_CONFIG_SENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "rm/sensor.h"

#define SENSORS_MAX 15U /* a node has that many sources of its condition, besides what is reported by hand */
#define SENSOR_INTERVAL_LEAST_USEC UINT64_C(1000000)
#define SENSOR_INTERVAL_MOST_USEC UINT64_C(86400000000)
#define SENSOR_TIMEOUT_LEAST_USEC UINT64_C(100000)
#define SENSOR_TIMEOUT_MOST_USEC UINT64_C(3600000000)

/* The configuration of a sensor. Fields that are not set are 0, NAN, RM_SENSOR_OK or NULL. Strings
 * are owned by the structure. */
struct sensor_config {
        char *name; /* letters and digits: a '_' ends it in a key */
        bool loaded;
        uint64_t interval_usec, timeout_usec, hold_usec;
        uint32_t readings;
        double low, high, margin;
        enum rm_sensor_status at_low, at_high;
        char *args, *user;
};

/* All zero: none. Free with sensor_configs_finish(). */
struct sensor_configs {
        struct sensor_config *list;
        size_t n;
};

/* The names of those that are loaded, parted by blanks, in place of those before. -EINVAL,
 * -E2BIG. */
int sensor_configs_load(struct sensor_configs *configs, const char *names);
/* A key such as "hwmon_low". -ENOENT: no sensor's key is called so. -EINVAL: the value is bad;
 * `ret_expected` is what was expected. */
int sensor_configs_set(struct sensor_configs *configs, const char *key, const char *value, const char **ret_expected);
/* Takes the values that are not set from `common`; then all must fit together. */
int sensor_configs_check(struct sensor_configs *configs, const struct sensor_config *common, struct rm_error *err);
void sensor_configs_finish(struct sensor_configs *configs);

#endif
