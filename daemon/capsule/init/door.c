#include "daemon/capsule/init/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/door.h"
#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/ranks/announce.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/rank_message.h"
#include "daemon/capsule/init/ranks/rank_watch.h"
#include "daemon/capsule/init/ranks/ranks.h"

#define TELL_USEC UINT64_C(1000000)
/* A change that matters for the next move or checkpoint waits no longer; nor does rmd hear more
 * often than that from ranks that change their minds all the time. */
#define NEWS_USEC UINT64_C(100000)

/* Each rank sends two a second. More than this in a second are left in the queue, for whom they
 * cost time. */
enum { MESSAGES_PER_TELL = 4 * RANKS_MAX };

struct door {
        struct init *init;
        struct source source;
        struct ranks *ranks;
        uint64_t deadline; /* UINT64_MAX: nothing new since rmd was told */
        uint64_t told_usec;
        uint64_t full_usec; /* when MESSAGES_PER_TELL more may be taken */
        unsigned taken;
        bool told; /* rmd, of something that is known */
};

static void tell_by(struct door *door, uint64_t usec) {
        if (usec < door->deadline)
                door->deadline = usec;
}

static void tell_soon(struct door *door) {
        uint64_t now = now_usec();

        tell_by(door, now + TELL_USEC);
        if (ranks_take_news(door->ranks))
                tell_by(door, door->told_usec + NEWS_USEC > now ? door->told_usec + NEWS_USEC : now);
}

/* `pid` has sent it. A message that means nothing is the program's affair. */
static void take_request(struct door *door, const void *data, size_t size, pid_t pid) {
        Door__Request *request;

        switch (rank_message_read(data, size, &request)) {
        case RANK_MESSAGE_NONE:
                return;
        case RANK_MESSAGE_STATE:
                (void) ranks_take(door->ranks, request);
                break;
        case RANK_MESSAGE_RESIZE:
                if (request->resize->word == DOOR__RESIZE__WORD__PARKED)
                        ranks_rest(door->ranks, request->resize->rank);
                park_hear(door->init->park, request->resize);
                break;
        case RANK_MESSAGE_LOSS:
                rank_watch_hear(door->init->rank_watch, pid, request->loss);
                break;
        }
        door__request__free_unpacked(request, NULL);
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
static bool take_message(struct door *door) {
        uint8_t data[DOOR_MESSAGE_BYTES + 1];
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec part = { .iov_base = data, .iov_len = sizeof(data) };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        /* Descriptors that are passed do not fit in, and the kernel closes them. */
        ssize_t n = recvmsg(door->source.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0)
                return false;
        take_request(door, data, (size_t) n, sender(&message));
        tell_soon(door);
        if (++door->taken < MESSAGES_PER_TELL)
                return true;
        source_modify(door->init->core.epoll_fd, &door->source, 0);
        return false;
}

static void on_message(struct source *source, uint32_t events) {
        struct door *door = source->data;

        (void) take_message(door);
        announce_look(door->init->announce);
}

void door_greet(struct door *door) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        ranks_sum(door->ranks, &progress);
        if (progress.ranks == 0 && progress.listening == 0 && !progress.own_state_said && !door->told)
                return;
        door->told = true;
        ctl_send(door->init->ctl, CAPSULE__EVENT__EVENT_PROGRESS, &progress);
}

uint64_t door_deadline(const struct door *door) {
        return door->deadline;
}

void door_timeout(struct door *door) {
        uint64_t now = now_usec();

        if (now >= door->full_usec) {
                if (door->taken >= MESSAGES_PER_TELL)
                        source_modify(door->init->core.epoll_fd, &door->source, EPOLLIN);
                door->taken = 0;
                door->full_usec = now + TELL_USEC;
        }
        door->deadline = door->taken >= MESSAGES_PER_TELL ? door->full_usec : UINT64_MAX;
        door->told_usec = now;
        door_greet(door);
}

void door_take_all(struct door *door) {
        while (door->taken < MESSAGES_PER_TELL && take_message(door))
                ;
}

void door_carry(struct door *door, Capsule__Carry *carry) {
        door_take_all(door); /* what they said last, before they were frozen, is not known at the destination */
        ranks_carry(door->ranks, carry);
}

void door_carry_finish(Capsule__Carry *carry) {
        ranks_carry_finish(carry);
}

void door_set_carry(struct door *door, const Capsule__Carry *carry) {
        ranks_set_carry(door->ranks, carry);
        door_greet(door); /* at once: the next capture may be near */
}

static int open_socket(const struct init *init, struct rm_error *error) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = DOOR_PATH };
        cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int yes = 1;

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ||
            bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || chmod(DOOR_PATH, 0600) < 0 ||
            chown(DOOR_PATH, init->core.spec->uid, init->core.spec->gid) < 0)
                return error_sys(error, -errno, "cannot make " DOOR_PATH);
        return take_fd(&fd);
}

int door_create(struct init *init, struct ranks *ranks, struct door **ret, struct rm_error *error) {
        struct door *door = xcalloc(1, sizeof(*door));

        *ret = door; /* lives as long as the process */
        door->init = init;
        door->deadline = UINT64_MAX;
        door->ranks = ranks;
        door->source = (struct source) { .fd = open_socket(init, error), .fn = on_message, .data = door };
        if (door->source.fd < 0)
                return door->source.fd;
        return source_add(init->core.epoll_fd, &door->source, EPOLLIN) < 0 ? error_sys(error, -errno, "cannot watch " DOOR_PATH)
                                                                           : 0;
}
