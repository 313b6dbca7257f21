/* Collective operations that do not block. The program's request is one of ours (MPI_Grequest_start), which is complete when the operation is: MPI's own is begun anew if a rank is
 * lost. Those of one communicator are done one after the other, so that ranks differ by whole operations only. */
#ifndef RM_RTLIB_FT_NONBLOCKING_H
#define RM_RTLIB_FT_NONBLOCKING_H

#include "rtlib/ft/collective.h"

/* What `op` points to belongs to the program, which leaves it until the request is complete. */
int nonblocking_begin(struct comm *c, const struct op *op, MPI_Request *ret);

/* What can be done now without waiting; also while MPI waits for something else. */
void nonblocking_look(void);

/* Waits until all of this communicator that were begun are done. */
void nonblocking_drain(struct comm *c);

/* After a repair: what was under way is begun anew, or is got from those who have done it. */
void nonblocking_resume(void);

#endif
