#include "daemon/capsule/init/criu/link_remap.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/openat.h"
#include "common/util.h"

#define LINK_PREFIX "link_remap."
#define KEPT_SUFFIX ".kept"
#define DELETED " (deleted)"

/* Does something with a link; `kept`: it is hidden. */
typedef void (*link_fn)(int dir_fd, const char *name, bool kept);

static bool is_link(const char *name, bool *ret_kept) {
        const char *p = name + strlen(LINK_PREFIX);

        if (strncmp(name, LINK_PREFIX, strlen(LINK_PREFIX)) != 0 || !isdigit((unsigned char) *p))
                return false;
        while (isdigit((unsigned char) *p))
                p++;
        *ret_kept = strcmp(p, KEPT_SUFFIX) == 0;
        return *p == 0 || *ret_kept;
}

/* With st_dev 0 the file is known to be of the file system of the directory: what /proc/PID/maps
 * calls a device is not st_dev everywhere. */
static void directory_walk(link_fn fn, DIR *dir, const struct stat *file) {
        const char *name;

        while ((name = next_name(dir))) {
                struct stat st;
                bool kept;

                if (is_link(name, &kept) && fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    (file->st_dev == 0 || st.st_dev == file->st_dev) && st.st_ino == file->st_ino)
                        fn(dirfd(dir), name, kept);
        }
}

/* `path` is where the file was; its directory may be gone as well, then CRIU takes the next one
 * up. */
static void links_walk(link_fn fn, char *path, const struct stat *file) {
        cleanup_dir DIR *dir = NULL;
        char *slash;

        while (!dir && (slash = strrchr(path, '/')) && slash > path) {
                *slash = 0;
                dir = opendir(path);
                if (!dir && errno != ENOENT)
                        return;
        }
        directory_walk(fn, dir, file);
}

bool link_remap_lost_name(const char *link) {
        size_t n = strlen(link);

        if (link[0] != '/')
                return false;
        return (n > strlen(DELETED) && strcmp(link + n - strlen(DELETED), DELETED) == 0) ||
               strncmp(strrchr(link, '/') + 1, ".nfs", 4) == 0;
}

bool link_remap_has_name(const char *link, const struct stat *st) {
        struct stat named;

        return strncmp(strrchr(link, '/') + 1, ".nfs", 4) != 0 && st->st_nlink > 0 && stat(link, &named) == 0 &&
               named.st_dev == st->st_dev && named.st_ino == st->st_ino;
}

bool link_remap_applies(const struct stat *st) {
        return S_ISREG(st->st_mode) && st->st_nlink > 0;
}

static void file_stamp(link_fn fn, int fds, const char *number) {
        char path[PATH_MAX];
        ssize_t n = readlinkat(fds, number, path, sizeof(path) - 1);
        struct stat st;

        path[n > 0 ? n : 0] = 0;
        if (link_remap_lost_name(path) && fstatat(fds, number, &st, 0) == 0 && link_remap_applies(&st))
                links_walk(fn, path, &st);
}

static void files_scan(link_fn fn, const char *proc, const char *pid) {
        cleanup_free char *path = xasprintf("%s/%s/fd", proc, pid);
        cleanup_dir DIR *dir = opendir(path);
        const char *number;

        while ((number = next_number(dir)))
                file_stamp(fn, dirfd(dir), number);
}

/* A file may be mapped, and not open: sem_open(3) makes a semaphore by a name that it then
 * replaces. Not all who look here may follow links of /proc/PID/map_files. */
static void mappings_scan(link_fn fn, const char *proc, const char *pid) {
        cleanup_free char *path = xasprintf("%s/%s/maps", proc, pid), *last = NULL, *line = NULL;
        cleanup_file FILE *f = fopen(path, "re");
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0) {
                struct stat file = { 0 };
                char *link = strchr(line, '/');

                line[strcspn(line, "\n")] = '\0';
                if (!link || sscanf(line, "%*s %*s %*s %*s %lu", &file.st_ino) != 1 || !link_remap_lost_name(link) ||
                    (last && strcmp(link, last) == 0))
                        continue;
                free(last);
                last = xstrdup(link);
                links_walk(fn, link, &file);
        }
}

static void scan(const char *proc, link_fn fn) {
        cleanup_dir DIR *dir = opendir(proc);
        const char *pid;

        while ((pid = next_number(dir))) {
                files_scan(fn, proc, pid);
                mappings_scan(fn, proc, pid);
        }
}

static void link_hide(int dir_fd, const char *name, bool kept) {
        cleanup_free char *hidden = xasprintf("%s" KEPT_SUFFIX, name);

        if (!kept && renameat(dir_fd, name, dir_fd, hidden) < 0)
                log_warn("cannot keep %s: %s", name, strerror(errno));
}

static void link_show(int dir_fd, const char *name, bool kept) {
        cleanup_free char *shown = xasprintf("%.*s", (int) (strlen(name) - strlen(KEPT_SUFFIX)), name);

        if (kept && renameat(dir_fd, name, dir_fd, shown) < 0)
                log_warn("cannot bring %s back: %s", shown, strerror(errno));
}

static void link_remove(int dir_fd, const char *name, bool kept) {
        if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
                log_warn("cannot remove %s: %s", name, strerror(errno));
}

void link_remap_hide(const char *proc) {
        scan(proc, link_hide);
}

void link_remap_show(const char *proc) {
        scan(proc, link_show);
}

void link_remap_remove(const char *proc) {
        scan(proc, link_remove);
}

/* The script acts after the images are written, and before CRIU tidies up. */
int link_remap_script(const char *action) {
        if (strcmp(action, "post-dump") == 0)
                link_remap_hide("/proc");
        return 0;
}
