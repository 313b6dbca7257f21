/* A job takes over from its shell: directory, environment, umask, nice value,
 * I/O priority, scheduling policy, limits. */
#ifndef RM_LAUNCHER_MPIRUN_CAPTURE_H
#define RM_LAUNCHER_MPIRUN_CAPTURE_H

#include "common/error.h"
#include "launcher/mpirun/command.h"
#include "launcher/mpirun/options.h"
#include "proto/state.pb-c.h"

/* All of a job's description as it is sent, command line and environment above all; rmd takes 1 MiB
 * and adds a little. */
#define CAPTURE_MAX_BYTES ((1U << 20) - (16U << 10))

/* A job as it is to be submitted. The caller frees it with capture_free(); `command` and `options`
 * must outlive it. `input`: the job gets a standard input. -E2BIG, or an errno of getcwd. */
int capture_job(const struct command *command, const struct options *options, bool input, Rm__JobSpec **ret_spec,
                struct rm_error *err);
void capture_free(Rm__JobSpec *spec); /* NULL ok */

#endif
