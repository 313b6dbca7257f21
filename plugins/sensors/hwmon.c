/* Temperatures of the kernel's hardware monitoring, each with the thresholds that its chip or
 * driver has: _max is the low one, _crit the high one. `args`: names of chips that are looked at,
 * such as "coretemp k10temp"; empty: all. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "descriptor.h"
#include "directories.h"

#define DIRECTORY "hwmon" /* with a number behind it, for each chip */

enum { PATH_BYTES = 512, LINE_BYTES = 64 };

/* The first line of DIRECTORY/NAME. */
static bool read_line(const char *directory, const char *name, char *ret_line) {
        char path[PATH_BYTES];
        FILE *f;
        bool read;

        if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int) sizeof(path))
                return false;
        f = fopen(path, "re");
        if (!f)
                return false;
        read = fgets(ret_line, LINE_BYTES, f) != NULL;
        (void) fclose(f);
        if (read)
                ret_line[strcspn(ret_line, "\n")] = '\0';
        return read;
}

/* A value of temperature K, in degrees; NAN: not known. The kernel has thousandths. */
static double degrees(const char *directory, unsigned k, const char *what) {
        char name[32], line[LINE_BYTES], *end;
        long value;

        (void) snprintf(name, sizeof(name), "temp%u_%s", k, what);
        if (!read_line(directory, name, line))
                return NAN;
        value = strtol(line, &end, 10);
        return end == line || *end ? NAN : (double) value / 1000;
}

/* Some chips have thresholds that were never set: 0 or less. */
static double threshold(const char *directory, unsigned k, const char *what) {
        double value = degrees(directory, k, what);

        return value > 0 ? value : NAN;
}

static bool is_requested(const char *chips, const char *chip) {
        size_t length = strlen(chip);

        chips += strspn(chips, " \t");
        if (!*chips)
                return true;
        for (; *chips; chips += strspn(chips, " \t")) {
                size_t n = strcspn(chips, " \t");

                if (n == length && memcmp(chips, chip, n) == 0)
                        return true;
                chips += n;
        }
        return false;
}

static int report(const struct rm_sensor_request *request, const char *directory, const char *number, const char *chip,
                  unsigned k) {
        char name[RM_SENSOR_NAME_BYTES], label_file[32], label[LINE_BYTES] = "";
        struct rm_sensor_reading reading = { .size = sizeof(reading),
                                             .name = name,
                                             .unit = "C",
                                             .value = degrees(directory, k, "input"),
                                             .low_threshold = threshold(directory, k, "max"),
                                             .high_threshold = threshold(directory, k, "crit"),
                                             .at_low = RM_SENSOR_WARN,
                                             .at_high = RM_SENSOR_CRITICAL };

        /* A chip that sleeps has none, and one with a broken wire has a wrong one. */
        if (isnan(reading.value) || degrees(directory, k, "fault") > 0)
                return 0;
        (void) snprintf(label_file, sizeof(label_file), "temp%u_label", k);
        (void) read_line(directory, label_file, label);
        /* Chips and labels may be there twice; the number is the node's until it is restarted. */
        (void) snprintf(name, sizeof(name), "%.16s%s temp%u%s%.24s", chip, number, k, *label ? " " : "", label);
        return request->reading(request->context, &reading);
}

/* Returns how many were told, or a negative errno. */
static int read_chip(const struct rm_sensor_request *request, const char *directory, const char *directory_name) {
        const char *number = directory_name + strlen(DIRECTORY);
        char chip[LINE_BYTES] = "hwmon";
        DIR *dir;
        int reported = 0, r = 0;

        (void) read_line(directory, "name", chip);
        if (!is_requested(request->args, chip))
                return 0;
        dir = opendir(directory);
        if (!dir)
                return 0; /* it has gone */
        for (const struct dirent *entry = readdir(dir); entry && r == 0; entry = readdir(dir)) {
                unsigned k;
                int n = 0;

                if (sscanf(entry->d_name, "temp%3u_input%n", &k, &n) != 1 || n == 0 || entry->d_name[n])
                        continue;
                r = report(request, directory, number, chip, k);
                reported += r == 0;
        }
        (void) closedir(dir);
        return r < 0 ? r : reported;
}

static int hwmon_read(void *self, const struct rm_sensor_request *request) {
        return directories_read(self, request, "/sys/class/hwmon", DIRECTORY, read_chip, "no temperatures in /sys/class/hwmon");
}

SENSOR_PLUGIN("hwmon", "temperatures of the hardware", hwmon_read);
