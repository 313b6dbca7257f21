/* Named fault points, so that a test can break every stage of a move. Off unless RM_FAULT or RM_FAULT_FILE is in rmd's
 * environment. RM_FAULT="move.source.transfer:fail,..." (or `kill`, `hang`) holds for good; lines of the file RM_FAULT_FILE names
 * hold once each, or with `hold` as long as they are there. */
#ifndef RM_MOVE_FAULT_H
#define RM_MOVE_FAULT_H

#include "common/error.h"
#include "daemon/context.h"

struct fault *fault_create(void); /* never NULL */
void fault_destroy(struct fault *fault);

/* 0: go on. Otherwise this point is to fail: -EIO with text; with `hang` -EINPROGRESS: nothing is done in this state, as if it took
 * for ever; with `hold` -EAGAIN: this state is to begin when the line has gone from the file. `kill` ends the process here, as
 * kill -9 would. */
int fault_point(struct fault *fault, const char *role, const char *state, struct rm_error *err);

#endif
