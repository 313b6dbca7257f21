/* Programs of the machine, and what they print. Blocks until they end. */
#ifndef RM_DOCTOR_PROGRAMS_H
#define RM_DOCTOR_PROGRAMS_H

#include "common/error.h"

/* The beginning of what it writes, on standard error too; malloc'ed, also when it does not end with
 * 0 (-EPROTO). NULL: it could not be run. */
int program_run(const char *program, char *const *argv, char **ret_output, struct rm_error *err);

#endif
