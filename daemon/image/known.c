#include "daemon/image/known.h"

#include <xxhash.h>

#include "common/util.h"

#define FIRST_BLOCKS 1024U

/* Numbers by hash, with open addressing: a general table would keep more for each block than its
 * hash, and they are many. */
struct image_known {
        struct image_delta delta;
        XXH128_hash_t *hashes; /* by number */
        uint64_t n;
        uint64_t space;     /* of `hashes`; a power of two */
        uint32_t *buckets; /* twice as many; number + 1, 0 = free */
        uint64_t last;     /* found last: the next one is most likely the one after it */
};

static bool same(XXH128_hash_t a, XXH128_hash_t b) {
        return a.low64 == b.low64 && a.high64 == b.high64;
}

/* The bucket that has this hash, or the free one where it belongs. */
static uint32_t *bucket_find(const struct image_known *k, XXH128_hash_t hash) {
        uint64_t mask = k->space * 2 - 1;
        uint64_t i = hash.low64 & mask;

        while (k->buckets[i] != 0 && !same(k->hashes[k->buckets[i] - 1], hash))
                i = (i + 1) & mask;
        return &k->buckets[i];
}

static bool peer_has(void *ctx, const void *block, uint64_t *ret_number) {
        struct image_known *k = ctx;
        XXH128_hash_t hash;
        uint32_t bucket;

        if (k->n == 0)
                return false;
        hash = XXH3_128bits(block, IMAGE_BLOCK_BYTES);
        if (k->last + 1 < k->n && same(k->hashes[k->last + 1], hash)) {
                *ret_number = ++k->last;
                return true;
        }
        bucket = *bucket_find(k, hash);
        if (bucket == 0)
                return false;
        *ret_number = k->last = bucket - 1;
        return true;
}

static void space_set(struct image_known *k, uint64_t space) {
        k->hashes = xrealloc(k->hashes, space * sizeof(*k->hashes));
        free(k->buckets);
        k->buckets = xcalloc(space * 2, sizeof(*k->buckets));
        k->space = space;
        for (uint64_t i = 0; i < k->n; i++)
                *bucket_find(k, k->hashes[i]) = (uint32_t) (i + 1);
}

struct image_known *image_known_create(void) {
        struct image_known *k = xcalloc(1, sizeof(*k));

        k->delta = (struct image_delta) { .ctx = k, .peer_has = peer_has };
        space_set(k, FIRST_BLOCKS);
        return k;
}

void image_known_destroy(struct image_known *k) {
        if (!k)
                return;
        free(k->hashes);
        free(k->buckets);
        free(k);
}

bool image_known_add(struct image_known *k, const void *block) {
        XXH128_hash_t hash = XXH3_128bits(block, IMAGE_BLOCK_BYTES);
        uint32_t *bucket = bucket_find(k, hash);

        if (*bucket != 0 || k->n >= IMAGE_BLOCKS_MAX - 1)
                return false;
        if (k->n == k->space) {
                space_set(k, k->space * 2);
                bucket = bucket_find(k, hash);
        }
        k->hashes[k->n++] = hash;
        *bucket = (uint32_t) k->n;
        return true;
}

uint64_t image_known_count(const struct image_known *k) {
        return k->n;
}

const struct image_delta *image_known_delta(const struct image_known *k) {
        return &k->delta;
}
