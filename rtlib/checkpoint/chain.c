#include "rtlib/checkpoint/chain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/rank_file.h"

/* A limit that no program reaches with increments in a row. */
#define LENGTH_MAX 4096U

/* ---- manifests ---- */

void chain_close(struct chain *chain) {
        if (!chain)
                return;
        for (size_t i = 0; i < chain->n; i++)
                portable__manifest__free_unpacked(chain->manifests[i], NULL);
        free(chain->manifests);
        free(chain);
}

static bool array_equal(const Portable__Array *a, const Portable__Array *b) {
        struct rmrt_type x = manifest_type(a), y = manifest_type(b);

        return strcmp(a->name, b->name) == 0 && type_equal(&x, &y) && a->distribution == b->distribution &&
               a->n_counts == b->n_counts && memcmp(a->counts, b->counts, a->n_counts * sizeof(*a->counts)) == 0;
}

/* May `m` be an increment of `previous`? */
static bool fits(const Portable__Manifest *m, const Portable__Manifest *previous, const uint8_t *previous_digest) {
        if (memcmp(m->previous_digest.data, previous_digest, PORTABLE_DIGEST_BYTES) != 0 || m->n_files != previous->n_files ||
            m->n_arrays != previous->n_arrays || m->version != previous->version || m->block_bytes != previous->block_bytes ||
            m->big_endian != previous->big_endian)
                return false;
        for (size_t i = 0; i < m->n_arrays; i++)
                if (!array_equal(m->arrays[i], previous->arrays[i]))
                        return false;
        return true;
}

static int chain_add(struct chain *chain, uint64_t number, struct rm_error *err) {
        uint8_t digest[PORTABLE_DIGEST_BYTES];
        const Portable__Manifest *last = chain->n > 0 ? chain->manifests[chain->n - 1] : NULL;
        Portable__Manifest *m = NULL;
        int r = chain->n < LENGTH_MAX ? folder_read_manifest(chain->dir, number, &m, digest, err)
                                      : error_set(err, -EBADMSG, "too many increments in a row");

        if (r < 0)
                return r;
        chain->manifests = xrealloc(chain->manifests, (chain->n + 1) * sizeof(*chain->manifests));
        chain->manifests[chain->n++] = m;
        if (last && !fits(last, m, digest))
                return error_set(err, -EBADMSG, "checkpoint %" PRIu64 " is not the one that checkpoint %" PRIu64 " builds on",
                                 number, last->number);
        return 0;
}

int chain_open(int dir, uint64_t number, struct chain **ret, struct rm_error *err) {
        struct chain *chain = xcalloc(1, sizeof(*chain));
        int r;

        chain->dir = dir;
        do {
                r = chain_add(chain, number, err);
                number = r == 0 ? chain->manifests[chain->n - 1]->previous : 0;
        } while (number > 0);
        if (r < 0)
                chain_close(chain);
        else
                *ret = chain;
        return r;
}

/* ---- files of a rank ---- */

struct source {
        const struct chain *chain;
        size_t rank;
        struct rank_reader **readers; /* as the manifests */
        uint8_t *block;
        const struct rank_block *got; /* what is in there; NULL: nothing, or half of one */
};

static int named(const struct source *source, size_t i, struct rm_error *err) {
        return error_prefix(err, "checkpoint %" PRIu64 ": rank %zu", source->chain->manifests[i]->number, source->rank);
}

static int reader_open(struct source *source, size_t i, struct rm_error *err) {
        const Portable__Manifest *m = source->chain->manifests[i];
        int fd = folder_open_rank(source->chain->dir, m->number, source->rank, err);
        int r = fd < 0 ? fd : rank_reader_create(fd, m, source->rank, &source->readers[i], err);

        if (r < 0)
                (void) named(source, i, err);
        return r;
}

int source_open(const struct chain *chain, size_t rank, struct source **ret, struct rm_error *err) {
        struct source *source = xcalloc(1, sizeof(*source));
        int r = 0;

        source->chain = chain;
        source->rank = rank;
        source->readers = xcalloc(chain->n, sizeof(*source->readers));
        source->block = xrealloc(NULL, chain->manifests[0]->block_bytes);
        for (size_t i = 0; r == 0 && i < chain->n; i++)
                r = reader_open(source, i, err);
        if (r < 0)
                source_close(source);
        else
                *ret = source;
        return r;
}

void source_close(struct source *source) {
        if (!source)
                return;
        for (size_t i = 0; i < source->chain->n; i++)
                rank_reader_destroy(source->readers[i]);
        free(source->readers);
        free(source->block);
        free(source);
}

/* From the newest file that has this byte, into source->block, its block: `*ret_from`. It holds as
 * far as no newer file has what follows: `*ret_end`. The full one, which is the last, has them
 * all. */
static int block_get(struct source *source, size_t array, uint64_t at, uint64_t *ret_from, uint64_t *ret_end,
                     struct rm_error *err) {
        *ret_end = UINT64_MAX;
        for (size_t i = 0; i < source->chain->n; i++) {
                uint64_t end;
                const struct rank_block *found = rank_reader_find(source->readers[i], array, at, &end);
                int r;

                *ret_end = end < *ret_end ? end : *ret_end;
                if (!found)
                        continue;
                *ret_from = found->from;
                if (source->got == found)
                        return 0;
                source->got = NULL;
                r = rank_reader_get(source->readers[i], array, found, source->block, err);
                if (r < 0)
                        return named(source, i, err);
                source->got = found;
                return 0;
        }
        return error_set(err, -EBADMSG, "byte %" PRIu64 " is nowhere", at);
}

int source_read(struct source *source, size_t array, uint64_t from, uint64_t size_bytes, void *ret, struct rm_error *err) {
        uint8_t *to = ret;

        while (size_bytes > 0) {
                uint64_t first, end, n;
                int r = block_get(source, array, from, &first, &end, err);

                if (r < 0)
                        return r;
                n = end - from < size_bytes ? end - from : size_bytes;
                memcpy(to, source->block + (from - first), (size_t) n);
                to += n;
                from += n;
                size_bytes -= n;
        }
        return 0;
}

/* Checks the blocks as they are found when the array is read. */
static size_t check_blocks(struct source *source, size_t array, uint64_t bytes,
                           void (*damaged)(void *ctx, const struct rm_error *err), void *ctx) {
        uint64_t first, end;
        size_t n_bad = 0;

        for (uint64_t at = 0; at < bytes; at = end) {
                struct rm_error err = { 0 };

                if (block_get(source, array, at, &first, &end, &err) == 0)
                        continue;
                n_bad++;
                if (damaged)
                        damaged(ctx, &err);
        }
        return n_bad;
}

static size_t check_own(struct source *source, size_t array, void (*damaged)(void *ctx, const struct rm_error *err), void *ctx) {
        size_t n = 0, n_bad = 0;
        const struct rank_block *blocks = rank_reader_blocks(source->readers[0], array, &n);

        source->got = NULL;
        for (size_t i = 0; i < n; i++) {
                struct rm_error err = { 0 };

                if (rank_reader_get(source->readers[0], array, &blocks[i], source->block, &err) == 0)
                        continue;
                n_bad++;
                (void) named(source, 0, &err);
                if (damaged)
                        damaged(ctx, &err);
        }
        return n_bad;
}

size_t source_check(struct source *source, bool own, void (*damaged)(void *ctx, const struct rm_error *err), void *ctx) {
        const Portable__Manifest *m = source->chain->manifests[0];
        size_t n_bad = 0;

        for (size_t i = 0; i < m->n_arrays; i++)
                n_bad += own ? check_own(source, i, damaged, ctx)
                             : check_blocks(source, i, manifest_piece_bytes(m->arrays[i], source->rank), damaged, ctx);
        return n_bad;
}
