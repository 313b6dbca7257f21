/* A process beside a run of CRIU that lends it what CRIU, as the job's owner, can reach by
 * /proc/PID only: the directory with the images, and for a restore a time namespace. It holds
 * CRIU's capabilities, so no process of the owner may trace it or put something else in its
 * descriptors' places. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_FD_BROKER_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_FD_BROKER_H

#include <sys/types.h>

#include "proto/capsule.pb-c.h"

struct clocks;
struct rm_error;

/* Starts it with a copy of `fd`. `clocks`: what its time namespace shows; NULL: it makes none.
 * Returns its pid, or -errno. The directory is /proc/PID/fd/FD_BROKER_FD, the namespace
 * /proc/PID/ns/time. */
enum { FD_BROKER_FD = 3 };
pid_t fd_broker_start(const Capsule__Spec *spec, int fd, const struct clocks *clocks, struct rm_error *error);
/* `pid` 0: there is none. */
void fd_broker_end(pid_t pid);

#endif
