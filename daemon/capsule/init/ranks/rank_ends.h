/* The ends of the ranks of a group, as its MPI daemon has written them down
 * (daemon/capsule/rank_end.h). */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_RANK_ENDS_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_RANK_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/rank_end.h"
#include "proto/capsule.pb-c.h"

/* Pure: of `n` records, as they lie in the file. */
void rank_ends_sum(const struct rank_end_record *records, size_t n, Capsule__RankEnds *ret);

/* The file as it is now; when it cannot be read, nothing is known. */
void rank_ends_read(const char *path, Capsule__RankEnds *ret);

#endif
