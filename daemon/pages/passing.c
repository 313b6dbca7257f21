#include "daemon/pages/passing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/util.h"

union control {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
};

int passing_send(int fd, const void *data, size_t size_bytes, int descriptor) {
        union control control = { 0 };
        union {
                const void *data;
                void *base; /* only read from */
        } from = { .data = data };
        struct iovec v = { .iov_base = from.base, .iov_len = size_bytes };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

        if (descriptor >= 0) {
                struct cmsghdr *c;

                m.msg_control = control.bytes;
                m.msg_controllen = sizeof(control.bytes);
                c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(c), &descriptor, sizeof(descriptor));
        }
        return sendmsg(fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int passing_receive(int fd, void *data, size_t size_bytes, int *ret_descriptor) {
        union control control = { 0 };
        struct iovec v = { .iov_base = data, .iov_len = size_bytes };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
        struct cmsghdr *c;
        ssize_t n;

        *ret_descriptor = -1;
        do
                n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_descriptor, CMSG_DATA(c), sizeof(*ret_descriptor));
        if (n == (ssize_t) size_bytes)
                return 0;
        cleanup_close_fd(ret_descriptor);
        return -EPIPE;
}

bool passing_is_userfaultfd(int fd) {
        char path[64], link[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, link, sizeof(link) - 1);
        link[n < 0 ? 0 : n] = '\0';
        return strcmp(link, "anon_inode:[userfaultfd]") == 0;
}
