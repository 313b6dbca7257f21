/* Named fault points of the movers, so that tests can break every stage: RM_FAULT="mover.send.end:fail,mover.receive.data:kill". */
#ifndef RM_MOVER_FAULT_H
#define RM_MOVER_FAULT_H

#include "common/error.h"

/* -EIO with a text when RM_FAULT says "POINT:fail"; does not return when it says "POINT:kill"; never returns when it says "POINT:hang";
 * else 0. A point is hit by its own name and by any prefix up to a dot ("mover.send:fail" is hit by the first point of the sender). */
int fault_point(const char *point, struct rm_error *err);

#endif
