/* The ranks of a group in a job that goes on without ranks that are lost: which of them live, have
 * come to their end, or are lost, and what they are to be told (program.proto). Pure. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_LOST_RANKS_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_LOST_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"
#include "proto/program.pb-c.h"

struct lost_ranks;

enum {
        LOST_RANKS_MAX = 65536, /* in a job */
        LOST_RANKS_REPORTED_MAX = 48, /* in one word: it fits into PROGRAM_SOCKET_MESSAGE_BYTES */
        LOST_RANKS_SOUGHT_MAX = 20, /* looks, once a second: the daemon may not have started it yet */
};

struct lost_ranks *lost_ranks_create(void);
void lost_ranks_destroy(struct lost_ranks *ranks); /* NULL ok */

/* Takes an order of rmd. The list of lost ranks only grows: nothing is taken of a shorter one,
 * which is old. If the group has other ranks than before, nothing is known of them. True: something
 * is new. */
bool lost_ranks_order(struct lost_ranks *ranks, const Capsule__RankOrder *order);
/* Returns the group's first rank, and how many it has, by the order; ranks are called by their
 * place in it. */
uint32_t lost_ranks_first(const struct lost_ranks *ranks);
size_t lost_ranks_count(const struct lost_ranks *ranks);
/* Has a rank said that it goes on without others? Have all but the lost ones ended MPI_Finalize? */
bool lost_ranks_speak(const struct lost_ranks *ranks);
bool lost_ranks_finished(const struct lost_ranks *ranks);

/* Takes a word that process `pid` has said. A rank is the first process that says so, as long as
 * that lives, and no other speaks for it. True: `ret` is to be told, which borrows from `ranks`. */
bool lost_ranks_receive(struct lost_ranks *ranks, pid_t pid, const Program__Loss *word, Program__Loss *ret);
/* Returns the process whose end is to be noticed; 0: there is none (any more). */
pid_t lost_ranks_pid(const struct lost_ranks *ranks, size_t at);
/* The process has ended; whether it is a loss says lost_ranks_judge(). */
void lost_ranks_gone(struct lost_ranks *ranks, size_t at);
/* Have some ranks ended, so that lost_ranks_judge() has to look? */
bool lost_ranks_unjudged(const struct lost_ranks *ranks);
/* Ranks that have ended, and have not finished, are lost. True: there are new ones. */
bool lost_ranks_judge(struct lost_ranks *ranks);

/* Is a rank to be looked for, once a second? That is so while other ranks of the job wait in
 * MPI_Init, or are through, and no process is known of one here: is there one that it could be? */
bool lost_ranks_seek(const struct lost_ranks *ranks);
/* Lists the processes of ranks that are known, into room for lost_ranks_count(). */
size_t lost_ranks_pids(const struct lost_ranks *ranks, pid_t *ret);
/* A rank was looked for. `found`: there are processes that may be ranks, or it cannot be known.
 * After LOST_RANKS_SOUGHT_MAX times without, one after the other, all that are not known have
 * ended. */
void lost_ranks_sought(struct lost_ranks *ranks, bool found);

/* Finds the next word that is to be told again, at or after `*at`, which begins at 0. False: no
 * more. */
bool lost_ranks_next(const struct lost_ranks *ranks, size_t *at, Program__Loss *ret);
/* Returns what rmd is to be told; `ret->lost` is malloc'ed. */
void lost_ranks_said(const struct lost_ranks *ranks, Capsule__RanksSaid *ret);

/* Returns the carry for the other end of a move: free with capsule__rank_watch__free_unpacked();
 * NULL: there is nothing. */
Capsule__RankWatch *lost_ranks_saved_state(const struct lost_ranks *ranks);
void lost_ranks_set_saved_state(struct lost_ranks *ranks, const Capsule__RankWatch *saved_state);

#endif
