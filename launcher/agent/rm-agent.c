/*
 * rm-agent: what mpirun starts instead of ssh, as "rm-agent HOST COMMAND...".
 *
 * It is dumped and restored with the capsule it runs in, so it must hold nothing that reaches
 * outside, no socket above all: it leaves a request in a directory that the capsule's PID 1
 * watches, and waits on a FIFO for the exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/capsule/agent_request.h"

enum { EXIT_TROUBLE = 255, PATH_BYTES = 128 }; /* what ssh says when it fails itself */

struct files {
        char status[PATH_BYTES];
        char temporary[PATH_BYTES];
        char request[PATH_BYTES];
        char done[PATH_BYTES];
};

static void remove_files(const struct files *files) {
        (void) unlink(files->temporary);
        (void) unlink(files->request);
        (void) unlink(files->done);
        (void) unlink(files->status);
}

static void name_files(struct files *files) {
        struct timespec now;
        long number;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        number = now.tv_nsec;
        snprintf(files->status, PATH_BYTES, "%s/%d-%ld.status", AGENT_DIR, (int) getpid(), number);
        snprintf(files->temporary, PATH_BYTES, "%s/%d-%ld.tmp", AGENT_DIR, (int) getpid(), number);
        snprintf(files->request, PATH_BYTES, "%s/%d-%ld.req", AGENT_DIR, (int) getpid(), number);
        snprintf(files->done, PATH_BYTES, "%s/%d-%ld.done", AGENT_DIR, (int) getpid(), number);
}

/* The request is built as ssh does it: the words of the command joined by blanks are a line for the
 * remote shell. */
static size_t build_request(char *text, size_t size, const char *host, char **words) {
        size_t used = 0;

        for (int i = 0; i < 2; i++) {
                const char *s = i == 0 ? AGENT_REQUEST_MAGIC : host;
                size_t length = strlen(s) + 1;

                if (used + length > size)
                        return 0;
                memcpy(text + used, s, length);
                used += length;
        }
        for (char **w = words; *w; w++) {
                size_t length = strlen(*w);

                if (used + length + 1 > size)
                        return 0;
                memcpy(text + used, *w, length);
                used += length;
                text[used++] = w[1] ? ' ' : '\0';
        }
        return used;
}

static int write_request(const struct files *files, const char *text, size_t size) {
        int fd = open(files->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        ssize_t n;

        if (fd < 0)
                return -1;
        n = write(fd, text, size);
        if (close(fd) < 0 || n != (ssize_t) size)
                return -1;
        return rename(files->temporary, files->request);
}

/* Tells PID 1 to look. A FIFO that is full has told it already. */
static int wake(void) {
        int fd = open(AGENT_WAKE, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : write(fd, "", 1);

        if (n < 0 && fd >= 0 && errno == EAGAIN)
                n = 1;
        if (fd >= 0)
                (void) close(fd);
        return n < 0 ? -1 : 0;
}

static volatile sig_atomic_t ended_by;

static void on_end(int signo) {
        ended_by = signo;
}

/* Blocks the signals that end the agent. They are let in only inside ppoll(), so none falls between
 * looking at `ended_by` and waiting. */
static void block_ends(sigset_t *ret_outside) {
        static const int ends[] = { SIGHUP, SIGINT, SIGTERM, SIGQUIT };
        struct sigaction action = { .sa_handler = on_end };
        sigset_t set;

        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                sigaddset(&set, ends[i]);
                (void) sigaction(ends[i], &action, NULL);
        }
        (void) sigprocmask(SIG_BLOCK, &set, ret_outside);
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
                sigdelset(ret_outside, ends[i]);
}

/* The exit status, or negative: the signal. */
static int wait_status(const struct files *files, int fd, const sigset_t *outside) {
        char text[8] = "";
        size_t used = 0;

        while (!ended_by) {
                const struct timespec scan = { .tv_sec = 5 };
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                int r = ppoll(&poll_fd, 1, &scan, outside);
                ssize_t n = r > 0 ? read(fd, text + used, sizeof(text) - 1 - used) : 0;

                if (n > 0)
                        used += (size_t) n;
                text[used] = '\0';
                if (strchr(text, '\n'))
                        return atoi(text) & 0xff;
                if (used == sizeof(text) - 1)
                        return EXIT_TROUBLE;
                if (r == 0 && access(files->status, F_OK) < 0 && errno == ENOENT) {
                        fprintf(stderr, "rm-agent: rmd has refused the request; its log says why\n");
                        return EXIT_TROUBLE;
                }
        }
        return -ended_by;
}

static int open_status(const struct files *files) {
        if (mkfifo(files->status, 0600) < 0)
                return -1;
        /* The FIFO is open for both directions: it never reports an end, whichever process comes
         * and goes at the other one. */
        return open(files->status, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static int die_of(int signo) {
        sigset_t none;

        (void) signal(signo, SIG_DFL);
        sigemptyset(&none);
        (void) raise(signo);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        return 128 + signo;
}

int main(int argc, char **argv) {
        static char text[AGENT_REQUEST_MAX];
        struct files files;
        sigset_t outside;
        size_t size;
        int status;
        int fd;

        (void) setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* each line is one write(2): ranks and daemons of the job write there, too */
        if (argc < 3) {
                fprintf(stderr, "usage: rm-agent HOST COMMAND...  (mpirun calls it; there is no use of it by hand)\n");
                return EXIT_TROUBLE;
        }
        size = build_request(text, sizeof(text), argv[1], argv + 2);
        if (size == 0) {
                fprintf(stderr, "rm-agent: %s: the command is longer than %d bytes\n", argv[1], AGENT_REQUEST_MAX);
                return EXIT_TROUBLE;
        }
        name_files(&files);
        block_ends(&outside);
        fd = open_status(&files);
        if (fd < 0 || write_request(&files, text, size) < 0 || wake() < 0) {
                fprintf(stderr, "rm-agent: %s: cannot ask rmd in %s: %s%s\n", argv[1], AGENT_DIR, strerror(errno),
                        errno == ENOENT ? " (it works only in a job started by rm-mpirun)" : "");
                remove_files(&files);
                return EXIT_TROUBLE;
        }
        status = wait_status(&files, fd, &outside);
        remove_files(&files);
        return status >= 0 ? status : die_of(-status);
}
