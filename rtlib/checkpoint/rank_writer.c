#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "common/frame.h"
#include "common/util.h"
#include "rtlib/checkpoint/rank_file.h"
#include "rtlib/checkpoint/rank_internal.h"

/* Neighbouring blocks go to the disk in one write. */
#define BUFFER_BYTES (1U << 20)

/* Blocks of one array that follow each other. */
struct section {
        size_t array;
        uint64_t first, end; /* bytes */
        size_t n, space;
        uint32_t *stored, *sizes;
        uint8_t *hashes, *checks;
        bool packed; /* some are */
};

struct rank_writer {
        FILE *f;
        uint32_t block_bytes; /* 0: they differ */
        int level;
        ZSTD_CCtx *zstd;
        uint8_t *packed; /* a block */
        uint64_t offset;
        size_t n_arrays, n_sections;
        struct section *sections;
};

struct rank_writer *rank_writer_create(int fd, size_t n_arrays, uint32_t block_bytes, int zstd_level) {
        struct rank_writer *w = xcalloc(1, sizeof(*w));

        w->f = fdopen(fd, "w");
        if (!w->f)
                abort(); /* only where memory is out */
        (void) setvbuf(w->f, NULL, _IOFBF, BUFFER_BYTES);
        w->block_bytes = block_bytes;
        w->level = zstd_level;
        w->n_arrays = n_arrays;
        return w;
}

void rank_writer_destroy(struct rank_writer *w) {
        if (!w)
                return;
        for (size_t i = 0; i < w->n_sections; i++) {
                free(w->sections[i].stored);
                free(w->sections[i].sizes);
                free(w->sections[i].hashes);
                free(w->sections[i].checks);
        }
        free(w->sections);
        free(w->packed);
        ZSTD_freeCCtx(w->zstd);
        if (w->f)
                (void) fclose(w->f);
        free(w);
}

static int put_bytes(struct rank_writer *w, const void *data, size_t size_bytes, struct rm_error *err) {
        if (fwrite(data, 1, size_bytes, w->f) != size_bytes)
                return error_sys(err, errno ? -errno : -EIO, "write");
        w->offset += size_bytes;
        return 0;
}

static int head_put(struct rank_writer *w, struct rm_error *err) {
        return w->offset > 0 ? 0 : put_bytes(w, RANK_FILE_MAGIC, RANK_FILE_MAGIC_BYTES, err);
}

static struct section *section_for(struct rank_writer *w, size_t array, uint64_t from) {
        struct section *s = w->n_sections > 0 ? &w->sections[w->n_sections - 1] : NULL;

        if (s && s->array == array && s->end == from)
                return s;
        /* Room for 2, 4, 8 and so on. */
        if ((w->n_sections & (w->n_sections + 1)) == 0)
                w->sections = xrealloc(w->sections, (w->n_sections + 1) * 2 * sizeof(*s));
        s = &w->sections[w->n_sections++];
        *s = (struct section) { .array = array, .first = from, .end = from };
        return s;
}

/* `check`: the hash of what is stored. */
static void section_add(struct section *s, uint32_t bytes, uint32_t stored, const uint8_t *hash, const uint8_t *check) {
        if (s->n == s->space) {
                s->space = s->space > 0 ? s->space * 2 : 16;
                s->stored = xrealloc(s->stored, s->space * sizeof(*s->stored));
                s->sizes = xrealloc(s->sizes, s->space * sizeof(*s->sizes));
                s->hashes = xrealloc(s->hashes, s->space * PORTABLE_DIGEST_BYTES);
                s->checks = xrealloc(s->checks, s->space * RANK_CHECK_BYTES);
        }
        s->stored[s->n] = stored;
        s->sizes[s->n] = bytes;
        s->end += bytes;
        memcpy(s->hashes + s->n * PORTABLE_DIGEST_BYTES, hash, PORTABLE_DIGEST_BYTES);
        memcpy(s->checks + s->n++ * RANK_CHECK_BYTES, check, RANK_CHECK_BYTES);
        s->packed = s->packed || check != hash;
}

/* The compressed size of the block if it becomes smaller, else 0. */
static uint32_t compress(struct rank_writer *w, const void *data, uint32_t size_bytes) {
        size_t n;

        if (w->level == 0 || size_bytes < 2)
                return 0;
        if (!w->zstd) {
                w->zstd = ZSTD_createCCtx();
                w->packed = xrealloc(NULL, PORTABLE_BLOCK_MAX_BYTES);
        }
        n = w->zstd ? ZSTD_compressCCtx(w->zstd, w->packed, size_bytes - 1, data, size_bytes, w->level) : 0;
        return ZSTD_isError(n) ? 0 : (uint32_t) n;
}

int rank_writer_put(struct rank_writer *w, size_t array, uint64_t from, const void *data, uint32_t size_bytes,
                    const uint8_t hash[static PORTABLE_DIGEST_BYTES], struct rm_error *err) {
        uint32_t packed = compress(w, data, size_bytes);
        uint8_t packed_hash[PORTABLE_DIGEST_BYTES];
        int r = head_put(w, err);

        if (packed > 0)
                portable_digest(w->packed, packed, packed_hash);
        if (r == 0)
                r = put_bytes(w, packed > 0 ? w->packed : data, packed > 0 ? packed : size_bytes, err);
        if (r == 0)
                section_add(section_for(w, array, from), size_bytes, packed > 0 ? packed : size_bytes, hash,
                            packed > 0 ? packed_hash : hash);
        return r;
}

/* ---- the index ---- */

static void run_fill(Portable__Run *run, const struct section *s, uint32_t block_bytes) {
        *run = (Portable__Run) PORTABLE__RUN__INIT;
        run->first = block_bytes > 0 ? s->first / block_bytes : s->first;
        if (block_bytes == 0) {
                run->sizes = s->sizes;
                run->n_sizes = s->n;
        }
        run->hashes = (ProtobufCBinaryData) { .data = s->hashes, .len = s->n * PORTABLE_DIGEST_BYTES };
        run->stored = s->stored;
        run->n_stored = s->n;
        if (s->packed)
                run->checks = (ProtobufCBinaryData) { .data = s->checks, .len = s->n * RANK_CHECK_BYTES };
}

/* A frame; malloc'ed. NULL: it is too large. */
static uint8_t *index_pack(const struct rank_writer *w, size_t *ret_size) {
        cleanup_free Portable__Run *runs = xcalloc(w->n_sections + 1, sizeof(*runs));
        cleanup_free Portable__Run **run_list = xcalloc(w->n_sections + 1, sizeof(*run_list));
        cleanup_free Portable__Piece *pieces = xcalloc(w->n_arrays + 1, sizeof(*pieces));
        cleanup_free Portable__Piece **piece_list = xcalloc(w->n_arrays + 1, sizeof(*piece_list));
        Portable__Index index = PORTABLE__INDEX__INIT;

        for (size_t i = 0; i < w->n_arrays; i++) {
                pieces[i] = (Portable__Piece) PORTABLE__PIECE__INIT;
                piece_list[i] = &pieces[i];
        }
        for (size_t i = 0; i < w->n_sections; i++) {
                Portable__Piece *piece = &pieces[w->sections[i].array];

                run_fill(&runs[i], &w->sections[i], w->block_bytes);
                run_list[i] = &runs[i];
                if (piece->n_runs++ == 0)
                        piece->runs = &run_list[i];
        }
        index.pieces = piece_list;
        index.n_pieces = w->n_arrays;
        if (protobuf_c_message_get_packed_size(&index.base) > PORTABLE_RECORD_MAX_BYTES)
                return NULL;
        return frame_pack(PORTABLE_MAGIC, &index.base, ret_size);
}

void rank_file_digest(const uint8_t *head, const uint8_t *frame, size_t frame_bytes, const uint8_t *tail,
                      uint8_t ret[static PORTABLE_DIGEST_BYTES]) {
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();

        if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 || EVP_DigestUpdate(ctx, head, RANK_FILE_MAGIC_BYTES) != 1 ||
            EVP_DigestUpdate(ctx, frame, frame_bytes) != 1 || EVP_DigestUpdate(ctx, tail, RANK_FILE_TAIL_BYTES) != 1 ||
            EVP_DigestFinal_ex(ctx, ret, NULL) != 1)
                abort(); /* only where memory is out */
        EVP_MD_CTX_free(ctx);
}

int rank_writer_end(struct rank_writer *w, uint64_t *ret_size_bytes, uint8_t ret_digest[static PORTABLE_DIGEST_BYTES],
                    struct rm_error *err) {
        cleanup_free uint8_t *frame = NULL;
        uint8_t tail[RANK_FILE_TAIL_BYTES];
        size_t n = 0;
        int r = head_put(w, err);

        if (r < 0)
                return r;
        frame = index_pack(w, &n);
        if (!frame)
                return error_set(err, -EFBIG, "there are too many blocks");
        for (size_t i = 0; i < sizeof(tail); i++)
                tail[i] = (uint8_t) (w->offset >> (56 - 8 * i));
        rank_file_digest((const uint8_t *) RANK_FILE_MAGIC, frame, n, tail, ret_digest);
        r = put_bytes(w, frame, n, err);
        if (r == 0)
                r = put_bytes(w, tail, sizeof(tail), err);
        if (r == 0 && (fflush(w->f) != 0 || fsync(fileno(w->f)) < 0))
                r = error_sys(err, -errno, "write");
        *ret_size_bytes = w->offset;
        return r;
}
