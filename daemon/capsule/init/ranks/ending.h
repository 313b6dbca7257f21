/* Ends the ranks of a group, with time to save what they have, while its MPI daemon knows nothing
 * of it.
 *
 * mpirun ends a job as soon as one rank has ended with an error, and its daemons kill the others
 * half a second later. So each rank gets the signal from here, and its first process is held
 * (ptrace(2)) where it is about to exit, with all its files and connections still open: for the
 * daemon all ranks run until those of all groups have ended, or their time is over. rmd then has
 * mpirun end, whose daemons kill what is left, also what is held. Until then the daemon serves its
 * ranks, so that those which end together can do so by MPI_Finalize. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_ENDING_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_ENDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/capsule/init/core.h"
#include "proto/capsule.pb-c.h"

struct ending;
struct core;
struct park;

/* Creates the ending of the ranks of this capsule. Never fails. `park` stays the caller's. The
 * owner, which outlives it, gives it back with ending_destroy(). */
struct ending *ending_create(struct core *core, struct park *park);
/* Takes NULL, too. */
void ending_destroy(struct ending *ending);

/* Takes an order of rmd. The reply to `ticket` comes when no rank runs any more, or after
 * order->wait_usec since the first order. A later order sends only another signal than before, and
 * only the last ticket gets a reply. */
void ending_order(struct ending *ending, const Capsule__EndRanks *order, struct ticket ticket);
/* The signal of the last order; 0: there was none, and the payload may be frozen. */
int ending_signal(const struct ending *ending);

/* A child, or a process that is traced, has stopped, or ended, with this status as of waitpid(2).
 * True: it is held here. */
bool ending_reaped(struct ending *ending, pid_t pid, int wait_status);

/* The daemon has ended: so may what is held, or about to be. To be called until none of it is
 * left. */
void ending_let_go(struct ending *ending);

/* Returns when ending_timeout() is to be called; UINT64_MAX: never. */
uint64_t ending_deadline(const struct ending *ending);
void ending_timeout(struct ending *ending);

#endif
