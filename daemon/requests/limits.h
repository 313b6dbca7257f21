/* Resource limits of a local client, as the kernel tells them: a job gets those of the login it was started from, not those that
 * the client claims. */
#ifndef RM_REQUESTS_LIMITS_H
#define RM_REQUESTS_LIMITS_H

#include <sys/types.h>

#include "proto/state.pb-c.h"

/* Replace the limits in `spec` by those of process `pid`. 0 or a negative errno (the process is gone), `spec` unchanged then. */
int limits_take(Rm__JobSpec *spec, pid_t pid);
/* Of the text of /proc/PID/limits. -EINVAL: none of the lines is known. */
int limits_parse(Rm__JobSpec *spec, const char *text);

#endif
