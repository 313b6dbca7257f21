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

#include "common/openat.h"
#include "common/proc_count.h"
#include "common/util.h"

#define LIST_MAX_BYTES (1U << 20)
#define FDINFO_MAX_BYTES (1U << 20) /* locks may be many */
#define MOUNTS_MAX_BYTES (4U << 20)
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
        /* The name of the program, which comes before, has no newline in it: the kernel escapes
         * that. */
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

/* File systems on which a read may write into the memory that it has looked up when the answer
 * comes, whatever the flags of the file: with FUSE its server says so. The kernel has more names
 * that begin like these, as fuse.sshfs. */
static bool is_direct_type(const char *type) {
        static const char *const types[] = { "fuse", "virtiofs", "9p", "cifs", "smb3" };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (strncmp(type, types[i], strlen(types[i])) == 0)
                        return true;
        return false;
}

/* `mounts`: as in mountinfo. What is not there, as memfd_create(2) makes it, is of the kernel
 * itself. */
static bool mount_is_direct(const char *mounts, long id) {
        for (const char *at = mounts, *end; *at; at = *end ? end + 1 : end) {
                const char *type = strstr(at, " - ");

                end = strchrnul(at, '\n');
                if (strtol(at, NULL, 10) == id)
                        return type && type < end && is_direct_type(type + strlen(" - "));
        }
        return false;
}

/* The file system is not looked up by statfs(2), which waits for a server that does not answer. */
static bool file_is_direct(int proc_fd, char **mounts, const char *info) {
        cleanup_free char *path = xasprintf("/proc/self/fd/%d/mountinfo", proc_fd);
        const char *at = line_of(info, "mnt_id:");

        if (!*mounts && read_file(path, MOUNTS_MAX_BYTES, mounts, NULL) < 0)
                return false; /* it has ended */
        return at && mount_is_direct(*mounts, strtol(at, NULL, 10));
}

/* Pipes have that flag in another sense, and what is only written to, or is a directory, does
 * not change memory in this way. */
static enum procs_direct reads_direct(int proc_fd, char **mounts, const char *fd) {
        cleanup_free char *path = xasprintf("/proc/self/fd/%d/fdinfo/%s", proc_fd, fd);
        cleanup_free char *text = NULL;
        const char *at;
        uint32_t flags;

        if (read_file(path, FDINFO_MAX_BYTES, &text, NULL) < 0)
                return PROCS_DIRECT_NONE; /* closed meanwhile */
        at = line_of(text, "flags:");
        if (!at || sscanf(at, " %" SCNo32, &flags) != 1 || (flags & O_ACCMODE) == O_WRONLY || (flags & (O_DIRECTORY | O_PATH)))
                return PROCS_DIRECT_NONE;
        if (flags & O_DIRECT)
                return PROCS_DIRECT_FLAG;
        return file_is_direct(proc_fd, mounts, text) ? PROCS_DIRECT_TYPE : PROCS_DIRECT_NONE;
}

int procs_reads_direct(int proc_fd, struct procs_budget *budget, char ret_path[PROCS_PATH_BYTES]) {
        cleanup_dir DIR *dir = opendir_at(proc_fd, "fd");
        size_t descriptors = proc_count_descriptors(proc_fd, ".", PROC_DESCRIPTORS_MAX);
        cleanup_free char *mounts = NULL; /* read for the first file that needs it */
        int found = PROCS_DIRECT_NONE;
        uint64_t begin_usec = thread_cpu_usec(), used_usec = 0;
        const char *number;

        if (!dir)
                return errno == ENOENT ? -ESRCH : -errno;
        if (descriptors > PROC_DESCRIPTORS_MAX || descriptors > budget->descriptors)
                return -E2BIG;
        while (found == PROCS_DIRECT_NONE && (number = next_number(dir))) {
                ssize_t n = readlinkat(dirfd(dir), number, ret_path, PROCS_PATH_BYTES - 1);

                if (n <= 0)
                        continue;
                /* The budget is checked for each descriptor: others may be opened meanwhile, and
                 * one that has many locks takes long. */
                used_usec = thread_cpu_usec() - begin_usec;
                if (budget->descriptors == 0 || used_usec > budget->cpu_usec) {
                        found = -E2BIG;
                        break;
                }
                budget->descriptors--;
                ret_path[n] = '\0';
                if (ret_path[0] == '/')
                        found = (int) reads_direct(proc_fd, &mounts, number);
        }
        used_usec = thread_cpu_usec() - begin_usec;
        budget->cpu_usec -= used_usec < budget->cpu_usec ? used_usec : budget->cpu_usec;
        return found;
}
