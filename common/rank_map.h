/* Which processes of MPI_COMM_WORLD are the ranks of a program some of whose ranks are critical:
 * one of those that is lost is replaced by a spare process, the lowest that is left. All of it
 * follows from the order of losses, so that two nodes that know of the same losses have the same
 * map. Pure. */
#ifndef RM_COMMON_RANK_MAP_H
#define RM_COMMON_RANK_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define RANK_MAP_NONE UINT32_MAX
#define RANK_MAP_LIST_MAX_BYTES 1024 /* of a list of critical ranks */

struct rank_map;

/* Processes 0 .. ranks - 1 are the ranks when it begins, the `spares` ones after them are nothing
 * yet. `critical`: "0,5-7", ranks below `ranks`; empty or NULL: none. -EINVAL with a text for
 * people that tells what is wrong with the list, or if there are no ranks. */
int rank_map_create(uint32_t ranks, uint32_t spares, const char *critical, struct rank_map **ret, struct rm_error *err);
void rank_map_destroy(struct rank_map *map); /* NULL ok */

/* These processes were lost, in this order, and no others. What is no process, or stands there
 * again, is passed over. */
void rank_map_lose(struct rank_map *map, const uint32_t *processes, size_t n);

/* The process that is this rank; RANK_MAP_NONE: it was lost. */
uint32_t rank_map_process(const struct rank_map *map, uint32_t rank);
/* The rank that this process is, or was when it was lost; RANK_MAP_NONE: it is a spare one, or
 * was. */
uint32_t rank_map_rank(const struct rank_map *map, uint32_t process);
/* The number of processes up to the last one that is a rank, or was: all others are spare ones that
 * nobody has needed. */
uint32_t rank_map_used(const struct rank_map *map);
/* Ranks that have a process. */
uint32_t rank_map_living(const struct rank_map *map);
/* The lowest critical rank that has no process, so that the program cannot go on; RANK_MAP_NONE:
 * there is none. */
uint32_t rank_map_missing(const struct rank_map *map);

#endif
