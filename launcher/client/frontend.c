#include "launcher/client/frontend.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/util.h"
#include "launcher/client/client.h"
#include "launcher/client/wire.h"

/* A pipe that polls writable takes this much without blocking. Standard output is shared with
 * others, so it is not ours to make non-blocking. */
#define WRITE_CHUNK_BYTES 4096U
/* No more is taken from rmd while so much waits for a slow reader. */
#define OUTPUT_HIGH_BYTES (1U << 20)
#define CONNECT_EVERY_USEC 100000U
/* A disk that is full may have space again. */
#define WRITE_EVERY_USEC 1000000U
/* A terminal may come to the foreground without a signal. */
#define FOREGROUND_EVERY_USEC 500000U
/* A head that is frozen for a move or a checkpoint takes SIGTSTP afterwards. Who presses Ctrl-Z
 * does not wait for longer. */
#define STOP_USEC 5000000U

struct frontend {
        sigset_t forwarded;
        sigset_t before;    /* the mask as we found it */
        int signal_fd;      /* -1: signals are not ours */
        int end_fd;         /* of those that end us while there is no job yet; -1 likewise */
        int socket_fd;      /* -1: not connected */
        uint64_t connect_at_usec;
        struct buffer in;
        struct attachment *attachment;
        uint64_t write_at_usec[2]; /* not before, to a disk that was full */
        uint64_t stop_at_usec; /* we stop then, or when the job has got SIGTSTP; ATTACHMENT_NEVER_USEC */
        bool input_is_tty;
        bool input_open;
};

/* The signals that plain mpirun passes on or acts on. */
static const int forwarded_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGALRM };

static bool is_end(int signo) {
        return signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
}

int frontend_create(bool signals, struct frontend **ret_frontend, struct rm_error *err) {
        struct frontend *f = xcalloc(1, sizeof(*f));
        sigset_t ends;

        (void) sigemptyset(&ends);
        f->signal_fd = f->end_fd = -1;
        f->socket_fd = -1;
        /* Writing to a reader that has gone is an error to look at, not our end. */
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN);
        (void) sigprocmask(SIG_SETMASK, NULL, &f->before);
        (void) sigemptyset(&f->forwarded);
        for (size_t i = 0; signals && i < ARRAY_SIZE(forwarded_signals); i++) {
                struct sigaction action;

                /* nohup and background jobs of a script have their reasons. */
                if (sigaction(forwarded_signals[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN)
                        continue;
                (void) sigaddset(&f->forwarded, forwarded_signals[i]);
                if (is_end(forwarded_signals[i]))
                        (void) sigaddset(&ends, forwarded_signals[i]);
        }
        if (signals) {
                (void) sigprocmask(SIG_BLOCK, &f->forwarded, NULL);
                f->signal_fd = signalfd(-1, &f->forwarded, SFD_CLOEXEC | SFD_NONBLOCK);
                f->end_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
                if (f->signal_fd < 0 || f->end_fd < 0) {
                        int r = error_sys(err, -errno, "cannot watch for signals");

                        frontend_destroy(f);
                        return r;
                }
        }
        *ret_frontend = f;
        return 0;
}

void frontend_destroy(struct frontend *f) {
        if (!f)
                return;
        cleanup_close_fd(&f->signal_fd);
        cleanup_close_fd(&f->end_fd);
        cleanup_close_fd(&f->socket_fd);
        buffer_finish(&f->in);
        attachment_destroy(f->attachment);
        (void) sigprocmask(SIG_SETMASK, &f->before, NULL);
        free(f);
}

int frontend_end_fd(const struct frontend *f) {
        return f->end_fd;
}

bool frontend_has_input(void) {
        struct stat st;
        int flags = fcntl(STDIN_FILENO, F_GETFL);

        if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(STDIN_FILENO, &st) < 0 || S_ISDIR(st.st_mode))
                return false;
        return !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

/* ---- connection ---- */

static void connect_again(struct frontend *f) {
        int fd = -1;

        if (now_usec() < f->connect_at_usec)
                return;
        f->connect_at_usec = now_usec() + CONNECT_EVERY_USEC;
        if (client_connect(&fd, NULL) < 0) {
                attachment_lost(f->attachment, now_usec());
                return;
        }
        f->socket_fd = fd;
        attachment_connected(f->attachment, now_usec());
}

static void disconnect(struct frontend *f) {
        cleanup_close_fd(&f->socket_fd);
        buffer_finish(&f->in);
        attachment_lost(f->attachment, now_usec());
}

static bool is_try_again(int code) {
        return code == EAGAIN || code == EINTR;
}

static void send_requests(struct frontend *f) {
        struct buffer *requests = attachment_requests(f->attachment);

        while (f->socket_fd >= 0 && requests->used > 0) {
                ssize_t n = send(f->socket_fd, buffer_data(requests), requests->used, MSG_NOSIGNAL);

                if (n >= 0) {
                        buffer_drop(requests, (size_t) n);
                } else {
                        if (!is_try_again(errno))
                                disconnect(f);
                        return;
                }
        }
}

static void receive_replies(struct frontend *f) {
        uint8_t chunk[65536];
        ssize_t n = recv(f->socket_fd, chunk, sizeof(chunk), 0);
        Rm__LocalReply *reply = NULL;
        int r;

        if (n <= 0) {
                if (n == 0 || !is_try_again(errno))
                        disconnect(f);
                return;
        }
        buffer_add(&f->in, chunk, (size_t) n);
        while ((r = wire_next(&f->in, &reply)) > 0) {
                attachment_reply(f->attachment, reply, now_usec());
                rm__local_reply__free_unpacked(reply, NULL);
        }
        /* A reply that cannot be read has the effect of a lost connection: the next one starts from
         * known offsets. */
        if (r < 0)
                disconnect(f);
}

/* ---- standard streams ---- */

static void write_output(struct frontend *f, unsigned stream) {
        struct buffer *b = attachment_output(f->attachment, stream);
        size_t n = b->used < WRITE_CHUNK_BYTES ? b->used : WRITE_CHUNK_BYTES;
        ssize_t written = write(stream == 1 ? STDOUT_FILENO : STDERR_FILENO, buffer_data(b), n);

        if (written >= 0)
                buffer_drop(b, (size_t) written);
        else if (errno == EPIPE)
                attachment_output_unread(f->attachment, stream);
        else if (!is_try_again(errno) && attachment_output_failed(f->attachment, stream, errno))
                f->write_at_usec[stream - 1] = now_usec() + WRITE_EVERY_USEC;
}

static void read_input(struct frontend *f) {
        uint8_t chunk[65536];
        size_t space = attachment_input_space(f->attachment);
        ssize_t n = read(STDIN_FILENO, chunk, space < sizeof(chunk) ? space : sizeof(chunk));

        if (n > 0) {
                attachment_input(f->attachment, chunk, (size_t) n);
        } else if (n == 0 || !is_try_again(errno)) {
                attachment_input_eof(f->attachment);
                f->input_open = false;
        }
}

/* Reading a terminal from the background would stop us. */
static bool input_is_ours(const struct frontend *f) {
        pid_t foreground = f->input_is_tty ? tcgetpgrp(STDIN_FILENO) : -1;

        return foreground < 0 || foreground == getpgrp();
}

/* ---- signals ---- */

/* The job is told to stop; then we stop as the shell expects, and both go on with SIGCONT. */
static void stop_here(struct frontend *f) {
        if (f->stop_at_usec == ATTACHMENT_NEVER_USEC || (attachment_stop_waits(f->attachment) && now_usec() < f->stop_at_usec))
                return;
        f->stop_at_usec = ATTACHMENT_NEVER_USEC;
        (void) raise(SIGSTOP);
}

static void take_signals(struct frontend *f) {
        struct signalfd_siginfo info;

        while (read(f->signal_fd, &info, sizeof(info)) == (ssize_t) sizeof(info)) {
                int code;

                /* The job is done, and only a slow reader has not taken the rest. */
                if (attachment_done(f->attachment, &code) && (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM)) {
                        attachment_output_closed(f->attachment, 1);
                        attachment_output_closed(f->attachment, 2);
                }
                attachment_signal(f->attachment, (int) info.ssi_signo, now_usec());
                if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGCONT)
                        f->stop_at_usec = info.ssi_signo == SIGTSTP ? now_usec() + STOP_USEC : ATTACHMENT_NEVER_USEC;
        }
}

/* ---- loop ---- */

enum { WATCH_SOCKET, WATCH_SIGNAL, WATCH_IN, WATCH_OUT, WATCH_ERR, WATCH_COUNT };

static int poll_timeout_ms(struct frontend *f, bool recheck_input) {
        uint64_t due = attachment_due_usec(f->attachment);
        uint64_t now = now_usec();

        if (attachment_wants_connection(f->attachment) && f->connect_at_usec < due)
                due = f->connect_at_usec;
        if (f->stop_at_usec < due)
                due = f->stop_at_usec;
        if (recheck_input && now + FOREGROUND_EVERY_USEC < due)
                due = now + FOREGROUND_EVERY_USEC;
        for (size_t i = 0; i < 2; i++)
                if (f->write_at_usec[i] > now && f->write_at_usec[i] < due)
                        due = f->write_at_usec[i];
        if (due == ATTACHMENT_NEVER_USEC)
                return -1;
        if (due <= now)
                return 0;
        due = (due - now + 999) / 1000;
        return due > 60000 ? 60000 : (int) due;
}

static void wait_for_events(struct frontend *f, struct pollfd p[static WATCH_COUNT], bool done) {
        struct buffer *out = attachment_output(f->attachment, 1);
        struct buffer *err = attachment_output(f->attachment, 2);
        bool slow = out->used > OUTPUT_HIGH_BYTES || err->used > OUTPUT_HIGH_BYTES;
        bool want_input = f->input_open && !done && attachment_input_space(f->attachment) > 0;
        bool ours = want_input && input_is_ours(f);

        for (size_t i = 0; i < WATCH_COUNT; i++)
                p[i] = (struct pollfd) { .fd = -1 };
        if (f->socket_fd >= 0 && !done) {
                p[WATCH_SOCKET].events =
                        (short) ((slow ? 0 : POLLIN) | (attachment_requests(f->attachment)->used > 0 ? POLLOUT : 0));
                if (p[WATCH_SOCKET].events)
                        p[WATCH_SOCKET].fd = f->socket_fd;
        }
        p[WATCH_SIGNAL] = (struct pollfd) { .fd = f->signal_fd, .events = POLLIN };
        if (ours)
                p[WATCH_IN] = (struct pollfd) { .fd = STDIN_FILENO, .events = POLLIN };
        if (out->used > 0 && (done || now_usec() >= f->write_at_usec[0]))
                p[WATCH_OUT] = (struct pollfd) { .fd = STDOUT_FILENO, .events = POLLOUT };
        if (err->used > 0 && (done || now_usec() >= f->write_at_usec[1]))
                p[WATCH_ERR] = (struct pollfd) { .fd = STDERR_FILENO, .events = POLLOUT };
        if (poll(p, WATCH_COUNT, poll_timeout_ms(f, want_input && !ours)) < 0)
                for (size_t i = 0; i < WATCH_COUNT; i++)
                        p[i].revents = 0;
}

static void handle_events(struct frontend *f, const struct pollfd p[static WATCH_COUNT]) {
        if (p[WATCH_SIGNAL].revents)
                take_signals(f);
        if (p[WATCH_OUT].revents)
                write_output(f, 1);
        if (p[WATCH_ERR].revents)
                write_output(f, 2);
        if (p[WATCH_IN].revents)
                read_input(f);
        if (p[WATCH_SOCKET].revents & (POLLIN | POLLHUP | POLLERR))
                receive_replies(f);
        if (attachment_requests(f->attachment)->used > 0)
                send_requests(f);
}

static const char *temporary_directory(void) {
        const char *directory = getenv("TMPDIR");

        return directory && *directory ? directory : "/tmp";
}

int frontend_run(struct frontend *f, const struct attachment_config *requested) {
        struct attachment_config config = *requested;
        int code = 0;

        config.real_usec = now_real_usec();
        config.temporary_directory = temporary_directory();
        f->attachment = attachment_create(&config, now_usec());
        f->input_open = config.input;
        f->input_is_tty = isatty(STDIN_FILENO) == 1;
        f->connect_at_usec = 0;
        f->stop_at_usec = ATTACHMENT_NEVER_USEC;
        for (;;) {
                struct pollfd p[WATCH_COUNT];
                bool done = attachment_done(f->attachment, &code);

                if (done && attachment_output(f->attachment, 1)->used == 0 && attachment_output(f->attachment, 2)->used == 0)
                        return code;
                if (attachment_wants_connection(f->attachment) && f->socket_fd < 0)
                        connect_again(f);
                attachment_tick(f->attachment, now_usec());
                wait_for_events(f, p, done);
                handle_events(f, p);
                stop_here(f);
        }
}
