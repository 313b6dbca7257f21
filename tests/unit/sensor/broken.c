/* A sensor that does what `args` says: it hangs, crashes, floods, tells nonsense, or runs as
 * somebody. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rm/sensor.h"

__attribute__((noreturn)) static void hang(void) {
        for (;;)
                (void) pause();
}

/* The plugin writes on all streams, and makes a reading too many. */
__attribute__((noreturn)) static void flood(const struct rm_sensor_request *request) {
        char name[32];
        struct rm_sensor_reading reading = { .size = sizeof(reading),
                                             .name = name,
                                             .low_threshold = NAN,
                                             .high_threshold = NAN,
                                             .at_low = RM_SENSOR_WARN,
                                             .at_high = RM_SENSOR_WARN };
        char text[4096];
        int r = 0;

        for (unsigned i = 0; r == 0; i++) {
                (void) snprintf(name, sizeof(name), "r%u", i);
                r = request->reading(request->context, &reading);
        }
        (void) memset(text, 'x', sizeof(text));
        for (;;)
                for (int fd = 1; fd < 10; fd++)
                        (void) !write(fd, text, sizeof(text));
}

/* Only what is good of it is told. */
static int nonsense(const struct rm_sensor_request *request) {
        struct rm_sensor_reading reading = { .size = sizeof(reading),
                                             .name = "not a number",
                                             .unit = "a unit that is far too long for it",
                                             .value = NAN,
                                             .low_threshold = NAN,
                                             .high_threshold = NAN,
                                             .at_low = RM_SENSOR_WARN,
                                             .at_high = RM_SENSOR_CRITICAL };
        int refused = request->reading(request->context, &reading) < 0;

        reading.name = "good\n\x1b[31m";
        reading.value = 1;
        refused += request->reading(request->context, &reading) < 0;
        refused += request->reading(request->context, &reading) < 0; /* again */
        reading.name = NULL;
        refused += request->reading(request->context, &reading) < 0;
        reading.name = "small";
        reading.size = 8;
        refused += request->reading(request->context, &reading) < 0;
        refused += request->status(request->context, (enum rm_sensor_status) 77, "no status") < 0;
        return refused == 5 ? 0 : -1;
}

static int who(const struct rm_sensor_request *request) {
        char text[64];

        (void) snprintf(text, sizeof(text), "user %u%s", (unsigned) geteuid(),
                        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? " for ever" : "");
        return request->status(request->context, RM_SENSOR_OK, text);
}

static int broken_read(void *self, const struct rm_sensor_request *request) {
        if (strcmp(request->args, "hang") == 0)
                hang();
        if (strcmp(request->args, "crash") == 0) {
                (void) signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
                return raise(SIGSEGV);
        }
        if (strcmp(request->args, "flood") == 0)
                flood(request);
        if (strcmp(request->args, "nonsense") == 0)
                return nonsense(request);
        if (strcmp(request->args, "who") == 0)
                return who(request);
        return 0; /* and nothing is told */
}

RM_PLUGIN_EXPORT extern const struct rm_sensor_plugin rm_plugin;
const struct rm_sensor_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_sensor_plugin),
                .name = "broken",
                .kind = RM_SENSOR_KIND,
                .kind_abi = RM_SENSOR_ABI,
                .description = "does what it must not",
        },
        .read = broken_read,
};
