#include "mover_pair.h"

#include <endian.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/mover.h"
#include "daemon/transfer/mover.h"

#define RECEIVE_MSEC 60000

/* Prints the cost of each side, for the bench. */
static void cpu_print(int side) {
        struct rusage u;

        if (!getenv("RM_TEST_CPU") || getrusage(RUSAGE_SELF, &u) < 0)
                return;
        (void) fprintf(stderr, "%s: user %ld ms, system %ld ms, peak %ld KiB, switches %ld + %ld\n",
                       side == PAIR_SEND ? "send" : "receive", u.ru_utime.tv_sec * 1000 + u.ru_utime.tv_usec / 1000,
                       u.ru_stime.tv_sec * 1000 + u.ru_stime.tv_usec / 1000, u.ru_maxrss, u.ru_nvcsw, u.ru_nivcsw);
}

static int child_main(int side, int (*role)(struct control *control), int fd, const char *environment) {
        struct control control;
        int r;

        if (environment)
                (void) putenv(xstrdup(environment));
        (void) signal(SIGPIPE, SIG_IGN);
        log_setup(side == PAIR_SEND ? "send" : "receive", getenv("RM_TEST_VERBOSE") ? LOG_DEBUG : LOG_CRIT);
        control_init(&control, fd);
        r = role(&control);
        control_finish(&control);
        cpu_print(side);
        return r < 0 ? 1 : 0;
}

void pair_start(struct pair *p, const char *environment) {
        pair_start_as(p, mover_send, false, environment);
}

void pair_start_as(struct pair *p, int (*role)(struct control *control), bool alone, const char *environment) {
        int sockets[2][2];

        p->pids[1] = 0;
        p->fds[1] = -1;
        for (int i = 0; i < 2; i++)
                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[i]) < 0)
                        abort();
        for (int i = 0; i < (alone ? 1 : 2); i++) {
                p->pids[i] = fork();
                if (p->pids[i] < 0)
                        abort();
                if (p->pids[i] == 0) {
                        (void) close(sockets[0][0]);
                        (void) close(sockets[1][0]);
                        (void) close(sockets[1 - i][1]);
                        _exit(child_main(i, i == PAIR_SEND ? role : mover_receive, sockets[i][1], environment));
                }
        }
        for (int i = 0; i < 2; i++) {
                (void) close(sockets[i][1]);
                if (p->pids[i] > 0)
                        p->fds[i] = sockets[i][0];
                else
                        (void) close(sockets[i][0]);
        }
}

void pair_finish(struct pair *p, int ret_codes[2]) {
        for (int i = 0; i < 2; i++) {
                int status = 0;

                ret_codes[i] = 0;
                if (p->fds[i] < 0)
                        continue;
                (void) close(p->fds[i]);
                (void) waitpid(p->pids[i], &status, 0);
                ret_codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
}

void pair_say(struct pair *p, int side, const Rm__MoverCommand *command) {
        (void) frame_send(p->fds[side], FRAME_MAGIC_MOVER, &command->base);
}

Rm__MoverEvent *pair_receive(struct pair *p, int side) {
        for (;;) {
                struct pollfd f = { .fd = p->fds[side], .events = POLLIN };
                ProtobufCMessage *message = NULL;
                Rm__MoverEvent *event;

                if (poll(&f, 1, RECEIVE_MSEC) <= 0)
                        return NULL;
                if (frame_receive(p->fds[side], FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_event__descriptor, &message) <
                    0)
                        return NULL;
                event = (Rm__MoverEvent *) message;
                if (event->body_case != RM__MOVER_EVENT__BODY_PROGRESS)
                        return event;
                rm__mover_event__free_unpacked(event, NULL);
        }
}

Rm__MoverEvent *pair_expect(struct pair *p, int side, Rm__MoverEvent__BodyCase kind) {
        for (;;) {
                Rm__MoverEvent *event = pair_receive(p, side);

                if (!event || event->body_case == kind)
                        return event;
                if (event->body_case == RM__MOVER_EVENT__BODY_FAILED) {
                        if (!getenv("RM_TEST_QUIET"))
                                (void) fprintf(stderr, "side %d failed: %s\n", side, event->failed->text);
                        rm__mover_event__free_unpacked(event, NULL);
                        return NULL;
                }
                rm__mover_event__free_unpacked(event, NULL);
        }
}

void pair_say_start(struct pair *p) {
        Rm__MoverStart start = RM__MOVER_START__INIT;

        pair_say(p, PAIR_SEND, &MOVER_COMMAND(&start));
}

void pair_say_abort(struct pair *p, int side, const char *reason) {
        Rm__MoverAbort m = RM__MOVER_ABORT__INIT;

        m.reason = (char *) reason;
        pair_say(p, side, &MOVER_COMMAND(&m));
}

int fake_criu_connect(const char *images_dir) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/streamer-capture.sock", images_dir);
        if (fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0) {
                (void) close(fd);
                return -1;
        }
        return fd;
}

int fake_criu_open(int sock, const char *name) {
        Rm__CriuStreamRequest request = RM__CRIU_STREAM_REQUEST__INIT;
        uint8_t data[512];
        uint32_t size;
        char byte = 0;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        union {
                struct cmsghdr align;
                char space[CMSG_SPACE(sizeof(int))];
        } buffer = { 0 };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buffer.space, .msg_controllen = sizeof(buffer.space)
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        int fds[2];

        request.filename = (char *) name;
        if (rm__criu_stream_request__get_packed_size(&request) > sizeof(data) - 4 || pipe(fds) < 0)
                return -1;
        size = (uint32_t) rm__criu_stream_request__pack(&request, data + 4);
        size = htole32(size);
        memcpy(data, &size, 4);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fds[0], sizeof(int));
        if (write_all(sock, data, le32toh(size) + 4) < 0 || sendmsg(sock, &message, MSG_NOSIGNAL) != 1) {
                (void) close(fds[0]);
                (void) close(fds[1]);
                return -1;
        }
        (void) close(fds[0]);
        return fds[1];
}
