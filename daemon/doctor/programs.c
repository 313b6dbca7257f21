#include "daemon/doctor/programs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/util.h"

/* "ldconfig -p" of a machine with everything has 300 KiB. */
#define OUTPUT_MAX_BYTES (1U << 20)

/* To its end, so that the program does not hang in a full pipe; what is too much is lost. */
static char *read_output(int fd) {
        char *output = xcalloc(1, OUTPUT_MAX_BYTES + 1);
        char rest[4096];
        size_t used = 0;
        ssize_t n;

        for (;;) {
                bool fits = used < OUTPUT_MAX_BYTES;

                n = read(fd, fits ? output + used : rest, fits ? OUTPUT_MAX_BYTES - used : sizeof(rest));
                if (n > 0 && fits)
                        used += (size_t) n;
                else if (n == 0 || (n < 0 && errno != EINTR))
                        return output;
        }
}

int program_run(const char *program, char *const *argv, char **ret_output, struct rm_error *err) {
        char *const environment[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "LC_ALL=C.UTF-8", (char *) "HOME=/",
                                      NULL };
        struct child_spec child = { .program = program, .argv = argv, .environment = environment, .streams = { -1, -1, -1 } };
        cleanup_free char *output = NULL;
        cleanup_close int pidfd = -1;
        int fds[2], r, status = 0;
        pid_t pid;

        *ret_output = NULL;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return error_sys(err, -errno, "cannot run %s", program);
        child.streams[STDOUT_FILENO] = child.streams[STDERR_FILENO] = fds[1];
        r = child_start(&child, &pid, &pidfd);
        (void) close(fds[1]);
        if (r == 0)
                output = read_output(fds[0]);
        (void) close(fds[0]);
        if (r < 0)
                return error_sys(err, r, "cannot run %s", program);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return error_sys(err, -errno, "cannot wait for %s", program);
        *ret_output = take_ptr(output);
        if (WIFSIGNALED(status))
                return error_set(err, -EPROTO, "%s was killed by signal %d", program, WTERMSIG(status));
        return WEXITSTATUS(status) == 0 ? 0 : error_set(err, -EPROTO, "%s ended with %d", program, WEXITSTATUS(status));
}
