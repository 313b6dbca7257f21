/* Writes the seeds of fuzz_image and fuzz_image_place into a directory: whole streams with every
 * kind of object, with holes, a delta and each codec.
 * usage: make_image_seeds DIRECTORY */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "tests/unit/image/memory.h"

/* The blocks that the fuzz target knows: blocks of one byte, under even numbers. */
static bool even_has(void *ctx, const void *block, uint64_t *ret_number) {
        const uint8_t *p = block;

        (void) ctx;
        *ret_number = 4;
        return p[0] == 0x5a && memcmp(p, p + 1, IMAGE_BLOCK_BYTES - 1) == 0;
}

struct fixed {
        struct image_coder *coder;
        enum image_codec codec;
};

static enum image_codec fixed_encode(void *ctx, const void *in, size_t size_bytes, void *out, size_t *ret_size_bytes) {
        const struct fixed *f = ctx;

        *ret_size_bytes = image_encode(f->coder, f->codec, in, size_bytes, out, size_bytes - 1);
        return *ret_size_bytes > 0 ? f->codec : IMAGE_CODEC_NONE;
}

static int objects_put(struct image_writer *w) {
        static const struct image_attribute attributes[] = { { "user.tag", "value", 5 },
                                                             { "system.posix_acl_access", "\2\0\0\0", 4 },
                                                             { "system.posix_acl_default", "", 0 } };
        static const struct image_object objects[] = {
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", ".", "", 01777, 0, 0, 5, 6, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", "a", "", 0755, 0, 0, 5, 6, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_FIFO, "tmp", "fifo", "", 0644, 1000, 1000, 1700000000, 9, &attributes[1], 1 },
                { RM__IMAGE_KIND__IMAGE_KIND_SYMLINK, "tmp", "a/link", "../x", 0777, 0, 0, 0, 0, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, "tmp", "hard", "fifo", 0644, 0, 0, 0, 0, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END, "tmp", ".", "", 01777, 0, 0, 5, 6, attributes, ARRAY_SIZE(attributes) },
        };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(objects) && r == 0; i++)
                r = image_writer_open(w, &objects[i], NULL, NULL);
        return r;
}

static int contents_put(struct image_writer *w, Rm__ImageKind kind, const char *role, const char *path, uint32_t ahead) {
        const struct image_object o = { kind, role, path, "", 0600, 0, 0, 1, 2, NULL, 0, .ahead = ahead };
        uint32_t slot = 0;
        char *buffer;

        if (image_writer_open(w, &o, &slot, NULL) < 0 || image_writer_zero(w, slot, 0, 1 << 20, NULL) < 0)
                return -EIO;
        buffer = image_writer_buffer(w, 3 * IMAGE_BLOCK_BYTES, NULL);
        if (!buffer)
                return -EIO;
        memset(buffer, 0, 3 * IMAGE_BLOCK_BYTES);
        memset(buffer, 'x', 20);
        memset(buffer + 2 * IMAGE_BLOCK_BYTES, 0x5a, IMAGE_BLOCK_BYTES);
        if (image_writer_data(w, slot, 1 << 20, 3 * IMAGE_BLOCK_BYTES, NULL) < 0)
                return -EIO;
        return image_writer_close(w, slot, 2 << 20, NULL);
}

/* The object of process 17 with that list of pages. */
static int list_put(struct image_writer *w, Rm__ImageKind kind, const uint64_t *runs, size_t size_bytes) {
        const struct image_object o = { .kind = kind, .role = "", .path = "17", .target = "" };
        uint32_t slot = 0;
        void *buffer;

        if (image_writer_open(w, &o, &slot, NULL) < 0)
                return -EIO;
        buffer = image_writer_buffer(w, size_bytes, NULL);
        if (!buffer)
                return -EIO;
        memcpy(buffer, runs, size_bytes);
        if (image_writer_data(w, slot, 0, size_bytes, NULL) < 0)
                return -EIO;
        return image_writer_close(w, slot, size_bytes, NULL);
}

/* Four pages of a process: one is there in the end, one comes later again, and one only later. */
static int memory_put(struct image_writer *w) {
        const struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_PAGES, .role = "", .path = "17", .target = "" };
        const uint64_t base = 1 << 20, page = IMAGE_BLOCK_BYTES;
        const uint64_t later[] = { htole64(base + page), htole64(base + 2 * page), htole64(base + 3 * page),
                                   htole64(base + 4 * page) };
        const uint64_t present[] = { htole64(base), htole64(base + 2 * page), htole64(base + 3 * page), htole64(base + 4 * page) };
        uint32_t slot = 0;
        void *buffer;

        if (image_writer_open(w, &o, &slot, NULL) < 0 || image_writer_zero(w, slot, 0, base, NULL) < 0)
                return -EIO;
        buffer = image_writer_buffer(w, 3 * page, NULL);
        if (!buffer)
                return -EIO;
        memset(buffer, 0x5a, 3 * page);
        if (image_writer_data(w, slot, base, 3 * page, NULL) < 0 ||
            list_put(w, RM__IMAGE_KIND__IMAGE_KIND_LATER, later, sizeof(later)) < 0 ||
            list_put(w, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, present, sizeof(present)) < 0)
                return -EIO;
        return image_writer_close(w, slot, 0, NULL);
}

static int seed_write(const char *directory, const char *name, const struct image_delta *delta,
                      const struct image_encoder *encoder) {
        cleanup_free char *path = xasprintf("%s/%s", directory, name);
        struct image_writer *w = NULL;
        struct memory m;
        int r;

        memory_init(&m);
        r = image_writer_create(&m.sink, delta, encoder, &w, NULL);
        if (r == 0)
                r = objects_put(w);
        if (r == 0)
                r = contents_put(w, RM__IMAGE_KIND__IMAGE_KIND_BLOCKS, "", "", 0);
        if (r == 0)
                r = contents_put(w, RM__IMAGE_KIND__IMAGE_KIND_AHEAD, "tmp", "3", 0);
        if (r == 0)
                r = memory_put(w);
        if (r == 0)
                r = contents_put(w, RM__IMAGE_KIND__IMAGE_KIND_CRIU, "", "pages-1.img", 0);
        if (r == 0)
                r = contents_put(w, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "a/b", 0);
        if (r == 0)
                r = contents_put(w, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "a/ahead", 3);
        if (r == 0)
                r = contents_put(w, RM__IMAGE_KIND__IMAGE_KIND_SPOOL, "stdout", "", 0);
        if (r == 0)
                r = image_writer_end(w, NULL);
        if (r == 0)
                r = write_file_atomic(path, m.data, m.size_bytes, 0644, false);
        image_writer_destroy(w);
        memory_finish(&m);
        return r;
}

int main(int argc, char **argv) {
        const struct image_delta delta = { .peer_has = even_has };
        struct fixed lz4 = { .codec = IMAGE_CODEC_LZ4 };
        struct fixed zstd = { .codec = IMAGE_CODEC_ZSTD };
        const struct image_encoder by_lz4 = { .ctx = &lz4, .encode = fixed_encode };
        const struct image_encoder by_zstd = { .ctx = &zstd, .encode = fixed_encode };

        if (argc != 2) {
                (void) fputs("usage: make_image_seeds DIRECTORY\n", stderr);
                return 2;
        }
        lz4.coder = zstd.coder = image_coder_create();
        if (seed_write(argv[1], "plain", NULL, NULL) < 0 || seed_write(argv[1], "delta", &delta, NULL) < 0 ||
            seed_write(argv[1], "lz4", NULL, &by_lz4) < 0 || seed_write(argv[1], "zstd", &delta, &by_zstd) < 0) {
                (void) fprintf(stderr, "make_image_seeds: cannot write to %s\n", argv[1]);
                return 1;
        }
        image_coder_destroy(lz4.coder);
        return 0;
}
