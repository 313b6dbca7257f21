/* Messages on communicators in which a process has replaced a rank. MPI's communicator of the
 * program does not have that process, and must stay, since messages between the others are under
 * way there. So messages to and from it go on another one, which was made when it joined; a pair of
 * ranks uses the one that was made when the later of the two joined. A receive from any source
 * looks at all of them. */
#ifndef RM_RTLIB_FT_PEERS_H
#define RM_RTLIB_FT_PEERS_H

#include "rtlib/ft/comm.h"

/* The communicator `comm`, which was made for new members, is used for messages from now on. */
void peers_add(struct comm *c, MPI_Comm comm, uint32_t losses);
void peers_finish(struct comm *c);

/* The program's communicator, if a process has replaced a rank of it; else NULL. Cheap. */
struct comm *peers_find(MPI_Comm user);

/* Where a message to or from this rank goes: *rank is changed to that of the communicator. False:
 * that rank was lost before this process began. */
bool peers_way(const struct comm *c, int *rank, MPI_Comm *ret);

struct mpi;
/* From now on `mpi` has receives and probes that know of it; `real` are those that it had. Kept. */
void peers_start(const struct mpi *real);

/* Does all that can be done now without waiting; also called while MPI waits for another
 * request. */
void peers_scan(void);
/* Losses are known: receives from any source go on. */
void peers_acknowledge(const struct comm *c);

#endif
