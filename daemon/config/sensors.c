#include "daemon/config/sensors.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/config/value.h"

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

/* A margin is a number from 0 on. */
static int set_margin(void *field, const char *text, const struct value_kind *kind) {
        double margin;
        int r = value_set_real(&margin, text, kind);

        if (r < 0 || margin < 0)
                return -EINVAL;
        *(double *) field = margin;
        return 0;
}

static bool user_valid(const char *name) {
        return name_valid(name) || name[0] == '_';
}

static const char
        *const statuses[] = { [RM_SENSOR_WARN] = "warn", [RM_SENSOR_FAILING] = "failing", [RM_SENSOR_CRITICAL] = "critical" };

#define INTERVAL { value_set_duration, "a time from 1s to 1d", SENSOR_INTERVAL_LEAST_USEC, SENSOR_INTERVAL_MOST_USEC }
#define TIMEOUT { value_set_duration, "a time from 100ms to 1h", SENSOR_TIMEOUT_LEAST_USEC, SENSOR_TIMEOUT_MOST_USEC }
#define STATUS { value_set_word, "warn, failing or critical", VALUE_WORDS(statuses) }

static const struct {
        const char *key; /* behind the sensor's name and a '_' */
        size_t offset;
        struct value_kind kind;
} keys[] = {
        { "interval", offsetof(struct sensor_config, interval_usec), INTERVAL },
        { "timeout", offsetof(struct sensor_config, timeout_usec), TIMEOUT },
        { "hold", offsetof(struct sensor_config, hold_usec), INTERVAL },
        { "readings", offsetof(struct sensor_config, readings), { value_set_u32, "a number from 1 to 1000", 1, 1000 } },
        { "low", offsetof(struct sensor_config, low), { value_set_real, "a number" } },
        { "high", offsetof(struct sensor_config, high), { value_set_real, "a number" } },
        { "margin", offsetof(struct sensor_config, margin), { set_margin, "a number from 0 on" } },
        { "at_low", offsetof(struct sensor_config, at_low), STATUS },
        { "at_high", offsetof(struct sensor_config, at_high), STATUS },
        { "args", offsetof(struct sensor_config, args), { value_set_text, "text" } },
        { "user", offsetof(struct sensor_config, user), { value_set_text, "the name of a user", .valid = user_valid } },
};

int sensor_configs_set(struct sensor_configs *configs, const char *key, const char *value, const char **ret_expected) {
        const char *end = strchr(key, '_');

        if (!end || !sensor_name_valid(key, (size_t) (end - key)))
                return -ENOENT;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(keys[i].key, end + 1) == 0) {
                        struct sensor_config *config = find(configs, key, (size_t) (end - key));

                        *ret_expected = keys[i].kind.expected;
                        return keys[i].kind.set((char *) config + keys[i].offset, value, &keys[i].kind) < 0 ? -EINVAL : 0;
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
