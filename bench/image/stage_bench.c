/* Measures each stage of the image stream, one at a time, on one core: MB/s, the median of several
 * runs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <xxhash.h>

#include "common/util.h"
#include "daemon/image/place.h"
#include "daemon/image/tree.h"
#include "daemon/image/zero.h"
#include "tests/unit/image/memory.h"

#define RUNS 7
#define SIZE_BYTES ((size_t) 256 << 20)
#define CHUNK_BYTES ((size_t) 1 << 20)

struct bench {
        uint8_t *data;
        char base[64];
        struct memory stream;
        volatile uint64_t result; /* so that nothing is optimised away */
};

static void fail(const char *what) {
        (void) fprintf(stderr, "stage_bench: %s\n", what);
        exit(1);
}

static void zero_scan(struct bench *b) {
        for (size_t at = 0; at < SIZE_BYTES; at += IMAGE_BLOCK_BYTES)
                b->result += image_block_is_zero(b->data + at, IMAGE_BLOCK_BYTES);
}

static void checksum(struct bench *b) {
        for (size_t at = 0; at < SIZE_BYTES; at += CHUNK_BYTES)
                b->result += XXH3_64bits_withSeed(b->data + at, CHUNK_BYTES, at);
}

/* Records of TLS, without the sockets. */
static void encrypt(struct bench *b) {
        static const uint8_t key[16] = { 1 };
        static const uint8_t iv[12] = { 2 };
        EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
        uint8_t out[16 << 10];
        int n = 0;

        if (!c || EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, iv) != 1)
                fail("no AES");
        for (size_t at = 0; at < SIZE_BYTES; at += sizeof(out)) {
                (void) EVP_EncryptInit_ex(c, NULL, NULL, NULL, iv);
                (void) EVP_EncryptUpdate(c, out, &n, b->data + at, (int) sizeof(out));
                b->result += out[0];
        }
        EVP_CIPHER_CTX_free(c);
}

static const struct image_object pages = { .kind = RM__IMAGE_KIND__IMAGE_KIND_CRIU,
                                           .role = "",
                                           .path = "pages-1.img",
                                           .target = "" };

/* Copy in (as read(2) would), scan, checksum. */
static void write_stream(struct bench *b) {
        struct image_writer *w = NULL;
        uint32_t slot = 0;
        void *buffer;

        b->stream.size_bytes = 0;
        if (image_writer_create(&b->stream.sink, NULL, NULL, &w, NULL) < 0 || image_writer_open(w, &pages, &slot, NULL) < 0)
                fail("no writer");
        for (size_t at = 0; at < SIZE_BYTES; at += CHUNK_BYTES) {
                buffer = image_writer_buffer(w, CHUNK_BYTES, NULL);
                memcpy(buffer, b->data + at, CHUNK_BYTES);
                (void) image_writer_data(w, slot, at, CHUNK_BYTES, NULL);
        }
        if (image_writer_close(w, slot, SIZE_BYTES, NULL) < 0 || image_writer_end(w, NULL) < 0)
                fail("no end");
        image_writer_destroy(w);
}

/* Copy in, verify. */
static void read_stream(struct bench *b) {
        if (memory_read_nowhere(&b->stream, NULL) < 0)
                fail("the stream cannot be read");
}

/* The same stream is written into files of a tmpfs. */
static void place_stream(struct bench *b) {
        struct image_place *p = image_place_create();
        struct image_reader *reader = NULL;

        b->stream.at = 0;
        image_place_images(p, b->base);
        if (image_reader_create(&b->stream.source, image_place_target(p), NULL, &reader, NULL) < 0 ||
            image_reader_run(reader, NULL) < 0)
                fail("the stream cannot be placed");
        image_reader_destroy(reader);
        image_place_destroy(p);
}

/* The tree is read from files of a tmpfs. */
static void write_tree(struct bench *b) {
        struct image_tree_figures figures = { 0 };
        struct image_writer *w = NULL;
        int fd = open(b->base, O_RDONLY | O_DIRECTORY);

        b->stream.size_bytes = 0;
        if (fd < 0 || image_writer_create(&b->stream.sink, NULL, NULL, &w, NULL) < 0 ||
            image_tree_write(w, "tmp", fd, NULL, &figures, NULL) < 0 || figures.read_bytes != SIZE_BYTES)
                fail("no tree");
        image_writer_destroy(w);
        (void) close(fd);
}

static int by_value(const void *a, const void *b) {
        double x = *(const double *) a;
        double y = *(const double *) b;

        return (x > y) - (x < y);
}

static void measure(struct bench *b, const char *name, void (*stage)(struct bench *b)) {
        double rates[RUNS];

        for (unsigned i = 0; i < RUNS; i++) {
                uint64_t start_usec = now_usec();

                stage(b);
                rates[i] = (double) SIZE_BYTES / (double) (now_usec() - start_usec);
        }
        qsort(rates, RUNS, sizeof(rates[0]), by_value);
        (void) printf("%-28s %7.0f MB/s  (%.0f..%.0f)\n", name, rates[RUNS / 2], rates[0], rates[RUNS - 1]);
}

int main(void) {
        struct bench b = { .base = "/dev/shm/stage-bench.XXXXXX" };
        uint64_t x = 88172645463325252U;

        memory_init(&b.stream);
        b.data = aligned_alloc(4096, SIZE_BYTES);
        if (!b.data || !mkdtemp(b.base))
                fail("no memory, or no /dev/shm");
        memset(b.data, 0, SIZE_BYTES);
        measure(&b, "zero scan, zeros", zero_scan);
        for (size_t i = 0; i < SIZE_BYTES; i += 8) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                memcpy(b.data + i, &x, 8);
        }
        measure(&b, "zero scan, data", zero_scan);
        measure(&b, "checksum", checksum);
        measure(&b, "AES-128-GCM, 16 KiB records", encrypt);
        measure(&b, "writer: copy, scan, checksum", write_stream);
        measure(&b, "reader: copy, verify", read_stream);
        measure(&b, "reader and place: to tmpfs", place_stream);
        measure(&b, "tree: from tmpfs to writer", write_tree);
        memory_finish(&b.stream);
        free(b.data);
        (void) remove_tree(b.base);
        return 0;
}
