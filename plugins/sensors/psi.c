/* Pressure: the part of the last minute in which some process has waited for memory, for the disk
 * or for a processor, in percent. `args`: which of "memory io cpu"; empty: memory. Ranks that share
 * a core make pressure on cpu without any harm. No high threshold, unless one is configured: any
 * job can make pressure, and takes it along when it moves. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "descriptor.h"

enum { PATH_BYTES = 512, NAME_MOST = 15 };

static const char *const names[] = { "memory", "io", "cpu" };

static int report(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const char *name) {
        struct rm_sensor_reading reading = { .size = sizeof(reading),
                                             .name = name,
                                             .unit = "%",
                                             .low_threshold = strcmp(name, "memory") == 0 ? 20 : NAN,
                                             .high_threshold = NAN,
                                             .at_low = RM_SENSOR_WARN,
                                             .at_high = RM_SENSOR_FAILING };
        char path[PATH_BYTES];
        int n;
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/proc/pressure/%s", request->root, name);
        f = fopen(path, "re");
        if (!f)
                return host_fail(host, -errno, "this kernel does not tell it: /proc/pressure/%s", name);
        /* "some avg10=0.00 avg60=0.01 avg300=0.00 total=8134368" */
        n = fscanf(f, "some avg10=%*f avg60=%lf", &reading.value);
        (void) fclose(f);
        if (n != 1)
                return host_fail(host, -EBADMSG, "not as expected: /proc/pressure/%s", name);
        return request->reading(request->context, &reading);
}

static int report_named(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const char *word,
                        size_t length) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0)
                        return report(host, request, names[i]);
        return host_fail(host, -EINVAL, "psi_args names memory, io or cpu, not %.*s",
                         (int) (length < NAME_MOST ? length : NAME_MOST), word);
}

static int psi_read(void *self, const struct rm_sensor_request *request) {
        const char *word = request->args + strspn(request->args, " \t");
        int r = 0;

        if (!*word)
                return report(self, request, names[0]);
        for (; *word && r == 0; word += strspn(word, " \t")) {
                size_t length = strcspn(word, " \t");

                r = report_named(self, request, word, length);
                word += length;
        }
        return r;
}

SENSOR_PLUGIN("psi", "pressure on memory, disks and processors", psi_read);
