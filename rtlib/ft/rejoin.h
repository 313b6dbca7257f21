/* A process that replaces a critical rank takes its place in the communicators, too, that the
 * program made before: they are rebuilt with it, by the same repair. It knows of none of them,
 * so the others tell it; and its program gets them as the lost one did: by the same calls in the
 * same order, which the library answers from what it was told. */
#ifndef RM_RTLIB_FT_REJOIN_H
#define RM_RTLIB_FT_REJOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/ft/comm.h"
#include "rtlib/ft/create.h"

/* The processes that have replaced members by so many losses take their places in `c`, if it is one
 * of those. */
void rejoin_place(struct comm *c, uint32_t losses);

/* All living ranks tell which communicators they have, on the `world` that they are being made
 * again on. New members add the ones that they are in. `joins`: by rank there. False: a rank was
 * lost. */
bool rejoin_report(MPI_Comm world, const bool *joins);

/* Drops the rest of the descriptions in this process, when all communicators are made. */
void rejoin_finish(void);

/* A call of the program that makes a communicator of `c`. True: it is one that the lost rank had
 * made, and `*ret` is what it has got. */
bool rejoin_claim(const struct making *m, const char *name, struct comm *c, MPI_Comm *ret);
/* The same of MPI_Comm_create_group(). */
bool rejoin_claim_group(const struct making *m, struct comm *c, int tag, MPI_Comm *ret);

#endif
