/* Named fault points, so that tests can break each stage of a move, a checkpoint or a transfer.
 * They are off unless RM_FAULT or RM_FAULT_FILE is in the environment.
 * RM_FAULT="move.source.transfer:fail,mover.send:kill" names points, or the part of their names
 * before a dot, and holds for good; each line of the file that RM_FAULT_FILE names holds once. The
 * actions are fail, kill, hang and, in the file, hold. */
#ifndef RM_COMMON_FAULT_H
#define RM_COMMON_FAULT_H

#include "common/error.h"

/* Returns 0 when the caller is to go on, and otherwise sets `err`: -EIO for `fail`; -EINPROGRESS
 * for `hang`, when nothing is to be done here, as if it never ended; -EAGAIN for `hold`, when
 * the caller is to ask again: the file then has "POINT:held", and the answer is 0 once a test has
 * taken that away. `kill` ends the process here, as kill -9 would. */
int fault_point(const char *point, struct rm_error *err);

/* Does the same in a process that may block: returns 0 or -EIO, waits for the end of `hold`, and
 * never returns for `hang`. */
int fault_wait(const char *point, struct rm_error *err);

#endif
