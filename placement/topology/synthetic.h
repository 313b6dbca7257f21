/* hwloc's synthetic descriptions of a node, "package:2 core:8": as far as they tell where cores
 * are. */
#ifndef RM_PLACEMENT_SYNTHETIC_H
#define RM_PLACEMENT_SYNTHETIC_H

#include <stdint.h>

enum { SYNTHETIC_MOST_LEVELS = 16, SYNTHETIC_MOST_CORES = 1 << 20 };

/* Levels between the node and its cores, from above: each thing of a level holds `count` things of
 * the next, those of the last one that many cores. n_levels 0: the node holds `cores` cores. */
struct synthetic {
        uint32_t n_levels;
        uint32_t count[SYNTHETIC_MOST_LEVELS]; /* things of this level in one of the level above */
        uint32_t things; /* of the last level, in the node; 1 when there are no levels */
        uint32_t cores; /* in each of them */
};

/* 0 or -EINVAL (then nothing is written): tokens "type:count" or "count", parted by blanks, with
 * attributes in round and square brackets, which mean nothing here. Cores are what is called so,
 * else what is called "pu", else the last token. What is below them is left out. */
int synthetic_parse(const char *text, struct synthetic *ret_synthetic);

#endif
