#include "daemon/capsule/init/base/loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

int source_add(int epoll_fd, struct source *source, uint32_t events) {
        struct epoll_event event = { .events = events, .data.ptr = source };

        return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void source_modify(int epoll_fd, struct source *source, uint32_t events) {
        struct epoll_event event = { .events = events, .data.ptr = source };

        (void) epoll_ctl(epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
}

void source_remove(int epoll_fd, struct source *source) {
        (void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

/* The loop takes one event at a time, so that no handler meets a source that another one has
 * freed. */
int loop_once(int epoll_fd, int timeout_msec) {
        struct epoll_event event;
        int n = epoll_wait(epoll_fd, &event, 1, timeout_msec);
        struct source *source;

        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n == 0)
                return 0;
        source = event.data.ptr;
        source->fn(source, event.events);
        return 0;
}
