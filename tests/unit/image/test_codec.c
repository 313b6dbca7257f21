/* Codecs: what they make smaller comes back as it was, and nothing that is damaged or hostile does
 * more than fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/image/codec.h"

#define MOST_BYTES (1U << 20)
#define GUARD_BYTES 64U
#define GUARD 0xa5

static const enum image_codec codecs[] = { IMAGE_CODEC_LZ4, IMAGE_CODEC_ZSTD };

static void random_fill(uint8_t *p, size_t size_bytes, uint64_t x) {
        for (size_t i = 0; i < size_bytes; i++) {
                x = x * 6364136223846793005U + 1442695040888963407U;
                p[i] = (uint8_t) (x >> 56);
        }
}

static void words_fill(uint8_t *p, size_t size_bytes) {
        static const char *const words[] = { "the ", "group ", "runs ", "on ", "its ", "node, ", "and " };
        unsigned x = 1;

        for (size_t at = 0; at < size_bytes;) {
                const char *word = words[(x = x * 1103515245 + 12345) / 65536 % ARRAY_SIZE(words)];

                for (size_t i = 0; word[i] && at < size_bytes; i++)
                        p[at++] = (uint8_t) word[i];
        }
}

/* Decodes into a place of exactly `out_bytes`, with a guard behind. */
static int decode(struct image_coder *c, uint32_t codec, const uint8_t *in, size_t size_bytes, uint8_t *out, size_t out_bytes) {
        int r;

        memset(out + out_bytes, GUARD, GUARD_BYTES);
        r = image_decode(c, codec, in, size_bytes, out, out_bytes);
        for (size_t i = 0; i < GUARD_BYTES; i++)
                assert_int_equal(out[out_bytes + i], GUARD);
        return r;
}

static void round_trip(struct image_coder *c, const uint8_t *in, size_t size_bytes, bool must_shrink) {
        uint8_t *coded = xcalloc(1, size_bytes + 1);
        uint8_t *out = xcalloc(1, size_bytes + 1 + GUARD_BYTES);

        for (size_t i = 0; i < ARRAY_SIZE(codecs); i++) {
                size_t n = image_encode(c, codecs[i], in, size_bytes, coded, size_bytes - 1);

                assert_true(n < size_bytes);
                if (must_shrink)
                        assert_true(n > 0);
                if (n == 0)
                        continue;
                assert_int_equal(decode(c, codecs[i], coded, n, out, size_bytes), 0);
                assert_memory_equal(out, in, size_bytes);
                assert_int_equal(decode(c, codecs[i], coded, n, out, size_bytes + 1), -EBADMSG);
                assert_int_equal(decode(c, codecs[i], coded, n, out, size_bytes - 1), -EBADMSG);
                assert_int_equal(decode(c, codecs[i], coded, n - 1, out, size_bytes), -EBADMSG);
        }
        free(coded);
        free(out);
}

static void what_goes_in_comes_out(void **state) {
        static const size_t sizes[] = { 1,         2,    3,    12,   13,    255,   256,   511,    512,    513,
                                        4095,      4096, 4097, 9999, 65535, 65536, 65537, 131071, 500000, MOST_BYTES - 1,
                                        MOST_BYTES };
        struct image_coder *c = image_coder_create();
        uint8_t *data = xcalloc(1, MOST_BYTES);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                memset(data, 0, sizes[i]);
                round_trip(c, data, sizes[i], sizes[i] >= 255);
                words_fill(data, sizes[i]);
                round_trip(c, data, sizes[i], sizes[i] >= 4095);
                random_fill(data, sizes[i], i);
                round_trip(c, data, sizes[i], false);
        }
        free(data);
        image_coder_destroy(c);
}

static void random_bytes_are_refused_at_once(void **state) {
        struct image_coder *c = image_coder_create();
        uint8_t *data = xcalloc(1, MOST_BYTES);
        uint8_t *out = xcalloc(1, MOST_BYTES);

        (void) state;
        random_fill(data, MOST_BYTES, 3);
        for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
                assert_int_equal(image_encode(c, codecs[i], data, MOST_BYTES, out, MOST_BYTES - 1), 0);
        free(data);
        free(out);
        image_coder_destroy(c);
}

/* Each byte in turn has another value: the checksum of the stream would show it, but no codec may
 * rely on that. */
static void damage_does_no_more_than_fail(void **state) {
        enum { SIZE_BYTES = 3000 };
        struct image_coder *c = image_coder_create();
        uint8_t data[SIZE_BYTES], coded[SIZE_BYTES], damaged[SIZE_BYTES], out[SIZE_BYTES + GUARD_BYTES];

        (void) state;
        words_fill(data, SIZE_BYTES);
        for (size_t i = 0; i < ARRAY_SIZE(codecs); i++) {
                size_t n = image_encode(c, codecs[i], data, SIZE_BYTES, coded, SIZE_BYTES);
                unsigned refused = 0;

                assert_true(n > 0);
                for (size_t at = 0; at < n; at++) {
                        for (unsigned bit = 1; bit < 256; bit *= 2) {
                                memcpy(damaged, coded, n);
                                damaged[at] ^= (uint8_t) bit;
                                refused += decode(c, codecs[i], damaged, n, out, SIZE_BYTES) < 0;
                        }
                        assert_int_equal(decode(c, codecs[i], coded, at, out, SIZE_BYTES), -EBADMSG);
                }
                assert_true(refused > 0);
                assert_int_equal(decode(c, codecs[i], coded, n, out, SIZE_BYTES), 0);
        }
        image_coder_destroy(c);
}

/* 64 MiB in some kilobytes: what comes out is bounded by what was announced. */
static void bombs_are_refused(void **state) {
        enum { BOMB_BYTES = 64 << 20, SPACE_BYTES = 1 << 20 };
        struct image_coder *c = image_coder_create();
        uint8_t *data = xcalloc(1, BOMB_BYTES);
        uint8_t *coded = xcalloc(1, SPACE_BYTES);
        uint8_t *out = xcalloc(1, MOST_BYTES + GUARD_BYTES);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(codecs); i++) {
                size_t n = image_encode(c, codecs[i], data, BOMB_BYTES, coded, SPACE_BYTES);

                assert_true(n > 0);
                assert_int_equal(decode(c, codecs[i], coded, n, out, MOST_BYTES), -EBADMSG);
                assert_int_equal(decode(c, codecs[i], coded, n, out, 1), -EBADMSG);
        }
        free(data);
        free(coded);
        free(out);
        image_coder_destroy(c);
}

static void only_one_frame_of_a_known_codec(void **state) {
        static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0 };
        struct image_coder *c = image_coder_create();
        uint8_t data[1000] = { 0 };
        uint8_t coded[2000];
        uint8_t out[2000 + GUARD_BYTES];
        size_t n = image_encode(c, IMAGE_CODEC_ZSTD, data, sizeof(data), coded, sizeof(data));

        (void) state;
        assert_in_range(n, 1, 900);
        memcpy(coded + n, coded, n);
        assert_int_equal(decode(c, IMAGE_CODEC_ZSTD, coded, n, out, 1000), 0);
        assert_int_equal(decode(c, IMAGE_CODEC_ZSTD, coded, 2 * n, out, 1000), -EBADMSG);
        assert_int_equal(decode(c, IMAGE_CODEC_ZSTD, coded, 2 * n, out, 2000), -EBADMSG);
        memcpy(coded + n, skippable, sizeof(skippable));
        assert_int_equal(decode(c, IMAGE_CODEC_ZSTD, coded, n + sizeof(skippable), out, 1000), -EBADMSG);
        assert_int_equal(decode(c, IMAGE_CODEC_ZSTD, skippable, sizeof(skippable), out, 1000), -EBADMSG);
        assert_int_equal(decode(c, IMAGE_CODEC_NONE, coded, n, out, 1000), -EPROTONOSUPPORT);
        assert_int_equal(decode(c, IMAGE_CODECS, coded, n, out, 1000), -EPROTONOSUPPORT);
        assert_int_equal(decode(c, UINT32_MAX, coded, n, out, 1000), -EPROTONOSUPPORT);
        image_coder_destroy(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_goes_in_comes_out),          cmocka_unit_test(random_bytes_are_refused_at_once),
                cmocka_unit_test(damage_does_no_more_than_fail),   cmocka_unit_test(bombs_are_refused),
                cmocka_unit_test(only_one_frame_of_a_known_codec),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
