/* Errors of the memory that its controllers have corrected, or could not correct. Of those that
 * were corrected the growth in an hour counts; the first that could not be is critical, until the
 * node is restarted or an administrator writes to reset_counters of the controller. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "descriptor.h"
#include "directories.h"

enum { PATH_BYTES = 512 };

/* A memory module that is about to fail has hundreds in a day, and a good one has none for
 * months. */
#define LOW_AN_HOUR 10.0
#define HIGH_AN_HOUR 1000.0

static double count(const char *directory, const char *name) {
        char path[PATH_BYTES];
        unsigned long long value;
        FILE *f;
        int n;

        if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int) sizeof(path))
                return NAN;
        f = fopen(path, "re");
        if (!f)
                return NAN;
        n = fscanf(f, "%20llu", &value);
        (void) fclose(f);
        return n == 1 ? (double) value : NAN;
}

static int report(const struct rm_sensor_request *request, const char *directory, const char *controller) {
        char name[RM_SENSOR_NAME_BYTES];
        struct rm_sensor_reading corrected = { .size = sizeof(corrected),
                                               .flags = RM_SENSOR_COUNTER,
                                               .name = name,
                                               .unit = "errors/h",
                                               .value = count(directory, "ce_count"),
                                               .low_threshold = LOW_AN_HOUR,
                                               .high_threshold = HIGH_AN_HOUR,
                                               .at_low = RM_SENSOR_WARN,
                                               .at_high = RM_SENSOR_FAILING };
        struct rm_sensor_reading uncorrected = { .size = sizeof(uncorrected),
                                                 .flags = RM_SENSOR_FIXED,
                                                 .name = name,
                                                 .unit = "errors",
                                                 .value = count(directory, "ue_count"),
                                                 .low_threshold = NAN,
                                                 .high_threshold = 1,
                                                 .at_low = RM_SENSOR_CRITICAL,
                                                 .at_high = RM_SENSOR_CRITICAL };
        int r;

        if (isnan(corrected.value) || isnan(uncorrected.value))
                return 0;
        (void) snprintf(name, sizeof(name), "%.32s corrected", controller);
        r = request->reading(request->context, &corrected);
        (void) snprintf(name, sizeof(name), "%.32s uncorrected", controller);
        return r < 0 ? r : (r = request->reading(request->context, &uncorrected)) < 0 ? r : 1;
}

static int edac_read(void *self, const struct rm_sensor_request *request) {
        return directories_read(self, request, "/sys/devices/system/edac/mc", "mc", report,
                                "no memory controller in /sys/devices/system/edac/mc that counts errors");
}

SENSOR_PLUGIN("edac", "errors of the memory", edac_read);
