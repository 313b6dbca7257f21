/* All ranks that live come together, each at its own time, before communicators are rebuilt:
 * no rank may wait in there for one that does not come. */
#ifndef RM_RTLIB_FT_MEET_H
#define RM_RTLIB_FT_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/ft/calls.h"

/* The tags of messages on ft.meeting. */
enum { TAG_JOIN = 1, TAG_GO = 2, TAG_GROUP = 3, TAG_END = 4, TAG_WAITING = 5, TAG_STUCK = 6 };

/* Waits until all ranks that are left by the same list of losses, with those that replace lost
 * ones, are in here, however long they compute. `*try_number`: of repairs with this many losses, as
 * the next one is named; the result is what all have. Returns the losses that all know. */
uint32_t meet(uint32_t *try_number);

/* The same for the members of a group, all of which are to be told apart from others of theirs by
 * `name`. False: a rank was lost meanwhile. */
bool meet_group(MPI_Group group, uint64_t name);

/* The numbers of all ranks of a communicator, one rank's after the other's; malloc'ed. */
struct gathered {
        uint64_t *numbers;
        int *counts, *firsts; /* by rank */
        int all;
};

/* Gives `n` numbers to all ranks of `comm`, which does the same. An error of MPI: `own` and the
 * arrays are left as they are, since Open MPI may still use them. */
int meet_gather(MPI_Comm comm, int ranks, const uint64_t *own, int n, struct gathered *ret);
void gathered_finish(struct gathered *g);

/* Messages of ranks that wait: watch.c. */
void meet_say_waiting(uint32_t to, uint64_t serial);
bool meet_receive_waiting(uint32_t from, uint64_t *ret_serial);
void meet_say_stuck(uint32_t to);
bool meet_receive_stuck(uint32_t from);

#endif
