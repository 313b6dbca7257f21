/* Damage of files by a disk, a crash or a stranger is found before any of them is used, and
 * named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/store/directory.h"
#include "scene.h"

static int setup(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));
        uint8_t page[PAGE];
        uint32_t slot;
        const uint64_t runs[] = { HIGH, HIGH + 2 * PAGE };

        scene_init(s);
        stream_begin(s);
        stream_file(s, "f", 1, 70);
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17");
        for (uint64_t i = 0; i < 3; i++) {
                fill_page(page, 300 + i);
                stream_put(s, slot, HIGH + i * PAGE, page, PAGE);
        }
        stream_present(s, "17", runs, 2);
        stream_close(s, slot, 0);
        stream_end(s);
        if (scene_save(s, 1, 1, NULL) < 0)
                fail_msg("%s", error_text(&s->err));
        *state = s;
        return 0;
}

static int teardown(void **state) {
        scene_finish(*state);
        free(*state);
        return 0;
}

static void byte_flip(const char *path, size_t at, uint8_t mask) {
        cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
        uint8_t byte;

        assert_int_equal(pread(fd, &byte, 1, (off_t) at), 1);
        byte ^= mask;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t) at), 1);
}

static size_t size_of(const char *path) {
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        return (size_t) st.st_size;
}

static void assert_found(struct scene *s, const char *name, int code, size_t at) {
        struct recorder after;

        scene_reopen(s);
        error_clear(&s->err);
        if (store_verify(s->store, 1, NULL, NULL, &s->err) != code || !strstr(error_text(&s->err), name))
                fail_msg("%s, byte %zu: %s", name, at, error_text(&s->err));
        if (scene_load(s, 1, &after) == 0)
                /* Files that only other checkpoints need may be damaged: this one has all of its
                 * own. */
                fail_msg("%s, byte %zu: loaded", name, at);
        recorder_finish(&after);
}

static void flips_are_found(struct scene *s, const char *name) {
        cleanup_free char *path = scene_path(s, name);
        size_t n = size_of(path), step = n / 400 + 1;

        for (size_t at = 0; at < n; at += at < 200 || at + 200 > n ? 1 : step) {
                byte_flip(path, at, (uint8_t) (1U << (at % 8)));
                assert_found(s, name, -EBADMSG, at);
                byte_flip(path, at, (uint8_t) (1U << (at % 8)));
        }
        scene_reopen(s);
        assert_int_equal(store_verify(s->store, 1, NULL, NULL, NULL), 0);
}

static void flips_in_a_manifest_are_found(void **state) {
        flips_are_found(*state, "manifest-1");
}

static void flips_in_a_pack_are_found(void **state) {
        flips_are_found(*state, "pack-1");
}

static void cuts_are_found(void **state) {
        static const char *const names[] = { "manifest-1", "pack-1" };
        struct scene *s = *state;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cleanup_free char *path = scene_path(s, names[i]);
                cleanup_free char *data = NULL;
                size_t n = 0;

                assert_int_equal(read_file(path, 1 << 20, &data, &n), 0);
                for (size_t left = 0; left<n; left += left + 60> n ? 1 : 37) {
                        assert_int_equal(truncate(path, (off_t) left), 0);
                        assert_found(s, names[i], -EBADMSG, left);
                        assert_int_equal(write_file_atomic(path, data, n, 0600, false), 0);
                }
                assert_int_equal(unlink(path), 0);
                scene_reopen(s);
                assert_int_equal(store_verify(s->store, 1, NULL, NULL, &s->err), i == 0 ? -ENOENT : -ENODATA);
                /* The pack went with the only manifest. */
                if (i == 0) {
                        assert_int_equal(scene_count(s, ""), 0);
                        (void) teardown(state);
                        (void) setup(state);
                        s = *state;
                }
        }
}

/* The next checkpoint does not rely on what is damaged. */
static void damage_is_healed(void **state) {
        struct scene *s = *state;
        cleanup_free char *path = scene_path(s, "pack-1");
        const size_t places[] = { 10, size_of(path) - 10 };
        struct store_figures figures = { 0 };
        struct recorder after;

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                byte_flip(path, places[i], 1);
                scene_reopen(s);
                assert_int_equal(store_verify(s->store, 1, NULL, NULL, NULL), -EBADMSG);
                stream_begin(s);
                stream_file(s, "f", 1, 70);
                stream_end(s);
                assert_int_equal(scene_save(s, 2 + i, 1, &figures), 0);
                assert_int_equal(figures.new_blocks, 70);
                assert_int_equal(scene_load(s, 2 + i, &after), 0);
                recorder_finish(&after);
                assert_int_equal(store_verify(s->store, 2 + i, NULL, NULL, NULL), 0);
                assert_int_equal(store_remove(s->store, 2 + i, NULL), 0);
                byte_flip(path, places[i], 1);
        }
}

static void another_key_is_refused(void **state) {
        struct scene *s = *state;
        struct store_keys right = s->keys;

        s->keys.key.bytes[5] ^= 1;
        assert_found(s, "manifest-1", -EBADMSG, 0);
        /* The pack may be needed, when the right key is there again. */
        assert_int_equal(scene_count(s, "pack-"), 1);
        s->keys.second = right.key;
        s->keys.has_second = true;
        scene_reopen(s);
        assert_int_equal(store_verify(s->store, 1, NULL, NULL, &s->err), 0);
        /* Nothing hinders the removal of what cannot be read. */
        s->keys.has_second = false;
        scene_reopen(s);
        assert_int_equal(store_remove(s->store, 1, &s->err), 0);
        assert_int_equal(scene_count(s, ""), 0);
}

/* A manifest comes from another cluster without a MAC. Nothing of the store is swept away
 * meanwhile. */
static void a_manifest_gets_the_mac_of_this_key(void **state) {
        struct scene *s = *state;
        cleanup_free char *path = scene_path(s, "manifest-1");

        assert_int_equal(truncate(path, (off_t) (size_of(path) - STORE_MAC_BYTES)), 0);
        assert_found(s, "manifest-1", -EBADMSG, 0);
        s->keys.second = s->keys.key;
        s->keys.has_second = true;
        s->keys.key.bytes[5] ^= 1;
        scene_reopen(s);
        assert_int_equal(store_sign(s->store, 1, NULL), 0);
        assert_int_equal(store_verify(s->store, 1, NULL, NULL, NULL), 0);
        assert_int_equal(store_sign(s->store, 2, &s->err), -ENOENT);
        /* The first key is enough, and the second is not. */
        s->keys.has_second = false;
        scene_reopen(s);
        assert_int_equal(store_verify(s->store, 1, NULL, NULL, NULL), 0);
        s->keys.key = s->keys.second;
        assert_found(s, "manifest-1", -EBADMSG, 0);
}

/* An older one in the place of a newer. */
static void another_name_is_refused(void **state) {
        struct scene *s = *state;
        cleanup_free char *from = scene_path(s, "manifest-1"), *to = scene_path(s, "manifest-2");

        assert_int_equal(rename(from, to), 0);
        scene_reopen(s);
        assert_int_equal(store_verify(s->store, 2, NULL, NULL, &s->err), -EBADMSG);
}

static int no_file(void *ctx, const char *name, int fd, bool manifest, struct rm_error *err) {
        fail_msg("%s is given out", name);
        return 0;
}

/* A manifest that one user can make rmd sign is his own: another job's, another capsule's or
 * another user's counts for nothing in this directory. */
static void manifests_of_others_are_refused(void **state) {
        struct scene *s = *state;
        const struct store_origin right = s->origin;
        const struct store_origin others[] = { { 8, right.capsule, right.uid },
                                               { right.job, 0, right.uid },
                                               { right.job, right.capsule, 1001 } };
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                s->origin = others[i];
                assert_found(s, "manifest-1 is of job 7", -EBADMSG, i);
                /* Nor is it copied to another node. */
                assert_int_equal(store_each_file(s->store, 1, no_file, NULL, &s->err), -EBADMSG);
                assert_int_equal(scene_count(s, "pack-"), 1);
        }
        s->origin = right;
        scene_reopen(s);
        assert_int_equal(store_verify(s->store, 1, NULL, NULL, &s->err), 0);
}

/* The process died with as much done as it had then. */
static void died_while_saving(struct scene *s) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
                struct store *store = NULL;
                struct store_save *save = NULL;
                cleanup_free char *half = scene_path(s, "new-manifest-5");

                if (store_open(s->dir, &s->keys, &s->origin, &store, NULL) < 0 || store_save_begin(store, 5, 1, &save, NULL) < 0 ||
                    stream_read(s, store_save_target(save)) < 0 || write_file_atomic(half, "RMS1", 4, 0600, false) < 0)
                        _exit(1);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void half_a_checkpoint_is_none(void **state) {
        struct scene *s = *state;
        uint64_t *numbers = NULL;
        size_t n = 0;

        stream_begin(s);
        stream_file(s, "f", 5000, 200);
        stream_end(s);
        store_close(s->store);
        s->store = NULL;
        died_while_saving(s);
        assert_int_equal(scene_count(s, ""), 4);
        scene_reopen(s);
        assert_int_equal(scene_count(s, ""), 2);
        assert_int_equal(store_list(s->store, &numbers, &n, NULL), 0);
        assert_int_equal(n, 1);
        assert_int_equal(numbers[0], 1);
        free(numbers);
        assert_int_equal(store_verify(s->store, 1, NULL, NULL, NULL), 0);
}

/* Other processes open the store meanwhile, to load: files that are being written stay. */
static void what_is_in_use_stays(void **state) {
        struct scene *s = *state;
        struct store_save *save = NULL;
        struct store *other = NULL;

        stream_begin(s);
        stream_file(s, "f", 5000, 200);
        stream_file(s, "old", 1, 70);
        stream_end(s);
        assert_int_equal(store_save_begin(s->store, 2, 1, &save, NULL), 0);
        assert_int_equal(store_save_begin(s->store, 3, 1, &save, NULL), -EBUSY);
        assert_int_equal(stream_read(s, store_save_target(save)), 0);
        assert_int_equal(store_open(s->dir, &s->keys, &s->origin, &other, &s->err), 0);
        assert_int_equal(store_verify(other, 1, NULL, NULL, &s->err), 0);
        /* The pack is in use for the second one. */
        assert_int_equal(store_remove(other, 1, &s->err), 0);
        assert_int_equal(scene_count(s, "pack-"), 2);
        if (store_save_commit(save, NULL, &s->err) < 0)
                fail_msg("%s", error_text(&s->err));
        assert_int_equal(store_verify(other, 2, NULL, NULL, &s->err), 0);
        store_close(other);
}

static void strange_files_are_refused(void **state) {
        struct scene *s = *state;
        cleanup_free char *pack = scene_path(s, "pack-1"), *moved = xasprintf("%s/moved", s->base);
        struct store *other = NULL;

        assert_int_equal(rename(pack, moved), 0);
        assert_int_equal(symlink(moved, pack), 0);
        assert_true(store_open(s->dir, &s->keys, &s->origin, &other, &s->err) < 0);
        assert_non_null(strstr(error_text(&s->err), "pack-1"));
        assert_int_equal(unlink(pack), 0);
        assert_int_equal(mkfifo(pack, 0600), 0);
        assert_int_equal(store_open(s->dir, &s->keys, &s->origin, &other, &s->err), -EPERM);
        assert_int_equal(unlink(pack), 0);
        assert_int_equal(chmod(s->dir, 0777), 0);
        assert_int_equal(store_open(s->dir, &s->keys, &s->origin, &other, &s->err), -EPERM);
        assert_int_equal(chmod(s->dir, 0700), 0);
}

/* Names come from other nodes and from files that users bring: only those of a store's own files
 * are its. */
static void names_of_other_files(void **state) {
        const char *const others[] = { "",
                                       "pack-",
                                       "pack-0",
                                       "pack-01",
                                       "pack-+1",
                                       "pack- 1",
                                       "pack--1",
                                       "pack-1 ",
                                       "pack-1/../../x",
                                       "../pack-1",
                                       "pack-3",
                                       "pack-18446744073709551617",
                                       "manifest-0",
                                       "manifest-1",
                                       "manifest-3",
                                       "manifest-02",
                                       "manifest-18446744073709551618",
                                       "new-manifest-2",
                                       "Pack-1" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (directory_name_valid(others[i], 2) || directory_name_valid(others[i], 0))
                        fail_msg("'%s'", others[i]);
        assert_true(directory_name_valid("pack-1", 2));
        assert_true(directory_name_valid("pack-2", 2));
        assert_true(directory_name_valid("manifest-2", 2));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(flips_in_a_manifest_are_found, setup, teardown),
                cmocka_unit_test_setup_teardown(flips_in_a_pack_are_found, setup, teardown),
                cmocka_unit_test_setup_teardown(cuts_are_found, setup, teardown),
                cmocka_unit_test_setup_teardown(damage_is_healed, setup, teardown),
                cmocka_unit_test_setup_teardown(another_key_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(a_manifest_gets_the_mac_of_this_key, setup, teardown),
                cmocka_unit_test_setup_teardown(another_name_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(manifests_of_others_are_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(half_a_checkpoint_is_none, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_in_use_stays, setup, teardown),
                cmocka_unit_test_setup_teardown(strange_files_are_refused, setup, teardown),
                cmocka_unit_test(names_of_other_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
