/* Which processes of MPI_COMM_WORLD are the ranks of the program. With critical ranks some are
 * spare: they are no rank until they replace one that was lost (common/rank_map.h). Processes are
 * numbered as in MPI_COMM_WORLD of Open MPI, which has all of them. */
#ifndef RM_RTLIB_FT_MEMBERS_H
#define RM_RTLIB_FT_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* By RM_CRITICAL_RANKS and RM_SPARE_RANKS, once `ft.size` is known: sets `ft.ranks`. */
void members_init(void);

/* Computes the members as they are after so many losses; the functions below tell of that. One
 * thread at a time. */
void members_update(uint32_t losses);
/* Is the process a rank, and lives? */
bool members_has(uint32_t process);
/* The lowest such process; `ft.size`: none lives. */
uint32_t members_first(void);
/* Such processes lower than this one; 0 before members_init(). */
unsigned members_before(int process);
/* A critical rank without a process; -1: there is none. */
int members_missing(void);
/* The process that is this rank; -1: it was lost. */
int members_process(int rank);

/* The rank that the process is, or was, by what was updated last; -1: it is a spare one. By any
 * thread. */
int members_rank(int process);

#endif
