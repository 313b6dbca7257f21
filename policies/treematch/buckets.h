/*
 * Vertices by gain, in buckets: all is done in a few steps, whatever the number. A bucket holds
 * gains that agree in sign, magnitude and their five leading bits; of one bucket, what came or
 * changed last is first. So the order is that of the gains to within 3%, which is all that local
 * search asks for.
 */
#ifndef RM_TREEMATCH_BUCKETS_H
#define RM_TREEMATCH_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/topology/pool.h"

enum {
        BUCKETS_BITS = 4,
        BUCKETS_HALF = 64 << BUCKETS_BITS, /* for gains below 0, and as many for the others */
        BUCKETS_ALL = 2 * BUCKETS_HALF,
        BUCKETS_WORDS = BUCKETS_ALL / 64,
};

struct buckets {
        uint64_t words;               /* which words of `full` are not 0 */
        uint64_t full[BUCKETS_WORDS]; /* which buckets hold anything */
        uint32_t first[BUCKETS_ALL];  /* their first vertex */
        uint32_t *next, *before;      /* each vertex; may be shared by several that have no vertex in common */
        uint16_t *bucket;             /* each vertex: 1 + where it is, 0: nowhere; likewise */
};

#define BUCKETS_NONE UINT32_MAX

/* `like`: shares its vertices' entries; NULL: there are `n` vertices. */
struct buckets *buckets_make(struct pool *pool, uint32_t n, const struct buckets *like);
/* Put in, or change the gain of, a vertex. */
void buckets_set(struct buckets *buckets, uint32_t vertex, int64_t gain);
void buckets_remove(struct buckets *buckets, uint32_t vertex); /* fine when it is not in */
uint32_t buckets_top(const struct buckets *buckets);           /* BUCKETS_NONE when there is nothing */

#endif
