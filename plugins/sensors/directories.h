/* For sensors that read what the kernel tells of devices of one kind, each in a directory; linked
 * into each. */
#ifndef RM_PLUGINS_SENSORS_DIRECTORIES_H
#define RM_PLUGINS_SENSORS_DIRECTORIES_H

#include "rm/sensor.h"

/* Calls `visit` for each directory in `path` below the request's root whose name begins with
 * `prefix`; `name` is that name. It returns how many things (readings, or devices) it has told of,
 * or a negative errno, which ends it. Returns the sum, 0 also where `path` is not, or that
 * errno. */
int directories_visit(const struct rm_sensor_request *request, const char *path, const char *prefix,
                      int (*visit)(const struct rm_sensor_request *request, const char *directory, const char *name));

#endif
