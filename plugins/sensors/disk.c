/* How full file systems are, in percent of what users may use. `args`: absolute paths, parted by
 * blanks; empty: /. A file system whose server does not answer makes the sensor hang, which is a
 * fault. Paths must be in directories that the sensor's user may enter. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "descriptor.h"

enum { PATH_BYTES = 1024 };

static int report(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const char *path) {
        char full[PATH_BYTES];
        struct statvfs st;
        struct rm_sensor_reading reading = { .size = sizeof(reading),
                                             .name = path,
                                             .unit = "%",
                                             .low_threshold = 95,
                                             .high_threshold = NAN,
                                             .at_low = RM_SENSOR_WARN,
                                             .at_high = RM_SENSOR_FAILING };
        double used, usable;

        if (path[0] != '/' || snprintf(full, sizeof(full), "%s%s", request->root, path) >= (int) sizeof(full))
                return host_fail(host, -EINVAL, "%s: %s", path, strerror(EINVAL));
        if (statvfs(full, &st) < 0)
                return host_fail(host, -errno, "%s: %s", path, strerror(errno));
        /* Blocks that are kept for root are neither used nor usable, as for df(1). */
        used = (double) st.f_blocks - (double) st.f_bfree;
        usable = used + (double) st.f_bavail;
        reading.value = usable > 0 ? 100 * used / usable : 0;
        return request->reading(request->context, &reading);
}

static int disk_read(void *self, const struct rm_sensor_request *request) {
        const char *args = request->args + strspn(request->args, " \t");
        int r = 0;

        if (!*args)
                return report(self, request, "/");
        while (*args && r == 0) {
                char path[PATH_BYTES];
                size_t length = strcspn(args, " \t");

                (void) snprintf(path, sizeof(path), "%.*s", (int) length, args);
                r = report(self, request, path);
                args += length;
                args += strspn(args, " \t");
        }
        return r;
}

SENSOR_PLUGIN("disk", "how full file systems are", disk_read);
