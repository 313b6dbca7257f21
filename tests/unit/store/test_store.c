/* Checkpoints go in and come out as they were; only what is new takes up room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/place.h"
#include "scene.h"

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

static void saved(struct scene *s, uint64_t number, int level, struct store_figures *figures) {
        if (scene_save(s, number, level, figures) < 0)
                fail_msg("%s", error_text(&s->err));
}

static void loaded(struct scene *s, uint64_t number, struct recorder *r) {
        if (scene_load(s, number, r) < 0)
                fail_msg("%s", error_text(&s->err));
}

/* Every kind that is stored; a file in odd pieces, one with a hole, one with a short end. */
static void objects_put(struct scene *s) {
        static const struct image_attribute attributes[] = { { "user.tag", "value", 5 }, { "user.none", "", 0 } };
        static const struct image_object plain[] = {
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", ".", "", 01777, 0, 0, 5, 6, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", "a", "", 0755, 0, 0, 5, 6, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_FIFO, "tmp", "fifo", "", 0644, 1000, 1000, 1700000000, 9, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_SYMLINK, "tmp", "a/link", "../x", 0777, 0, 0, -1, 0, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, "tmp", "hard", "fifo", 0644, 0, 0, 0, 0, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END, "tmp", "a", "", 0755, 7, 8, 5, 6, NULL, 0 },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END, "tmp", ".", "", 01777, 0, 0, 5, 6, attributes, ARRAY_SIZE(attributes) },
        };
        uint8_t data[3 * PAGE];
        uint32_t image, file;

        for (size_t i = 0; i < 3; i++)
                fill_page(data + i * PAGE, 77 + i);
        image = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_CRIU, "", "core-1.img");
        for (size_t i = 0; i < 5; i++)
                assert_int_equal(image_writer_open(s->w, &plain[i], NULL, NULL), 0);
        file = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "a/holes");
        for (size_t at = 0; at < sizeof(data) - 500; at += 500)
                stream_put(s, image, at, data + at, 500);
        stream_put(s, file, 100 * PAGE, data, sizeof(data));
        assert_int_equal(image_writer_zero(s->w, file, 103 * PAGE, 5 * PAGE, NULL), 0);
        stream_put(s, file, 300 * PAGE, data, 10);
        stream_close(s, file, 300 * PAGE + 10);
        stream_close(s, image, (sizeof(data) - 500) / 500 * 500 + 500);
        stream_close(s, stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "empty"), 0);
        stream_close(s, stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "zeros"), 123456);
        file = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_SPOOL, "stdout", "");
        stream_put(s, file, 0, "hello\n", 6);
        stream_close(s, file, 6);
        assert_int_equal(image_writer_open(s->w, &plain[5], NULL, NULL), 0);
        assert_int_equal(image_writer_open(s->w, &plain[6], NULL, NULL), 0);
}

/* Two processes: pages that came twice, present zeros, some that are not present, one process that
 * has ended. */
static void processes_put(struct scene *s) {
        const uint64_t runs[] = { HIGH, HIGH + PAGE, HIGH + 2 * PAGE, HIGH + 4 * PAGE, HIGH + 500 * PAGE, HIGH + 502 * PAGE };
        uint8_t page[PAGE];
        uint32_t pages = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17");
        uint32_t ended = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "18");

        for (uint64_t i = 0; i < 600; i++) {
                fill_page(page, 1000 + i);
                stream_put(s, pages, HIGH + i * PAGE, page, PAGE);
        }
        stream_put(s, ended, HIGH, page, PAGE);
        stream_put(s, pages, HIGH + 2 * PAGE, page, PAGE);
        assert_int_equal(image_writer_zero(s->w, pages, HIGH + 3 * PAGE, PAGE, NULL), 0);
        stream_present(s, "17", runs, ARRAY_SIZE(runs));
        stream_close(s, pages, 0);
        stream_present(s, "18", NULL, 0);
        stream_close(s, ended, 0);
}

/* The same with all codecs, from this store and from one that is opened anew. */
static void all_kinds_come_back(void **state) {
        struct scene *s = *state;

        static const int levels[] = { -1, 0, 1, 3 };

        for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
                uint64_t number = i + 1;
                struct recorder before, after;

                stream_begin(s);
                objects_put(s);
                stream_end(s);
                saved(s, number, levels[i], NULL);
                recorder_init(&before);
                assert_int_equal(stream_read(s, &before.target), 0);
                scene_reopen(s);
                loaded(s, number, &after);
                recorder_assert_same(&before, &after);
                recorder_finish(&before);
                recorder_finish(&after);
                if (store_verify(s->store, number, NULL, NULL, &s->err) < 0)
                        fail_msg("%s", error_text(&s->err));
                assert_int_equal(store_remove(s->store, number, NULL), 0);
        }
}

static void memory_comes_back(void **state) {
        struct scene *s = *state;
        const struct record *pages, *list;
        struct recorder after;
        uint8_t page[PAGE];

        stream_begin(s);
        processes_put(s);
        stream_end(s);
        saved(s, 1, 1, NULL);
        loaded(s, 1, &after);
        assert_int_equal(after.n, 2);
        pages = recorder_find(&after, RM__IMAGE_KIND__IMAGE_KIND_PAGES, ":17 ");
        list = recorder_find(&after, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, ":17 ");
        assert_non_null(pages);
        assert_non_null(list);
        assert_int_equal(list->size_bytes, 3 * IMAGE_PRESENT_RUN_BYTES);
        for (uint64_t i = 0; i < 600; i++) {
                bool present = i == 0 || i == 2 || i == 3 || i == 500 || i == 501;

                assert_int_equal(pages->come[i], present);
                fill_page(page, 1000 + (i == 2 ? 599 : i));
                if (i == 3)
                        memset(page, 0, PAGE);
                if (present)
                        assert_memory_equal(pages->contents + i * PAGE, page, PAGE);
        }
        recorder_finish(&after);
}

/* The receiving end takes it, in the order in which it comes. */
static void can_be_placed(void **state) {
        struct scene *s = *state;
        cleanup_free char *images = xasprintf("%s/images", s->base), *spool = xasprintf("%s/spool", s->base);
        struct image_place *place = image_place_create();
        struct recorder after;

        assert_int_equal(mkdir(images, 0700), 0);
        stream_begin(s);
        processes_put(s);
        stream_file(s, "ignored", 1, 1);
        stream_end(s);
        saved(s, 1, 1, NULL);
        loaded(s, 1, &after);
        recorder_finish(&after);
        image_place_images(place, images);
        image_place_tree(place, "tmp", s->base);
        image_place_file(place, "stdout", spool);
        if (stream_read(s, image_place_target(place)) < 0 && geteuid() == 0)
                fail_msg("%s", error_text(&s->err));
        assert_true(image_place_has_pages(place));
        image_place_destroy(place);
}

static void files_ahead_become_plain(void **state) {
        struct scene *s = *state;
        const struct image_object o = {
                .kind = RM__IMAGE_KIND__IMAGE_KIND_REGULAR, .role = "tmp", .path = "f", .target = "", .ahead = 3
        };
        uint8_t data[3 * PAGE], other[PAGE];
        const struct record *record;
        struct recorder after;
        uint32_t slot;

        for (size_t i = 0; i < 3; i++)
                fill_page(data + i * PAGE, 5 + i);
        fill_page(other, 99);
        stream_begin(s);
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_AHEAD, "tmp", "3");
        stream_put(s, slot, 0, data, sizeof(data));
        stream_close(s, slot, sizeof(data));
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_AHEAD, "tmp", "3");
        stream_put(s, slot, PAGE, other, PAGE);
        stream_close(s, slot, sizeof(data));
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_AHEAD, "tmp", "4");
        stream_put(s, slot, 0, data, PAGE);
        stream_close(s, slot, 0);
        assert_int_equal(image_writer_open(s->w, &o, &slot, NULL), 0);
        stream_put(s, slot, 100, "changed", 7);
        assert_int_equal(image_writer_zero(s->w, slot, 2 * PAGE + 8, 16, NULL), 0);
        stream_close(s, slot, 2 * PAGE + 1000);
        stream_end(s);
        saved(s, 1, 1, NULL);
        loaded(s, 1, &after);
        record = recorder_find(&after, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp:f ");
        assert_int_equal(after.n, 1);
        assert_non_null(record);
        assert_int_equal(record->size_bytes, 2 * PAGE + 1000);
        memcpy(data + PAGE, other, PAGE);
        memcpy(data + 100, "changed", 7);
        memset(data + 2 * PAGE + 8, 0, 16);
        assert_memory_equal(record->contents, data, record->size_bytes);
        recorder_finish(&after);
}

enum { DRAWN_PAGES = 8, DRAWN_WRITES = 12, DRAWN_FILES = 100 };

static uint32_t draw(uint64_t *seed, uint32_t below) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (*seed >> 33) % below;
}

/* Data or zeros, at the begin and end of blocks as often as within them. */
static void draw_write(struct scene *s, uint32_t slot, uint64_t *seed, uint8_t *expected) {
        uint32_t fine = draw(seed, 2) ? PAGE : 500, n = DRAWN_PAGES * PAGE / fine;
        uint32_t first = draw(seed, n), count = 1 + draw(seed, n - first < 3 * PAGE / fine ? n - first : 3 * PAGE / fine);
        uint8_t data[3 * PAGE];

        for (size_t i = 0; i < 3; i++)
                fill_page(data + i * PAGE, *seed + i);
        if (draw(seed, 2)) {
                stream_put(s, slot, first * fine, data, count * fine);
                memcpy(expected + first * fine, data, count * fine);
        } else {
                assert_int_equal(image_writer_zero(s->w, slot, first * fine, count * fine, NULL), 0);
                memset(expected + first * fine, 0, count * fine);
        }
}

/* In whatever order, and over what was there: the last one counts. */
static void the_last_write_counts(void **state) {
        struct scene *s = *state;
        uint64_t seed = 1;

        for (uint64_t number = 1; number <= DRAWN_FILES; number++) {
                uint8_t expected[DRAWN_PAGES * PAGE] = { 0 };
                const struct record *record;
                struct recorder after;
                uint32_t slot;

                stream_begin(s);
                slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "f");
                for (size_t i = 0; i < DRAWN_WRITES; i++)
                        draw_write(s, slot, &seed, expected);
                stream_close(s, slot, sizeof(expected));
                stream_end(s);
                saved(s, number, 1, NULL);
                loaded(s, number, &after);
                record = recorder_find(&after, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp:f ");
                assert_non_null(record);
                assert_int_equal(record->size_bytes, sizeof(expected));
                for (size_t i = 0; i < sizeof(expected); i++)
                        if (expected[i] != (record->contents && i < record->reach ? record->contents[i] : 0))
                                fail_msg("file %u differs at byte %zu", (unsigned) number, i);
                recorder_finish(&after);
                assert_int_equal(store_remove(s->store, number, NULL), 0);
        }
}

static void only_changes_are_stored(void **state) {
        struct scene *s = *state;
        struct store_figures first = { 0 }, second = { 0 }, third = { 0 };
        struct recorder after;

        stream_begin(s);
        stream_file(s, "f", 1, 500);
        stream_file(s, "same", 1, 500);
        stream_end(s);
        saved(s, 1, 1, &first);
        assert_int_equal(first.blocks, 1000);
        assert_int_equal(first.new_blocks, 500);
        assert_int_equal(first.raw_bytes, 1000 * PAGE);
        assert_true(first.packed_bytes < 500 * PAGE);
        stream_begin(s);
        stream_file(s, "f", 11, 500);
        stream_end(s);
        scene_reopen(s);
        saved(s, 2, 1, &second);
        assert_int_equal(second.new_blocks, 10);
        assert_int_equal(scene_count(s, "pack-"), 2);
        saved(s, 3, 1, &third);
        assert_int_equal(third.new_blocks, 0);
        assert_int_equal(third.packed_bytes, 0);
        assert_int_equal(scene_count(s, "pack-"), 2); /* an empty one is not kept */
        for (uint64_t number = 1; number <= 3; number++) {
                loaded(s, number, &after);
                recorder_finish(&after);
        }
}

static void continued(struct scene *s, uint64_t number, const uint64_t *runs, size_t n, uint64_t changed,
                      struct store_figures *figures) {
        struct store_save *save = NULL;
        uint8_t page[PAGE];
        uint32_t slot;

        assert_int_equal(store_save_begin(s->store, number, 1, &save, NULL), 0);
        assert_int_equal(store_save_continue(save, 17), 0);
        assert_int_equal(store_save_continue(save, 18), -ENOENT);
        stream_begin(s);
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17");
        fill_page(page, 5000 + number);
        stream_put(s, slot, HIGH + changed * PAGE, page, PAGE);
        stream_present(s, "17", runs, n);
        stream_close(s, slot, 0);
        stream_end(s);
        assert_int_equal(stream_read(s, store_save_target(save)), 0);
        assert_int_equal(store_save_commit(save, figures, NULL), 0);
}

static void memory_is_continued(void **state) {
        struct scene *s = *state;
        const uint64_t second[] = { HIGH, HIGH + PAGE, HIGH + 3 * PAGE, HIGH + 4 * PAGE, HIGH + 500 * PAGE, HIGH + 502 * PAGE };
        struct store_figures figures = { 0 };
        const struct record *pages;
        struct recorder after;
        uint8_t page[PAGE];

        stream_begin(s);
        processes_put(s);
        stream_end(s);
        saved(s, 1, 1, NULL);
        continued(s, 2, second, ARRAY_SIZE(second), 500, &figures);
        assert_int_equal(figures.blocks, 1);
        continued(s, 3, second, ARRAY_SIZE(second), 0, &figures);
        loaded(s, 3, &after);
        pages = recorder_find(&after, RM__IMAGE_KIND__IMAGE_KIND_PAGES, ":17 ");
        assert_non_null(pages);
        for (uint64_t i = 0; i < 600; i++)
                assert_int_equal(pages->come[i], i == 0 || i == 3 || i == 500 || i == 501);
        fill_page(page, 5003);
        assert_memory_equal(pages->contents, page, PAGE);
        fill_page(page, 5002);
        assert_memory_equal(pages->contents + 500 * PAGE, page, PAGE);
        fill_page(page, 1501);
        assert_memory_equal(pages->contents + 501 * PAGE, page, PAGE);
        recorder_finish(&after);
}

/* A save that was given up does not count, and one that is gone is not continued. */
static void continues_the_last_one_saved(void **state) {
        struct scene *s = *state;
        const uint64_t runs[] = { HIGH, HIGH + PAGE };
        struct store_save *save = NULL;
        struct store_figures figures;

        stream_begin(s);
        processes_put(s);
        stream_end(s);
        saved(s, 1, 1, NULL);
        assert_int_equal(store_save_begin(s->store, 2, 1, &save, NULL), 0);
        store_save_abort(save);
        assert_int_equal(scene_count(s, "pack-"), 1);
        continued(s, 3, runs, 2, 0, &figures);
        assert_int_equal(store_remove(s->store, 3, NULL), 0);
        assert_int_equal(store_save_begin(s->store, 4, 1, &save, NULL), 0);
        assert_int_equal(store_save_continue(save, 17), -ENOENT);
        store_save_abort(save);
}

/* A save that is too large is refused, and leaves nothing; the earlier checkpoints stay whole. */
static void too_much_is_refused(void **state) {
        struct scene *s = *state;
        const uint64_t random_seed = UINT64_C(0x100000000); /* it does not compress */
        struct store_save *save = NULL;
        struct rm_error err = { 0 };
        struct recorder after;

        stream_begin(s);
        stream_file(s, "a", random_seed, 200);
        stream_end(s);
        saved(s, 1, 1, NULL);
        stream_begin(s);
        stream_file(s, "a", random_seed + 1000, 400);
        stream_end(s);
        assert_int_equal(store_save_begin(s->store, 2, 1, &save, NULL), 0);
        store_save_limit(save, 200 * PAGE);
        if (stream_read(s, store_save_target(save)) == 0) {
                assert_int_equal(store_save_commit(save, NULL, &err), -EDQUOT);
                assert_non_null(strstr(error_text(&err), "pack-2"));
        } else {
                store_save_abort(save);
        }
        assert_int_equal(scene_count(s, "pack-"), 1);
        assert_int_equal(scene_count(s, "manifest-"), 1);
        loaded(s, 1, &after);
        recorder_finish(&after);
        assert_int_equal(store_save_begin(s->store, 3, 1, &save, NULL), 0);
        store_save_limit(save, 500 * PAGE);
        stream_begin(s);
        stream_file(s, "a", random_seed + 1000, 400);
        stream_end(s);
        assert_int_equal(stream_read(s, store_save_target(save)), 0);
        assert_int_equal(store_save_commit(save, NULL, NULL), 0);
}

/* Without their list, pages would be believed that the process may not have any more. */
static void hostile_memory_is_refused(void **state) {
        struct scene *s = *state;
        static const uint64_t lists[][4] = { { HIGH, HIGH + 2 * PAGE, 0, 0 },        /* one never came */
                                             { HIGH, HIGH + 1, 0, 0 },               /* not whole */
                                             { HIGH + PAGE, HIGH, 0, 0 },            /* backwards */
                                             { HIGH, HIGH + PAGE, HIGH, HIGH + PAGE } }; /* twice */
        struct recorder after;
        uint8_t page[PAGE];
        uint32_t slot;

        fill_page(page, 1);
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                stream_begin(s);
                slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17");
                stream_put(s, slot, HIGH, page, PAGE);
                stream_present(s, "17", lists[i], lists[i][2] ? 4 : 2);
                stream_close(s, slot, 0);
                stream_end(s);
                assert_int_equal(scene_save(s, 1, 1, NULL), -EBADMSG);
                assert_int_equal(scene_count(s, ""), 0);
        }
        stream_begin(s);
        slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17");
        stream_put(s, slot, HIGH, page, PAGE);
        stream_close(s, slot, 0);
        stream_end(s);
        saved(s, 1, 1, NULL);
        loaded(s, 1, &after);
        assert_int_equal(after.n, 0);
        recorder_finish(&after);
}

static void metas_come_back(void **state) {
        struct scene *s = *state;
        struct store_save *save = NULL;
        struct store_load *load = NULL;
        cleanup_free char *large = xcalloc(1, STORE_META_MAX_BYTES);
        const void *data = NULL;
        size_t n = 0;

        assert_int_equal(store_save_begin(s->store, 9, 1, &save, NULL), 0);
        assert_int_equal(store_save_meta(save, "carry", "abc", 3, NULL), 0);
        assert_int_equal(store_save_meta(save, "carry", "abc", 3, NULL), -EINVAL);
        assert_int_equal(store_save_meta(save, "../x", "abc", 3, NULL), -EINVAL);
        assert_int_equal(store_save_meta(save, "large", large, STORE_META_MAX_BYTES, NULL), -EFBIG);
        assert_int_equal(store_save_meta(save, "large", large, STORE_META_MAX_BYTES - 3, NULL), 0);
        assert_int_equal(store_save_commit(save, NULL, &s->err), 0);
        assert_int_equal(store_load_begin(s->store, 9, &load, &s->err), 0);
        assert_int_equal(store_load_meta(load, "carry", &data, &n), 0);
        assert_int_equal(n, 3);
        assert_memory_equal(data, "abc", 3);
        assert_int_equal(store_load_meta(load, "large", &data, &n), 0);
        assert_int_equal(n, STORE_META_MAX_BYTES - 3);
        assert_int_equal(store_load_meta(load, "other", &data, &n), -ENOENT);
        store_load_end(load);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(all_kinds_come_back, setup, teardown),
                cmocka_unit_test_setup_teardown(memory_comes_back, setup, teardown),
                cmocka_unit_test_setup_teardown(can_be_placed, setup, teardown),
                cmocka_unit_test_setup_teardown(files_ahead_become_plain, setup, teardown),
                cmocka_unit_test_setup_teardown(the_last_write_counts, setup, teardown),
                cmocka_unit_test_setup_teardown(only_changes_are_stored, setup, teardown),
                cmocka_unit_test_setup_teardown(memory_is_continued, setup, teardown),
                cmocka_unit_test_setup_teardown(continues_the_last_one_saved, setup, teardown),
                cmocka_unit_test_setup_teardown(too_much_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(hostile_memory_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(metas_come_back, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
