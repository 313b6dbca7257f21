/* Files that go ahead: whatever happens to them before the freeze, they arrive as they are then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/place.h"
#include "daemon/image/tree.h"
#include "daemon/mover/files.h"
#include "tests/unit/image/memory.h"

#define FILES 6U
#define LARGE_BYTES (UINT64_C(3) << 20)

struct places {
        char base[64];
        char *from;
        char *to;
        struct memory memory;
        struct image_writer *writer;
        struct files *files;
        struct mover_hooks hooks;
        unsigned (*meanwhile)(struct places *p); /* called in a round; NULL: nothing happens */
        uint64_t random;
};

static int setup(void **state) {
        struct places *p = xcalloc(1, sizeof(*p));

        /* In memory, as it is in a capsule. */
        strcpy(p->base, "/dev/shm/rmd-test-files.XXXXXX");
        assert_non_null(mkdtemp(p->base));
        p->from = xasprintf("%s/from", p->base);
        p->to = xasprintf("%s/to", p->base);
        assert_int_equal(mkdir(p->from, 0755), 0);
        assert_int_equal(mkdir(p->to, 0755), 0);
        *state = p;
        return 0;
}

static int teardown(void **state) {
        struct places *p = *state;

        (void) remove_tree(p->base);
        free(p->from);
        free(p->to);
        free(p);
        return 0;
}

static uint64_t random_next(struct places *p, uint64_t below) {
        p->random ^= p->random << 13;
        p->random ^= p->random >> 7;
        p->random ^= p->random << 17;
        return p->random % below;
}

static int poll_hook(void *ctx, const char *what, struct rm_error *err) {
        struct places *p = ctx;

        (void) what;
        (void) err;
        return p->meanwhile ? (int) p->meanwhile(p) * 0 : 0;
}

static int idle_hook(void *ctx, struct rm_error *err) {
        (void) ctx;
        (void) err;
        return 0;
}

/* ---- what programs do ---- */

static char *path_of(const struct places *p, uint64_t i) {
        return i % 2 ? xasprintf("%s/dir/f%u", p->from, (unsigned) i) : xasprintf("%s/f%u", p->from, (unsigned) i);
}

static void write_at(int fd, uint64_t offset, uint8_t value, size_t size_bytes) {
        uint8_t *data = xcalloc(1, size_bytes + 1);

        memset(data, value, size_bytes);
        assert_int_equal(pwrite(fd, data, size_bytes, (off_t) offset), (ssize_t) size_bytes);
        free(data);
}

/* Makes one of the changes that a program can make to a file. */
static unsigned change_one(struct places *p) {
        cleanup_free char *path = path_of(p, random_next(p, FILES));
        cleanup_free char *other = path_of(p, random_next(p, FILES));
        uint64_t what = random_next(p, 12);
        cleanup_close int fd = open(path, O_RDWR | O_CREAT, 0600);
        struct stat st;

        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        switch (what) {
        case 0:
                assert_int_equal(ftruncate(fd, (off_t) random_next(p, LARGE_BYTES)), 0);
                break;
        case 1:
                (void) unlink(path);
                break;
        case 2:
                (void) rename(path, other);
                break;
        case 3:
                (void) link(path, other);
                break;
        case 4:
                (void) fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) random_next(p, LARGE_BYTES),
                                 (off_t) random_next(p, 100000) + 1);
                break;
        case 5: /* zeros that are no hole */
                write_at(fd, random_next(p, LARGE_BYTES), 0, random_next(p, 20000));
                break;
        case 6:
                write_at(fd, 0, (uint8_t) random_next(p, 255) + 1, (size_t) random_next(p, LARGE_BYTES));
                break;
        default:
                write_at(fd, random_next(p, LARGE_BYTES), (uint8_t) random_next(p, 255) + 1, random_next(p, 9000));
        }
        return 1;
}

/* ---- there and compared ---- */

static void begin(struct places *p) {
        memory_init(&p->memory);
        assert_int_equal(image_writer_create(&p->memory.sink, NULL, NULL, &p->writer, NULL), 0);
        p->files = files_create(p->writer);
        files_add_tree(p->files, "tmp", p->from);
        p->hooks = (struct mover_hooks) { .ctx = p, .poll = poll_hook, .idle = idle_hook };
}

static void go_ahead(struct places *p) {
        struct rm_error err = { 0 };

        if (files_rounds(p->files, &p->hooks, &err) < 0)
                fail_msg("%s", error_text(&err));
}

/* The tree, and the end of the stream. Returns how many bytes of contents the freeze took. */
static uint64_t freeze(struct places *p) {
        uint64_t before_bytes = image_writer_figures(p->writer)->raw_bytes;
        struct image_tree_options options = { 0 };
        struct image_tree_figures figures = { 0 };
        cleanup_close int fd = open(p->from, O_RDONLY | O_DIRECTORY);
        struct rm_error err = { 0 };
        int r;

        p->meanwhile = NULL;
        r = files_freeze(p->files, &p->hooks, &err);
        files_options(p->files, &options);
        if (r == 0)
                r = image_tree_write(p->writer, "tmp", fd, &options, &figures, &err);
        if (r == 0)
                r = image_writer_end(p->writer, &err);
        if (r < 0)
                fail_msg("%s", error_text(&err));
        return image_writer_figures(p->writer)->raw_bytes - before_bytes;
}

static int place(struct places *p, uint64_t max_bytes, struct rm_error *err) {
        struct image_place *place = image_place_create();
        struct image_reader *reader = NULL;
        int r;

        image_place_tree(place, "tmp", p->to);
        image_place_limit(place, max_bytes);
        assert_int_equal(image_reader_create(&p->memory.source, image_place_target(place), NULL, &reader, err), 0);
        r = image_reader_run(reader, err);
        image_reader_destroy(reader);
        image_place_destroy(place);
        return r;
}

static void end(struct places *p) {
        files_destroy(p->files);
        image_writer_destroy(p->writer);
        memory_finish(&p->memory);
}

static void arrive(struct places *p) {
        cleanup_free char *compare = xasprintf("diff -r %s %s", p->from, p->to);
        struct rm_error err = { 0 };

        if (place(p, 0, &err) < 0)
                fail_msg("%s", error_text(&err));
        assert_int_equal(system(compare), 0);
        end(p);
}

static void test_random_changes(void **state) {
        struct places *p = *state;
        cleanup_free char *dir = xasprintf("%s/dir", p->from);
        cleanup_free char *again = xasprintf("rm -rf %s/* %s/*", p->from, p->to);
        unsigned runs = getenv("RM_TEST_THOROUGH") ? 400 : 100;

        for (unsigned run = 1; run <= runs; run++) {
                p->random = run * UINT64_C(0x9e3779b97f4a7c15);
                assert_int_equal(system(again), 0);
                assert_int_equal(mkdir(dir, 0755), 0);
                for (int i = 0; i < 10; i++)
                        (void) change_one(p);
                begin(p);
                p->meanwhile = run % 2 ? change_one : NULL;
                go_ahead(p);
                for (uint64_t i = random_next(p, 10); i > 0; i--)
                        (void) change_one(p);
                (void) freeze(p);
                arrive(p);
        }
}

static void make(const struct places *p, const char *name, uint64_t size_bytes) {
        cleanup_free char *path = xasprintf("%s/%s", p->from, name);
        cleanup_close int fd = open(path, O_RDWR | O_CREAT, 0600);

        assert_true(fd >= 0);
        write_at(fd, 0, 'x', size_bytes);
}

static void test_only_changes_in_the_freeze(void **state) {
        struct places *p = *state;
        cleanup_free char *path = xasprintf("%s/segment", p->from);
        cleanup_close int fd = -1;

        make(p, "segment", LARGE_BYTES);
        begin(p);
        go_ahead(p);
        fd = open(path, O_RDWR);
        write_at(fd, 1000000, 'y', 10);
        assert_int_equal(freeze(p), IMAGE_BLOCK_BYTES);
        arrive(p);
}

/* A removed file takes up no memory at the destination: the same space may be in use again. */
static void test_removed_is_forgotten(void **state) {
        struct places *p = *state;
        cleanup_free char *path = xasprintf("%s/old", p->from);

        make(p, "old", LARGE_BYTES);
        begin(p);
        go_ahead(p);
        assert_int_equal(unlink(path), 0);
        make(p, "new", LARGE_BYTES);
        (void) freeze(p);
        assert_int_equal(place(p, LARGE_BYTES + LARGE_BYTES / 2, NULL), 0);
        end(p);
}

static void test_more_than_granted(void **state) {
        struct places *p = *state;
        struct rm_error err = { 0 };

        make(p, "segment", LARGE_BYTES);
        begin(p);
        go_ahead(p);
        (void) freeze(p);
        assert_int_equal(place(p, LARGE_BYTES / 2, &err), -ENOSPC);
        end(p);
}

/* A file that is sent again and again is there once. */
static void test_rewritten_counts_once(void **state) {
        struct places *p = *state;

        make(p, "segment", LARGE_BYTES);
        begin(p);
        for (int i = 0; i < 4; i++) {
                cleanup_free char *path = xasprintf("%s/segment", p->from);
                cleanup_close int fd = open(path, O_RDWR);

                go_ahead(p);
                write_at(fd, 0, (uint8_t) ('a' + i), LARGE_BYTES);
        }
        (void) freeze(p);
        assert_int_equal(place(p, LARGE_BYTES + LARGE_BYTES / 8, NULL), 0);
        end(p);
}

/* A terabyte that holds nothing takes no memory to remember. */
static void test_empty_giant(void **state) {
        struct places *p = *state;
        cleanup_free char *path = xasprintf("%s/giant", p->from);
        struct stat st;

        make(p, "giant", LARGE_BYTES);
        begin(p);
        go_ahead(p);
        assert_int_equal(truncate(path, (off_t) 1 << 44), 0);
        go_ahead(p);
        (void) freeze(p);
        assert_int_equal(place(p, 0, NULL), 0);
        end(p);
        free(path);
        path = xasprintf("%s/giant", p->to);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, (off_t) 1 << 44);
}

/* A file in place of a directory's name, and a link that leads elsewhere, bring nothing of other
 * places. */
static void test_links_are_not_followed(void **state) {
        struct places *p = *state;
        cleanup_free char *elsewhere = xasprintf("%s/secret", p->base);
        cleanup_free char *link = xasprintf("%s/link", p->from);
        cleanup_close int fd = open(elsewhere, O_RDWR | O_CREAT, 0600);

        write_at(fd, 0, 's', LARGE_BYTES);
        assert_int_equal(symlink(elsewhere, link), 0);
        begin(p);
        go_ahead(p);
        assert_true(p->memory.size_bytes < 10000);
        (void) freeze(p);
        arrive(p);
}

/* ---- a receiver that is told nonsense ---- */

static void say(struct places *p, Rm__ImageKind kind, const char *role, const char *path, uint32_t ahead) {
        const struct image_object object = { .kind = kind, .role = role, .path = path, .target = "", .mode = 0600, .ahead = ahead };
        uint32_t slot = 0;

        assert_int_equal(image_writer_open(p->writer, &object, &slot, NULL), 0);
        assert_int_equal(image_writer_close(p->writer, slot, 100, NULL), 0);
}

static void test_numbers_that_are_none(void **state) {
        static const struct {
                const char *role;
                uint32_t ahead;
                int code;
        } cases[] = { { "tmp", 7, 0 }, { "tmp", 8, -EBADMSG }, { "shm", 7, -EBADMSG } };
        struct places *p = *state;
        const struct image_object wrong = {
                .kind = RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, .role = "tmp", .path = "a", .target = "", .ahead = 1
        };
        struct image_object number = { .kind = RM__IMAGE_KIND__IMAGE_KIND_AHEAD, .role = "tmp", .path = "1025", .target = "" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct image_place *place = image_place_create();
                struct image_reader *reader = NULL;

                begin(p);
                say(p, RM__IMAGE_KIND__IMAGE_KIND_AHEAD, "tmp", "7", 0);
                say(p, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, cases[i].role, "a", cases[i].ahead);
                assert_int_equal(image_writer_end(p->writer, NULL), 0);
                image_place_tree(place, "tmp", p->to);
                image_place_tree(place, "shm", p->from);
                assert_int_equal(image_reader_create(&p->memory.source, image_place_target(place), NULL, &reader, NULL), 0);
                assert_int_equal(image_reader_run(reader, NULL), cases[i].code);
                image_reader_destroy(reader);
                image_place_destroy(place);
                end(p);
        }
        assert_int_equal(image_object_check(&wrong, NULL), -EBADMSG);
        assert_int_equal(image_object_check(&number, NULL), -EBADMSG);
        number.path = "1024";
        assert_int_equal(image_object_check(&number, NULL), 0);
        number.path = "01";
        assert_int_equal(image_object_check(&number, NULL), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_random_changes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_only_changes_in_the_freeze, setup, teardown),
                cmocka_unit_test_setup_teardown(test_removed_is_forgotten, setup, teardown),
                cmocka_unit_test_setup_teardown(test_more_than_granted, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rewritten_counts_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_empty_giant, setup, teardown),
                cmocka_unit_test_setup_teardown(test_links_are_not_followed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_numbers_that_are_none, setup, teardown),
        };

        return cmocka_run_group_tests_name("mover-files", tests, NULL, NULL);
}
