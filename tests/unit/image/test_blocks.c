/* Blocks sent ahead: they move to where they are used first, and are found there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/known.h"
#include "daemon/image/place.h"
#include "daemon/image/place_blocks.h"
#include "memory.h"

#define BLOCK IMAGE_BLOCK_BYTES
#define BLOCKS 600U

static int setup(void **state) {
        char *directory = xstrdup("/dev/shm/rmd-test-blocks.XXXXXX");

        assert_non_null(mkdtemp(directory));
        *state = directory;
        return 0;
}

static int teardown(void **state) {
        assert_int_equal(remove_tree(*state), 0);
        free(*state);
        return 0;
}

/* Each block is full of its number. */
static void block_fill(uint8_t *block, uint32_t number) {
        for (size_t i = 0; i < BLOCK; i += sizeof(number))
                memcpy(block + i, &number, sizeof(number));
}

static uint64_t taken_bytes(int fd) {
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        return (uint64_t) st.st_blocks * 512;
}

static void write_blocks(int fd, uint64_t offset, uint32_t number, size_t n) {
        uint8_t block[BLOCK];

        for (size_t i = 0; i < n; i++) {
                block_fill(block, number + (uint32_t) i);
                assert_int_equal(pwrite(fd, block, BLOCK, (off_t) (offset + i * BLOCK)), BLOCK);
        }
}

static void fetch_check(const struct place_blocks *b, uint32_t number, size_t n) {
        cleanup_free uint8_t *data = xcalloc(n, BLOCK);
        uint8_t block[BLOCK];

        assert_int_equal(place_blocks_fetch(b, number, n, data), 0);
        for (size_t i = 0; i < n; i++) {
                block_fill(block, number + (uint32_t) i);
                assert_memory_equal(data + i * BLOCK, block, BLOCK);
        }
}

static int file_make(const char *directory) {
        int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        return fd;
}

static void test_they_move(void **state) {
        struct place_blocks *b = place_blocks_create();
        uint8_t block[BLOCK];
        int fd = -1, a = file_make(*state), other = file_make(*state);
        uint32_t of_a = 0, of_other = 0;

        assert_int_equal(place_blocks_fetch(b, 0, 1, block), -ENOENT);
        assert_int_equal(place_blocks_open(b, *state, &fd, NULL), 0);
        assert_int_equal(place_blocks_open(b, *state, &fd, NULL), -EBADMSG);
        write_blocks(fd, 0, 0, BLOCKS);
        assert_int_equal(taken_bytes(fd), BLOCKS * BLOCK);
        fetch_check(b, 0, BLOCKS);
        assert_int_equal(place_blocks_fetch(b, BLOCKS, 1, block), -ENODATA);

        write_blocks(a, 1000 * BLOCK, 100, 200);
        place_blocks_used(b, 100, 200, a, &of_a, 1000 * BLOCK);
        assert_int_equal(taken_bytes(fd), (BLOCKS - 200) * BLOCK);
        fetch_check(b, 0, BLOCKS);
        /* Used again, and some for the first time. */
        write_blocks(other, 0, 250, 100);
        place_blocks_used(b, 250, 100, other, &of_other, 0);
        assert_int_equal(taken_bytes(fd), (BLOCKS - 250) * BLOCK);
        write_blocks(a, 7 * BLOCK, 599, 1);
        place_blocks_used(b, 599, 1, a, &of_a, 7 * BLOCK);
        fetch_check(b, 0, BLOCKS);
        /* The second use was not where they are. */
        assert_int_equal(ftruncate(a, 0), 0);
        assert_int_equal(place_blocks_fetch(b, 299, 1, block), -ENODATA);
        fetch_check(b, 300, 299);
        (void) close(a);
        (void) close(other);
        (void) close(fd);
        place_blocks_destroy(b);
}

/* Blocks that cannot be kept elsewhere stay. */
static void test_a_file_that_cannot_be_kept(void **state) {
        struct place_blocks *b = place_blocks_create();
        uint32_t file = 0;
        int fd = -1;

        assert_int_equal(place_blocks_open(b, *state, &fd, NULL), 0);
        write_blocks(fd, 0, 0, 2);
        place_blocks_used(b, 0, 2, -1, &file, 0);
        assert_int_equal(taken_bytes(fd), 2 * BLOCK);
        fetch_check(b, 0, 2);
        (void) close(fd);
        place_blocks_destroy(b);
}

/* ---- in a stream ---- */

static uint64_t random_next(uint64_t *x) {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        return *x;
}

/* `numbers` NULL: all of them, in order. */
static void object_write(struct image_writer *w, Rm__ImageKind kind, const char *role, const char *path, const uint32_t *numbers) {
        const struct image_object o = { .kind = kind, .role = role, .path = path, .target = "", .mode = 0600 };
        uint32_t slot = 0;

        assert_int_equal(image_writer_open(w, &o, &slot, NULL), 0);
        for (size_t at = 0; at < BLOCKS; at += 100) {
                uint8_t *buffer = image_writer_buffer(w, 100 * BLOCK, NULL);

                assert_non_null(buffer);
                for (size_t i = 0; i < 100; i++)
                        block_fill(buffer + i * BLOCK, 1 + (numbers ? numbers[at + i] : (uint32_t) (at + i)));
                assert_int_equal(image_writer_data(w, slot, at * BLOCK, 100 * BLOCK, NULL), 0);
        }
        assert_int_equal(image_writer_close(w, slot, BLOCKS * BLOCK, NULL), 0);
}

static void file_check(const char *directory, const char *name, const uint32_t *numbers) {
        cleanup_free char *path = xasprintf("%s/%s", directory, name);
        cleanup_free char *data = NULL;
        uint8_t block[BLOCK];
        size_t size_bytes = 0;

        assert_int_equal(read_file(path, BLOCKS * BLOCK, &data, &size_bytes), 0);
        assert_int_equal(size_bytes, BLOCKS * BLOCK);
        for (size_t i = 0; i < BLOCKS; i++) {
                block_fill(block, 1 + (numbers ? numbers[i] : (uint32_t) i));
                assert_memory_equal(data + i * BLOCK, block, BLOCK);
        }
}

/* The size of files without a name in the directory, as far as this process has them. */
static uint64_t nameless_bytes(const char *directory) {
        uint64_t sum = 0;

        for (int fd = 3; fd < 1000; fd++) {
                cleanup_free char *path = xasprintf("/proc/self/fd/%d", fd);
                char target[300] = { 0 };

                if (readlink(path, target, sizeof(target) - 1) > 0 && strncmp(target, directory, strlen(directory)) == 0 &&
                    strstr(target, "(deleted)"))
                        sum += taken_bytes(fd);
        }
        return sum;
}

/* The kernel grants a lease for writing on a file that nobody else has open, and runs no program
 * that is open for writing. */
static void nobody_has_open(const char *directory, const char *name) {
        cleanup_free char *path = xasprintf("%s/%s", directory, name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
                fail_msg("%s is still open: %s", name, strerror(errno));
        (void) close(fd);
}

static void test_stream(void **state) {
        struct image_known *known = image_known_create();
        struct image_place *p = image_place_create();
        struct image_reader *reader = NULL;
        struct image_writer *w = NULL;
        uint32_t mixed[BLOCKS];
        uint8_t block[BLOCK];
        struct memory m;
        uint64_t x = 5;

        memory_init(&m);
        assert_int_equal(image_writer_create(&m.sink, image_known_delta(known), NULL, &w, NULL), 0);
        object_write(w, RM__IMAGE_KIND__IMAGE_KIND_BLOCKS, "", "", NULL);
        for (uint32_t i = 0; i < BLOCKS; i++) {
                block_fill(block, 1 + i);
                assert_true(image_known_add(known, block));
                /* Half of them, many several times; and some that did not go ahead. */
                mixed[i] = (uint32_t) (random_next(&x) % (BLOCKS / 2 + 20)) + BLOCKS / 2;
        }
        object_write(w, RM__IMAGE_KIND__IMAGE_KIND_CRIU, "", "pages-1.img", mixed);
        object_write(w, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "file", NULL);
        object_write(w, RM__IMAGE_KIND__IMAGE_KIND_CRIU, "", "pages-2.img", mixed);
        object_write(w, RM__IMAGE_KIND__IMAGE_KIND_AHEAD, "tmp", "1", NULL);
        assert_true(image_writer_figures(w)->have_bytes > 5 * BLOCKS / 2 * BLOCK);
        assert_int_equal(image_writer_end(w, NULL), 0);

        image_place_images(p, *state);
        image_place_tree(p, "tmp", *state);
        assert_int_equal(image_reader_create(&m.source, image_place_target(p), image_place_delta(p), &reader, NULL), 0);
        for (unsigned i = 0; i < 9; i++)
                assert_int_equal(image_reader_step(reader, NULL), 1);
        assert_int_equal(nameless_bytes(*state) % (BLOCKS * BLOCK), 0);
        assert_true(nameless_bytes(*state) > 0);
        assert_int_equal(image_reader_run(reader, NULL), 0);
        assert_int_equal(nameless_bytes(*state), 0); /* all have moved */
        nobody_has_open(*state, "pages-1.img");
        nobody_has_open(*state, "pages-2.img");
        nobody_has_open(*state, "file");
        image_reader_destroy(reader);
        image_place_destroy(p);
        file_check(*state, "pages-1.img", mixed);
        file_check(*state, "file", NULL);
        file_check(*state, "pages-2.img", mixed);
        image_writer_destroy(w);
        image_known_destroy(known);
        memory_finish(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_they_move, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
