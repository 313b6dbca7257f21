/* A sealed file: what was written is read with the right key; nothing of it shows; and whatever
 * else comes is refused before any of it is given out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/mover/seal.h"
#include "tests/unit/mover/sealed_bytes.h"

#define SEALED_CHUNK_BYTES (SEAL_CHUNK_BYTES + SEAL_TAG_BYTES)

static struct seal_keys keys_of(const char *cluster, const char *letters) {
        struct seal_keys keys = { .cluster = cluster, .n = strlen(letters) };

        for (size_t i = 0; i < keys.n; i++)
                memset(keys.keys[i], letters[i], TLS_KEY_BYTES);
        return keys;
}

/* Chunks that differ from each other, and are the same in each file. */
static uint8_t content_at(size_t at) {
        return (uint8_t) (at / SEAL_CHUNK_BYTES * 31 + at % 251);
}

static struct bytes sealed(const char *cluster, const char *key, size_t size_bytes) {
        cleanup_free uint8_t *contents = xrealloc(NULL, size_bytes + 1);
        struct seal_keys keys = keys_of(cluster, key);
        struct bytes b = { 0 };
        const struct seal_io io = { bytes_write, bytes_read, &b };
        struct seal *s = NULL;

        for (size_t i = 0; i < size_bytes; i++)
                contents[i] = content_at(i);
        assert_int_equal(seal_create(&keys, &io, &s, NULL), 0);
        /* In pieces that have nothing to do with chunks. */
        for (size_t at = 0; at < size_bytes; at += 50001)
                assert_int_equal(seal_write(s, contents + at, size_bytes - at < 50001 ? size_bytes - at : 50001, NULL), 0);
        assert_int_equal(seal_write_end(s, NULL), 0);
        seal_destroy(s);
        return b;
}

/* `ret_bytes`: so much was given out, and was right; NULL ok. */
static int opened_with(struct bytes *b, const struct seal_keys *keys, size_t size_bytes, size_t *ret_bytes, struct rm_error *err) {
        const struct seal_io io = { bytes_write, bytes_read, b };
        struct seal *s = NULL;
        uint8_t piece[4099];
        size_t at = 0;
        int r;

        b->at = 0;
        r = seal_open(keys, &io, &s, err);
        while (r == 0 && at < size_bytes) {
                size_t n = size_bytes - at < sizeof(piece) ? size_bytes - at : sizeof(piece);

                r = seal_read(s, piece, n, err);
                for (size_t i = 0; r == 0 && i < n; i++)
                        assert_int_equal(piece[i], content_at(at + i));
                at += r == 0 ? n : 0;
        }
        if (r == 0)
                r = seal_read_end(s, err);
        else if (s)
                assert_int_equal(seal_read(s, piece, 1, NULL), -EBADMSG); /* nothing behind it either */
        seal_destroy(s);
        if (ret_bytes)
                *ret_bytes = at;
        return r;
}

static int opened(struct bytes *b, const char *keys, size_t size_bytes) {
        struct seal_keys of = keys_of("blue", keys);

        return opened_with(b, &of, size_bytes, NULL, NULL);
}

static void test_reads_what_was_written(void **state) {
        const size_t sizes[] = { 0,
                                 1,
                                 4096,
                                 SEAL_CHUNK_BYTES - 1,
                                 SEAL_CHUNK_BYTES,
                                 SEAL_CHUNK_BYTES + 1,
                                 3 * SEAL_CHUNK_BYTES,
                                 3 * SEAL_CHUNK_BYTES + 77 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                struct bytes b = sealed("blue", "a", sizes[i]);

                assert_int_equal(b.used, SEAL_LINE_BYTES + sizes[i] + (sizes[i] / SEAL_CHUNK_BYTES + 1) * SEAL_TAG_BYTES);
                assert_int_equal(opened(&b, "a", sizes[i]), 0);
                assert_int_equal(opened(&b, "a", sizes[i] + 1), -EBADMSG);
                if (sizes[i] > 0)
                        assert_int_equal(opened(&b, "a", sizes[i] - 1), -EBADMSG);
                free(b.data);
        }
}

/* While the key is changed a node has both. */
static void test_opens_with_either_key(void **state) {
        struct bytes b = sealed("blue", "a", 1000);

        (void) state;
        assert_int_equal(opened(&b, "ab", 1000), 0);
        assert_int_equal(opened(&b, "ba", 1000), 0);
        assert_int_equal(opened(&b, "b", 1000), -EACCES);
        assert_int_equal(opened(&b, "bc", 1000), -EACCES);
        free(b.data);
}

static void test_names_the_missing_key(void **state) {
        struct bytes b = sealed("blue", "a", 1000);
        struct seal_keys keys = keys_of("blue", "bc"), right = keys_of("blue", "a");
        char fingerprint[TLS_FINGERPRINT_BYTES];
        struct rm_error err = { 0 };

        (void) state;
        assert_true(tls_key_fingerprint("blue", right.keys[0], fingerprint));
        assert_int_equal(opened_with(&b, &keys, 1000, NULL, &err), -EACCES);
        assert_non_null(strstr(error_text(&err), fingerprint));
        assert_non_null(strstr(error_text(&err), "this node does not have"));
        error_clear(&err);
        keys.any_cluster = true;
        assert_int_equal(opened_with(&b, &keys, 1000, NULL, &err), -EACCES);
        assert_non_null(strstr(error_text(&err), fingerprint));
        assert_non_null(strstr(error_text(&err), "is not the one in that file"));
        free(b.data);
}

/* Two clusters may have one key by mistake. */
static void test_other_cluster_only_on_request(void **state) {
        struct bytes b = sealed("red", "a", 1000);
        struct seal_keys keys = keys_of("blue", "a");
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(opened_with(&b, &keys, 1000, NULL, &err), -EACCES);
        assert_non_null(strstr(error_text(&err), "cluster 'red'"));
        keys.any_cluster = true;
        assert_int_equal(opened_with(&b, &keys, 1000, NULL, NULL), 0);
        keys = keys_of("blue", "b");
        keys.any_cluster = true;
        assert_int_equal(opened_with(&b, &keys, 1000, NULL, NULL), -EACCES);
        free(b.data);
}

static bool contains(const struct bytes *b, const void *data, size_t size_bytes) {
        return memmem(b->data, b->used, data, size_bytes) != NULL;
}

static void test_shows_nothing(void **state) {
        struct bytes b = sealed("blue", "a", 2 * SEAL_CHUNK_BYTES), other = sealed("blue", "a", 2 * SEAL_CHUNK_BYTES);
        struct seal_keys keys = keys_of("blue", "a");
        uint8_t contents[16];

        (void) state;
        for (size_t at = 0; at < SEAL_CHUNK_BYTES; at += 1000) {
                for (size_t i = 0; i < sizeof(contents); i++)
                        contents[i] = content_at(at + i);
                assert_false(contains(&b, contents, sizeof(contents)));
        }
        assert_false(contains(&b, keys.keys[0], TLS_KEY_BYTES));
        /* The same again looks like something else, in each place. */
        assert_int_equal(other.used, b.used);
        for (size_t at = SEAL_LINE_BYTES; at + 16 <= b.used; at += 16)
                assert_memory_not_equal(b.data + at, other.data + at, 16);
        free(b.data);
        free(other.data);
}

/* ---- what an attacker does to the file ---- */

static void test_every_bit_counts(void **state) {
        struct bytes b = sealed("blue", "a", 300);
        size_t given;

        (void) state;
        for (size_t i = 0; i < b.used * 8; i++) {
                struct seal_keys keys = keys_of("blue", "a");

                b.data[i / 8] ^= (uint8_t) (1U << i % 8);
                assert_true(opened_with(&b, &keys, 300, &given, NULL) < 0);
                assert_int_equal(given, 0);
                b.data[i / 8] ^= (uint8_t) (1U << i % 8);
        }
        assert_int_equal(opened(&b, "a", 300), 0);
        free(b.data);
}

/* A chunk that was changed gives out no byte, and those before it all. */
static void test_flips_in_later_chunks(void **state) {
        const size_t size_bytes = 3 * SEAL_CHUNK_BYTES + 77;
        struct bytes b = sealed("blue", "a", size_bytes);
        struct seal_keys keys = keys_of("blue", "a");
        size_t given;

        (void) state;
        for (size_t at = SEAL_LINE_BYTES; at < b.used; at += 4001) {
                size_t before = (at - SEAL_LINE_BYTES) / SEALED_CHUNK_BYTES * SEAL_CHUNK_BYTES;

                b.data[at] ^= 0x10;
                assert_int_equal(opened_with(&b, &keys, size_bytes, &given, NULL), -EBADMSG);
                assert_true(given <= before);
                b.data[at] ^= 0x10;
        }
        free(b.data);
}

static void test_cut_off_anywhere(void **state) {
        const size_t size_bytes = 2 * SEAL_CHUNK_BYTES + 77;
        struct bytes b = sealed("blue", "a", size_bytes);
        size_t whole = b.used;

        (void) state;
        for (size_t n = 0; n < whole; n++) {
                /* Each byte where something begins or ends, and some between. */
                size_t in_chunk = n < SEAL_LINE_BYTES ? 0 : (n - SEAL_LINE_BYTES) % SEALED_CHUNK_BYTES;

                if (n >= SEAL_LINE_BYTES && in_chunk > 20 && in_chunk < SEAL_CHUNK_BYTES - 20 && n % 1009 != 0)
                        continue;
                b.used = n;
                assert_int_equal(opened(&b, "a", size_bytes), -EBADMSG);
                /* A reader that needs only a part of the data gets the error, too. */
                if (n >= SEAL_LINE_BYTES)
                        assert_int_equal(opened(&b, "a", (n - SEAL_LINE_BYTES) / SEALED_CHUNK_BYTES * SEAL_CHUNK_BYTES), -EBADMSG);
        }
        free(b.data);
}

static void test_goes_on_behind_its_end(void **state) {
        const size_t sizes[] = { 0, 100, SEAL_CHUNK_BYTES - 1, SEAL_CHUNK_BYTES };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                for (size_t more = 1; more < 2 * SEALED_CHUNK_BYTES; more += more < 40 ? 1 : 30011) {
                        struct bytes b = sealed("blue", "a", sizes[i]);
                        cleanup_free uint8_t *zeros = xcalloc(1, more);

                        assert_int_equal(bytes_write(&b, zeros, more, NULL), 0);
                        assert_int_equal(opened(&b, "a", sizes[i]), -EBADMSG);
                        free(b.data);
                }
}

static uint8_t *chunk_of(const struct bytes *b, size_t number) {
        return b->data + SEAL_LINE_BYTES + number * SEALED_CHUNK_BYTES;
}

/* Chunks of three: exchanged, repeated, left out. */
static void test_other_order(void **state) {
        const size_t size_bytes = 3 * SEAL_CHUNK_BYTES;
        const size_t orders[][3] = { { 1, 0, 2 }, { 0, 2, 1 }, { 2, 1, 0 }, { 0, 0, 2 }, { 0, 1, 1 }, { 0, 0, 0 }, { 1, 2, 0 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                struct bytes b = sealed("blue", "a", size_bytes);
                cleanup_free uint8_t *copy = xrealloc(NULL, b.used);

                memcpy(copy, b.data, b.used);
                for (size_t to = 0; to < 3; to++)
                        memcpy(chunk_of(&b, to), copy + SEAL_LINE_BYTES + orders[i][to] * SEALED_CHUNK_BYTES, SEALED_CHUNK_BYTES);
                assert_int_equal(opened(&b, "a", size_bytes), -EBADMSG);
                free(b.data);
        }
        for (size_t left_out = 0; left_out < 3; left_out++) {
                struct bytes b = sealed("blue", "a", size_bytes);

                memmove(chunk_of(&b, left_out), chunk_of(&b, left_out + 1),
                        b.used - SEAL_LINE_BYTES - (left_out + 1) * SEALED_CHUNK_BYTES);
                b.used -= SEALED_CHUNK_BYTES;
                assert_int_equal(opened(&b, "a", size_bytes - SEAL_CHUNK_BYTES), -EBADMSG);
                free(b.data);
        }
}

/* Parts of two files with the same contents, by the same key: the line, a chunk, the last chunk. */
static void test_no_parts_of_two(void **state) {
        const size_t size_bytes = 2 * SEAL_CHUNK_BYTES + 5;
        struct bytes one = sealed("blue", "a", size_bytes), two = sealed("blue", "a", size_bytes);
        const size_t from[] = { 0, SEAL_LINE_BYTES, SEAL_LINE_BYTES + SEALED_CHUNK_BYTES, SEAL_LINE_BYTES + 2 * SEALED_CHUNK_BYTES,
                                one.used };

        (void) state;
        for (size_t i = 0; i + 1 < ARRAY_SIZE(from); i++) {
                struct bytes b = { 0 };

                assert_int_equal(bytes_write(&b, one.data, one.used, NULL), 0);
                memcpy(b.data + from[i], two.data + from[i], from[i + 1] - from[i]);
                assert_int_equal(opened(&b, "a", size_bytes), -EBADMSG);
                free(b.data);
        }
        free(one.data);
        free(two.data);
}

/* The last chunk in the place of a whole one, and a whole one at the end. */
static void test_last_is_last(void **state) {
        struct bytes b = sealed("blue", "a", 2 * SEAL_CHUNK_BYTES);

        (void) state;
        b.used -= SEAL_TAG_BYTES; /* the last chunk, which is empty, is gone: two whole ones are left */
        assert_int_equal(opened(&b, "a", 2 * SEAL_CHUNK_BYTES), -EBADMSG);
        b.used -= 1; /* the second looks like a last one by its size */
        assert_int_equal(opened(&b, "a", 2 * SEAL_CHUNK_BYTES - 1), -EBADMSG);
        free(b.data);
}

/* ---- other formats ---- */

static int opened_text(const char *text, size_t size_bytes, struct rm_error *err) {
        struct bytes b = { 0 };
        struct seal_keys keys = keys_of("blue", "a");
        uint8_t rest[1024] = { 0 };
        int r;

        assert_int_equal(bytes_write(&b, text, size_bytes, NULL), 0);
        assert_int_equal(bytes_write(&b, rest, sizeof(rest), NULL), 0);
        error_clear(err);
        r = opened_with(&b, &keys, 0, NULL, err);
        free(b.data);
        return r;
}

static void test_other_formats(void **state) {
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(opened_text("rmd-checkpoint 1 blue", 21, &err), -ENOTSUP);
        assert_non_null(strstr(error_text(&err), "of format 1, and this rmd knows 2"));
        assert_int_equal(opened_text("rmd-checkpoint 3 blue", 21, &err), -ENOTSUP);
        assert_non_null(strstr(error_text(&err), "of format 3, and this rmd knows 2"));
        assert_int_equal(opened_text("rmd-checkpoint 2 blue", 21, &err), -EBADMSG);
        assert_int_equal(opened_text("\177ELF", 4, &err), -EBADMSG);
        assert_non_null(strstr(error_text(&err), "no exported checkpoint"));
}

/* A line that says the same in other words, or more than there is room for. */
static void test_lines_as_they_are_written(void **state) {
        struct bytes b = sealed("blue", "a", 10);
        const char *const lines[] = {
                "rmd-checkpoint 02 blue 0123456789abcdef %064d %064d",
                "rmd-checkpoint  2 blue 0123456789abcdef %064d %064d",
                "rmd-checkpoint +2 blue 0123456789abcdef %064d %064d",
                "rmd-checkpoint 2 ../blue 0123456789abcdef %064d %064d",
                "rmd-checkpoint 2 blue 0123456789ABCDEF %064d %064d",
                "rmd-checkpoint 2 blue 0123456789abcdef0 %064d %064d",
                "rmd-checkpoint 4294967298 blue 0123456789abcdef %064d %064d",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                cleanup_free char *text = xasprintf(lines[i], 1, 1);

                memset(b.data, ' ', SEAL_LINE_BYTES - 1);
                memcpy(b.data, text, strlen(text));
                assert_true(opened(&b, "a", 10) < 0);
        }
        free(b.data);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reads_what_was_written), cmocka_unit_test(test_opens_with_either_key),
                cmocka_unit_test(test_names_the_missing_key),  cmocka_unit_test(test_other_cluster_only_on_request),
                cmocka_unit_test(test_shows_nothing),          cmocka_unit_test(test_every_bit_counts),
                cmocka_unit_test(test_flips_in_later_chunks),  cmocka_unit_test(test_cut_off_anywhere),
                cmocka_unit_test(test_goes_on_behind_its_end), cmocka_unit_test(test_other_order),
                cmocka_unit_test(test_no_parts_of_two),        cmocka_unit_test(test_last_is_last),
                cmocka_unit_test(test_other_formats),          cmocka_unit_test(test_lines_as_they_are_written),
        };

        return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
