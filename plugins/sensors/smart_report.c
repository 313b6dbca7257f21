#include "smart_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers that vendors have in common; the names beside them differ. */
enum { ATTRIBUTE_REALLOCATED = 5, ATTRIBUTE_PENDING = 197 };

/* Where the disk does not say what it stands. Most are made for 60 to 70, and solid ones slow down
 * from about 75 on. */
#define TEMPERATURE_LOW 70.0
/* Disks have spare sectors by the thousand, and a good one may need some. One that has lost a
 * sector is likelier to fail, and one that goes on losing them does. */
#define REALLOCATED_LOW 50.0
#define REALLOCATED_HIGH 1000.0
/* A sector that cannot be read now: what stands there may be lost. */
#define PENDING_LOW 1.0
#define PENDING_HIGH 100.0
/* The share of the writes that the disk's maker promises. */
#define WORN_LOW_PERCENT 95.0
/* Data that could not be read or was not what had been written. */
#define MEDIA_LOW_AN_HOUR 1.0
#define MEDIA_HIGH_AN_HOUR 100.0

struct report {
        const struct rm_sensor_request *request;
        const char *disk;
        int reported; /* or a negative errno */
};

/* `value` NAN: the disk does not tell. */
static void tell(struct report *report, const char *what, struct rm_sensor_reading reading) {
        char name[RM_SENSOR_NAME_BYTES];
        int r;

        if (report->reported < 0 || !isfinite(reading.value))
                return;
        (void) snprintf(name, sizeof(name), "%.40s %s", report->disk, what);
        reading.size = sizeof(reading);
        reading.name = name;
        r = report->request->reading(report->request->context, &reading);
        report->reported = r < 0 ? r : report->reported + 1;
}

static double number(const json_t *object, const char *key) {
        const json_t *value = json_object_get(object, key);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

static void report_health(struct report *report, const json_t *root) {
        const json_t *passed = json_object_get(json_object_get(root, "smart_status"), "passed");

        tell(report, "says that it fails",
             (struct rm_sensor_reading) { .flags = RM_SENSOR_FIXED,
                                          .value = json_is_boolean(passed) ? !json_is_true(passed) : NAN,
                                          .low_threshold = NAN,
                                          .high_threshold = 1,
                                          .at_low = RM_SENSOR_CRITICAL,
                                          .at_high = RM_SENSOR_CRITICAL });
}

/* The only one that the configuration's thresholds are for. */
static void report_temperature(struct report *report, const json_t *root) {
        const json_t *temperature = json_object_get(root, "temperature");
        const json_t *limits = json_object_get(root, "nvme_composite_temperature_threshold");
        double low = number(limits, "warning"), high = number(limits, "critical"), trip = number(temperature, "drive_trip");

        high = isfinite(high) ? high : trip;
        low = isfinite(low) && low > 0 ? low : TEMPERATURE_LOW;
        high = high > low ? high : NAN; /* 0: it is not known */
        tell(report, "temperature",
             (struct rm_sensor_reading) { .unit = "C",
                                          .value = number(temperature, "current"),
                                          .low_threshold = low,
                                          .high_threshold = high,
                                          .at_low = RM_SENSOR_WARN,
                                          .at_high = RM_SENSOR_CRITICAL });
}

static void report_sectors(struct report *report, const char *what, double value, double low, double high) {
        tell(report, what,
             (struct rm_sensor_reading) { .flags = RM_SENSOR_FIXED,
                                          .unit = "sectors",
                                          .value = value,
                                          .low_threshold = low,
                                          .high_threshold = high,
                                          .at_low = RM_SENSOR_WARN,
                                          .at_high = RM_SENSOR_FAILING });
}

/* Vendors put other things into the upper bytes of the number; smartctl writes what counts first in
 * the text. */
static double raw_value(const json_t *attribute) {
        const json_t *raw = json_object_get(attribute, "raw");
        const char *text = json_string_value(json_object_get(raw, "string"));
        char *end;
        double value = text ? strtod(text, &end) : 0;

        return text && end != text ? value : number(raw, "value");
}

static double find_attribute(const json_t *root, int id) {
        const json_t *table = json_object_get(json_object_get(root, "ata_smart_attributes"), "table");
        json_t *attribute;
        size_t i;

        json_array_foreach(table, i, attribute) {
                if (json_integer_value(json_object_get(attribute, "id")) == id)
                        return raw_value(attribute);
        }
        return NAN;
}

static void report_ata(struct report *report, const json_t *root) {
        report_sectors(report, "reallocated", find_attribute(root, ATTRIBUTE_REALLOCATED), REALLOCATED_LOW, REALLOCATED_HIGH);
        report_sectors(report, "pending", find_attribute(root, ATTRIBUTE_PENDING), PENDING_LOW, PENDING_HIGH);
}

static void report_scsi(struct report *report, const json_t *root) {
        report_sectors(report, "grown defects", number(root, "scsi_grown_defect_list"), REALLOCATED_LOW, REALLOCATED_HIGH);
}

static void report_nvme(struct report *report, const json_t *root) {
        const json_t *log = json_object_get(root, "nvme_smart_health_information_log");
        double least = number(log, "available_spare_threshold");

        tell(report, "worn",
             (struct rm_sensor_reading) { .flags = RM_SENSOR_FIXED,
                                          .unit = "%",
                                          .value = number(log, "percentage_used"),
                                          .low_threshold = WORN_LOW_PERCENT,
                                          .high_threshold = NAN,
                                          .at_low = RM_SENSOR_WARN,
                                          .at_high = RM_SENSOR_WARN });
        /* Below its own threshold it is bad, not at it. */
        tell(report, "spare used",
             (struct rm_sensor_reading) { .flags = RM_SENSOR_FIXED,
                                          .unit = "%",
                                          .value = 100 - number(log, "available_spare"),
                                          .low_threshold = NAN,
                                          .high_threshold = isfinite(least) ? 100 - least + 1 : 100,
                                          .at_low = RM_SENSOR_FAILING,
                                          .at_high = RM_SENSOR_FAILING });
        tell(report, "media errors",
             (struct rm_sensor_reading) { .flags = RM_SENSOR_COUNTER | RM_SENSOR_FIXED,
                                          .unit = "errors/h",
                                          .value = number(log, "media_errors"),
                                          .low_threshold = MEDIA_LOW_AN_HOUR,
                                          .high_threshold = MEDIA_HIGH_AN_HOUR,
                                          .at_low = RM_SENSOR_WARN,
                                          .at_high = RM_SENSOR_FAILING });
}

int smart_report(const struct rm_sensor_request *request, const char *disk, const json_t *root) {
        struct report report = { .request = request, .disk = disk };

        report_health(&report, root);
        report_temperature(&report, root);
        report_ata(&report, root);
        report_scsi(&report, root);
        report_nvme(&report, root);
        return report.reported;
}

const char *smart_report_error(const json_t *root) {
        const json_t *messages = json_object_get(json_object_get(root, "smartctl"), "messages");
        json_t *message;
        size_t i;

        json_array_foreach(messages, i, message) {
                const char *severity = json_string_value(json_object_get(message, "severity"));

                if (severity && strcmp(severity, "error") == 0)
                        return json_string_value(json_object_get(message, "string"));
        }
        return NULL;
}
