/* The image stream in memory: what is elided, and that nothing damaged passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <xxhash.h>

#include "common/util.h"
#include "daemon/image/chunk.h"
#include "daemon/image/known.h"
#include "daemon/image/zero.h"
#include "memory.h"

#define OBJECT_BYTES (6U << 20)

/* A target that keeps one object. */
struct keeper {
        struct image_target target;
        uint8_t data[OBJECT_BYTES];
        uint64_t size_bytes;
        uint64_t delivered_bytes;
        unsigned opened;
        bool closed;
};

static int keep_open(void *ctx, const struct image_object *object, void **ret_handle, struct rm_error *err) {
        struct keeper *k = ctx;

        (void) object;
        (void) err;
        k->opened++;
        *ret_handle = k;
        return 0;
}

static int keep_data(void *ctx, void *handle, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err) {
        struct keeper *k = ctx;

        (void) err;
        assert_ptr_equal(handle, k);
        assert_true(offset + size_bytes <= OBJECT_BYTES);
        memcpy(k->data + offset, data, size_bytes);
        k->delivered_bytes += size_bytes;
        return 0;
}

static int keep_close(void *ctx, void *handle, uint64_t size_bytes, struct rm_error *err) {
        struct keeper *k = ctx;

        (void) handle;
        (void) err;
        k->size_bytes = size_bytes;
        k->closed = true;
        return 0;
}

static void keep_drop(void *ctx, void *handle) {
        (void) ctx;
        (void) handle;
}

static struct keeper *keeper_create(void) {
        struct keeper *k = xcalloc(1, sizeof(*k));

        k->target =
                (struct image_target) { .ctx = k, .open = keep_open, .data = keep_data, .close = keep_close, .drop = keep_drop };
        return k;
}

static uint64_t random_next(uint64_t *x) {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        return *x;
}

static void random_fill(uint8_t *p, size_t size_bytes, uint64_t *x) {
        for (size_t i = 0; i < size_bytes; i++)
                p[i] = (uint8_t) (random_next(x) >> 32);
}

static const struct image_object pages = { .kind = RM__IMAGE_KIND__IMAGE_KIND_CRIU,
                                           .role = "",
                                           .path = "pages-1.img",
                                           .target = "" };

/* Writes `data` in pieces of varying size, as reads from a pipe give them. */
static void object_write(struct image_writer *w, const struct image_object *o, const uint8_t *data, size_t size_bytes,
                         uint64_t *x) {
        uint32_t slot = 0;

        assert_int_equal(image_writer_open(w, o, &slot, NULL), 0);
        for (size_t at = 0; at < size_bytes;) {
                size_t n = random_next(x) % 3 == 0 ? IMAGE_PAYLOAD_MAX_BYTES : random_next(x) % 300000 + 1;
                void *buffer = image_writer_buffer(w, n, NULL);

                assert_non_null(buffer);
                if (n > size_bytes - at)
                        n = size_bytes - at;
                memcpy(buffer, data + at, n);
                assert_int_equal(image_writer_data(w, slot, at, n, NULL), 0);
                at += n;
        }
        assert_int_equal(image_writer_close(w, slot, size_bytes, NULL), 0);
}

static struct image_figures stream_make(struct memory *m, const uint8_t *data, size_t size_bytes, const struct image_delta *delta,
                                        const struct image_encoder *encoder, uint64_t *x) {
        struct image_writer *w = NULL;
        struct image_figures figures;

        assert_int_equal(image_writer_create(&m->sink, delta, encoder, &w, NULL), 0);
        object_write(w, &pages, data, size_bytes, x);
        assert_int_equal(image_writer_end(w, NULL), 0);
        figures = *image_writer_figures(w);
        assert_int_equal(figures.wire_bytes, m->size_bytes);
        image_writer_destroy(w);
        return figures;
}

static int stream_take(struct memory *m, struct keeper *k, const struct image_delta *delta, struct image_figures *ret_figures) {
        struct image_reader *r = NULL;
        struct rm_error err = { 0 };
        int result;

        m->at = 0;
        assert_int_equal(image_reader_create(&m->source, &k->target, delta, &r, NULL), 0);
        result = image_reader_run(r, &err);
        assert_int_equal(result, err.code);
        if (ret_figures)
                *ret_figures = *image_reader_figures(r);
        image_reader_destroy(r);
        return result;
}

/* Data, zero blocks, and blocks that are nearly zero, in random order. */
static uint8_t *pattern_make(size_t size_bytes, uint64_t *x) {
        uint8_t *data = xcalloc(1, size_bytes);

        for (size_t at = 0; at < size_bytes; at += IMAGE_BLOCK_BYTES) {
                size_t n = size_bytes - at < IMAGE_BLOCK_BYTES ? size_bytes - at : IMAGE_BLOCK_BYTES;

                switch (random_next(x) % 4) {
                case 0:
                        data[at + n - 1] = 1;
                        break;
                case 1:
                        break;
                default:
                        random_fill(data + at, n, x);
                }
        }
        return data;
}

static void test_round_trip(void **state) {
        uint64_t x = 42;

        (void) state;
        for (unsigned i = 0; i < 12; i++) {
                size_t size_bytes = i == 0 ? 0 : i == 1 ? OBJECT_BYTES : random_next(&x) % OBJECT_BYTES;
                uint8_t *data = pattern_make(size_bytes, &x);
                struct keeper *k = keeper_create();
                struct image_figures sent;
                struct image_figures taken;
                struct memory m;

                memory_init(&m);
                sent = stream_make(&m, data, size_bytes, NULL, NULL, &x);
                assert_int_equal(stream_take(&m, k, NULL, &taken), 0);
                assert_true(k->closed);
                assert_int_equal(k->size_bytes, size_bytes);
                assert_memory_equal(k->data, data, size_bytes);
                assert_memory_equal(&sent, &taken, sizeof(sent));
                assert_int_equal(sent.raw_bytes, size_bytes);
                memory_finish(&m);
                free(data);
                free(k);
        }
}

static void test_zero_blocks_are_not_sent(void **state) {
        uint8_t *data = xcalloc(1, OBJECT_BYTES);
        struct keeper *k = keeper_create();
        struct image_figures figures;
        struct memory m;
        uint64_t x = 1;

        (void) state;
        memory_init(&m);
        data[5 * IMAGE_BLOCK_BYTES + 17] = 1;
        figures = stream_make(&m, data, OBJECT_BYTES - 100, NULL, NULL, &x);
        /* Reads that do not end at block ends cost a little. */
        assert_true(figures.zero_bytes > OBJECT_BYTES * 9ULL / 10);
        assert_true(m.size_bytes < OBJECT_BYTES / 10);
        assert_int_equal(stream_take(&m, k, NULL, NULL), 0);
        assert_memory_equal(k->data, data, OBJECT_BYTES);
        assert_int_equal(k->delivered_bytes + figures.zero_bytes, OBJECT_BYTES - 100);
        memory_finish(&m);
        free(data);
        free(k);
}

static void test_zero_scan(void **state) {
        uint8_t block[IMAGE_BLOCK_BYTES + 64] = { 0 };

        (void) state;
        for (size_t n = 0; n < sizeof(block); n += n < 600 ? 1 : 371) {
                assert_true(image_block_is_zero(block + 3, n < sizeof(block) - 3 ? n : 0));
                for (size_t i = 0; i < n && n + 3 < sizeof(block); i += i < 300 ? 1 : 97) {
                        block[3 + i] = 0x10;
                        assert_false(image_block_is_zero(block + 3, n));
                        block[3 + i] = 0;
                }
        }
}

/* A small stream with every kind of chunk and of object. */
static void small_stream_make(struct memory *m) {
        static const struct image_attribute attributes[] = { { "user.tag", "value", 5 }, { "system.posix_acl_default", "", 0 } };
        static const struct image_object objects[] = {
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", ".", "", 01777, 0, 0, 5, 6, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_FIFO, "tmp", "fifo", "", 0644, 1000, 1001, 1700000000, 999999999, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_SYMLINK, "tmp", "link", "../anywhere", 0777, 1, 2, -3, 4, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, "tmp", "hard", "fifo", 0644, 0, 0, 0, 0, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END, "tmp", ".", "", 01777, 0, 0, 5, 6, attributes, ARRAY_SIZE(attributes) },
        };
        static const struct image_object spool = { RM__IMAGE_KIND__IMAGE_KIND_SPOOL, "stdout", "", "", 0600, 0, 0, 1, 2, NULL, 0 };
        struct image_writer *w = NULL;
        uint32_t slot = 0;
        uint8_t *buffer;

        memory_init(m);
        assert_int_equal(image_writer_create(&m->sink, NULL, NULL, &w, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
                assert_int_equal(image_writer_open(w, &objects[i], NULL, NULL), 0);
        assert_int_equal(image_writer_open(w, &spool, &slot, NULL), 0);
        assert_int_equal(image_writer_zero(w, slot, 10, UINT64_C(1) << 40, NULL), 0);
        buffer = image_writer_buffer(w, 3 * IMAGE_BLOCK_BYTES, NULL);
        memset(buffer, 0, 3 * IMAGE_BLOCK_BYTES);
        memcpy(buffer, "some bytes", 10);
        memcpy(buffer + 2 * IMAGE_BLOCK_BYTES, "other", 5);
        assert_int_equal(image_writer_data(w, slot, UINT64_C(1) << 41, 3 * IMAGE_BLOCK_BYTES, NULL), 0);
        buffer = image_writer_buffer(w, 10, NULL);
        memcpy(buffer, "the end of", 10);
        assert_int_equal(image_writer_data(w, slot, UINT64_C(1) << 42, 10, NULL), 0);
        assert_int_equal(image_writer_end(w, NULL), -EBUSY);
        assert_int_equal(image_writer_close(w, slot, (UINT64_C(1) << 42) + 10, NULL), 0);
        assert_int_equal(image_writer_end(w, NULL), 0);
        assert_int_not_equal(image_writer_end(w, NULL), 0);
        image_writer_destroy(w);
}

/* Where something is decoded each byte counts, and in the middle, which is payload under one
 * checksum, some of them; all in a thorough run. */
static size_t next_byte(const struct memory *m, size_t i) {
        bool payload = i >= 600 && i + 600 < m->size_bytes;

        return i + (payload && !getenv("RM_TEST_THOROUGH") ? 37 : 1);
}

static void test_every_flipped_bit_is_seen(void **state) {
        struct memory m;

        (void) state;
        small_stream_make(&m);
        assert_int_equal(memory_read_nowhere(&m, NULL), 0);
        for (size_t i = 0; i < m.size_bytes; i = next_byte(&m, i)) {
                /* All bits where something is decoded, one where it is payload. */
                unsigned step = i < 600 || i + 600 > m.size_bytes ? 1 : 5;

                for (unsigned bit = 0; bit < 8; bit += step) {
                        struct rm_error err = { 0 };

                        m.data[i] ^= (uint8_t) (1U << bit);
                        assert_true(memory_read_nowhere(&m, &err) < 0);
                        assert_true(err.text[0] != 0);
                        m.data[i] ^= (uint8_t) (1U << bit);
                }
        }
        assert_int_equal(memory_read_nowhere(&m, NULL), 0);
        memory_finish(&m);
}

static void test_every_cut_is_seen(void **state) {
        struct memory m;
        size_t whole;

        (void) state;
        small_stream_make(&m);
        whole = m.size_bytes;
        for (size_t cut = 0; cut < whole;) {
                m.size_bytes = cut;
                assert_int_equal(memory_read_nowhere(&m, NULL), -EPIPE);
                m.size_bytes = whole;
                cut = next_byte(&m, cut);
        }
        assert_int_equal(memory_read_nowhere(&m, NULL), 0);
        memory_finish(&m);
}

/* The size of the chunk at `at`. */
static size_t chunk_bytes(const struct memory *m, size_t at) {
        uint32_t header_bytes = 0;
        Rm__ImageChunk *chunk;
        size_t n;

        assert_int_equal(frame_header_read(m->data + at, FRAME_MAGIC_IMAGE, IMAGE_HEADER_MAX_BYTES, &header_bytes), 0);
        chunk = rm__image_chunk__unpack(NULL, header_bytes, m->data + at + FRAME_HEADER_BYTES);
        assert_non_null(chunk);
        n = FRAME_HEADER_BYTES + header_bytes + chunk->payload_bytes + IMAGE_CHECKSUM_BYTES;
        rm__image_chunk__free_unpacked(chunk, NULL);
        return n;
}

static void test_lost_and_repeated_chunks_are_seen(void **state) {
        struct memory m;

        (void) state;
        small_stream_make(&m);
        for (size_t at = 0; at < m.size_bytes;) {
                size_t n = chunk_bytes(&m, at);
                struct memory other;

                memory_init(&other);
                other.data = xcalloc(1, m.size_bytes + n);
                memcpy(other.data, m.data, at);
                memcpy(other.data + at, m.data + at + n, m.size_bytes - at - n);
                other.size_bytes = m.size_bytes - n;
                assert_true(memory_read_nowhere(&other, NULL) < 0);
                memcpy(other.data + at, m.data + at, n);
                memcpy(other.data + at + n, m.data + at, m.size_bytes - at);
                other.size_bytes = m.size_bytes + n;
                if (at + n < m.size_bytes) /* what follows the end mark is nobody's business */
                        assert_true(memory_read_nowhere(&other, NULL) < 0);
                memory_finish(&other);
                at += n;
        }
        memory_finish(&m);
}

static void test_swapped_chunks_are_seen(void **state) {
        struct memory m;
        size_t previous = 0;
        size_t at;

        (void) state;
        small_stream_make(&m);
        for (at = chunk_bytes(&m, 0); at < m.size_bytes; at += chunk_bytes(&m, at)) {
                size_t n = chunk_bytes(&m, at);
                struct memory other;

                memory_init(&other);
                other.data = xcalloc(1, m.size_bytes);
                memcpy(other.data, m.data, m.size_bytes);
                memcpy(other.data + previous, m.data + at, n);
                memcpy(other.data + previous + n, m.data + previous, at - previous);
                other.size_bytes = m.size_bytes;
                assert_true(memory_read_nowhere(&other, NULL) < 0);
                memory_finish(&other);
                previous = at;
        }
        memory_finish(&m);
}

/* ---- what a hostile writer could say: chunks made by hand, with right checksums ---- */

static void chunk_put(struct memory *m, const Rm__ImageChunk *chunk, const void *payload, uint64_t number) {
        size_t head_bytes = image_chunk_head_bytes(chunk);
        uint8_t *out = m->sink.reserve(m, head_bytes + chunk->payload_bytes + IMAGE_CHECKSUM_BYTES, NULL);

        image_chunk_head_write(chunk, out);
        if (chunk->payload_bytes > 0)
                memcpy(out + head_bytes, payload, chunk->payload_bytes);
        image_chunk_seal(out, head_bytes + chunk->payload_bytes, number);
        (void) m->sink.commit(m, head_bytes + chunk->payload_bytes + IMAGE_CHECKSUM_BYTES, NULL);
}

static void begin_put(struct memory *m) {
        Rm__ImageBegin begin = RM__IMAGE_BEGIN__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;

        begin.version = IMAGE_VERSION;
        begin.has_block_bytes = true;
        begin.block_bytes = IMAGE_BLOCK_BYTES;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_BEGIN;
        chunk.begin = &begin;
        chunk_put(m, &chunk, NULL, 0);
}

/* The reader's result for the start of one object. */
static int open_judge(Rm__ImageOpen *open) {
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        struct image_reader *reader = NULL;
        struct memory m;
        int r;

        memory_init(&m);
        begin_put(&m);
        chunk.body_case = RM__IMAGE_CHUNK__BODY_OPEN;
        chunk.open = open;
        chunk_put(&m, &chunk, NULL, 1);
        assert_int_equal(image_reader_create(&m.source, memory_nowhere(), NULL, &reader, NULL), 0);
        assert_int_equal(image_reader_step(reader, NULL), 1);
        r = image_reader_step(reader, NULL);
        image_reader_destroy(reader);
        memory_finish(&m);
        return r;
}

static int object_judge(Rm__ImageKind kind, const char *role, const char *path, const char *target) {
        Rm__ImageOpen open = RM__IMAGE_OPEN__INIT;

        open.kind = kind;
        open.role = (char *) role;
        open.path = (char *) path;
        open.target = (char *) target;
        return open_judge(&open);
}

/* An object with `n` attributes of one name. */
static int attributes_judge(Rm__ImageKind kind, const char *name, size_t value_bytes, size_t n) {
        Rm__ImageAttribute attribute = RM__IMAGE_ATTRIBUTE__INIT;
        Rm__ImageAttribute **list = xcalloc(n, sizeof(*list));
        uint8_t *value = xcalloc(1, value_bytes + 1);
        Rm__ImageOpen open = RM__IMAGE_OPEN__INIT;
        int r;

        attribute.name = (char *) name;
        attribute.value.data = value;
        attribute.value.len = value_bytes;
        for (size_t i = 0; i < n; i++)
                list[i] = &attribute;
        open.kind = kind;
        open.role = (char *) (kind == RM__IMAGE_KIND__IMAGE_KIND_CRIU ? "" : "tmp");
        open.path = (char *) "x";
        open.attributes = list;
        open.n_attributes = n;
        r = open_judge(&open);
        free(value);
        free(list);
        return r;
}

/* An image gives files no more than their owner could. */
static void test_hostile_attributes(void **state) {
        static const char *const never[] = {
                "security.capability", "security.selinux", "trusted.x", "system.nfs4_acl", "user.", "user", "", "USER.x", "xuser.x",
                "system.posix_acl"
        };
        const Rm__ImageKind file = RM__IMAGE_KIND__IMAGE_KIND_REGULAR;
        const Rm__ImageKind directory = RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END;
        char long_name[257] = "user.";

        (void) state;
        memset(long_name + 5, 'x', sizeof(long_name) - 6);
        assert_int_equal(attributes_judge(file, "user.x", 5, 1), 1);
        assert_int_equal(attributes_judge(file, "user.x", 0, 1), 1);
        for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
                assert_int_equal(attributes_judge(file, never[i], 20, 1), -EBADMSG);
                assert_int_equal(attributes_judge(directory, never[i], 20, 1), -EBADMSG);
        }
        assert_int_equal(attributes_judge(file, long_name, 1, 1), -EBADMSG);
        long_name[255] = 0;
        assert_int_equal(attributes_judge(file, long_name, 1, 1), 1);
        assert_int_equal(attributes_judge(file, "system.posix_acl_access", 28, 1), 1);
        assert_int_equal(attributes_judge(file, "system.posix_acl_default", 28, 1), -EBADMSG);
        assert_int_equal(attributes_judge(directory, "system.posix_acl_default", 28, 1), 1);
        assert_int_equal(attributes_judge(RM__IMAGE_KIND__IMAGE_KIND_FIFO, "system.posix_acl_access", 28, 1), 1);
        assert_int_equal(attributes_judge(RM__IMAGE_KIND__IMAGE_KIND_FIFO, "user.x", 1, 1), -EBADMSG);
        assert_int_equal(attributes_judge(RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "user.x", 1, 1), -EBADMSG);
        assert_int_equal(attributes_judge(RM__IMAGE_KIND__IMAGE_KIND_CRIU, "user.x", 1, 1), -EBADMSG);
        assert_int_equal(attributes_judge(file, "user.x", IMAGE_ATTRIBUTES_MAX_BYTES - IMAGE_ATTRIBUTE_HEAD_BYTES - 6, 1), 1);
        assert_int_equal(attributes_judge(file, "user.x", IMAGE_ATTRIBUTES_MAX_BYTES - IMAGE_ATTRIBUTE_HEAD_BYTES - 5, 1),
                         -EBADMSG);
        assert_int_equal(attributes_judge(file, "user.x", 0, IMAGE_ATTRIBUTES_MAX_BYTES / (IMAGE_ATTRIBUTE_HEAD_BYTES + 6)), 1);
        assert_int_equal(attributes_judge(file, "user.x", 0, IMAGE_ATTRIBUTES_MAX_BYTES / (IMAGE_ATTRIBUTE_HEAD_BYTES + 6) + 1),
                         -EBADMSG);
}

static void test_hostile_names(void **state) {
        static const char *const bad_images[] = { "", ".", "..", "../x", "a/b", "/etc/passwd", "a b", "a\nb", "a\x7f" };
        static const char *const bad_paths[] = { "", ".", "..", "/", "/x", "x/", "a//b", "a/../b", "../a", "a/..", "a/.", "./a" };
        char long_name[IMAGE_NAME_MAX_BYTES + 2];
        char long_path[IMAGE_PATH_MAX_BYTES + 2];

        (void) state;
        memset(long_name, 'x', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = 0;
        for (size_t i = 0; i < sizeof(long_path) - 1; i++)
                long_path[i] = i % 2 ? '/' : 'x';
        long_path[sizeof(long_path) - 1] = 0;
        long_path[sizeof(long_path) - 2] = 'x';
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_CRIU, NULL, "core-1.img", NULL), 1);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_CRIU, NULL, long_name, NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_CRIU, "tmp", "core-1.img", NULL), -EBADMSG);
        for (size_t i = 0; i < ARRAY_SIZE(bad_images); i++)
                assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_CRIU, NULL, bad_images[i], NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "a/b \n/.c", NULL), 1);
        for (size_t i = 0; i < ARRAY_SIZE(bad_paths); i++) {
                assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", bad_paths[i], NULL), -EBADMSG);
                assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, "tmp", "x", bad_paths[i]), -EBADMSG);
                assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, "tmp", bad_paths[i], "x"), -EBADMSG);
                assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_FIFO, "tmp", bad_paths[i], NULL), -EBADMSG);
        }
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", long_name, NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", long_path, NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "", "x", NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "../x", "x", NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_SYMLINK, "tmp", "x", NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "x", "y"), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_SPOOL, "out", "x", NULL), -EBADMSG);
        assert_int_equal(object_judge(RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", ".", NULL), 1);
        assert_int_equal(object_judge((Rm__ImageKind) 77, "tmp", "x", NULL), -EBADMSG);
}

static void test_hostile_pids(void **state) {
        static const char *const bad_pids[] = {
                "", "0", "-1", "+1", " 1", "1 ", "01", "1a", "0x1", "4194305", "18446744073709551617", ".", "..", "1/2"
        };

        (void) state;
        for (Rm__ImageKind kind = RM__IMAGE_KIND__IMAGE_KIND_PAGES; kind <= RM__IMAGE_KIND__IMAGE_KIND_PRESENT; kind++) {
                assert_int_equal(object_judge(kind, NULL, "1", NULL), 1);
                assert_int_equal(object_judge(kind, NULL, "4194304", NULL), 1);
                assert_int_equal(object_judge(kind, "tmp", "1", NULL), -EBADMSG);
                assert_int_equal(object_judge(kind, NULL, "1", "2"), -EBADMSG);
                for (size_t i = 0; i < ARRAY_SIZE(bad_pids); i++)
                        assert_int_equal(object_judge(kind, NULL, bad_pids[i], NULL), -EBADMSG);
        }
}

/* The reader's result for one data chunk of an open object. `contents` NULL: zeros. */
static int chunk_judge_of(Rm__ImageKind kind, const char *path, Rm__ImageData *data, const void *contents, size_t payload_bytes,
                          const struct image_delta *delta) {
        Rm__ImageOpen open = RM__IMAGE_OPEN__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        uint8_t *payload = xcalloc(1, payload_bytes + 1);
        struct image_reader *reader = NULL;
        struct memory m;
        int r;

        if (contents)
                memcpy(payload, contents, payload_bytes);
        memory_init(&m);
        begin_put(&m);
        open.kind = kind;
        open.path = (char *) path;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_OPEN;
        chunk.open = &open;
        chunk_put(&m, &chunk, NULL, 1);
        chunk.body_case = RM__IMAGE_CHUNK__BODY_DATA;
        chunk.data = data;
        chunk.payload_bytes = (uint32_t) payload_bytes;
        chunk_put(&m, &chunk, payload, 2);
        assert_int_equal(image_reader_create(&m.source, memory_nowhere(), delta, &reader, NULL), 0);
        assert_int_equal(image_reader_step(reader, NULL), 1);
        assert_int_equal(image_reader_step(reader, NULL), 1);
        r = image_reader_step(reader, NULL);
        image_reader_destroy(reader);
        memory_finish(&m);
        free(payload);
        return r;
}

static int chunk_judge(Rm__ImageData *data, const void *contents, size_t payload_bytes, const struct image_delta *delta) {
        return chunk_judge_of(RM__IMAGE_KIND__IMAGE_KIND_CRIU, "a", data, contents, payload_bytes, delta);
}

static int data_judge(uint32_t slot, uint64_t offset, uint64_t raw_bytes, const uint64_t *runs, size_t n_runs,
                      size_t payload_bytes) {
        Rm__ImageData data = RM__IMAGE_DATA__INIT;

        data.slot = slot;
        data.offset = offset;
        data.raw_bytes = raw_bytes;
        data.runs = (uint64_t *) runs;
        data.n_runs = n_runs;
        return chunk_judge(&data, NULL, payload_bytes, NULL);
}

#define RUN(bytes, kind) ((uint64_t) (bytes) << IMAGE_RUN_KIND_BITS | (kind))

static void test_hostile_runs(void **state) {
        const uint64_t mixed[] = { RUN(4096, IMAGE_RUN_DATA), RUN(8192, IMAGE_RUN_ZERO), RUN(100, IMAGE_RUN_DATA) };
        const uint64_t have[] = { RUN(4096, IMAGE_RUN_HAVE) };
        const uint64_t unknown[] = { RUN(4096, 3) };
        const uint64_t empty[] = { RUN(0, IMAGE_RUN_DATA), RUN(10, IMAGE_RUN_DATA) };
        const uint64_t huge[] = { RUN(UINT64_C(1) << 60, IMAGE_RUN_ZERO), RUN(UINT64_C(1) << 60, IMAGE_RUN_ZERO) };

        (void) state;
        assert_int_equal(data_judge(0, 0, 100, NULL, 0, 100), 1);
        assert_int_equal(data_judge(0, 0, 12388, mixed, 3, 4196), 1);
        assert_int_equal(data_judge(1, 0, 100, NULL, 0, 100), -EBADMSG);
        assert_int_equal(data_judge(UINT32_MAX, 0, 100, NULL, 0, 100), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 101, NULL, 0, 100), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 99, NULL, 0, 100), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 12387, mixed, 3, 4196), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 12389, mixed, 3, 4196), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 12388, mixed, 3, 4195), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 4096, have, 1, 0), -EBADMSG);
        assert_int_equal(data_judge(0, 5, 4096, have, 1, 0), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 4096, unknown, 1, 4096), -EBADMSG);
        assert_int_equal(data_judge(0, 0, 10, empty, 2, 10), -EBADMSG);
        assert_int_equal(data_judge(0, 0, UINT64_C(1) << 61, huge, 2, 0), -EBADMSG);
        assert_int_equal(data_judge(0, UINT64_MAX - 10, 100, NULL, 0, 100), -EBADMSG);
        assert_int_equal(data_judge(0, IMAGE_OBJECT_MAX_BYTES, 100, NULL, 0, 100), -EBADMSG);
        assert_int_equal(data_judge(0, 0, IMAGE_PAYLOAD_MAX_BYTES + 1U, NULL, 0, IMAGE_PAYLOAD_MAX_BYTES + 1U), -EBADMSG);
}

static int some_fetch(void *ctx, uint64_t number, size_t n, void *ret_blocks) {
        (void) ctx;
        (void) number;
        memset(ret_blocks, 0x5a, n * IMAGE_BLOCK_BYTES);
        return 0;
}

static int memory_judge(Rm__ImageKind kind, uint64_t offset, uint64_t raw_bytes, const uint64_t *runs, size_t n_runs) {
        static const struct image_delta delta = { .fetch = some_fetch };
        uint8_t block[IMAGE_BLOCK_BYTES];
        uint64_t number = 0;
        Rm__ImageData data = RM__IMAGE_DATA__INIT;
        size_t payload_bytes = n_runs > 0 ? 0 : raw_bytes;

        memset(block, 0x5a, sizeof(block));
        data.offset = offset;
        data.raw_bytes = raw_bytes;
        data.runs = (uint64_t *) runs;
        data.n_runs = n_runs;
        for (size_t i = 0; i < n_runs; i++) {
                if ((runs[i] & 3) == IMAGE_RUN_DATA)
                        payload_bytes += runs[i] >> IMAGE_RUN_KIND_BITS;
                if ((runs[i] & 3) != IMAGE_RUN_HAVE)
                        continue;
                data.have_blocks = &number;
                data.n_have_blocks = 1;
                data.has_have_checksum = true;
                data.have_checksum = XXH3_64bits(block, sizeof(block));
        }
        return chunk_judge_of(kind, "7", &data, NULL, payload_bytes, &delta);
}

static void test_hostile_memory(void **state) {
        const Rm__ImageKind pages_kind = RM__IMAGE_KIND__IMAGE_KIND_PAGES, present = RM__IMAGE_KIND__IMAGE_KIND_PRESENT;
        const uint64_t whole[] = { RUN(4096, IMAGE_RUN_DATA), RUN(8192, IMAGE_RUN_ZERO), RUN(4096, IMAGE_RUN_DATA) };
        const uint64_t part[] = { RUN(4095, IMAGE_RUN_DATA), RUN(8193, IMAGE_RUN_ZERO), RUN(4096, IMAGE_RUN_DATA) };
        const uint64_t have[] = { RUN(4096, IMAGE_RUN_HAVE) };
        const uint64_t zero[] = { RUN(4096, IMAGE_RUN_ZERO) };

        (void) state;
        assert_int_equal(memory_judge(pages_kind, 8192, 4096, NULL, 0), 1);
        assert_int_equal(memory_judge(pages_kind, 8192, 16384, whole, 3), 1);
        assert_int_equal(memory_judge(pages_kind, IMAGE_OBJECT_MAX_BYTES - 4096, 4096, NULL, 0), 1);
        assert_int_equal(memory_judge(pages_kind, IMAGE_OBJECT_MAX_BYTES, 4096, NULL, 0), -EBADMSG);
        assert_int_equal(memory_judge(pages_kind, 8193, 4096, NULL, 0), -EBADMSG);
        assert_int_equal(memory_judge(pages_kind, 8192, 4095, NULL, 0), -EBADMSG);
        assert_int_equal(memory_judge(pages_kind, 8192, 16384, part, 3), -EBADMSG);
        /* Blocks that were sent ahead for CRIU's images are kept: these would be there twice. */
        assert_int_equal(memory_judge(RM__IMAGE_KIND__IMAGE_KIND_CRIU, 8192, 4096, have, 1), 1);
        assert_int_equal(memory_judge(pages_kind, 8192, 4096, have, 1), -EBADMSG);
        assert_int_equal(memory_judge(present, 0, 4096, have, 1), -EBADMSG);
        assert_int_equal(memory_judge(present, 0, 16, NULL, 0), 1);
        assert_int_equal(memory_judge(present, 0, 4096, zero, 1), -EBADMSG);
        assert_int_equal(memory_judge(present, IMAGE_PRESENT_MAX_BYTES - 16, 16, NULL, 0), 1);
        assert_int_equal(memory_judge(present, IMAGE_PRESENT_MAX_BYTES, 16, NULL, 0), -EBADMSG);
}

static void test_pages_are_whole(void **state) {
        const struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_PAGES, .role = "", .path = "7", .target = "" };
        struct image_writer *w = NULL;
        struct memory m;
        uint32_t slot = 0;

        (void) state;
        memory_init(&m);
        assert_int_equal(image_writer_create(&m.sink, NULL, NULL, &w, NULL), 0);
        assert_int_equal(image_writer_open(w, &o, &slot, NULL), 0);
        assert_int_equal(image_writer_zero(w, slot, IMAGE_BLOCK_BYTES, IMAGE_BLOCK_BYTES, NULL), 0);
        assert_int_equal(image_writer_zero(w, slot, 1, IMAGE_BLOCK_BYTES, NULL), -EINVAL);
        assert_int_equal(image_writer_zero(w, slot, IMAGE_BLOCK_BYTES, 1, NULL), -EINVAL);
        assert_non_null(image_writer_buffer(w, 2 * IMAGE_BLOCK_BYTES, NULL));
        assert_int_equal(image_writer_data(w, slot, IMAGE_BLOCK_BYTES, IMAGE_BLOCK_BYTES - 1, NULL), -EINVAL);
        assert_int_equal(image_writer_close(w, slot, 0, NULL), 0);
        image_writer_destroy(w);
        memory_finish(&m);
}

/* ---- delta and codecs ---- */

/* The receiver has an older copy, as blocks of which some are missing and two have changed places;
 * the sender knows it. */
struct old_copy {
        uint8_t *blocks;
        struct image_known *known;
        bool lie;
};

static int old_fetch(void *ctx, uint64_t number, size_t n, void *ret_blocks) {
        const struct old_copy *o = ctx;

        if (number + n > image_known_count(o->known))
                return -ENODATA;
        memcpy(ret_blocks, o->blocks + number * IMAGE_BLOCK_BYTES, n * IMAGE_BLOCK_BYTES);
        if (o->lie)
                ((uint8_t *) ret_blocks)[7] ^= 1;
        return 0;
}

static void old_make(struct old_copy *o, const uint8_t *data, size_t size_bytes) {
        *o = (struct old_copy) { .blocks = xcalloc(1, size_bytes), .known = image_known_create() };
        for (size_t i = 0; i < size_bytes / IMAGE_BLOCK_BYTES; i++) {
                const uint8_t *block = data + (i == 100 || i == 101 ? 201 - i : i) * IMAGE_BLOCK_BYTES;

                if (i % 40 != 7 && image_known_add(o->known, block))
                        memcpy(o->blocks + (image_known_count(o->known) - 1) * IMAGE_BLOCK_BYTES, block, IMAGE_BLOCK_BYTES);
        }
}

static void test_delta(void **state) {
        uint64_t x = 7;
        uint8_t *data = pattern_make(OBJECT_BYTES, &x);
        struct image_delta delta = { .fetch = old_fetch };
        struct keeper *k = keeper_create();
        struct old_copy old;
        struct image_figures figures;
        struct memory m;

        (void) state;
        old_make(&old, data, OBJECT_BYTES);
        delta.ctx = &old;
        memory_init(&m);
        figures = stream_make(&m, data, OBJECT_BYTES, image_known_delta(old.known), NULL, &x);
        assert_true(figures.have_bytes + figures.zero_bytes > OBJECT_BYTES / 10 * 9);
        assert_true(figures.have_bytes < OBJECT_BYTES);
        assert_int_equal(stream_take(&m, k, &delta, NULL), 0);
        assert_memory_equal(k->data, data, OBJECT_BYTES);
        old.lie = true;
        assert_int_equal(stream_take(&m, k, &delta, NULL), -EBADMSG);
        assert_int_equal(stream_take(&m, k, NULL, NULL), -EBADMSG);
        memory_finish(&m);
        image_known_destroy(old.known);
        free(old.blocks);
        free(data);
        free(k);
}

static int seven_fetch(void *ctx, uint64_t number, size_t n, void *ret_blocks) {
        (void) ctx;
        if (number + n > 8)
                return -ENODATA;
        memset(ret_blocks, 7, n * IMAGE_BLOCK_BYTES);
        return 0;
}

/* Two runs of blocks that were sent ahead: three blocks in all. */
static int blocks_judge(const uint64_t *numbers, size_t n_numbers, uint64_t checksum) {
        static const struct image_delta delta = { .fetch = seven_fetch };
        const uint64_t runs[] = { RUN(2 * IMAGE_BLOCK_BYTES, IMAGE_RUN_HAVE), RUN(IMAGE_BLOCK_BYTES, IMAGE_RUN_HAVE) };
        Rm__ImageData data = RM__IMAGE_DATA__INIT;

        data.raw_bytes = 3UL * IMAGE_BLOCK_BYTES;
        data.runs = (uint64_t *) runs;
        data.n_runs = ARRAY_SIZE(runs);
        data.have_blocks = (uint64_t *) numbers;
        data.n_have_blocks = n_numbers;
        data.has_have_checksum = checksum != 0;
        data.have_checksum = checksum;
        return chunk_judge(&data, NULL, 0, &delta);
}

static void test_hostile_blocks(void **state) {
        struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_BLOCKS, .role = "", .path = "", .target = "" };
        uint8_t sevens[3 * IMAGE_BLOCK_BYTES];
        uint64_t checksum;

        (void) state;
        memset(sevens, 7, sizeof(sevens));
        checksum = XXH3_64bits(sevens, sizeof(sevens));
        assert_int_equal(blocks_judge((const uint64_t[]) { 6, 0 }, 2, checksum), 1);
        assert_int_equal(blocks_judge((const uint64_t[]) { 6, 0 }, 2, checksum + 1), -EBADMSG);
        assert_int_equal(blocks_judge((const uint64_t[]) { 6, 0 }, 2, 0), -EBADMSG);
        assert_int_equal(blocks_judge((const uint64_t[]) { 6 }, 1, checksum), -EBADMSG);
        assert_int_equal(blocks_judge((const uint64_t[]) { 6, 0, 1 }, 3, checksum), -EBADMSG);
        assert_int_equal(blocks_judge((const uint64_t[]) { 7, 0 }, 2, checksum), -ENODATA);
        assert_int_equal(blocks_judge((const uint64_t[]) { 0, IMAGE_BLOCKS_MAX }, 2, checksum), -EBADMSG);
        assert_int_equal(blocks_judge((const uint64_t[]) { 0, UINT64_MAX }, 2, checksum), -EBADMSG);
        assert_int_equal(image_object_check(&o, NULL), 0);
        o.path = "a";
        assert_int_equal(image_object_check(&o, NULL), -EBADMSG);
        o.path = "";
        o.role = "tmp";
        assert_int_equal(image_object_check(&o, NULL), -EBADMSG);
}

/* Every block is found again under the number it was added with, however many there are. */
static void test_known(void **state) {
        enum { BLOCKS = 5000 };
        struct image_known *k = image_known_create();
        const struct image_delta *delta = image_known_delta(k);
        uint8_t block[IMAGE_BLOCK_BYTES] = { 0 };
        uint64_t number = 7;

        (void) state;
        assert_false(delta->peer_has(delta->ctx, block, &number));
        for (unsigned i = 0; i < BLOCKS; i++) {
                memcpy(block + 100, &i, sizeof(i));
                assert_true(image_known_add(k, block));
                assert_false(image_known_add(k, block));
        }
        assert_int_equal(image_known_count(k), BLOCKS);
        for (unsigned i = BLOCKS; i-- > 0;) {
                memcpy(block + 100, &i, sizeof(i));
                assert_true(delta->peer_has(delta->ctx, block, &number));
                assert_int_equal(number, i);
        }
        block[0] = 1;
        assert_false(delta->peer_has(delta->ctx, block, &number));
        image_known_destroy(k);
}

/* Each chunk by the next codec. */
struct in_turn {
        struct image_coder *coder;
        unsigned chunks;
};

static enum image_codec in_turn_encode(void *ctx, const void *in, size_t size_bytes, void *out, size_t *ret_size_bytes) {
        struct in_turn *t = ctx;
        enum image_codec codec = (enum image_codec)(t->chunks++ % IMAGE_CODECS);

        if (codec == IMAGE_CODEC_NONE)
                return codec;
        *ret_size_bytes = image_encode(t->coder, codec, in, size_bytes, out, size_bytes - 1);
        return *ret_size_bytes > 0 ? codec : IMAGE_CODEC_NONE;
}

static void test_codecs(void **state) {
        struct in_turn turn = { .coder = image_coder_create() };
        const struct image_encoder encoder = { .ctx = &turn, .encode = in_turn_encode };
        uint64_t x = 99;
        uint8_t *data = pattern_make(OBJECT_BYTES, &x);
        struct keeper *k = keeper_create();
        struct image_figures sent, taken, plain;
        struct memory m;

        (void) state;
        for (size_t i = 0; i < OBJECT_BYTES; i++)
                data[i] &= 0x0f; /* half of it is worth nothing */
        memory_init(&m);
        plain = stream_make(&m, data, OBJECT_BYTES, NULL, NULL, &(uint64_t) { 5 });
        memory_finish(&m);
        memory_init(&m);
        sent = stream_make(&m, data, OBJECT_BYTES, NULL, &encoder, &(uint64_t) { 5 });
        assert_int_equal(stream_take(&m, k, NULL, &taken), 0);
        assert_memory_equal(k->data, data, OBJECT_BYTES);
        assert_memory_equal(&sent, &taken, sizeof(sent));
        assert_true(sent.coded_bytes[IMAGE_CODEC_ZSTD] > OBJECT_BYTES / 8);
        assert_int_equal(sent.coded_bytes[IMAGE_CODEC_NONE], 0);
        /* The heads of coded chunks are some bytes longer. */
        assert_in_range(sent.wire_bytes + sent.saved_bytes, plain.wire_bytes, plain.wire_bytes + sent.chunks * 16);
        assert_true(sent.saved_bytes > OBJECT_BYTES / 16);
        memory_finish(&m);
        image_coder_destroy(turn.coder);
        free(data);
        free(k);
}

/* A chunk of 5000 equal bytes, encoded, with one thing in it that is not true. */
static int coded_judge(uint32_t codec, bool has_codec, uint64_t packed_bytes, uint64_t raw_bytes, const void *payload,
                       size_t payload_bytes) {
        Rm__ImageData data = RM__IMAGE_DATA__INIT;

        data.raw_bytes = raw_bytes;
        data.has_codec = has_codec;
        data.codec = codec;
        data.has_packed_bytes = packed_bytes > 0;
        data.packed_bytes = (uint32_t) packed_bytes;
        return chunk_judge(&data, payload, payload_bytes, NULL);
}

static void test_hostile_codecs(void **state) {
        enum { SIZE_BYTES = 5000 };
        struct image_coder *coder = image_coder_create();
        uint8_t plain[SIZE_BYTES];
        uint8_t coded[SIZE_BYTES] = { 0 };

        (void) state;
        memset(plain, 'a', sizeof(plain));
        for (enum image_codec codec = IMAGE_CODEC_LZ4; codec <= IMAGE_CODEC_ZSTD; codec++) {
                size_t n = image_encode(coder, codec, plain, SIZE_BYTES, coded, SIZE_BYTES);

                assert_in_range(n, 1, 100);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES, SIZE_BYTES, coded, n), 1);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES - 1, SIZE_BYTES - 1, coded, n), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES + 1, SIZE_BYTES + 1, coded, n), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES, SIZE_BYTES + 1, coded, n), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES, SIZE_BYTES - 1, coded, n), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES, SIZE_BYTES, coded, n - 1), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES, SIZE_BYTES, coded, 0), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, SIZE_BYTES, SIZE_BYTES, coded, SIZE_BYTES), -EBADMSG);
                assert_int_equal(coded_judge(codec, true, 0, SIZE_BYTES, coded, n), -EBADMSG);
                assert_int_equal(coded_judge(codec, false, SIZE_BYTES, SIZE_BYTES, coded, n), -EBADMSG);
                assert_int_equal(coded_judge(IMAGE_CODEC_NONE, true, SIZE_BYTES, SIZE_BYTES, coded, n), -EPROTONOSUPPORT);
                assert_int_equal(coded_judge(IMAGE_CODECS, true, SIZE_BYTES, SIZE_BYTES, coded, n), -EPROTONOSUPPORT);
                assert_int_equal(coded_judge(UINT32_MAX, true, SIZE_BYTES, SIZE_BYTES, coded, n), -EPROTONOSUPPORT);
                assert_int_equal(coded_judge(codec, true, IMAGE_PAYLOAD_MAX_BYTES + 1U, IMAGE_PAYLOAD_MAX_BYTES + 1U, coded, n),
                                 -EBADMSG);
        }
        image_coder_destroy(coder);
}

static void test_many_open_objects(void **state) {
        struct image_writer *w = NULL;
        uint32_t slots[IMAGE_SLOTS_MAX];
        struct memory m;

        (void) state;
        memory_init(&m);
        assert_int_equal(image_writer_create(&m.sink, NULL, NULL, &w, NULL), 0);
        for (unsigned i = 0; i < IMAGE_SLOTS_MAX; i++)
                assert_int_equal(image_writer_open(w, &pages, &slots[i], NULL), 0);
        assert_int_equal(image_writer_open(w, &pages, &slots[0], NULL), -EMFILE);
        assert_int_equal(image_writer_close(w, slots[77], 0, NULL), 0);
        assert_int_equal(image_writer_close(w, slots[77], 0, NULL), -EINVAL);
        assert_int_equal(image_writer_open(w, &pages, &slots[77], NULL), 0);
        for (unsigned i = 0; i < IMAGE_SLOTS_MAX; i++)
                assert_int_equal(image_writer_close(w, slots[i], 0, NULL), 0);
        /* Older receivers know only 1024 slots. */
        for (unsigned i = 0; i < 2000; i++) {
                assert_int_equal(image_writer_open(w, &pages, &slots[i], NULL), 0);
                assert_in_range(slots[i], 0, 1);
                if (i > 0)
                        assert_int_equal(image_writer_close(w, slots[i], 0, NULL), 0);
        }
        assert_int_equal(image_writer_close(w, slots[0], 0, NULL), 0);
        assert_int_equal(image_writer_end(w, NULL), 0);
        assert_int_equal(memory_read_nowhere(&m, NULL), 0);
        image_writer_destroy(w);
        memory_finish(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_zero_blocks_are_not_sent),
                cmocka_unit_test(test_zero_scan),
                cmocka_unit_test(test_every_flipped_bit_is_seen),
                cmocka_unit_test(test_every_cut_is_seen),
                cmocka_unit_test(test_lost_and_repeated_chunks_are_seen),
                cmocka_unit_test(test_swapped_chunks_are_seen),
                cmocka_unit_test(test_hostile_attributes),
                cmocka_unit_test(test_hostile_names),
                cmocka_unit_test(test_hostile_pids),
                cmocka_unit_test(test_hostile_runs),
                cmocka_unit_test(test_hostile_memory),
                cmocka_unit_test(test_pages_are_whole),
                cmocka_unit_test(test_delta),
                cmocka_unit_test(test_hostile_blocks),
                cmocka_unit_test(test_known),
                cmocka_unit_test(test_codecs),
                cmocka_unit_test(test_hostile_codecs),
                cmocka_unit_test(test_many_open_objects),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
