/* Resource limits of a local client, as the kernel tells them: a job gets those of the login it was
 * started from, not those that the client claims, nor those of another process. */
#ifndef RM_REQUESTS_LIMITS_H
#define RM_REQUESTS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/error.h"
#include "proto/state.pb-c.h"

#define LIMITS_MAX 16U

struct limits {
        size_t n;
        struct {
                uint32_t resource;
                uint64_t soft;
                uint64_t hard;
        } items[LIMITS_MAX];
};

/* Reads the limits of the process that connected the other end of this Unix socket, whose
 * credentials `peer` are: it must still exist, and run as the same user. The caller frees them.
 * -ESRCH it has ended, -EPERM it runs with other ids now. */
int limits_of_peer(int socket_fd, const struct ucred *peer, struct limits **ret, struct rm_error *err);
/* Replace the limits in `spec`. */
void limits_set(Rm__JobSpec *spec, const struct limits *limits);

/* Parses the text of /proc/PID/limits. -EINVAL: none of the lines is known. */
int limits_parse(const char *text, struct limits *ret);
/* Do real, effective, saved and file system uid in the text of /proc/PID/status all equal this
 * one? */
bool limits_status_is(const char *text, uid_t uid);

#endif
