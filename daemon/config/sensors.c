#include "daemon/config/sensors.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

static bool sensor_name_valid(const char *name, size_t length) {
        if (length < 1 || length > 31)
                return false;
        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char) name[i]))
                        return false;
        return true;
}

static struct sensor_config *find(struct sensor_configs *configs, const char *name, size_t length) {
        struct sensor_config *config;

        for (size_t i = 0; i < configs->n; i++)
                if (strlen(configs->list[i].name) == length && memcmp(configs->list[i].name, name, length) == 0)
                        return &configs->list[i];
        configs->list = xrealloc(configs->list, (configs->n + 1) * sizeof(*configs->list));
        config = &configs->list[configs->n++];
        *config = (struct sensor_config) { .name = xasprintf("%.*s", (int) length, name), .low = NAN, .high = NAN, .margin = NAN };
        return config;
}

int sensor_configs_load(struct sensor_configs *configs, const char *names) {
        size_t n = 0;

        for (size_t i = 0; i < configs->n; i++)
                configs->list[i].loaded = false;
        for (names += strspn(names, " \t"); *names; names += strspn(names, " \t")) {
                size_t length = strcspn(names, " \t");

                if (!sensor_name_valid(names, length))
                        return -EINVAL;
                if (++n > SENSORS_MAX)
                        return -E2BIG;
                find(configs, names, length)->loaded = true;
                names += length;
        }
        return 0;
}

/* ---- values ---- */

static int set_time(uint64_t *out, const char *value, uint64_t least, uint64_t most) {
        uint64_t usec;
        int r = parse_duration_usec(value, &usec);

        if (r < 0 || usec < least || usec > most)
                return -EINVAL;
        *out = usec;
        return 0;
}

static int set_interval(struct sensor_config *config, const char *value) {
        return set_time(&config->interval_usec, value, SENSOR_INTERVAL_LEAST_USEC, SENSOR_INTERVAL_MOST_USEC);
}

static int set_timeout(struct sensor_config *config, const char *value) {
        return set_time(&config->timeout_usec, value, SENSOR_TIMEOUT_LEAST_USEC, SENSOR_TIMEOUT_MOST_USEC);
}

static int set_hold(struct sensor_config *config, const char *value) {
        return set_time(&config->hold_usec, value, SENSOR_INTERVAL_LEAST_USEC, SENSOR_INTERVAL_MOST_USEC);
}

static int set_readings(struct sensor_config *config, const char *value) {
        int64_t n;
        int r = parse_i64(value, 1, 1000, &n);

        if (r == 0)
                config->readings = (uint32_t) n;
        return r;
}

static int set_real(double *out, const char *value) {
        char *end;
        double number = strtod(value, &end);

        if (end == value || *end || isspace((unsigned char) value[0]) || !isfinite(number))
                return -EINVAL;
        *out = number;
        return 0;
}

static int set_low(struct sensor_config *config, const char *value) {
        return set_real(&config->low, value);
}

static int set_high(struct sensor_config *config, const char *value) {
        return set_real(&config->high, value);
}

static int set_margin(struct sensor_config *config, const char *value) {
        double margin;
        int r = set_real(&margin, value);

        if (r < 0 || margin < 0)
                return -EINVAL;
        config->margin = margin;
        return 0;
}

static int set_status(enum rm_sensor_status *out, const char *value) {
        static const char *const words[] = {
                [RM_SENSOR_WARN] = "warn", [RM_SENSOR_FAILING] = "failing", [RM_SENSOR_CRITICAL] = "critical"
        };

        for (int i = RM_SENSOR_WARN; i <= RM_SENSOR_CRITICAL; i++)
                if (strcmp(value, words[i]) == 0) {
                        *out = (enum rm_sensor_status) i;
                        return 0;
                }
        return -EINVAL;
}

static int set_at_low(struct sensor_config *config, const char *value) {
        return set_status(&config->at_low, value);
}

static int set_at_high(struct sensor_config *config, const char *value) {
        return set_status(&config->at_high, value);
}

static int set_args(struct sensor_config *config, const char *value) {
        free(config->args);
        config->args = xstrdup(value);
        return 0;
}

static int set_user(struct sensor_config *config, const char *value) {
        if (!name_valid(value) && value[0] != '_')
                return -EINVAL;
        free(config->user);
        config->user = xstrdup(value);
        return 0;
}

static const struct {
        const char *key; /* behind the sensor's name and a '_' */
        int (*set)(struct sensor_config *config, const char *value);
        const char *expected;
} keys[] = {
        { "interval", set_interval, "a time from 1s to 1d" },
        { "timeout", set_timeout, "a time from 100ms to 1h" },
        { "hold", set_hold, "a time from 1s to 1d" },
        { "readings", set_readings, "a number from 1 to 1000" },
        { "low", set_low, "a number" },
        { "high", set_high, "a number" },
        { "margin", set_margin, "a number from 0 on" },
        { "at_low", set_at_low, "warn, failing or critical" },
        { "at_high", set_at_high, "warn, failing or critical" },
        { "args", set_args, "text" },
        { "user", set_user, "the name of a user" },
};

int sensor_configs_set(struct sensor_configs *configs, const char *key, const char *value, const char **ret_expected) {
        const char *end = strchr(key, '_');

        if (!end || !sensor_name_valid(key, (size_t) (end - key)))
                return -ENOENT;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(keys[i].key, end + 1) == 0) {
                        *ret_expected = keys[i].expected;
                        return keys[i].set(find(configs, key, (size_t) (end - key)), value) < 0 ? -EINVAL : 0;
                }
        return -ENOENT;
}

/* ---- all of it ---- */

static int check_one(struct sensor_config *config, const struct sensor_config *common, struct rm_error *err) {
        if (!config->loaded)
                return error_set(err, -EINVAL, "[sensors] has keys of '%s', which is not in load", config->name);
        if (!config->interval_usec)
                config->interval_usec = common->interval_usec;
        if (!config->timeout_usec)
                config->timeout_usec = common->timeout_usec;
        if (!config->hold_usec)
                config->hold_usec = common->hold_usec;
        if (!config->readings)
                config->readings = common->readings;
        if (!isnan(config->low) && !isnan(config->high) && config->low > config->high)
                return error_set(err, -EINVAL, "[sensors] %s_low is more than %s_high", config->name, config->name);
        if (config->at_low != RM_SENSOR_OK && config->at_high != RM_SENSOR_OK && config->at_low > config->at_high)
                return error_set(err, -EINVAL, "[sensors] %s_at_low is worse than %s_at_high", config->name, config->name);
        if (strcmp(config->name, "program") == 0 && (!config->args || config->args[0] != '/'))
                return error_set(err, -EINVAL, "[sensors] the sensor 'program' needs the key program_args, with an absolute path");
        return 0;
}

int sensor_configs_check(struct sensor_configs *configs, const struct sensor_config *common, struct rm_error *err) {
        int r = 0;

        if (common->interval_usec < SENSOR_INTERVAL_LEAST_USEC || common->interval_usec > SENSOR_INTERVAL_MOST_USEC ||
            common->hold_usec < SENSOR_INTERVAL_LEAST_USEC || common->hold_usec > SENSOR_INTERVAL_MOST_USEC)
                return error_set(err, -EINVAL, "[sensors] interval and hold must be from 1s to 1d");
        if (common->timeout_usec < SENSOR_TIMEOUT_LEAST_USEC || common->timeout_usec > SENSOR_TIMEOUT_MOST_USEC)
                return error_set(err, -EINVAL, "[sensors] timeout must be from 100ms to 1h");
        for (size_t i = 0; i < configs->n && r == 0; i++)
                r = check_one(&configs->list[i], common, err);
        return r;
}

void sensor_configs_finish(struct sensor_configs *configs) {
        for (size_t i = 0; i < configs->n; i++) {
                free(configs->list[i].name);
                free(configs->list[i].args);
                free(configs->list[i].user);
        }
        free(configs->list);
        *configs = (struct sensor_configs) { 0 };
}
