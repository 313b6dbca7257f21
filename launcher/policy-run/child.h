/* Running rm-plugin-host and waiting for what it says. */
#ifndef RM_POLICY_RUN_CHILD_H
#define RM_POLICY_RUN_CHILD_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Run `argv`, `what` in errors, with `input` on stdin; kill it after `limit_usec`. What it printed
 * on stdout is malloc'ed, NUL-terminated, the caller's. Anything but exit status 0 is an error,
 * with its last line on stderr; its other lines go to ours. */
int child_run(const char *what, char *const argv[], const char *input, size_t input_bytes, uint64_t limit_usec, char **ret_output,
              struct rm_error *err);

#endif
