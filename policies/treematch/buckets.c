#include "policies/treematch/buckets.h"

#include <string.h>

/* Rises with the gain. Without branches: branches would be mispredicted. */
static uint32_t bucket_of(int64_t gain) {
        uint64_t sign = -(uint64_t) (gain < 0), size = ((uint64_t) gain ^ sign) - sign;
        uint32_t shift = 63 - BUCKETS_BITS - (uint32_t) __builtin_clzll(size | 1 << BUCKETS_BITS);
        uint32_t at = (uint32_t) (size >> shift) + (shift << BUCKETS_BITS);

        return BUCKETS_HALF + (at ^ (uint32_t) sign); /* -1 - at below 0 */
}

struct buckets *buckets_make(struct pool *pool, uint32_t n, const struct buckets *like) {
        struct buckets *buckets = pool_alloc(pool, 1, sizeof(*buckets));

        buckets->words = 0;
        memset(buckets->full, 0, sizeof(buckets->full));
        if (like) {
                buckets->next = like->next;
                buckets->before = like->before;
                buckets->bucket = like->bucket;
        } else {
                buckets->next = pool_alloc(pool, n, sizeof(*buckets->next));
                buckets->before = pool_alloc(pool, n, sizeof(*buckets->before));
                buckets->bucket = pool_zalloc(pool, n, sizeof(*buckets->bucket));
        }
        return buckets;
}

static void unlink_vertex(struct buckets *buckets, uint32_t vertex) {
        uint32_t at = buckets->bucket[vertex] - 1u, next = buckets->next[vertex], before = buckets->before[vertex];

        if (next != BUCKETS_NONE)
                buckets->before[next] = before;
        if (before != BUCKETS_NONE)
                buckets->next[before] = next;
        else if (next != BUCKETS_NONE)
                buckets->first[at] = next;
        else {
                buckets->full[at / 64] &= ~(1ull << at % 64);
                if (buckets->full[at / 64] == 0)
                        buckets->words &= ~(1ull << at / 64);
        }
}

void buckets_set(struct buckets *buckets, uint32_t vertex, int64_t gain) {
        uint32_t at = bucket_of(gain), next = BUCKETS_NONE;

        if (buckets->bucket[vertex])
                unlink_vertex(buckets, vertex);
        if (buckets->full[at / 64] >> at % 64 & 1) {
                next = buckets->first[at];
                buckets->before[next] = vertex;
        } else {
                buckets->full[at / 64] |= 1ull << at % 64;
                buckets->words |= 1ull << at / 64;
        }
        buckets->next[vertex] = next;
        buckets->before[vertex] = BUCKETS_NONE;
        buckets->first[at] = vertex;
        buckets->bucket[vertex] = (uint16_t) (at + 1);
}

void buckets_remove(struct buckets *buckets, uint32_t vertex) {
        if (!buckets->bucket[vertex])
                return;
        unlink_vertex(buckets, vertex);
        buckets->bucket[vertex] = 0;
}

uint32_t buckets_top(const struct buckets *buckets) {
        uint32_t word;

        if (!buckets->words)
                return BUCKETS_NONE;
        word = 63 - (uint32_t) __builtin_clzll(buckets->words);
        return buckets->first[64 * word + 63 - (uint32_t) __builtin_clzll(buckets->full[word])];
}
