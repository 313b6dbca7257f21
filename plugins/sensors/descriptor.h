/* The descriptor that a sensor exports, as all sensors of this folder have it: its self is its
 * host. */
#ifndef RM_PLUGINS_SENSORS_DESCRIPTOR_H
#define RM_PLUGINS_SENSORS_DESCRIPTOR_H

#include "../host_log.h"
#include "rm/sensor.h"

#define SENSOR_PLUGIN(name_, description_, read_)                                                                                  \
        RM_PLUGIN_EXPORT extern const struct rm_sensor_plugin rm_plugin;                                                           \
        const struct rm_sensor_plugin rm_plugin = {                                                                                \
                .plugin = {                                                                                                        \
                        .abi = RM_PLUGIN_ABI,                                                                                      \
                        .size = sizeof(struct rm_sensor_plugin),                                                                   \
                        .name = (name_),                                                                                           \
                        .kind = RM_SENSOR_KIND,                                                                                    \
                        .kind_abi = RM_SENSOR_ABI,                                                                                 \
                        .description = (description_),                                                                             \
                        .create = host_keep,                                                                                       \
                },                                                                                                                 \
                .read = (read_),                                                                                                   \
        }

#endif
