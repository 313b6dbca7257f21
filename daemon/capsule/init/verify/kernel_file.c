#include "daemon/capsule/init/verify/kernel_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/capsule/init/base/mounts.h"

static void add(struct kernel_mounts *mounts, const char *point) {
        mounts->points = xgrow(mounts->points, mounts->n, sizeof(*mounts->points));
        mounts->points[mounts->n++] = xstrdup(point);
}

static bool is_kernel_type(const char *type) {
        static const char *const types[] = {
                "apparmorfs", "binder",    "binfmt_misc", "bpf",   "cgroup",  "cgroup2", "configfs", "debugfs",
                "efivarfs",   "fusectl",   "nfsd",        "nsfs",  "proc",    "pstore",  "resctrl",  "rpc_pipefs",
                "securityfs", "selinuxfs", "smackfs",     "sysfs", "tracefs", "usbfs",   "xenfs",
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (strcmp(type, types[i]) == 0)
                        return true;
        return false;
}

/* "36 35 98:0 /root /point rw,noatime master:1 - type source options" */
static void take_line(struct kernel_mounts *mounts, char *line) {
        char *dash = strstr(line, " - ");
        char *point = NULL, *type = NULL, *rest = line;

        if (!dash)
                return;
        *dash = '\0';
        for (int i = 0; i < 5; i++)
                point = strsep(&rest, " ");
        rest = dash + 3;
        type = strsep(&rest, " ");
        if (!point || *point != '/' || !is_kernel_type(type))
                return;
        mounts_unescape(point);
        add(mounts, point);
}

void kernel_mounts_parse(struct kernel_mounts *mounts, const char *mountinfo) {
        cleanup_free char *text = xstrdup(mountinfo);
        char *rest = text, *line;

        if (mounts->n == 0) {
                add(mounts, "/proc");
                add(mounts, "/sys");
        }
        while ((line = strsep(&rest, "\n")))
                take_line(mounts, line);
}

void kernel_mounts_finish(struct kernel_mounts *mounts) {
        for (size_t i = 0; i < mounts->n; i++)
                free(mounts->points[i]);
        free(mounts->points);
        *mounts = (struct kernel_mounts) { 0 };
}

static bool is_listed(const char *name, const char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(name, list[i]) == 0)
                        return true;
        return false;
}

/* Returns what follows the digits of a number and a slash, or "" behind the number; NULL: it does
 * not begin so. */
static const char *behind_number(const char *name) {
        const char *p = name;

        while (isdigit((unsigned char) *p))
                p++;
        if (p == name || (*p != '/' && *p != '\0'))
                return NULL;
        return *p == '/' ? p + 1 : p;
}

static bool is_ordinary_of_process(const char *name) {
        static const char *const names[] = {
                "",        "cgroup",    "cmdline",   "comm", "fd",    "limits",    "maps",   "mountinfo", "mounts",
                "net/dev", "numa_maps", "oom_score", "stat", "statm", "schedstat", "status", "task",
        };
        const char *of_thread = strncmp(name, "task/", 5) == 0 ? behind_number(name + 5) : NULL;

        return is_listed(of_thread ? of_thread : name, names, ARRAY_SIZE(names));
}

static bool is_ordinary(const char *link) {
        static const char *const names[] = {
                "/proc",         "/proc/cpuinfo", "/proc/diskstats", "/proc/filesystems", "/proc/loadavg",
                "/proc/meminfo", "/proc/stat",    "/proc/uptime",    "/proc/version",     "/proc/vmstat",
        };
        const char *of_process = strncmp(link, "/proc/", 6) == 0 ? behind_number(link + 6) : NULL;

        return of_process ? is_ordinary_of_process(of_process)
                          : is_listed(link, names, ARRAY_SIZE(names)) || path_is_below(link, "/sys/devices/system");
}

bool kernel_file_is_kept_out(const struct kernel_mounts *mounts, const char *link, bool writes) {
        for (size_t i = 0; i < mounts->n; i++)
                if (path_is_below(link, mounts->points[i]))
                        return writes || !is_ordinary(link);
        return false;
}
