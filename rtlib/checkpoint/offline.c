#include "rtlib/checkpoint/offline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/rank_file.h"

uint64_t offline_raw_bytes(const Portable__Manifest *m) {
        uint64_t sum = 0;

        for (size_t i = 0; i < m->n_arrays; i++)
                for (size_t rank = 0; rank < m->n_files; rank++)
                        sum += manifest_piece_bytes(m->arrays[i], rank);
        return sum;
}

uint64_t offline_file_bytes(const Portable__Manifest *m) {
        uint64_t sum = 0;

        for (size_t rank = 0; rank < m->n_files; rank++)
                sum += m->files[rank]->size_bytes;
        return sum;
}

/* ---- verify ---- */

static size_t verify_rank(int dir, Portable__Manifest *m, size_t rank, const struct offline_watch *watch) {
        /* By itself, whatever it builds on. */
        const struct chain alone = { dir, 1, &m };
        struct source *source = NULL;
        struct rm_error err = { 0 };
        size_t n_bad;

        if (source_open(&alone, rank, &source, &err) < 0) {
                watch->damaged(watch->ctx, &err);
                return 1;
        }
        n_bad = source_check(source, true, watch->damaged, watch->ctx);
        source_close(source);
        return n_bad;
}

size_t offline_verify(int dir, uint64_t number, const struct offline_watch *watch) {
        Portable__Manifest *m = NULL;
        struct chain *chain = NULL;
        struct rm_error err = { 0 };
        size_t n_bad = 0;

        if (folder_read_manifest(dir, number, &m, NULL, &err) < 0) {
                (void) error_prefix(&err, "checkpoint %" PRIu64, number);
                watch->damaged(watch->ctx, &err);
                return 1;
        }
        if (chain_open(dir, number, &chain, &err) < 0) {
                watch->damaged(watch->ctx, &err);
                n_bad++;
        }
        chain_close(chain);
        for (size_t rank = 0; rank < m->n_files; rank++) {
                n_bad += verify_rank(dir, m, rank, watch);
                watch->progress(watch->ctx, rank + 1, m->n_files);
        }
        portable__manifest__free_unpacked(m, NULL);
        return n_bad;
}

/* ---- merge ---- */

/* Blocks are as large as before, but some elements may lie in two of them: an array is converted as
 * a whole. */
static int array_copy(struct source *source, const Portable__Manifest *m, size_t array, size_t rank, bool swap,
                      struct rank_writer *w, struct rm_error *err) {
        uint64_t bytes = manifest_piece_bytes(m->arrays[array], rank);
        cleanup_free uint8_t *data = malloc((size_t) bytes + 1);
        struct rmrt_type type = manifest_type(m->arrays[array]);
        int r = data ? source_read(source, array, 0, bytes, data, err)
                     : error_sys(err, -ENOMEM, "array '%s'", m->arrays[array]->name);

        if (r == 0 && swap)
                type_swap(&type, data, bytes);
        for (uint64_t block = 0; r == 0 && block * m->block_bytes < bytes; block++) {
                uint8_t hash[PORTABLE_DIGEST_BYTES];
                uint64_t from = block * m->block_bytes;
                uint32_t n = bytes - from < m->block_bytes ? (uint32_t) (bytes - from) : m->block_bytes;

                portable_digest(data + from, n, hash);
                r = rank_writer_put(w, array, from, data + from, n, hash, err);
        }
        return r;
}

static int rank_copy(const struct chain *chain, int to, Portable__Manifest *made, size_t rank, int zstd_level,
                     struct rm_error *err) {
        const Portable__Manifest *m = chain->manifests[0];
        struct source *source = NULL;
        struct rank_writer *w = NULL;
        int fd = -1, r = source_open(chain, rank, &source, err);

        if (r == 0)
                r = fd = folder_create_rank(to, made->number, rank, err);
        if (r >= 0) {
                w = rank_writer_create(fd, m->n_arrays, m->block_bytes, zstd_level);
                r = 0;
        }
        for (size_t i = 0; r == 0 && i < m->n_arrays; i++)
                r = array_copy(source, m, i, rank, made->big_endian != m->big_endian, w, err);
        if (r == 0)
                r = rank_writer_end(w, &made->files[rank]->size_bytes, made->files[rank]->digest.data, err);
        if (r < 0 && w)
                folder_remove_rank(to, made->number, rank);
        rank_writer_destroy(w);
        source_close(source);
        return r;
}

static int conversion_check(const Portable__Manifest *m, struct rm_error *err) {
        for (size_t i = 0; i < m->n_arrays; i++) {
                struct rmrt_type type = manifest_type(m->arrays[i]);

                if (!type_converts(&type))
                        return error_set(err, -ENOTSUP, "array '%s' has long doubles, which cannot be converted",
                                         m->arrays[i]->name);
        }
        return 0;
}

/* As the newest of the chain, in another number and full, with blocks of one size. */
static int made_begin(const struct chain *chain, int to, const struct offline_merge *merge, Portable__Manifest **ret,
                      struct rm_error *err) {
        cleanup_free uint64_t *numbers = NULL;
        Portable__Manifest *made = NULL;
        uint8_t *packed = NULL;
        uint64_t last = 0;
        size_t n = 0;
        int r = merge->big_endian != chain->manifests[0]->big_endian ? conversion_check(chain->manifests[0], err) : 0;

        if (r == 0)
                r = folder_list(to, &numbers, &n, &last, err);
        if (r == 0)
                r = manifest_pack(chain->manifests[0], &packed, &n, NULL, err);
        if (r == 0)
                r = manifest_unpack(packed, n, &made, NULL, err);
        free(packed);
        if (r < 0)
                return r;
        made->version = PORTABLE_VERSION;
        made->number = last + 1;
        made->big_endian = merge->big_endian;
        made->previous = 0;
        made->previous_digest.len = 0;
        *ret = made;
        return 0;
}

static int made_write(const struct chain *chain, int to, const struct offline_merge *merge, Portable__Manifest *made,
                      const struct offline_watch *watch, struct rm_error *err) {
        size_t rank = 0;
        int r = 0;

        while (r == 0 && rank < made->n_files) {
                r = rank_copy(chain, to, made, rank, merge->zstd_level, err);
                if (r == 0)
                        watch->progress(watch->ctx, ++rank, made->n_files);
        }
        if (r == 0)
                r = folder_write_manifest(to, made, NULL, err);
        while (r < 0 && rank > 0)
                folder_remove_rank(to, made->number, --rank);
        return r;
}

int offline_merge(int from, int to, const struct offline_merge *merge, const struct offline_watch *watch, uint64_t *ret_number,
                  struct rm_error *err) {
        struct chain *chain = NULL;
        Portable__Manifest *made = NULL;
        int r = chain_open(from, merge->number, &chain, err);

        if (r == 0)
                r = made_begin(chain, to, merge, &made, err);
        if (r == 0)
                r = made_write(chain, to, merge, made, watch, err);
        if (r == 0)
                *ret_number = made->number;
        if (made)
                portable__manifest__free_unpacked(made, NULL);
        chain_close(chain);
        return r;
}
