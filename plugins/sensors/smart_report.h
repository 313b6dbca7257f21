/* The state of a disk, as smartctl --json writes it: readings for rmd. Linked into the sensor
 * smart. */
#ifndef RM_PLUGINS_SENSORS_SMART_REPORT_H
#define RM_PLUGINS_SENSORS_SMART_REPORT_H

#include <jansson.h>

#include "rm/sensor.h"

/* `disk` begins the names of the readings. Returns how many were told, 0 if there is nothing that
 * this knows, or a negative errno. */
int smart_report(const struct rm_sensor_request *request, const char *disk, const json_t *root);

/* The first error that smartctl tells in the report; NULL: none. The report's. */
const char *smart_report_error(const json_t *root);

#endif
