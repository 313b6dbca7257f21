/* For sensors that read what the kernel tells of devices of one kind, each in a directory; linked
 * into each. */
#ifndef RM_PLUGINS_SENSORS_DIRECTORIES_H
#define RM_PLUGINS_SENSORS_DIRECTORIES_H

#include "rm/sensor.h"

/* The read() of such a sensor. Calls `visit` for each directory in `path` below the request's root
 * whose name begins with `prefix`; `name` is that name. `visit` returns how many things (readings,
 * or devices) it has told of, or a negative errno, which ends it. Returns 0, that errno, or -ENODEV
 * after `nothing` has gone to the host's log, since there was nothing to tell of. */
int directories_read(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const char *path,
                     const char *prefix,
                     int (*visit)(const struct rm_sensor_request *request, const char *directory, const char *name),
                     const char *nothing);

#endif
