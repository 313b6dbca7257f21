/* How the ranks of a job are divided into groups: all have the same size, and the last one what is
 * left. Pure. */
#ifndef RM_COMMON_GROUPS_H
#define RM_COMMON_GROUPS_H

#include <stdint.h>

/* Groups of so many ranks; `ranks` and `group_size` are at least 1. */
uint32_t groups_number(uint32_t ranks, uint32_t group_size);

/* Ranks of one of them. */
uint32_t groups_ranks(uint32_t ranks, uint32_t group_size, uint32_t group);

/* Ranks of each of them; the caller frees the array, which has `ret_n` entries. */
uint32_t *groups_create(uint32_t ranks, uint32_t group_size, uint32_t *ret_n);

/* The smallest size of groups with which there are `most` of them, which is at least 1. */
uint32_t groups_least_size(uint32_t ranks, uint32_t most);

#endif
