#include "owned.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 800 };

static void fail(const struct rm_plugin_host *host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(const struct rm_plugin_host *host, const char *fmt, ...) {
        char text[TEXT_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        host->log(host->context, RM_PLUGIN_ERROR, text);
}

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
                fail(host, "%s: '%s' is not a directory of root's that nobody else can write", path, *above ? above : "/");
                return -EPERM;
        }
        return 0;
}

int owned_check(const struct rm_plugin_host *host, const char *key, const char *path) {
        struct stat st;

        if (path[0] != '/') {
                fail(host, "%s '%s' is not an absolute path", key, path);
                return -EINVAL;
        }
        if (stat(path, &st) < 0) {
                int code = errno;

                fail(host, "%s: %s", path, strerror(code));
                return -code;
        }
        if (!S_ISREG(st.st_mode) || !is_roots(&st)) {
                fail(host, "%s: not a file of root's that nobody else can write", path);
                return -EPERM;
        }
        return check_directories(host, path);
}
