/* The limits of users that rmd.conf sets ([job] max_...), put into commands for
 * daemon/state/state_limits.c. */
#ifndef RM_JOB_USER_LIMITS_H
#define RM_JOB_USER_LIMITS_H

#include <stdbool.h>

#include "daemon/context.h"
#include "proto/state.pb-c.h"

/* Fills in `limits`, the caller's: of an administrator's jobs only how many ended ones are kept, so
 * that nobody's keep others out of the table of jobs. Returns it. */
Rm__UserLimits *user_limits(const struct rmd *rmd, bool admin, Rm__UserLimits *limits);

#endif
