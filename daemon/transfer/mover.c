#include "daemon/transfer/mover.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/state/state.h"
#include "daemon/wire/conn.h"

#define MOVER_FD 3

struct mover {
        struct event_base *base;
        struct conn *conn; /* NULL: it was stopped, or has gone */
        pid_t pid;
        int pidfd;          /* of one that was stopped */
        struct event *gone; /* likewise */
        struct remover *remover; /* likewise */
        char *aside;        /* likewise: what it leaves */
        Rm__MoverCommand *first;
        const struct mover_ops *ops;
        void *userdata;
};

static void reap(pid_t pid) {
        (void) kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

static void on_ready(struct conn *conn, void *userdata) {
        struct mover *mover = userdata;

        (void) conn_send(conn, &mover->first->base);
}

static void on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        struct mover *mover = userdata;

        mover->ops->on_event(mover->userdata, (const Rm__MoverEvent *) message);
}

static void on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        struct mover *mover = userdata;

        mover->conn = NULL;
        mover->ops->on_gone(mover->userdata);
}

static const struct conn_ops conn_ops = { .on_ready = on_ready, .on_message = on_message, .on_close = on_close };

static void run_mover(int fd, const char *role) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) write_text("/proc/self/oom_score_adj", "0"); /* a move may be tried again; rmd's own is not for what buffers */
        if (fd != MOVER_FD && dup2(fd, MOVER_FD) < 0)
                _exit(126);
        (void) set_cloexec(MOVER_FD, false);
        (void) execl(MOVER_PROGRAM, "rm-mover", role, (char *) NULL);
        _exit(127);
}

int mover_start(struct rmd *rmd, const char *role, const Rm__MoverCommand *first, const struct mover_ops *ops, void *userdata,
                struct mover **ret, struct rm_error *err) {
        struct conn_config config = {
                .magic = FRAME_MAGIC_MOVER,
                .max_bytes = FRAME_MAX_MOVER_BYTES,
                .type = &rm__mover_event__descriptor,
                .name = "rm-mover",
                .trust_usec = UINT64_MAX,
        };
        struct mover *mover;
        int fds[2];
        pid_t pid;
        int r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return error_sys(err, -errno, "starting rm-mover");
        pid = fork();
        if (pid == 0)
                run_mover(fds[1], role);
        (void) close(fds[1]);
        if (pid < 0) {
                r = -errno;
                (void) close(fds[0]);
                return error_sys(err, r, "starting rm-mover");
        }
        (void) set_nonblock(fds[0], true);
        mover = xcalloc(1, sizeof(*mover));
        *mover = (struct mover) { .base = rmd->base, .pid = pid, .pidfd = -1, .ops = ops, .userdata = userdata };
        r = conn_create(rmd->base, fds[0], &config, &conn_ops, mover, &mover->conn);
        if (r < 0) {
                reap(pid);
                free(mover);
                return error_sys(err, r, "starting rm-mover");
        }
        mover->first = (Rm__MoverCommand *) message_copy(&first->base);
        *ret = mover;
        return 0;
}

int mover_command(struct mover *mover, const Rm__MoverCommand *command) {
        return mover->conn ? conn_send(mover->conn, &command->base) : -ENOTCONN;
}

static void mover_free(struct mover *mover) {
        reap(mover->pid);
        remover_add(mover->remover, mover->aside);
        if (mover->gone)
                event_free(mover->gone);
        if (mover->pidfd >= 0)
                (void) close(mover->pidfd);
        free(mover);
}

static void on_gone(evutil_socket_t fd, short what, void *arg) {
        mover_free(arg);
}

void mover_leave(struct mover *mover) {
        if (!mover)
                return;
        conn_destroy(take_ptr(mover->conn));
        rm__mover_command__free_unpacked(take_ptr(mover->first), NULL);
        free(mover);
}

void mover_stop(struct mover *mover, struct remover *remover, const char *dir) {
        char *aside = remover_set_aside(remover, dir);

        if (!mover) {
                remover_add(remover, aside);
                return;
        }
        conn_destroy(take_ptr(mover->conn));
        rm__mover_command__free_unpacked(take_ptr(mover->first), NULL);
        mover->remover = remover;
        mover->aside = aside;
        (void) kill(mover->pid, SIGKILL);
        mover->pidfd = pidfd_open(mover->pid, 0);
        mover->gone = mover->pidfd >= 0 ? event_new(mover->base, mover->pidfd, EV_READ, on_gone, mover) : NULL;
        if (!mover->gone || event_add(mover->gone, NULL) < 0)
                mover_free(mover); /* and waits */
}
