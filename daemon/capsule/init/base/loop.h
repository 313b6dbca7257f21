/* A poll loop for one thread and a few descriptors. */
#ifndef RM_DAEMON_CAPSULE_INIT_BASE_LOOP_H
#define RM_DAEMON_CAPSULE_INIT_BASE_LOOP_H

#include <stdint.h>

/* Lives in what it serves. `fd` is not owned. */
struct source {
        int fd;
        void (*fn)(struct source *source, uint32_t events);
        void *data;
};

/* `events` are those of epoll(7). A handler may remove and free any source, also its own. */
int source_add(int epoll_fd, struct source *source, uint32_t events);
void source_modify(int epoll_fd, struct source *source, uint32_t events);
void source_remove(int epoll_fd, struct source *source);

/* Handles one event, or none when `timeout_msec` (-1: endless) has passed. 0 or negative errno. */
int loop_once(int epoll_fd, int timeout_msec);

#endif
