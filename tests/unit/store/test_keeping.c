/* How much room a store takes up over a long time, and what it does when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/text.h"
#include "common/util.h"
#include "scene.h"

/* Beyond what fill_page() makes compressible. */
#define RANDOM UINT64_C(0x100000000)
#define PAGES 600U

static int setup(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));

        scene_init(s);
        *state = s;
        return 0;
}

static int teardown(void **state) {
        scene_finish(*state);
        free(*state);
        return 0;
}

static void saved(struct scene *s, uint64_t number, struct store_figures *figures) {
        if (scene_save(s, number, 1, figures) < 0)
                fail_msg("%s", error_text(&s->err));
}

/* A process with these pages; a first, small one in front that is always another. */
static void memory_put(struct scene *s, const uint64_t *seeds, size_t n) {
        uint8_t page[PAGE];
        uint32_t slot;
        const uint64_t runs[] = { HIGH, HIGH + n * PAGE };

        stream_begin(s);
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17");
        for (size_t i = 0; i < n; i++) {
                fill_page(page, seeds[i]);
                stream_put(s, slot, HIGH + i * PAGE, page, PAGE);
        }
        stream_present(s, "17", runs, 2);
        stream_close(s, slot, 0);
        stream_end(s);
}

/* 50 checkpoints of which the last two are kept; each time a tenth of the pages is new. */
static void the_space_is_bounded(void **state) {
        struct scene *s = *state;
        uint64_t seeds[PAGES], next = RANDOM, x = 1, moved = 0;
        const uint64_t all_bytes = PAGES * (uint64_t) PAGE;
        struct store_figures figures;
        struct recorder after;

        for (size_t i = 0; i < PAGES; i++)
                seeds[i] = next++;
        for (uint64_t number = 1; number <= 50; number++) {
                memory_put(s, seeds, PAGES);
                memset(&figures, 0, sizeof(figures));
                saved(s, number, &figures);
                if (number > 2)
                        assert_int_equal(store_remove(s->store, number - 2, NULL), 0);
                moved += figures.moved_blocks;
                if (number > 1) {
                        assert_true(figures.new_blocks - figures.moved_blocks <= PAGES / 10);
                        assert_true(figures.moved_blocks <= PAGES / 4 + 1);
                }
                /* Half of each pack in use, and what the one before needs beside it. */
                assert_true(store_used_bytes(s->store) < all_bytes * 5 / 2);
                assert_true(scene_count(s, "pack-") < 40);
                for (size_t i = 0; i < PAGES / 10; i++) {
                        x = x * UINT64_C(6364136223846793005) + 1442695040888963407U;
                        seeds[(x >> 33) % PAGES] = next++;
                }
                if (number % 10 == 0)
                        scene_reopen(s);
        }
        assert_true(moved > 0);
        for (uint64_t number = 49; number <= 50; number++) {
                assert_int_equal(store_verify(s->store, number, NULL, NULL, &s->err), 0);
                assert_int_equal(scene_load(s, number, &after), 0);
                recorder_finish(&after);
        }
}

/* Blocks that were taken over are found in the older pack again when the newer one goes. */
static void newer_ones_can_be_removed(void **state) {
        struct scene *s = *state;
        uint64_t seeds[PAGES];
        struct store_figures figures;
        struct recorder after;

        for (size_t i = 0; i < PAGES; i++)
                seeds[i] = RANDOM + i;
        memory_put(s, seeds, PAGES);
        saved(s, 1, NULL);
        for (size_t i = 0; i < PAGES - 50; i++)
                seeds[i] += PAGES;
        memory_put(s, seeds, PAGES);
        saved(s, 2, &figures);
        assert_int_equal(figures.moved_blocks, 50);
        assert_int_equal(store_remove(s->store, 2, NULL), 0);
        assert_int_equal(scene_count(s, "pack-"), 1);
        assert_int_equal(scene_load(s, 1, &after), 0);
        recorder_finish(&after);
        /* The older pack goes, too. */
        memory_put(s, seeds, PAGES);
        saved(s, 3, &figures);
        assert_int_equal(figures.moved_blocks, 50);
        assert_int_equal(store_remove(s->store, 1, NULL), 0);
        assert_int_equal(scene_count(s, "pack-"), 1);
        assert_int_equal(store_verify(s->store, 3, NULL, NULL, NULL), 0);
}

static int note_file(void *ctx, const char *name, int fd, bool manifest, struct rm_error *err) {
        char first;

        (void) err;
        assert_int_equal(pread(fd, &first, 1, 0), 1);
        (void) text_append(ctx, 100, " %s%s", name, manifest ? "!" : "");
        return 0;
}

static int end_at_once(void *ctx, const char *name, int fd, bool manifest, struct rm_error *err) {
        (void) note_file(ctx, name, fd, manifest, err);
        return 7;
}

static void files_are_reported(void **state) {
        struct scene *s = *state;
        char names[100] = "";

        stream_begin(s);
        stream_file(s, "f", 1, 10);
        stream_end(s);
        saved(s, 1, NULL);
        stream_begin(s);
        stream_file(s, "f", 2, 10);
        stream_end(s);
        saved(s, 2, NULL);
        assert_int_equal(store_each_file(s->store, 3, note_file, names, NULL), -ENOENT);
        assert_int_equal(store_each_file(s->store, 2, note_file, names, NULL), 0);
        assert_string_equal(names, " pack-1 pack-2 manifest-2!");
        *names = 0;
        assert_int_equal(store_each_file(s->store, 2, end_at_once, names, NULL), 7);
        assert_string_equal(names, " pack-1");
        assert_int_equal(scene_save(s, 2, 1, NULL), -EINVAL);
        assert_int_equal(store_remove(s->store, 1, NULL), 0);
        assert_int_equal(scene_count(s, "pack-"), 2); /* the second one needs both */
        assert_int_equal(store_remove(s->store, 2, NULL), 0);
        assert_int_equal(store_remove(s->store, 2, NULL), 0);
        assert_int_equal(scene_count(s, ""), 0);
        assert_int_equal(store_used_bytes(s->store), 0);
}

/* The store on a file system of 1 MiB, seen by this process alone. */
static void small_disk_mount(struct scene *s) {
        store_close(s->store);
        s->store = NULL;
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", s->dir, "tmpfs", 0, "size=1m,mode=0700") < 0)
                skip();
        scene_reopen(s);
}

/* Sizes around the limit, so that it is met in a pack, and in a manifest. */
static void a_full_disk_costs_nothing(void **state) {
        struct scene *s = *state;
        size_t full = 0, fits = 0;
        uint64_t used_bytes;

        small_disk_mount(s);
        stream_begin(s);
        stream_file(s, "f", RANDOM, 50);
        stream_end(s);
        saved(s, 1, NULL);
        used_bytes = store_used_bytes(s->store);
        for (size_t n = 180; n < 220; n++) {
                stream_begin(s);
                stream_file(s, "f", RANDOM + 1000, n);
                stream_end(s);
                if (scene_save(s, 2, 1, NULL) == 0) {
                        fits++;
                        assert_int_equal(store_remove(s->store, 2, NULL), 0);
                } else {
                        assert_int_equal(s->err.code, -ENOSPC);
                        full++;
                }
                assert_int_equal(scene_count(s, ""), 2);
                assert_int_equal(store_used_bytes(s->store), used_bytes);
                assert_int_equal(store_verify(s->store, 1, NULL, NULL, &s->err), 0);
        }
        assert_true(fits > 0 && full > 0);
        store_close(s->store);
        s->store = NULL;
        assert_int_equal(umount(s->dir), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_space_is_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(newer_ones_can_be_removed, setup, teardown),
                cmocka_unit_test_setup_teardown(files_are_reported, setup, teardown),
                cmocka_unit_test_setup_teardown(a_full_disk_costs_nothing, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
