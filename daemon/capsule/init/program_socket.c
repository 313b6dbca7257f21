#include "daemon/capsule/init/program_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/error.h"
#include "common/program_socket.h"
#include "common/util.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/ranks/announce.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/rank_message.h"
#include "daemon/capsule/init/ranks/rank_watch.h"
#include "daemon/capsule/init/ranks/ranks.h"

#define REPORT_USEC UINT64_C(1000000)
/* A change that matters for the next move or checkpoint waits no longer; nor does rmd hear more
 * often than that from ranks that change their minds all the time. */
#define NEWS_USEC UINT64_C(100000)

/* Each rank sends two a second. More than this in a second are left in the queue, for whom they
 * cost time. */
enum { MESSAGES_PER_REPORT = 4 * RANKS_MAX };

struct program_socket {
        struct init *init;
        struct source source;
        struct ranks *ranks;
        uint64_t deadline; /* UINT64_MAX: nothing new since rmd was told */
        uint64_t reported_usec;
        uint64_t full_usec; /* when MESSAGES_PER_REPORT more may be taken */
        unsigned taken;
        bool reported; /* rmd, of something that is known */
};

static void report_by(struct program_socket *program_socket, uint64_t usec) {
        if (usec < program_socket->deadline)
                program_socket->deadline = usec;
}

static void report_soon(struct program_socket *program_socket) {
        uint64_t now = now_usec();

        report_by(program_socket, now + REPORT_USEC);
        if (ranks_take_news(program_socket->ranks))
                report_by(program_socket,
                          program_socket->reported_usec + NEWS_USEC > now ? program_socket->reported_usec + NEWS_USEC : now);
}

/* `pid` has sent it. A message that means nothing is the program's affair. */
static void take_request(struct program_socket *program_socket, const void *data, size_t size, pid_t pid) {
        Program__Request *request;

        switch (rank_message_read(data, size, &request)) {
        case RANK_MESSAGE_NONE:
                return;
        case RANK_MESSAGE_STATE:
                (void) ranks_take(program_socket->ranks, request, now_usec());
                break;
        case RANK_MESSAGE_RESIZE:
                if (request->resize->step == PROGRAM__RESIZE__STEP__PARKED)
                        ranks_rest(program_socket->ranks, request->resize->rank);
                park_receive(program_socket->init->park, request->resize);
                break;
        case RANK_MESSAGE_LOSS:
                rank_watch_receive(program_socket->init->rank_watch, pid, request->loss);
                break;
        }
        program__request__free_unpacked(request, NULL);
}

/* Returns the process that has sent the message, as the kernel says, with its number in the
 * capsule; 0: not known. */
static pid_t sender(struct msghdr *message) {
        struct ucred credentials;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS || c->cmsg_len < CMSG_LEN(sizeof(credentials)))
                        continue;
                memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
                return credentials.pid;
        }
        return 0;
}

/* False: there is none, or it was the last for now. */
static bool take_message(struct program_socket *program_socket) {
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES + 1];
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec part = { .iov_base = data, .iov_len = sizeof(data) };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        /* Descriptors that are passed do not fit in, and the kernel closes them. */
        ssize_t n = recvmsg(program_socket->source.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0)
                return false;
        take_request(program_socket, data, (size_t) n, sender(&message));
        report_soon(program_socket);
        if (++program_socket->taken < MESSAGES_PER_REPORT)
                return true;
        source_modify(program_socket->init->core.epoll_fd, &program_socket->source, 0);
        return false;
}

static void on_message(struct source *source, uint32_t events) {
        struct program_socket *program_socket = source->data;

        (void) take_message(program_socket);
        announce_scan(program_socket->init->announce);
}

void program_socket_resync(struct program_socket *program_socket) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        ranks_sum(program_socket->ranks, now_usec(), &progress);
        if (progress.ranks == 0 && progress.listening == 0 && !progress.own_state_said && !program_socket->reported)
                return;
        program_socket->reported = true;
        ctl_send(program_socket->init->ctl, &progress.base);
}

uint64_t program_socket_deadline(const struct program_socket *program_socket) {
        return program_socket->deadline;
}

void program_socket_timeout(struct program_socket *program_socket) {
        uint64_t now = now_usec();

        if (now >= program_socket->full_usec) {
                if (program_socket->taken >= MESSAGES_PER_REPORT)
                        source_modify(program_socket->init->core.epoll_fd, &program_socket->source, EPOLLIN);
                program_socket->taken = 0;
                program_socket->full_usec = now + REPORT_USEC;
        }
        program_socket->deadline = program_socket->taken >= MESSAGES_PER_REPORT ? program_socket->full_usec : UINT64_MAX;
        program_socket->reported_usec = now;
        program_socket_resync(program_socket);
}

void program_socket_take_all(struct program_socket *program_socket) {
        while (program_socket->taken < MESSAGES_PER_REPORT && take_message(program_socket))
                ;
}

void program_socket_saved_state(struct program_socket *program_socket, Capsule__SavedState *saved_state) {
        program_socket_take_all(program_socket); /* what they said last, before they were frozen, is not known at the destination */
        ranks_saved_state(program_socket->ranks, saved_state);
}

void program_socket_saved_state_finish(Capsule__SavedState *saved_state) {
        ranks_saved_state_finish(saved_state);
}

void program_socket_set_saved_state(struct program_socket *program_socket, const Capsule__SavedState *saved_state) {
        ranks_set_saved_state(program_socket->ranks, saved_state);
        program_socket_resync(program_socket); /* at once: the next capture may be near */
}

static int open_socket(const struct init *init, struct rm_error *error) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = PROGRAM_SOCKET_PATH };
        cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int yes = 1;

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ||
            bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || chmod(PROGRAM_SOCKET_PATH, 0600) < 0 ||
            chown(PROGRAM_SOCKET_PATH, init->core.spec->uid, init->core.spec->gid) < 0)
                return error_sys(error, -errno, "cannot make " PROGRAM_SOCKET_PATH);
        return take_fd(&fd);
}

int program_socket_create(struct init *init, struct ranks *ranks, struct program_socket **ret, struct rm_error *error) {
        struct program_socket *program_socket = xcalloc(1, sizeof(*program_socket));

        *ret = program_socket; /* lives as long as the process */
        program_socket->init = init;
        program_socket->deadline = UINT64_MAX;
        program_socket->ranks = ranks;
        program_socket->source = (struct source) { .fd = open_socket(init, error), .fn = on_message, .data = program_socket };
        if (program_socket->source.fd < 0)
                return program_socket->source.fd;
        return source_add(init->core.epoll_fd, &program_socket->source, EPOLLIN) < 0
                       ? error_sys(error, -errno, "cannot watch " PROGRAM_SOCKET_PATH)
                       : 0;
}
