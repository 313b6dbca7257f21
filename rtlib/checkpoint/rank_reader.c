#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/frame.h"
#include "common/util.h"
#include "rtlib/checkpoint/rank_file.h"
#include "rtlib/checkpoint/rank_internal.h"

struct blocks {
        size_t n;
        struct rank_block *list;
};

struct rank_reader {
        int fd;
        const Portable__Manifest *m;
        size_t rank;
        Portable__Index *index; /* has the hashes */
        struct blocks *arrays;
        ZSTD_DCtx *zstd;
        uint8_t *packed;
};

void rank_reader_destroy(struct rank_reader *reader) {
        if (!reader)
                return;
        for (size_t i = 0; reader->arrays && i < reader->m->n_arrays; i++)
                free(reader->arrays[i].list);
        free(reader->arrays);
        if (reader->index)
                portable__index__free_unpacked(reader->index, NULL);
        ZSTD_freeDCtx(reader->zstd);
        free(reader->packed);
        cleanup_close_fd(&reader->fd);
        free(reader);
}

static int bad(struct rm_error *err, const char *what) {
        return error_set(err, -EBADMSG, "%s", what);
}

static int read_at(int fd, uint64_t offset, void *data, size_t size_bytes, struct rm_error *err) {
        size_t done = 0;

        while (done < size_bytes) {
                ssize_t n = pread(fd, (char *) data + done, size_bytes - done, (off_t) (offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_sys(err, -errno, "read");
                if (n == 0)
                        return bad(err, "it is cut off");
                done += (size_t) n;
        }
        return 0;
}

/* ---- the index ---- */

/* The first byte of a run. */
static uint64_t run_from(const Portable__Manifest *m, const Portable__Run *run) {
        return manifest_has_sizes(m) ? run->first : run->first * m->block_bytes;
}

/* The bytes of its block number i, which begins at `from`, of an array of `bytes`. */
static uint32_t run_block(const Portable__Manifest *m, const Portable__Run *run, size_t i, uint64_t from, uint64_t bytes) {
        if (manifest_has_sizes(m))
                return run->sizes[i];
        return bytes - from < m->block_bytes ? (uint32_t) (bytes - from) : m->block_bytes;
}

static bool run_complete(const Portable__Manifest *m, const Portable__Run *run) {
        size_t n = run->n_stored;

        if (n == 0 || run->hashes.len / PORTABLE_DIGEST_BYTES != n || run->hashes.len % PORTABLE_DIGEST_BYTES != 0)
                return false;
        if (run->checks.len > 0 && (run->checks.len / RANK_CHECK_BYTES != n || run->checks.len % RANK_CHECK_BYTES != 0))
                return false;
        return run->n_sizes == (manifest_has_sizes(m) ? n : 0);
}

/* Where the blocks of a run end, of an array of `bytes`; 0: it cannot be. Fewer bytes than a block
 * has are compressed ones; none, or more, are there for no block. */
static uint64_t run_end(const Portable__Manifest *m, const Portable__Run *run, uint64_t from, uint64_t bytes) {
        uint64_t at;

        if (!run_complete(m, run) || run->first > PORTABLE_PIECE_MAX_BYTES / (manifest_has_sizes(m) ? 1 : m->block_bytes))
                return 0;
        at = run_from(m, run);
        if (at < from)
                return 0;
        for (size_t i = 0; i < run->n_stored; i++) {
                uint32_t n;

                if (at >= bytes)
                        return 0;
                n = run_block(m, run, i, at, bytes);
                if (n == 0 || n > m->block_bytes || n > bytes - at || run->stored[i] == 0 || run->stored[i] > n)
                        return 0;
                at += n;
        }
        return at;
}

static void run_take(const Portable__Manifest *m, struct blocks *blocks, const Portable__Run *run, uint64_t bytes,
                     uint64_t *offset) {
        uint64_t at = run_from(m, run);

        for (size_t i = 0; i < run->n_stored; i++) {
                uint32_t n = run_block(m, run, i, at, bytes);

                blocks->list[blocks->n++] =
                        (struct rank_block) { at,
                                              *offset,
                                              n,
                                              run->stored[i],
                                              run->hashes.data + i * PORTABLE_DIGEST_BYTES,
                                              run->checks.len > 0 ? run->checks.data + i * RANK_CHECK_BYTES : NULL };
                *offset += run->stored[i];
                at += n;
        }
}

static int piece_read(struct rank_reader *reader, size_t array, const Portable__Piece *piece, uint64_t *offset,
                      struct rm_error *err) {
        uint64_t bytes = manifest_piece_bytes(reader->m->arrays[array], reader->rank), from = 0;
        struct blocks *blocks = &reader->arrays[array];
        size_t n = 0;

        for (size_t i = 0; i < piece->n_runs; i++) {
                from = run_end(reader->m, piece->runs[i], from, bytes);
                if (from == 0)
                        return bad(err, "its index is damaged");
                n += piece->runs[i]->n_stored;
        }
        blocks->list = xcalloc(n + 1, sizeof(*blocks->list));
        for (size_t i = 0; i < piece->n_runs; i++)
                run_take(reader->m, blocks, piece->runs[i], bytes, offset);
        return 0;
}

/* All blocks of a full one are there, or it is none. */
static int whole_check(const struct rank_reader *reader, size_t array, struct rm_error *err) {
        const struct blocks *blocks = &reader->arrays[array];
        uint64_t at = 0;

        for (size_t i = 0; i < blocks->n && blocks->list[i].from == at; i++)
                at += blocks->list[i].bytes;
        if (reader->m->previous == 0 && at != manifest_piece_bytes(reader->m->arrays[array], reader->rank))
                return bad(err, "blocks are missing in its index");
        return 0;
}

static int index_take(struct rank_reader *reader, uint64_t index_offset, struct rm_error *err) {
        uint64_t offset = RANK_FILE_MAGIC_BYTES;
        int r = 0;

        if (reader->index->n_pieces != reader->m->n_arrays)
                return bad(err, "its index has other arrays");
        reader->arrays = xcalloc(reader->m->n_arrays + 1, sizeof(*reader->arrays));
        for (size_t i = 0; r == 0 && i < reader->m->n_arrays; i++) {
                r = piece_read(reader, i, reader->index->pieces[i], &offset, err);
                if (r == 0)
                        r = whole_check(reader, i, err);
        }
        if (r == 0 && offset != index_offset)
                r = bad(err, "its index has other blocks");
        return r;
}

static int index_read(struct rank_reader *reader, uint64_t size_bytes, struct rm_error *err) {
        const ProtobufCBinaryData *digest = &reader->m->files[reader->rank]->digest;
        uint8_t head[RANK_FILE_MAGIC_BYTES], tail[RANK_FILE_TAIL_BYTES], made[PORTABLE_DIGEST_BYTES];
        cleanup_free uint8_t *frame = NULL;
        uint64_t offset = 0, end = size_bytes - RANK_FILE_TAIL_BYTES;
        uint32_t n = 0;
        int r = read_at(reader->fd, 0, head, sizeof(head), err);

        if (r == 0)
                r = read_at(reader->fd, end, tail, sizeof(tail), err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof(tail); i++)
                offset = offset << 8 | tail[i];
        if (offset < RANK_FILE_MAGIC_BYTES || offset > end || end - offset < FRAME_HEADER_BYTES ||
            end - offset > FRAME_HEADER_BYTES + PORTABLE_RECORD_MAX_BYTES)
                return bad(err, "its end is damaged");
        frame = xrealloc(NULL, (size_t) (end - offset));
        r = read_at(reader->fd, offset, frame, (size_t) (end - offset), err);
        if (r < 0)
                return r;
        rank_file_digest(head, frame, (size_t) (end - offset), tail, made);
        if (memcmp(made, digest->data, sizeof(made)) != 0)
                return bad(err, "its beginning, index or end is damaged");
        if (frame_header_read(frame, PORTABLE_MAGIC, PORTABLE_RECORD_MAX_BYTES, &n) < 0 || n != end - offset - FRAME_HEADER_BYTES)
                return bad(err, "it has no index");
        reader->index = portable__index__unpack(NULL, n, frame + FRAME_HEADER_BYTES);
        return reader->index ? index_take(reader, offset, err) : bad(err, "its index cannot be read");
}

int rank_reader_create(int fd, const Portable__Manifest *m, size_t rank, struct rank_reader **ret, struct rm_error *err) {
        struct rank_reader *reader = xcalloc(1, sizeof(*reader));
        struct stat st;
        int r = 0;

        reader->fd = fd;
        reader->m = m;
        reader->rank = rank;
        if (fstat(fd, &st) < 0)
                r = error_sys(err, -errno, "read");
        else if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size != m->files[rank]->size_bytes)
                r = bad(err, "it has another size");
        else if ((uint64_t) st.st_size < RANK_FILE_MAGIC_BYTES + RANK_FILE_TAIL_BYTES)
                r = bad(err, "it is cut off");
        else
                r = index_read(reader, (uint64_t) st.st_size, err);
        if (r < 0)
                rank_reader_destroy(reader);
        else
                *ret = reader;
        return r;
}

/* ---- blocks ---- */

const struct rank_block *rank_reader_blocks(const struct rank_reader *reader, size_t array, size_t *ret_n) {
        *ret_n = reader->arrays[array].n;
        return reader->arrays[array].list;
}

const struct rank_block *rank_reader_find(const struct rank_reader *reader, size_t array, uint64_t at, uint64_t *ret_end) {
        const struct blocks *blocks = &reader->arrays[array];
        size_t low = 0, high = blocks->n;

        /* The first that ends behind it. */
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const struct rank_block *b = &blocks->list[middle];

                if (b->from + b->bytes <= at)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == blocks->n) {
                *ret_end = UINT64_MAX;
                return NULL;
        }
        if (blocks->list[low].from > at) {
                *ret_end = blocks->list[low].from;
                return NULL;
        }
        *ret_end = blocks->list[low].from + blocks->list[low].bytes;
        return &blocks->list[low];
}

/* Is it what was stored? Where that is not known, what comes out of it tells. */
static bool packed_whole(const struct rank_reader *reader, const struct rank_block *block) {
        uint8_t hash[PORTABLE_DIGEST_BYTES];

        if (!block->check)
                return true;
        portable_digest(reader->packed, block->stored_bytes, hash);
        return memcmp(hash, block->check, RANK_CHECK_BYTES) == 0;
}

static int unpack(struct rank_reader *reader, const struct rank_block *block, void *ret, uint32_t size_bytes,
                  struct rm_error *err) {
        if (!packed_whole(reader, block))
                return bad(err, "it has another hash in the file");
        if (!reader->zstd)
                reader->zstd = ZSTD_createDCtx();
        if (!reader->zstd || ZSTD_decompressDCtx(reader->zstd, ret, size_bytes, reader->packed, block->stored_bytes) != size_bytes)
                return bad(err, "it cannot be unpacked");
        return 0;
}

int rank_reader_get(struct rank_reader *reader, size_t array, const struct rank_block *block, void *ret, struct rm_error *err) {
        uint32_t size_bytes = block->bytes;
        bool packed = block->stored_bytes < size_bytes;
        uint8_t hash[PORTABLE_DIGEST_BYTES];
        int r;

        if (packed && !reader->packed)
                reader->packed = xrealloc(NULL, reader->m->block_bytes);
        r = read_at(reader->fd, block->offset, packed ? reader->packed : ret, block->stored_bytes, err);
        if (r == 0 && packed)
                r = unpack(reader, block, ret, size_bytes, err);
        if (r == 0) {
                portable_digest(ret, size_bytes, hash);
                if (memcmp(hash, block->hash, sizeof(hash)) != 0)
                        r = bad(err, "it has another hash");
        }
        if (r < 0 && manifest_has_sizes(reader->m))
                return error_prefix(err, "the block at byte %" PRIu64 " of array '%s' is damaged", block->from,
                                    reader->m->arrays[array]->name);
        return r < 0 ? error_prefix(err, "block %" PRIu64 " of array '%s' is damaged", block->from / reader->m->block_bytes,
                                    reader->m->arrays[array]->name)
                     : r;
}
