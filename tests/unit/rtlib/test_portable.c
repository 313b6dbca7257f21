/* Portable checkpoints of several ranks, which are threads here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/offline.h"
#include "tests/unit/rtlib/ranks.h"

static char directory[64];

static int begin(void **state) {
        (void) snprintf(directory, sizeof(directory), "/tmp/portable-test-XXXXXX");
        if (!mkdtemp(directory))
                return -1;
        (void) unsetenv("RMRT_KEEP");
        (void) unsetenv("RMRT_FULL_EVERY");
        (void) unsetenv("RMRT_ZSTD");
        (void) unsetenv("RMRT_BLOCK");
        return 0;
}

static int end(void **state) {
        return remove_tree(directory);
}

static void save_steps(struct program *p, int64_t from, int64_t to) {
        for (int64_t step = from; step <= to; step++) {
                program_compute(p, step);
                if (program_save(p, directory) != 0)
                        fail_msg("%s", program_error(p));
        }
}

static char *path_of(uint64_t number, const char *what) {
        return xasprintf("%s/rmrt-%" PRIu64 ".%s", directory, number, what);
}

static off_t bytes_of(uint64_t number, const char *what) {
        cleanup_free char *path = path_of(number, what);
        struct stat st = { 0 };

        return stat(path, &st) < 0 ? -1 : st.st_size;
}

/* ---- what is restored ---- */

static void test_nothing(void **state) {
        struct program *p = program_create(3);

        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_NOTHING);
        assert_string_equal(program_error(p), "");
        assert_int_equal(program_restore(p, "/nowhere/at/all"), RMRT_RESTORED_NOTHING);
        program_destroy(p);
}

static void test_other_sizes(void **state) {
        static const int sizes[] = { 6, 1, 4, 9, 13 };
        struct program *p = program_create(6);

        save_steps(p, 1, 3);
        program_destroy(p);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                p = program_create(sizes[i]);
                assert_int_equal(program_restore(p, directory), sizes[i] == 6 ? RMRT_RESTORED_ALL : RMRT_RESTORED_SHARED);
                assert_int_equal(program_step(p, sizes[i] == 6), 3);
                assert_string_equal(program_error(p), "");
                program_destroy(p);
        }
}

/* From one number of ranks to the next, as a job that is restarted again and again. */
static void test_from_size_to_size(void **state) {
        static const int sizes[] = { 4, 13, 2, 8 };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                struct program *p = program_create(sizes[i]);

                assert_int_equal(program_restore(p, directory), i == 0 ? RMRT_RESTORED_NOTHING : RMRT_RESTORED_SHARED);
                assert_int_equal(p->ranks[0].step, i * 10);
                save_steps(p, (int64_t) i * 10 + 1, (int64_t) i * 10 + 10);
                program_destroy(p);
        }
}

static void test_increments(void **state) {
        struct program *p = program_create(4);

        assert_int_equal(setenv("RMRT_KEEP", "20", 1), 0);
        save_steps(p, 1, 9);
        /* The first is full, seven have what changed, and the last is full again. */
        for (uint64_t number = 2; number <= 8; number++)
                assert_true(bytes_of(number, "rank-1") * 2 < bytes_of(1, "rank-1"));
        assert_int_equal(bytes_of(9, "rank-1"), bytes_of(1, "rank-1"));
        for (uint64_t number = 9; number >= 1; number--) {
                cleanup_free char *path = path_of(number, "manifest");

                program_clear(p);
                assert_int_equal(program_restore(p, directory), RMRT_RESTORED_ALL);
                assert_int_equal(program_step(p, true), number);
                assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_NOTHING);
        program_destroy(p);
}

/* Nothing but an array's length has changed: no increment may be built on what was saved before. */
static void test_changed_arrays(void **state) {
        struct program *p = program_create(2);
        const struct array more = { (char *) "step", p->ranks[0].table, 3, { RMRT_INTEGER, 8, 1 }, RMRT_REPLICATED };

        save_steps(p, 1, 1);
        for (int i = 0; i < 2; i++)
                assert_int_equal(arrays_register(&p->ranks[i].arrays, &more, NULL), 0);
        assert_int_equal(program_save(p, directory), 0);
        assert_true(bytes_of(2, "rank-0") > bytes_of(1, "rank-0") - 100);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_ALL);
        program_destroy(p);
}

/* The program is set back as after a restart of a transparent checkpoint: its memory is older than
 * the folder. */
static void test_set_back(void **state) {
        struct program *p = program_create(2), *other = program_create(2);

        assert_int_equal(setenv("RMRT_KEEP", "9", 1), 0);
        save_steps(p, 1, 2);
        save_steps(other, 3, 3);
        save_steps(p, 4, 4);
        assert_int_equal(bytes_of(4, "rank-0"), bytes_of(1, "rank-0"));
        assert_int_equal(program_restore(other, directory), RMRT_RESTORED_ALL);
        assert_int_equal(program_step(other, true), 4);
        program_destroy(p);
        program_destroy(other);
}

static void test_keep(void **state) {
        struct program *p = program_create(3);
        uint64_t *numbers = NULL;
        size_t n = 0;
        int dir;

        assert_int_equal(setenv("RMRT_FULL_EVERY", "4", 1), 0);
        save_steps(p, 1, 8);
        dir = folder_open(directory, false, NULL);
        /* 7 and 8 are to be kept, and build on 5. */
        assert_int_equal(folder_list(dir, &numbers, &n, NULL, NULL), 0);
        assert_int_equal(n, 4);
        assert_int_equal(numbers[3], 5);
        assert_int_equal(bytes_of(4, "rank-0"), -1);
        assert_true(bytes_of(5, "rank-2") > 0);
        free(numbers);
        (void) close(dir);
        program_destroy(p);
}

static void test_compressed(void **state) {
        struct program *p = program_create(6);
        off_t plain;

        save_steps(p, 1, 1);
        plain = bytes_of(1, "rank-5");
        assert_int_equal(setenv("RMRT_ZSTD", "3", 1), 0);
        program_destroy(p);
        p = program_create(6);
        save_steps(p, 2, 3);
        assert_true(bytes_of(2, "rank-5") < plain);
        program_destroy(p);
        p = program_create(4);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_SHARED);
        assert_int_equal(program_step(p, false), 3);
        program_destroy(p);
}

/* Smaller blocks: smaller increments. With others than before there is no increment, and both are
 * restored. */
static void test_block_sizes(void **state) {
        struct program *p = program_create(4);
        off_t large;

        save_steps(p, 1, 2);
        large = bytes_of(2, "rank-1");
        assert_int_equal(setenv("RMRT_BLOCK", "1K", 1), 0);
        save_steps(p, 3, 4);
        assert_true(bytes_of(3, "rank-1") > bytes_of(1, "rank-1"));
        assert_true(bytes_of(4, "rank-1") < large / 2);
        program_destroy(p);
        p = program_create(3);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_SHARED);
        assert_int_equal(program_step(p, false), 4);
        assert_int_equal(setenv("RMRT_BLOCK", "16M", 1), 0);
        save_steps(p, 5, 5);
        program_clear(p);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_ALL);
        assert_int_equal(program_step(p, true), 5);
        program_destroy(p);
}

static uint32_t version_of(uint64_t number) {
        int dir = folder_open(directory, false, NULL);
        Portable__Manifest *m = NULL;
        uint32_t version;

        assert_int_equal(folder_read_manifest(dir, number, &m, NULL, NULL), 0);
        version = m->version;
        portable__manifest__free_unpacked(m, NULL);
        (void) close(dir);
        return version;
}

static void no_damage(void *ctx, const struct rm_error *err) {
        fail_msg("%s", err->text);
}

static void no_progress(void *ctx, size_t done, size_t total) {
}

/* Each checkpoint is the step that it was made in, also where blocks of later ones cover parts of
 * earlier ones' only. */
static void all_are_restored(int size, bool same, uint64_t newest) {
        const struct offline_watch watch = { no_damage, no_progress, NULL };
        int dir = folder_open(directory, false, NULL);

        for (uint64_t number = newest; number >= 1; number--) {
                cleanup_free char *path = path_of(number, "manifest");
                struct program *p = program_create(size);

                assert_int_equal(offline_verify(dir, number, &watch), 0);
                assert_int_equal(program_restore(p, directory), same ? RMRT_RESTORED_ALL : RMRT_RESTORED_SHARED);
                assert_int_equal(program_step(p, same), number);
                program_destroy(p);
                assert_int_equal(unlink(path), 0);
        }
        (void) close(dir);
}

/* Increments of adaptive blocks are smaller than those of 16 KiB, and become smaller still; what is
 * restored is the same, on as many ranks or others. */
static void test_adaptive(void **state) {
        struct program *p = program_create(4);
        off_t fixed, first;

        assert_int_equal(setenv("RMRT_KEEP", "30", 1), 0);
        assert_int_equal(setenv("RMRT_FULL_EVERY", "12", 1), 0);
        save_steps(p, 1, 2);
        fixed = bytes_of(2, "rank-1");
        assert_int_equal(setenv("RMRT_BLOCK", "adaptive", 1), 0);
        save_steps(p, 3, 20);
        assert_int_equal(version_of(2), PORTABLE_VERSION);
        assert_int_equal(version_of(3), PORTABLE_VERSION_SIZES);
        first = bytes_of(4, "rank-1");
        assert_true(first < fixed);
        assert_true(bytes_of(14, "rank-1") < first);
        /* The full one after them knows the sizes, and so does what follows. */
        assert_true(bytes_of(15, "rank-1") > bytes_of(1, "rank-1") / 2);
        assert_true(bytes_of(16, "rank-1") < first);
        program_destroy(p);
        all_are_restored(3, false, 20);
}

static void test_adaptive_compressed(void **state) {
        struct program *p = program_create(2);

        assert_int_equal(setenv("RMRT_KEEP", "30", 1), 0);
        assert_int_equal(setenv("RMRT_BLOCK", "adaptive", 1), 0);
        assert_int_equal(setenv("RMRT_ZSTD", "3", 1), 0);
        save_steps(p, 1, 6);
        program_destroy(p);
        all_are_restored(2, true, 6);
}

/* A save that fails leaves the table as it was: what had changed is written by the next one. */
static void test_adaptive_failure(void **state) {
        struct program *p = program_create(2);
        cleanup_free char *nowhere = xasprintf("%s/file", directory);

        assert_int_equal(setenv("RMRT_KEEP", "30", 1), 0);
        assert_int_equal(setenv("RMRT_BLOCK", "adaptive", 1), 0);
        save_steps(p, 1, 3);
        assert_int_equal(write_file_atomic(nowhere, "", 0, 0600, false), 0);
        program_compute(p, 4);
        assert_true(program_save(p, nowhere) < 0);
        assert_int_equal(unlink(nowhere), 0);
        assert_int_equal(program_save(p, directory), 0);
        assert_true(bytes_of(4, "rank-0") < bytes_of(1, "rank-0"));
        program_destroy(p);
        all_are_restored(2, true, 4);
}

/* All ranks decide together, whichever way, and the saved data is restored. */
static void test_auto(void **state) {
        struct program *p = program_create(4);

        assert_int_equal(setenv("RMRT_KEEP", "30", 1), 0);
        assert_int_equal(setenv("RMRT_BLOCK", "auto", 1), 0);
        save_steps(p, 1, 24);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(p->ranks[i].saved.chosen, p->ranks[0].saved.chosen);
                assert_true(p->ranks[i].saved.chosen != OPTIONS_BLOCKS_AUTO);
                assert_int_equal(p->ranks[i].saved.adaptive, p->ranks[i].saved.chosen == OPTIONS_BLOCKS_ADAPTIVE);
        }
        assert_int_equal(version_of(1), PORTABLE_VERSION);
        assert_int_equal(version_of(24), p->ranks[0].saved.adaptive ? PORTABLE_VERSION_SIZES : PORTABLE_VERSION);
        /* The user says otherwise. */
        assert_int_equal(setenv("RMRT_BLOCK", p->ranks[0].saved.adaptive ? "16K" : "adaptive", 1), 0);
        save_steps(p, 25, 26);
        assert_int_equal(version_of(26), p->ranks[0].saved.adaptive ? PORTABLE_VERSION_SIZES : PORTABLE_VERSION);
        program_destroy(p);
        all_are_restored(4, true, 26);
}

/* The decision follows the measurements: the slower the storage, the more the bytes count. */
static void test_auto_costs(void **state) {
        struct changes_trial trial = { .saves = CHANGES_TRIAL_SAVES,
                                       .fixed_bytes = 30000000,
                                       .fixed_nsec = 20000000,
                                       .adaptive_bytes = 10000000,
                                       .adaptive_nsec = 40000000,
                                       .written_bytes = 100000000,
                                       .write_nsec = 1000000000 };
        double fixed, adaptive;

        assert_true(changes_costs(&trial, &fixed, &adaptive));
        assert_true(fixed > 0.3199 && fixed < 0.3201 && adaptive > 0.1399 && adaptive < 0.1401);
        trial.write_nsec = 10000000; /* 10 GB/s */
        assert_true(changes_costs(&trial, &fixed, &adaptive));
        assert_true(fixed < adaptive);
        trial.saves--;
        assert_false(changes_costs(&trial, &fixed, &adaptive));
        trial = (struct changes_trial) { .saves = CHANGES_TRIAL_SAVES }; /* all were full ones */
        assert_false(changes_costs(&trial, &fixed, &adaptive));
}

/* ---- what is refused ---- */

static void refused(struct program *p, const char *text) {
        int64_t step = p->ranks[0].step;

        assert_int_equal(program_restore(p, directory), -EINVAL);
        assert_non_null(strstr(program_error(p), text));
        assert_int_equal(p->ranks[0].step, step);
}

static void test_other_arrays(void **state) {
        struct program *p = program_create(4);
        int64_t more[3];
        const struct array other_type = { (char *) "step", more, 1, { RMRT_FLOAT, 8, 1 }, RMRT_REPLICATED },
                           other_count = { (char *) "step", more, 3, { RMRT_INTEGER, 8, 1 }, RMRT_REPLICATED },
                           unknown = { (char *) "unknown", more, 3, { RMRT_INTEGER, 8, 1 }, RMRT_REPLICATED },
                           longer = { (char *) "cells", p->ranks[3].cells, 5, { RMRT_FLOAT, 8, 1 }, RMRT_BLOCK };

        save_steps(p, 1, 1);
        for (int i = 0; i < 4; i++)
                assert_int_equal(arrays_register(&p->ranks[i].arrays, &other_type, NULL), 0);
        refused(p, "array 'step' is registered as float64, and the checkpoint has int64");
        for (int i = 0; i < 4; i++)
                assert_int_equal(arrays_register(&p->ranks[i].arrays, &other_count, NULL), 0);
        refused(p, "array 'step' has 3 elements, and in the checkpoint 1");
        for (int i = 0; i < 4; i++)
                assert_int_equal(arrays_unregister(&p->ranks[i].arrays, "step"), 0);
        refused(p, "the checkpoint has an array 'step', which is not registered");
        assert_int_equal(arrays_register(&p->ranks[2].arrays, &unknown, NULL), 0);
        refused(p, "on rank 2: other arrays are registered than on rank 0");
        assert_int_equal(program_save(p, directory), -EINVAL);
        assert_non_null(strstr(program_error(p), "on rank 2: other arrays are registered than on rank 0"));
        program_destroy(p);
        p = program_create(4);
        assert_int_equal(arrays_register(&p->ranks[3].arrays, &longer, NULL), 0);
        refused(p, "array 'cells' has 45010 elements on all ranks, and in the checkpoint 60007");
        program_destroy(p);
}

static void test_options(void **state) {
        struct program *p = program_create(2);

        assert_int_equal(setenv("RMRT_KEEP", "0", 1), 0);
        assert_int_equal(program_save(p, directory), -EINVAL);
        assert_string_equal(program_error(p), "on rank 0: RMRT_KEEP: '0' is no number from 1 to 1000000");
        assert_int_equal(unsetenv("RMRT_KEEP"), 0);
        assert_int_equal(setenv("RMRT_BLOCK", "511", 1), 0);
        assert_int_equal(program_save(p, directory), -EINVAL);
        assert_string_equal(program_error(p), "on rank 0: RMRT_BLOCK: '511' is no size from 512 to 16M, nor adaptive or auto");
        program_destroy(p);
}

/* The disk is full, so to say, when one of the ranks has written half of its file. */
static void test_full_disk(void **state) {
        struct rlimit before, less;
        struct program *p = program_create(3);

        save_steps(p, 1, 1);
        program_destroy(p);
        p = program_create(3);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        less = before;
        less.rlim_cur = (rlim_t) bytes_of(1, "rank-1") + 100;
        (void) signal(SIGXFSZ, SIG_IGN);
        program_compute(p, 2);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        assert_int_equal(program_save(p, directory), -EFBIG);
        assert_non_null(strstr(program_error(p), "on rank 0: folder '/tmp/portable-test-"));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        for (int i = 0; i < 3; i++) {
                cleanup_free char *name = xasprintf("rank-%d", i);

                assert_int_equal(bytes_of(2, name), -1);
        }
        program_clear(p);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_ALL);
        assert_int_equal(program_step(p, true), 1);
        save_steps(p, 3, 3);
        program_destroy(p);
}

/* All but the manifest can be written: what ranks have written goes, and what was there stays. */
static void test_no_manifest(void **state) {
        cleanup_free char *temporary = xasprintf("%s/rmrt-manifest.tmp", directory);
        struct program *p = program_create(3);

        save_steps(p, 1, 1);
        assert_int_equal(mkdir(temporary, 0700), 0);
        program_compute(p, 2);
        assert_int_equal(program_save(p, directory), -EISDIR);
        assert_string_equal(program_error(p), "on rank 0: write rmrt-2.manifest: Is a directory");
        for (int i = 0; i < 3; i++) {
                cleanup_free char *name = xasprintf("rank-%d", i);

                assert_int_equal(bytes_of(2, name), -1);
        }
        assert_int_equal(rmdir(temporary), 0);
        program_clear(p);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_ALL);
        assert_int_equal(program_step(p, true), 1);
        program_destroy(p);
}

/* A node has a folder of its own at the same path: what its rank saves there would be found by
 * nobody. */
static void test_folder_not_shared(void **state) {
        cleanup_free char *one = xasprintf("%s/one", directory), *other = xasprintf("%s/other", directory);
        struct program *p = program_create(3);

        assert_int_equal(mkdir(one, 0700), 0);
        assert_int_equal(mkdir(other, 0700), 0);
        p->nodes[0] = p->nodes[1] = one;
        p->nodes[2] = other;
        program_compute(p, 1);
        assert_int_equal(program_save(p, "/proc/thread-self/cwd"), -EXDEV);
        assert_string_equal(program_error(p),
                            "on rank 0: the file of rank 2 is not seen by rank 0: folder '/proc/thread-self/cwd' must be "
                            "shared by all nodes");
        /* Nothing is left, not even there. */
        assert_int_equal(rmdir(one), 0);
        assert_int_equal(rmdir(other), 0);
        program_destroy(p);
}

/* ---- offline ---- */

static void test_merge(void **state) {
        const struct offline_watch watch = { no_damage, no_progress, NULL };
        struct offline_merge merge = { 5, host_is_big_endian(), 0 };
        struct program *p = program_create(6);
        uint64_t number = 0;
        int dir;

        save_steps(p, 1, 5);
        program_destroy(p);
        dir = folder_open(directory, false, NULL);
        assert_int_equal(offline_merge(dir, dir, &merge, &watch, &number, NULL), 0);
        assert_int_equal(number, 6);
        folder_keep(dir, 1);
        assert_int_equal(bytes_of(5, "rank-0"), -1);
        assert_int_equal(offline_verify(dir, 6, &watch), 0);
        (void) close(dir);
        p = program_create(9);
        assert_int_equal(program_restore(p, directory), RMRT_RESTORED_SHARED);
        assert_int_equal(program_step(p, false), 5);
        program_destroy(p);
}

/* A merge of adaptive blocks is a full checkpoint with blocks of one size. */
static void test_merge_adaptive(void **state) {
        assert_int_equal(setenv("RMRT_BLOCK", "adaptive", 1), 0);
        test_merge(state);
}

/* As a processor of the other byte order would have written it. */
static void test_byte_order(void **state) {
        const struct offline_watch watch = { no_damage, no_progress, NULL };
        struct offline_merge merge = { 2, !host_is_big_endian(), 0 };
        struct program *p = program_create(6);
        cleanup_free char *path = path_of(3, "rank-0");
        const double second = 1.0 + 2.0 / 7; /* cell 1 after step 2 */
        uint64_t number = 0, bits;
        uint8_t there[16];
        int dir = folder_open(directory, false, NULL), fd;

        save_steps(p, 1, 2);
        program_destroy(p);
        assert_int_equal(offline_merge(dir, dir, &merge, &watch, &number, NULL), 0);
        assert_int_equal(number, 3);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(pread(fd, there, sizeof(there), 8), sizeof(there));
        (void) close(fd);
        memcpy(&bits, there + 8, sizeof(bits));
        bits = __builtin_bswap64(bits);
        assert_memory_equal(&bits, &second, sizeof(second));
        for (int size = 6; size >= 3; size -= 3) {
                p = program_create(size);
                assert_int_equal(program_restore(p, directory), size == 6 ? RMRT_RESTORED_ALL : RMRT_RESTORED_SHARED);
                assert_int_equal(program_step(p, size == 6), 2);
                /* The checkpoint is no base for the next one. */
                if (size == 3)
                        save_steps(p, 3, 4);
                program_destroy(p);
        }
        (void) close(dir);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing, begin, end),
                cmocka_unit_test_setup_teardown(test_other_sizes, begin, end),
                cmocka_unit_test_setup_teardown(test_from_size_to_size, begin, end),
                cmocka_unit_test_setup_teardown(test_increments, begin, end),
                cmocka_unit_test_setup_teardown(test_changed_arrays, begin, end),
                cmocka_unit_test_setup_teardown(test_set_back, begin, end),
                cmocka_unit_test_setup_teardown(test_keep, begin, end),
                cmocka_unit_test_setup_teardown(test_compressed, begin, end),
                cmocka_unit_test_setup_teardown(test_block_sizes, begin, end),
                cmocka_unit_test_setup_teardown(test_adaptive, begin, end),
                cmocka_unit_test_setup_teardown(test_adaptive_compressed, begin, end),
                cmocka_unit_test_setup_teardown(test_adaptive_failure, begin, end),
                cmocka_unit_test_setup_teardown(test_auto, begin, end),
                cmocka_unit_test(test_auto_costs),
                cmocka_unit_test_setup_teardown(test_other_arrays, begin, end),
                cmocka_unit_test_setup_teardown(test_options, begin, end),
                cmocka_unit_test_setup_teardown(test_full_disk, begin, end),
                cmocka_unit_test_setup_teardown(test_no_manifest, begin, end),
                cmocka_unit_test_setup_teardown(test_folder_not_shared, begin, end),
                cmocka_unit_test_setup_teardown(test_merge, begin, end),
                cmocka_unit_test_setup_teardown(test_merge_adaptive, begin, end),
                cmocka_unit_test_setup_teardown(test_byte_order, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
