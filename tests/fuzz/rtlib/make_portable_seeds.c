/* Writes the seeds of fuzz_portable into a directory: a manifest and the file of its only rank,
 * full, compressed, and as an increment.
 * usage: make_portable_seeds DIRECTORY */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/util.h"
#include "rtlib/checkpoint/rank_file.h"

#define COUNT 700

static int file_write(const char *path, const double *cells, int zstd_level, bool increment, bool sizes) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        struct rank_writer *w = fd < 0 ? NULL : rank_writer_create(fd, 1, sizes ? 0 : 512, zstd_level);
        uint8_t hash[PORTABLE_DIGEST_BYTES], digest[PORTABLE_DIGEST_BYTES];
        uint64_t size_bytes;
        int r = w ? 0 : -EIO;

        for (uint64_t block = increment ? 4 : 0; r == 0 && block * 512 < COUNT * sizeof(*cells); block++) {
                size_t left = COUNT * sizeof(*cells) - block * 512;
                uint32_t n = left < 512 ? (uint32_t) left : 512;

                portable_digest((const char *) cells + block * 512, n, hash);
                r = rank_writer_put(w, 0, block * 512, (const char *) cells + block * 512, n, hash, NULL);
        }
        if (r == 0)
                r = rank_writer_end(w, &size_bytes, digest, NULL);
        rank_writer_destroy(w);
        return r;
}

/* The message alone; the target makes frame and digest. */
static uint8_t *manifest_make(bool increment, bool sizes, size_t *ret_size) {
        static uint8_t digest[PORTABLE_DIGEST_BYTES];
        uint64_t count = COUNT;
        Portable__Array array = PORTABLE__ARRAY__INIT, *arrays = &array;
        Portable__File file = PORTABLE__FILE__INIT, *files = &file;
        Portable__Manifest m = PORTABLE__MANIFEST__INIT;
        uint8_t *data;

        array.name = (char *) "cells";
        array.kind = RMRT_FLOAT;
        array.unit_bytes = 8;
        array.units = 1;
        array.distribution = RMRT_BLOCK;
        array.counts = &count;
        array.n_counts = 1;
        file.digest = (ProtobufCBinaryData) { .data = digest, .len = sizeof(digest) };
        m.version = sizes ? PORTABLE_VERSION_SIZES : PORTABLE_VERSION;
        m.number = 2;
        m.previous = increment;
        if (increment)
                m.previous_digest = file.digest;
        m.block_bytes = 512;
        m.arrays = &arrays;
        m.files = &files;
        m.n_arrays = m.n_files = 1;
        data = xcalloc(1, portable__manifest__get_packed_size(&m));
        *ret_size = portable__manifest__pack(&m, data);
        return data;
}

static int seed_write(const char *directory, const char *name, const double *cells, int zstd_level, bool increment, bool sizes) {
        cleanup_free char *path = xasprintf("%s/%s", directory, name), *file = NULL, *seed = NULL;
        size_t n_manifest = 0, n_file = 0;
        cleanup_free uint8_t *manifest = manifest_make(increment, sizes, &n_manifest);
        int r = file_write(path, cells, zstd_level, increment, sizes);

        if (r == 0)
                r = read_file(path, 1 << 20, &file, &n_file);
        if (r < 0)
                return r;
        seed = xcalloc(1, 2 + n_manifest + n_file);
        seed[0] = (char) (n_manifest >> 8);
        seed[1] = (char) n_manifest;
        memcpy(seed + 2, manifest, n_manifest);
        memcpy(seed + 2 + n_manifest, file, n_file);
        return write_file_atomic(path, seed, 2 + n_manifest + n_file, 0644, false);
}

int main(int argc, char **argv) {
        double cells[COUNT];
        int r;

        if (argc != 2) {
                (void) fputs("usage: make_portable_seeds DIRECTORY\n", stderr);
                return 2;
        }
        for (int i = 0; i < COUNT; i++)
                cells[i] = i;
        r = seed_write(argv[1], "full", cells, 0, false, false);
        if (r == 0)
                r = seed_write(argv[1], "compressed", cells, 3, false, false);
        if (r == 0)
                r = seed_write(argv[1], "increment", cells, 0, true, false);
        if (r == 0)
                r = seed_write(argv[1], "sizes", cells, 0, true, true);
        if (r < 0)
                (void) fprintf(stderr, "make_portable_seeds: cannot write to %s\n", argv[1]);
        return r < 0 ? 1 : 0;
}
