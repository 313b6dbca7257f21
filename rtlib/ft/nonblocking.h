/* Collective operations that do not block. The program's request is one of ours
 * (MPI_Grequest_start), which is complete when the operation is: MPI's own is begun again if a rank
 * is lost. Those of one communicator are done one after the other, so that ranks differ by whole
 * operations only. */
#ifndef RM_RTLIB_FT_NONBLOCKING_H
#define RM_RTLIB_FT_NONBLOCKING_H

#include "rtlib/ft/collective.h"

/* Begins an operation. Data that `op` points to belongs to the program, which leaves it until the
 * request is complete. */
int nonblocking_begin(struct comm *c, const struct op *op, MPI_Request *ret);

/* Does all that can be done now without waiting; also called while MPI waits for another
 * request. */
void nonblocking_scan(void);

/* Waits until all of this communicator that were begun are done. */
void nonblocking_drain(struct comm *c);

/* Begins operations again, after a repair, that were under way, or gets them from ranks that have
 * done them. */
void nonblocking_resume(void);

#endif
