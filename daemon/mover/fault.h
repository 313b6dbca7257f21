/* Named fault points of the movers, so that tests can break every stage: RM_FAULT="mover.send.end:fail,mover.receive.data:kill". */
#ifndef RM_MOVER_FAULT_H
#define RM_MOVER_FAULT_H

#include "common/error.h"

/* -EIO with a text for "POINT:fail"; does not return for "POINT:kill" and "POINT:hang"; else 0. RM_FAULT names a point or the part of
 * its name before a dot ("mover.send:fail" is met by the sender's first point), and holds for good; lines of the file that
 * RM_FAULT_FILE names hold once each. */
int fault_point(const char *point, struct rm_error *err);

#endif
