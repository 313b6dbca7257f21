/* A job is handed to rmd, once, also when rmd or the leader dies before it has answered. */
#ifndef RM_LAUNCHER_MPIRUN_SUBMIT_H
#define RM_LAUNCHER_MPIRUN_SUBMIT_H

#include <stdint.h>

#include "common/error.h"
#include "proto/state.pb-c.h"

/* Submits `spec`, whose token is set here for the time of the call. Tries again, for some seconds
 * and saying so on standard error as `program`, when rmd closed the connection before it answered
 * or no leader could be reached; a signal that is blocked and waits for the caller (`interrupt_fd`
 * can be read then; -1: none) ends that, and any wait. CLIENT_NO_DAEMON when there is no rmd to
 * begin with, -EINTR for such a signal, or another negative errno. */
int submit_job(const char *program, Rm__JobSpec *spec, int interrupt_fd, uint64_t *ret_job, struct rm_error *err);

#endif
