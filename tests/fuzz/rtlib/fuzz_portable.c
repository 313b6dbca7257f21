/* The decoders of portable checkpoints against arbitrary bytes: a manifest, and a rank's file with
 * the manifest that names it. Digests are made to fit, since random bytes would come no further
 * than that. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/util.h"
#include "rtlib/checkpoint/rank_file.h"
#include "rtlib/checkpoint/rank_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* A whole manifest of what is to be its message. NULL: it is none. */
static Portable__Manifest *manifest_of(const uint8_t *message, size_t n) {
        cleanup_free uint8_t *file = xcalloc(1, FRAME_HEADER_BYTES + n + PORTABLE_DIGEST_BYTES);
        Portable__Manifest *m = NULL;

        frame_header_write(file, PORTABLE_MAGIC, (uint32_t) n);
        memcpy(file + FRAME_HEADER_BYTES, message, n);
        portable_digest(file, FRAME_HEADER_BYTES + n, file + FRAME_HEADER_BYTES + n);
        return manifest_unpack(file, FRAME_HEADER_BYTES + n + PORTABLE_DIGEST_BYTES, &m, NULL, NULL) == 0 ? m : NULL;
}

/* Sums must not overflow, and what is written must be what was read. */
static void walk(const Portable__Manifest *m) {
        cleanup_free uint8_t *packed = NULL;
        size_t n;

        for (size_t i = 0; i < m->n_arrays; i++)
                if (manifest_total_count(m->arrays[i]) > PORTABLE_PIECE_MAX_BYTES && m->arrays[i]->distribution != RMRT_REPLICATED)
                        abort();
        if (manifest_pack(m, &packed, &n, NULL, NULL) < 0)
                abort();
}

/* Reads as many blocks as a small program would. */
static void read_blocks(struct rank_reader *reader, const Portable__Manifest *m) {
        cleanup_free uint8_t *block = xrealloc(NULL, m->block_bytes);

        for (size_t i = 0; i < m->n_arrays; i++) {
                size_t n = 0;
                const struct rank_block *blocks = rank_reader_blocks(reader, i, &n);

                for (size_t k = 0; k < n; k++) {
                        uint64_t end;

                        if (rank_reader_find(reader, i, blocks[k].from, &end) != &blocks[k] ||
                            end != blocks[k].from + blocks[k].bytes)
                                abort();
                        (void) rank_reader_get(reader, i, &blocks[k], block, NULL);
                }
        }
}

/* The index begins where the file says, if it can. */
static void digest_fit(Portable__Manifest *m, const uint8_t *file, size_t n) {
        uint64_t offset = 0;

        for (size_t i = 0; i < RANK_FILE_TAIL_BYTES; i++)
                offset = offset << 8 | file[n - RANK_FILE_TAIL_BYTES + i];
        if (offset <= n - RANK_FILE_TAIL_BYTES)
                rank_file_digest(file, file + offset, n - RANK_FILE_TAIL_BYTES - (size_t) offset, file + n - RANK_FILE_TAIL_BYTES,
                                 m->files[0]->digest.data);
}

static void read_file_of(Portable__Manifest *m, const uint8_t *file, size_t n) {
        struct rank_reader *reader = NULL;
        int fd;

        if (n < RANK_FILE_MAGIC_BYTES + RANK_FILE_TAIL_BYTES)
                return;
        digest_fit(m, file, n);
        m->files[0]->size_bytes = n;
        fd = memfd_create("rank", MFD_CLOEXEC);
        if (fd < 0 || write_all(fd, file, n) < 0)
                abort();
        if (rank_reader_create(fd, m, 0, &reader, NULL) < 0)
                return;
        read_blocks(reader, m);
        rank_reader_destroy(reader);
}

/* The first two bytes: how long the manifest's message is; the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        Portable__Manifest *m = NULL;
        size_t n;

        if (manifest_unpack(data, size_bytes, &m, NULL, NULL) == 0)
                portable__manifest__free_unpacked(m, NULL);
        if (size_bytes < 2)
                return 0;
        n = (size_t) data[0] << 8 | data[1];
        if (n > size_bytes - 2)
                return 0;
        m = manifest_of(data + 2, n);
        if (!m)
                return 0;
        walk(m);
        read_file_of(m, data + 2 + n, size_bytes - 2 - n);
        portable__manifest__free_unpacked(m, NULL);
        return 0;
}
