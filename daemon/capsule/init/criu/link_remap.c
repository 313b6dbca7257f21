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
static void directory_walk(link_fn fn, int fd, const struct stat *file) {
        DIR *dir = fdopendir(fd);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                struct stat st;
                bool kept;

                if (is_link(entry->d_name, &kept) && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    (file->st_dev == 0 || st.st_dev == file->st_dev) && st.st_ino == file->st_ino)
                        fn(dirfd(dir), entry->d_name, kept);
        }
        if (dir)
                (void) closedir(dir);
        else
                (void) close(fd);
}

/* `path` is where the file was; its directory may be gone as well, then CRIU takes the next one
 * up. */
static void links_walk(link_fn fn, char *path, const struct stat *file) {
        char *slash;
        int fd = -1;

        while (fd < 0 && (slash = strrchr(path, '/')) && slash > path) {
                *slash = 0;
                fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0 && errno != ENOENT)
                        return;
        }
        if (fd >= 0)
                directory_walk(fn, fd, file);
}

bool link_remap_lost_name(const char *link) {
        size_t n = strlen(link);

        if (link[0] != '/')
                return false;
        return (n > strlen(DELETED) && strcmp(link + n - strlen(DELETED), DELETED) == 0) ||
               strncmp(strrchr(link, '/') + 1, ".nfs", 4) == 0;
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

static void files_look(link_fn fn, const char *proc, const char *pid) {
        cleanup_free char *path = xasprintf("%s/%s/fd", proc, pid);
        DIR *dir = opendir(path);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        file_stamp(fn, dirfd(dir), entry->d_name);
        if (dir)
                (void) closedir(dir);
}

/* A file may be mapped, and not open: sem_open(3) makes a semaphore by a name that it then
 * replaces. Not all who look here may follow links of /proc/PID/map_files. */
static void mappings_look(link_fn fn, const char *proc, const char *pid) {
        cleanup_free char *path = xasprintf("%s/%s/maps", proc, pid), *last = NULL, *line = NULL;
        FILE *f = fopen(path, "re");
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
        if (f)
                (void) fclose(f);
}

static void look(const char *proc, link_fn fn) {
        DIR *dir = opendir(proc);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (isdigit((unsigned char) entry->d_name[0])) {
                        files_look(fn, proc, entry->d_name);
                        mappings_look(fn, proc, entry->d_name);
                }
        if (dir)
                (void) closedir(dir);
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
        (void) kept;
        if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
                log_warn("cannot remove %s: %s", name, strerror(errno));
}

void link_remap_hide(const char *proc) {
        look(proc, link_hide);
}

void link_remap_show(const char *proc) {
        look(proc, link_show);
}

void link_remap_remove(const char *proc) {
        look(proc, link_remove);
}

/* The script acts after the images are written, and before CRIU tidies up. */
int link_remap_script(const char *action) {
        if (strcmp(action, "post-dump") == 0)
                link_remap_hide("/proc");
        return 0;
}
