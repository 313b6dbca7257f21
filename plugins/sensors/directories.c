#include "directories.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../host_log.h"

enum { PATH_BYTES = 512 };

int directories_read(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const char *path,
                     const char *prefix,
                     int (*visit)(const struct rm_sensor_request *request, const char *directory, const char *name),
                     const char *nothing) {
        char above[PATH_BYTES], directory[PATH_BYTES];
        int reported = 0, r = 0;
        DIR *dir;

        (void) snprintf(above, sizeof(above), "%s%s", request->root, path);
        dir = opendir(above);
        for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry && r >= 0; entry = readdir(dir)) {
                if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
                    snprintf(directory, sizeof(directory), "%s/%s", above, entry->d_name) >= (int) sizeof(directory))
                        continue;
                r = visit(request, directory, entry->d_name);
                reported += r > 0 ? r : 0;
        }
        if (dir)
                (void) closedir(dir);
        if (r >= 0 && reported == 0)
                return host_fail(host, -ENODEV, "%s", nothing);
        return r < 0 ? r : 0;
}
