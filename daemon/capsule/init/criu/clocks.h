/* The payload's clocks: a move must not set them back, whatever the nodes' own clocks show. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_CLOCKS_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_CLOCKS_H

#include <stdint.h>

/* CLOCK_MONOTONIC and CLOCK_BOOTTIME of the payload. */
struct clocks {
        int64_t monotonic_nsec;
        int64_t boottime_nsec;
};

/* Reads what the payload's clocks showed when CRIU dumped it. CRIU has read them after the
 * payload's timers, so no timer goes off early by them. 0; -ENOENT: the dump has no such image;
 * -EBADMSG. */
int clocks_read_image(int images_fd, struct clocks *ret);

/* Gives the caller's children a time namespace whose clocks go on from `clocks`. 0 or -errno. */
int clocks_unshare(const struct clocks *clocks);

#endif
