#include "owned.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host_log.h"

/* Or a file of this user's, who can do no more by it than this process can. */
static bool is_roots(const struct stat *st) {
        return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A user who can write in a directory above the program can put another one in its place; not where
 * only owners may rename. */
static int check_directories(const struct rm_plugin_host *host, const char *path) {
        char above[PATH_MAX];
        struct stat st;

        (void) snprintf(above, sizeof(above), "%s", path);
        for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
                *slash = '\0';
                if (stat(*above ? above : "/", &st) == 0 &&
                    (is_roots(&st) || ((st.st_uid == 0 || st.st_uid == geteuid()) && (st.st_mode & S_ISVTX))))
                        continue;
                return host_fail(host, -EPERM, "%s: '%s' is not a directory of root's that nobody else can write", path,
                                 *above ? above : "/");
        }
        return 0;
}

int owned_check(const struct rm_plugin_host *host, const char *key, const char *path) {
        struct stat st;

        if (path[0] != '/')
                return host_fail(host, -EINVAL, "%s '%s' is not an absolute path", key, path);
        if (stat(path, &st) < 0)
                return host_fail(host, -errno, "%s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode) || !is_roots(&st))
                return host_fail(host, -EPERM, "%s: not a file of root's that nobody else can write", path);
        return check_directories(host, path);
}
