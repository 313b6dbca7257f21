#include "rtlib/checkpoint/adaptive.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void adaptive_init(struct adaptive *a, uint64_t bytes, size_t n_max, uint64_t least_bytes, uint64_t most_bytes) {
        size_t n_least = (size_t) ((bytes + most_bytes - 1) / most_bytes);
        uint64_t block;

        n_max = n_max > n_least ? n_max : n_least;
        block = n_max > 0 ? (bytes + n_max - 1) / n_max : 0;
        block = block < least_bytes ? least_bytes : block;
        *a = (struct adaptive) { .n_max = n_max, .least_bytes = least_bytes, .most_bytes = most_bytes };
        a->blocks = xcalloc(n_max + 1, sizeof(*a->blocks));
        for (; bytes > 0; a->n++) {
                a->blocks[a->n].bytes = bytes < block ? bytes : block;
                bytes -= a->blocks[a->n].bytes;
        }
}

void adaptive_copy(const struct adaptive *a, struct adaptive *ret) {
        *ret = *a;
        ret->blocks = xcalloc(a->n_max + 1, sizeof(*ret->blocks));
        memcpy(ret->blocks, a->blocks, a->n * sizeof(*ret->blocks));
}

void adaptive_finish(struct adaptive *a) {
        free(a->blocks);
        *a = (struct adaptive) { 0 };
}

/* The age is that of a block which has not changed, so one that has begins again. */
void adaptive_scan(struct adaptive *a, const uint8_t *memory, adaptive_hash hash) {
        for (size_t i = 0; i < a->n; memory += a->blocks[i++].bytes) {
                struct adaptive_block *b = &a->blocks[i];
                uint8_t now[ADAPTIVE_HASH_BYTES];

                hash(memory, b->bytes, now);
                b->dirty = memcmp(now, b->hash, sizeof(now)) != 0;
                b->age = b->dirty ? 0 : b->age + 1;
                b->stale = false;
                memcpy(b->hash, now, sizeof(now));
        }
}

uint64_t adaptive_dirty(const struct adaptive *a, size_t *ret_sections, size_t *ret_blocks) {
        uint64_t bytes = 0;

        *ret_sections = *ret_blocks = 0;
        for (size_t i = 0; i < a->n; i++) {
                bytes += a->blocks[i].dirty ? a->blocks[i].bytes : 0;
                *ret_blocks += a->blocks[i].dirty;
                *ret_sections += a->blocks[i].dirty && (i == 0 || !a->blocks[i - 1].dirty);
        }
        return bytes;
}

/* Two neighbours at a time only (lazy merge): what is merged greedily is split again as often,
 * where something changes at every other checkpoint. */
static void merge(struct adaptive *a) {
        size_t n = 0;

        for (size_t i = 0; i < a->n; i++, n++) {
                const struct adaptive_block *next = &a->blocks[i + 1];

                a->blocks[n] = a->blocks[i];
                if (i + 1 == a->n || a->blocks[i].dirty || next->dirty || a->blocks[i].age != next->age ||
                    a->blocks[i].bytes + next->bytes > a->most_bytes)
                        continue;
                a->blocks[n].bytes += next->bytes;
                a->blocks[n].stale = true;
                i++;
        }
        a->n = n;
}

static int largest_first(const void *x, const void *y) {
        const struct adaptive_block *a = *(struct adaptive_block *const *) x, *b = *(struct adaptive_block *const *) y;

        return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* Marks those that are to be split as stale, and counts them: the largest of the dirty ones, as
 * long as there is room. */
static size_t choose(struct adaptive *a) {
        cleanup_free struct adaptive_block **dirty = xcalloc(a->n + 1, sizeof(*dirty));
        size_t n = 0, n_split = 0;

        for (size_t i = 0; i < a->n; i++)
                if (a->blocks[i].dirty && a->blocks[i].bytes >= 2 * a->least_bytes)
                        dirty[n++] = &a->blocks[i];
        qsort(dirty, n, sizeof(struct adaptive_block *), largest_first);
        for (; n_split < n && a->n + n_split < a->n_max; n_split++)
                dirty[n_split]->stale = true;
        return n_split;
}

/* From the last on, so that none is written over before it was moved. */
static void split(struct adaptive *a) {
        size_t to = a->n + choose(a), from = a->n;

        a->n = to;
        while (from > 0) {
                struct adaptive_block b = a->blocks[--from];

                if (b.dirty && b.stale) {
                        a->blocks[--to] = b;
                        a->blocks[to].bytes = b.bytes - b.bytes / 2;
                        b.bytes /= 2;
                }
                a->blocks[--to] = b;
        }
}

static void hash_stale(struct adaptive *a, const uint8_t *memory, adaptive_hash hash) {
        for (size_t i = 0; i < a->n; memory += a->blocks[i++].bytes)
                if (a->blocks[i].stale)
                        hash(memory, a->blocks[i].bytes, a->blocks[i].hash);
}

void adaptive_adapt(struct adaptive *a, const uint8_t *memory, adaptive_hash hash) {
        merge(a);
        split(a);
        hash_stale(a, memory, hash);
}
