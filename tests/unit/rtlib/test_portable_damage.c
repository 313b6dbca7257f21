/* Damaged portable checkpoints: each bit counts, what is damaged is named, and never restored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/offline.h"
#include "tests/unit/rtlib/ranks.h"

#define SIZE 2

static char directory[64];

/* Checkpoint 1 is full, 2 is an increment of it, 3 full, 4 an increment of that. */
static int begin(void **state) {
        struct program *p;

        (void) snprintf(directory, sizeof(directory), "/tmp/portable-test-XXXXXX");
        if (!mkdtemp(directory) || setenv("RMRT_KEEP", "9", 1) < 0 || setenv("RMRT_FULL_EVERY", "2", 1) < 0)
                return -1;
        p = program_create(SIZE);
        for (int64_t step = 1; step <= 4; step++) {
                program_compute(p, step);
                if (program_save(p, directory) < 0)
                        return -1;
        }
        *state = p;
        return 0;
}

static int begin_compressed(void **state) {
        return setenv("RMRT_ZSTD", "3", 1) < 0 ? -1 : begin(state);
}

static int begin_adaptive(void **state) {
        return setenv("RMRT_BLOCK", "adaptive", 1) < 0 ? -1 : begin(state);
}

static int end(void **state) {
        (void) unsetenv("RMRT_ZSTD");
        (void) unsetenv("RMRT_BLOCK");
        program_destroy(*state);
        return remove_tree(directory);
}

struct reported {
        char text[RM_ERROR_TEXT_BYTES];
};

static void report(void *ctx, const struct rm_error *err) {
        struct reported *reported = ctx;

        (void) snprintf(reported->text, sizeof(reported->text), "%s", err->text);
}

static void no_progress(void *ctx, size_t done, size_t total) {
}

static void flip(const char *path, off_t at, int bit) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        uint8_t byte;

        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= (uint8_t) (1U << bit);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        (void) close(fd);
}

/* `text`: what names it. */
static void verify_names(uint64_t number, const char *text) {
        struct reported reported = { "" };
        const struct offline_watch watch = { report, no_progress, &reported };
        int dir = folder_open(directory, false, NULL);

        assert_true(offline_verify(dir, number, &watch) > 0);
        if (!strstr(reported.text, text))
                fail_msg("'%s' is not in '%s'", text, reported.text);
        (void) close(dir);
}

/* The step of what the program gets, which is of one checkpoint in all its arrays. */
static int64_t restored_step(struct program *p) {
        program_clear(p);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_ALL);
        assert_true(program_step(p, true) > 0);
        return program_step(p, true);
}

/* The program gets `step`, and learns why it is not the newest. */
static void damaged(struct program *p, uint64_t number, const char *text, int64_t step) {
        verify_names(number, text);
        assert_int_equal(restored_step(p), step);
        if (!strstr(program_error(p), text))
                fail_msg("'%s' is not in '%s'", text, program_error(p));
}

static off_t bytes_of(uint64_t number, const char *what) {
        cleanup_free char *path = xasprintf("%s/rmrt-%" PRIu64 ".%s", directory, number, what);
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        return st.st_size;
}

/* Each of the first and last bytes, and some between. */
static off_t next_byte(off_t at, off_t n) {
        off_t stride = n / 23 + 1;

        if (at < 10 || at >= n - 10)
                return at + 1;
        return at + stride < n - 10 ? at + stride : n - 10;
}

/* The files of an increment, of its base, and of both manifests. */
static void test_bits(void **state) {
        struct program *p = *state;
        static const struct {
                uint64_t number;
                const char *what;
                const char *name;
                int64_t step;   /* of the newest that is whole then */
                bool has_older; /* blocks that the increment has anew, and needs no more */
        } files[] = {
                { 4, "manifest", "rmrt-4.manifest", 3, false },      { 4, "rank-0", "checkpoint 4: rank 0: ", 3, false },
                { 4, "rank-1", "checkpoint 4: rank 1: ", 3, false }, { 3, "manifest", "rmrt-3.manifest", 2, false },
                { 3, "rank-1", "checkpoint 3: rank 1: ", 2, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                cleanup_free char *path = xasprintf("%s/rmrt-%" PRIu64 ".%s", directory, files[i].number, files[i].what);
                off_t n = bytes_of(files[i].number, files[i].what);

                for (off_t at = 0; at < n; at = next_byte(at, n)) {
                        int64_t step;

                        flip(path, at, (int) (at % 8));
                        verify_names(files[i].number, files[i].name);
                        step = restored_step(p);
                        assert_true(step == files[i].step || (files[i].has_older && step == 4));
                        assert_true(step == 4 || strstr(program_error(p), files[i].name));
                        flip(path, at, (int) (at % 8));
                }
        }
        assert_int_equal(restored_step(p), 4);
        assert_string_equal(program_error(p), "");
}

/* The block and its array are named. */
static void test_block_is_named(void **state) {
        cleanup_free char *path = xasprintf("%s/rmrt-4.rank-1", directory);

        /* The first block that it has anew. */
        flip(path, 8 + 77, 0);
        damaged(*state, 4, "checkpoint 4: rank 1: block 2 of array 'cells' is damaged: it has another hash", 3);
}

static void test_adaptive_block_is_named(void **state) {
        cleanup_free char *path = xasprintf("%s/rmrt-4.rank-1", directory);

        flip(path, 8 + 7, 0);
        verify_names(4, "checkpoint 4: rank 1: the block at byte ");
        damaged(*state, 4, " of array 'cells' is damaged: it has another hash", 3);
}

/* Where the first block that zstd has made begins. */
static off_t packed_offset(const char *path) {
        cleanup_free char *data = NULL;
        const char *found;
        size_t n = 0;

        assert_int_equal(read_file(path, 1 << 24, &data, &n), 0);
        found = memmem(data, n, "\x28\xb5\x2f\xfd", 4);
        assert_non_null(found);
        return found - data;
}

/* A bit of zstd's header of which no decoder takes any notice: the block that comes out is the
 * right one. */
static void test_bit_without_effect(void **state) {
        cleanup_free char *path = xasprintf("%s/rmrt-4.rank-0", directory);

        flip(path, packed_offset(path) + 4, 4);
        damaged(*state, 4, "is damaged: it has another hash in the file", 3);
}

static void test_cut_off(void **state) {
        static const char *const names[] = { "rank-0", "rank-1", "manifest" };
        struct program *p = *state;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cleanup_free char *path = xasprintf("%s/rmrt-%zu.%s", directory, 4 - i, names[i]);

                assert_int_equal(truncate(path, bytes_of(4 - i, names[i]) / 2), 0);
                /* 4, then 3, then 2 is gone. */
                assert_int_equal(restored_step(p), 3 - (int64_t) i);
        }
}

static void test_missing(void **state) {
        struct program *p = *state;
        cleanup_free char *path = xasprintf("%s/rmrt-3.rank-1", directory);

        assert_int_equal(unlink(path), 0);
        damaged(p, 3, "checkpoint 3: rank 1: rmrt-3.rank-1 is missing", 2);
}

/* A manifest under another's name. */
static void test_manifest_renamed(void **state) {
        struct program *p = *state;
        cleanup_free char *from = xasprintf("%s/rmrt-4.manifest", directory), *to = xasprintf("%s/rmrt-9.manifest", directory);

        assert_int_equal(rename(from, to), 0);
        damaged(p, 9, "rmrt-9.manifest: it is that of checkpoint 4", 3);
}

/* Files of two checkpoints in each other's place. */
static void test_exchanged(void **state) {
        struct program *p = *state;
        cleanup_free char *one = xasprintf("%s/rmrt-3.rank-0", directory), *two = xasprintf("%s/rmrt-3.rank-1", directory),
                          *three = xasprintf("%s/other", directory);

        assert_int_equal(rename(one, three), 0);
        assert_int_equal(rename(two, one), 0);
        assert_int_equal(rename(three, two), 0);
        damaged(p, 3, "checkpoint 3: rank", 2);
}

/* The base of checkpoint 4 is another run's checkpoint 3, which is whole. */
static void test_base_of_other_run(void **state) {
        static const char *const names[] = { "rank-0", "rank-1", "manifest" };
        struct program *p = program_create(SIZE);
        cleanup_free char *other = xasprintf("%s/other", directory);

        for (int64_t step = 11; step <= 13; step++) {
                program_compute(p, step);
                assert_int_equal(program_save(p, other), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cleanup_free char *from = xasprintf("%s/rmrt-3.%s", other, names[i]),
                                  *to = xasprintf("%s/rmrt-3.%s", directory, names[i]);

                assert_int_equal(rename(from, to), 0);
        }
        program_destroy(p);
        damaged(*state, 4, "checkpoint 3 is not the one that checkpoint 4 builds on", 13);
}

/* Nothing is whole: then it is no beginning either, and the memory is as it was. */
static void test_all_damaged(void **state) {
        struct program *p = *state;

        for (uint64_t number = 1; number <= 4; number++) {
                cleanup_free char *path = xasprintf("%s/rmrt-%" PRIu64 ".rank-1", directory, number);

                flip(path, 0, 0);
        }
        program_compute(p, 77);
        assert_int_equal(program_restore(p, directory), -EBADMSG);
        assert_int_equal(program_step(p, true), 77);
        assert_non_null(strstr(program_error(p), "checkpoint 4: rank 1: "));
        /* The next one is built on nothing of it. */
        assert_int_equal(program_save(p, directory), 0);
        assert_int_equal(restored_step(p), 77);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_bits, begin, end),
                { "test_bits_compressed", test_bits, begin_compressed, end, NULL },
                { "test_bits_adaptive", test_bits, begin_adaptive, end, NULL },
                { "test_cut_off_adaptive", test_cut_off, begin_adaptive, end, NULL },
                cmocka_unit_test_setup_teardown(test_adaptive_block_is_named, begin_adaptive, end),
                cmocka_unit_test_setup_teardown(test_bit_without_effect, begin_compressed, end),
                cmocka_unit_test_setup_teardown(test_block_is_named, begin, end),
                cmocka_unit_test_setup_teardown(test_cut_off, begin, end),
                cmocka_unit_test_setup_teardown(test_missing, begin, end),
                cmocka_unit_test_setup_teardown(test_manifest_renamed, begin, end),
                cmocka_unit_test_setup_teardown(test_exchanged, begin, end),
                cmocka_unit_test_setup_teardown(test_all_damaged, begin, end),
                cmocka_unit_test_setup_teardown(test_base_of_other_run, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
