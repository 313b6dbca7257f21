/* Where members of a communicator are when it is rebuilt differs: one that waits for no other in
 * an operation (the root of a broadcast, say) may have done many more. Those that are ahead give
 * the others what they have kept, and the others do these operations with it, each when the program
 * comes to it, not by MPI's collective calls. */
#ifndef RM_RTLIB_FT_CATCH_UP_H
#define RM_RTLIB_FT_CATCH_UP_H

#include "rtlib/ft/collective.h"

/* Catches up the other ranks, once the communicator was rebuilt. */
void catch_up_others(struct comm *c);

/* The next operation is one that others have done. `slot` is its place in the ring, with what this
 * rank puts in. False: another rank was lost meanwhile. */
bool catch_up(struct comm *c, const struct op *op, struct slot *slot);

/* Waits until all that is under way to others has arrived; or nothing has to, if `drop`. */
void catch_up_finish(void);

#endif
