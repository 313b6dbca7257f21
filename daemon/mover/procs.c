#include "daemon/mover/procs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define LIST_MAX_BYTES (1U << 20)
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
