#include "launcher/policy-run/child.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"

struct text {
        int fd;
        char *data;
        size_t used, allocated;
};

/* False: the end. */
static bool read_some(struct text *text) {
        ssize_t n;

        if (text->allocated - text->used < 4096) {
                text->allocated = 2 * text->allocated + 8192;
                text->data = xrealloc(text->data, text->allocated);
        }
        n = read(text->fd, text->data + text->used, text->allocated - text->used - 1);
        if (n < 0 && errno == EINTR)
                return true;
        if (n > 0)
                text->used += (size_t) n;
        text->data[text->used] = '\0';
        return n > 0;
}

/* Reads until both streams have ended; -ETIME when that takes too long. */
static int read_both(struct text *out, struct text *err_text, uint64_t limit_usec) {
        uint64_t deadline = now_usec() + limit_usec;
        struct pollfd fds[2] = { { .fd = out->fd, .events = POLLIN }, { .fd = err_text->fd, .events = POLLIN } };
        struct text *texts[2] = { out, err_text };

        while (fds[0].fd >= 0 || fds[1].fd >= 0) {
                uint64_t now = now_usec();

                if (now >= deadline)
                        return -ETIME;
                if (poll(fds, 2, (int) ((deadline - now) / 1000) + 1) < 0 && errno != EINTR)
                        return -errno;
                for (int i = 0; i < 2; i++)
                        if (fds[i].fd >= 0 && (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) && !read_some(texts[i]))
                                fds[i].fd = -1;
        }
        return 0;
}

static int start(char *const argv[], int input_fd, struct text *out, struct text *err_text, pid_t *ret_pid) {
        int out_pipe[2], err_pipe[2];
        pid_t parent = getpid();
        pid_t pid;

        if (pipe(out_pipe) < 0 || pipe(err_pipe) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent || dup2(input_fd, 0) < 0 || dup2(out_pipe[1], 1) < 0 || dup2(err_pipe[1], 2) < 0)
                        _exit(1);
                for (int i = 0; i < 2; i++) {
                        (void) close(out_pipe[i]);
                        (void) close(err_pipe[i]);
                }
                (void) execv(argv[0], argv);
                (void) fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
                _exit(127);
        }
        (void) close(out_pipe[1]);
        (void) close(err_pipe[1]);
        out->fd = out_pipe[0];
        err_text->fd = err_pipe[0];
        *ret_pid = pid;
        return 0;
}

/* The last line is why it failed; what stands before is for people to see. */
static const char *split_last_line(char *text) {
        char *line;

        for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
                text[n - 1] = '\0';
        line = strrchr(text, '\n');
        if (line) {
                *line++ = '\0';
                (void) fprintf(stderr, "%s\n", text);
        } else
                line = text;
        return strncmp(line, "rm-plugin-host: ", 16) == 0 ? line + 16 : line;
}

static int judge(const char *what, int status, char *said, struct rm_error *err) {
        const char *line;

        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                (void) fputs(said, stderr);
                return 0;
        }
        line = split_last_line(said);
        if (WIFSIGNALED(status))
                return error_set(err, -EPROTO, "%s: crashed (%s)%s%s", what, strsignal(WTERMSIG(status)), line[0] ? ": " : "",
                                 line);
        return error_set(err, -EPROTO, "%s", line[0] ? line : "the policy host failed without a message");
}

int child_run(const char *what, char *const argv[], const char *input, size_t input_bytes, uint64_t limit_usec, char **ret_output,
              struct rm_error *err) {
        cleanup_close int input_fd = memfd_create("snapshot", MFD_CLOEXEC);
        struct text out = { .fd = -1 }, said = { .fd = -1 };
        int r, status = 0;
        pid_t pid = 0;

        if (input_fd < 0)
                return error_sys(err, -errno, "memory for the snapshot");
        r = write_all(input_fd, input, input_bytes);
        if (r == 0 && lseek(input_fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r == 0)
                r = start(argv, input_fd, &out, &said, &pid);
        if (r == 0)
                r = read_both(&out, &said, limit_usec);
        if (pid > 0) {
                if (r < 0)
                        (void) kill(pid, SIGKILL);
                (void) waitpid(pid, &status, 0);
        }
        if (r == -ETIME)
                (void) error_set(err, r, "%s: killed: no answer after %.1f s", what, (double) limit_usec / 1e6);
        else if (r < 0)
                (void) error_sys(err, r, "running %s", argv[0]);
        else
                r = judge(what, status, said.data, err);
        if (out.fd >= 0)
                (void) close(out.fd);
        if (said.fd >= 0)
                (void) close(said.fd);
        free(said.data);
        if (r < 0)
                free(out.data);
        else
                *ret_output = out.data;
        return r;
}
