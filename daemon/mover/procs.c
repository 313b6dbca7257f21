#include "daemon/mover/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

#define LIST_MAX_BYTES (1U << 20)
#define FDINFO_MAX_BYTES (1U << 20) /* locks may be many */
#define STATUS_MAX_BYTES (1U << 20) /* groups may be many */

int procs_read(const char *file, pid_t **ret_pids, size_t *ret_n) {
        cleanup_free char *text = NULL;
        pid_t *pids;
        size_t n = 0;
        int r = read_file(file, LIST_MAX_BYTES, &text, NULL);

        if (r < 0)
                return r;
        pids = xcalloc(strlen(text) / 2 + 1, sizeof(*pids));
        for (char *at = text; *at;) {
                long pid = strtol(at, &at, 10);

                if (pid > 0)
                        pids[n++] = (pid_t) pid;
                at = strchrnul(at, '\n');
                at += *at == '\n';
        }
        *ret_pids = pids;
        *ret_n = n;
        return 0;
}

/* The line's value; NULL when it has none. */
static const char *line_of(const char *text, const char *name) {
        const char *at = strstr(text, name);

        return at ? at + strlen(name) : NULL;
}

int procs_status(int proc_fd, struct procs_status *ret) {
        struct procs_status status = { 0 };
        cleanup_free char *path = xasprintf("/proc/self/fd/%d/status", proc_fd);
        cleanup_free char *text = NULL;
        const char *at;
        char *end;
        int r = read_file(path, STATUS_MAX_BYTES, &text, NULL);

        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        /* The name of the program, which comes before, has no newline in it: the kernel escapes that. */
        at = line_of(text, "\nNSpid:");
        for (long pid = 0; at && (pid = strtol(at, &end, 10)) > 0; at = *end == '\t' ? end : NULL) {
                status.inner_pid = (pid_t) pid;
                status.nesting++;
        }
        at = line_of(text, "\nVmLck:");
        if (at)
                status.locked_bytes = strtoull(at, NULL, 10) << 10;
        if (status.nesting == 0)
                return -ENODATA;
        *ret = status;
        return 0;
}

/* Pipes have that flag in another sense, and what is only written to does not change memory. */
static bool reads_direct(int proc_fd, const char *fd) {
        cleanup_free char *path = xasprintf("/proc/self/fd/%d/fdinfo/%s", proc_fd, fd);
        cleanup_free char *text = NULL;
        const char *at;
        uint32_t flags;

        if (read_file(path, FDINFO_MAX_BYTES, &text, NULL) < 0)
                return false; /* closed meanwhile */
        at = line_of(text, "flags:");
        return at && sscanf(at, " %" SCNo32, &flags) == 1 && (flags & O_DIRECT) && (flags & O_ACCMODE) != O_WRONLY;
}

int procs_reads_direct(int proc_fd, char ret_path[PROCS_PATH_BYTES]) {
        cleanup_close int dir_fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct dirent *entry;
        int found = 0;
        DIR *dir;

        if (dir_fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        dir = fdopendir(dir_fd);
        if (!dir)
                return -errno;
        while (!found && (entry = readdir(dir))) {
                ssize_t n = readlinkat(dir_fd, entry->d_name, ret_path, PROCS_PATH_BYTES - 1);

                if (n <= 0 || ret_path[0] != '/')
                        continue;
                ret_path[n] = '\0';
                found = reads_direct(proc_fd, entry->d_name);
        }
        (void) take_fd(&dir_fd);
        (void) closedir(dir);
        return found;
}
