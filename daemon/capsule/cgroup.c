#include "daemon/capsule/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/util.h"

#define DAEMON_GROUP "/rmd-daemon"

/* Another mount may hide this one, or a directory above it: its path leads there then. */
static bool leads_to(const char *point, unsigned long long mount_id) {
        struct statx stx;

        return statx(AT_FDCWD, point, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &stx) == 0 &&
               (!(stx.stx_mask & STATX_MNT_ID) || stx.stx_mnt_id == mount_id);
}

/* The mount point of the cgroup v2 tree, or of the v1 hierarchy with the freezer, and which group
 * is its root. */
static char *find_mount(bool v1, char **ret_root) {
        cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0) {
                char *separator = strstr(line, " - ");
                char root[4096], point[4096];
                unsigned long long mount_id;

                if (!separator || sscanf(line, "%llu %*s %*s %4095s %4095s", &mount_id, root, point) != 3)
                        continue;
                separator += 3;
                if (v1 ? strncmp(separator, "cgroup ", 7) != 0 || !strstr(separator, "freezer")
                       : strncmp(separator, "cgroup2 ", 8) != 0)
                        continue;
                if (!leads_to(point, mount_id))
                        continue;
                *ret_root = xstrdup(root);
                return xstrdup(point);
        }
        return NULL;
}

/* A group whose members are processes cannot pass controllers on: so rmd.service has us in a group
 * below its own (DelegateSubgroup=), and capsules go beside that. */
static void leave_daemon_group(char *path) {
        size_t length = strlen(path), end = strlen(DAEMON_GROUP);

        if (length >= end && strcmp(path + length - end, DAEMON_GROUP) == 0)
                path[length - end] = '\0';
}

/* The rest of a group's path below the root of a mount; "" when it is that, or lies elsewhere. */
static const char *below(const char *path, const char *root) {
        size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

        if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
                return "";
        return strcmp(path + length, "/") == 0 || strncmp(path + length, "/..", 3) == 0 ? "" : path + length;
}

/* Our own group, as a path below the mount with that root; "" when it lies outside of what we
 * see. */
static char *find_own_group(bool v1, const char *root) {
        cleanup_file FILE *f = fopen("/proc/self/cgroup", "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0) {
                char *path = strchr(line, ':');
                char *controllers = path ? path + 1 : NULL;

                path = controllers ? strchr(controllers, ':') : NULL;
                if (!path)
                        continue;
                *path++ = '\0';
                path[strcspn(path, "\n")] = '\0';
                if (v1 ? !strstr(controllers, "freezer") : *controllers != '\0')
                        continue;
                leave_daemon_group(path);
                return xstrdup(below(path, root));
        }
        return xstrdup("");
}

int cgroup_find_parent(char **ret_path, struct rm_error *error) {
        for (int v1 = 0; v1 <= 1; v1++) {
                cleanup_free char *root = NULL;
                cleanup_free char *mount = find_mount(v1, &root);
                cleanup_free char *own = NULL;

                if (!mount)
                        continue;
                own = find_own_group(v1, root);
                *ret_path = xasprintf("%s%s/rmd-capsules", mount, own);
                return 0;
        }
        return error_set(error, -ENOTSUP, "no cgroup v2 tree and no v1 freezer is mounted");
}

int cgroup_is_v1(const char *path) {
        struct statfs fs;

        if (statfs(path, &fs) < 0)
                return -errno;
        if (fs.f_type == CGROUP2_SUPER_MAGIC)
                return 0;
        return fs.f_type == CGROUP_SUPER_MAGIC ? 1 : -ENOTSUP;
}

static int make_leaf(const char *path, const char *name, struct rm_error *error) {
        cleanup_free char *leaf = xasprintf("%s/%s", path, name);

        if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
                return error_sys(error, -errno, "cannot make the control group %s", leaf);
        return 0;
}

int cgroup_make(const char *path, struct rm_error *error) {
        int r = mkdir_p(path, 0755);

        if (r < 0)
                return error_sys(error, r, "cannot make the control group %s", path);
        r = make_leaf(path, "init", error);
        return r < 0 ? r : make_leaf(path, "payload", error);
}

int cgroup_remove(const char *path) {
        static const char *const leaves[] = { "/init", "/payload", "" };

        for (size_t i = 0; i < ARRAY_SIZE(leaves); i++) {
                cleanup_free char *leaf = xasprintf("%s%s", path, leaves[i]);

                if (rmdir(leaf) < 0 && errno != ENOENT)
                        return -errno;
        }
        return 0;
}

int cgroup_enter(int dir_fd, pid_t pid) {
        char text[16];

        snprintf(text, sizeof(text), "%d", (int) pid);
        return write_text_at(dir_fd, "cgroup.procs", text);
}

int cgroup_set_frozen(int dir_fd, bool v1, bool frozen) {
        if (v1)
                return write_text_at(dir_fd, "freezer.state", frozen ? "FROZEN" : "THAWED");
        return write_text_at(dir_fd, "cgroup.freeze", frozen ? "1" : "0");
}

int cgroup_share_freezer(int dir_fd, bool v1) {
        const char *file = v1 ? "freezer.state" : "cgroup.freeze";

        if (fchownat(dir_fd, file, (uid_t) -1, CGROUP_FREEZER_GID, 0) < 0 || fchmodat(dir_fd, file, 0664, 0) < 0)
                return -errno;
        return 0;
}

int cgroup_is_frozen(int dir_fd, bool v1) {
        char text[512];
        ssize_t n = read_text_at(dir_fd, v1 ? "freezer.state" : "cgroup.events", text, sizeof(text));

        if (n < 0)
                return (int) n;
        return strstr(text, v1 ? "FROZEN" : "frozen 1") ? 1 : 0;
}

int cgroup_open_events(int dir_fd) {
        int fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -ENOTSUP : fd;
}

int cgroup_is_populated(int dir_fd, bool v1) {
        char text[512];
        ssize_t n = read_text_at(dir_fd, v1 ? "cgroup.procs" : "cgroup.events", text, sizeof(text));

        if (n < 0)
                return (int) n;
        return v1 ? text[0] != '\0' : strstr(text, "populated 1") != NULL;
}

int cgroup_signal(int dir_fd, int signo) {
        cleanup_file FILE *f = fopen_at(dir_fd, "cgroup.procs");
        int pid;

        if (!f)
                return -errno;
        /* A pid of 0 is a process outside of our pid namespace. */
        while (fscanf(f, "%d", &pid) == 1)
                if (pid > 0)
                        (void) kill(pid, signo);
        return 0;
}

int cgroup_kill(int dir_fd, bool v1) {
        int r = v1 ? -ENOENT : write_text_at(dir_fd, "cgroup.kill", "1");

        if (r != -ENOENT)
                return r;
        /* Kernels before 5.14, and v1: stop them first, so that none escapes by forking. */
        (void) cgroup_set_frozen(dir_fd, v1, true);
        r = cgroup_signal(dir_fd, SIGKILL);
        (void) cgroup_set_frozen(dir_fd, v1, false);
        return r;
}
