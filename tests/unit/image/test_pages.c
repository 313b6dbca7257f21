/* Memory of processes that travels apart from CRIU's images: where it ends up, and what a hostile
 * writer could say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

#include <endian.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/place.h"
#include "memory.h"

#define PAGE IMAGE_BLOCK_BYTES
/* The addresses where programs have their stacks. */
#define HIGH UINT64_C(0x7ffc00000000)
/* Addresses beyond what other file systems have as offsets. */
#define DIRECTORY "/dev/shm/rmd-test-pages.XXXXXX"

/* A stream that is written to memory, and then placed in a directory. */
struct scene {
        char directory[64];
        struct memory m;
        struct image_writer *w;
        struct image_figures figures;
        bool has_pages;
        uint64_t later_bytes;
        struct rm_error err;
};

static bool always_has(void *ctx, const void *block, uint64_t *ret_number) {
        (void) ctx;
        (void) block;
        *ret_number = 0;
        return true;
}

static int setup(void **state) {
        static const struct image_delta delta = { .peer_has = always_has };
        struct scene *s = xcalloc(1, sizeof(*s));

        strcpy(s->directory, DIRECTORY);
        assert_non_null(mkdtemp(s->directory));
        memory_init(&s->m);
        assert_int_equal(image_writer_create(&s->m.sink, &delta, NULL, &s->w, NULL), 0);
        *state = s;
        return 0;
}

static int teardown(void **state) {
        struct scene *s = *state;

        image_writer_destroy(s->w);
        memory_finish(&s->m);
        assert_int_equal(remove_tree(s->directory), 0);
        free(s);
        return 0;
}

static uint32_t begin(struct scene *s, Rm__ImageKind kind, const char *pid) {
        const struct image_object o = { .kind = kind, .role = "", .path = pid, .target = "" };
        uint32_t slot = 0;

        assert_int_equal(image_writer_open(s->w, &o, &slot, NULL), 0);
        return slot;
}

static uint32_t pages_begin(struct scene *s, const char *pid) {
        return begin(s, RM__IMAGE_KIND__IMAGE_KIND_PAGES, pid);
}

static int put(struct scene *s, uint32_t slot, uint64_t offset, const void *data, size_t size_bytes) {
        void *buffer = image_writer_buffer(s->w, size_bytes, NULL);

        assert_non_null(buffer);
        memcpy(buffer, data, size_bytes);
        return image_writer_data(s->w, slot, offset, size_bytes, NULL);
}

/* `n` pages full of `value`. */
static void fill(struct scene *s, uint32_t slot, uint64_t address, uint8_t value, size_t n) {
        cleanup_free uint8_t *data = xcalloc(n, PAGE);

        memset(data, value, n * PAGE);
        assert_int_equal(put(s, slot, address, data, n * PAGE), 0);
}

static void run_put(struct scene *s, uint32_t slot, uint64_t offset, uint64_t start, uint64_t end) {
        const uint64_t run[] = { htole64(start), htole64(end) };

        assert_int_equal(put(s, slot, offset, run, sizeof(run)), 0);
}

/* Runs as pairs. */
static void present(struct scene *s, const char *pid, const uint64_t *runs, size_t n) {
        uint32_t slot = begin(s, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, pid);

        for (size_t i = 0; i < n; i++)
                run_put(s, slot, i * IMAGE_PRESENT_RUN_BYTES, runs[2 * i], runs[2 * i + 1]);
        assert_int_equal(image_writer_close(s->w, slot, n * IMAGE_PRESENT_RUN_BYTES, NULL), 0);
}

static void end(struct scene *s, uint32_t slot) {
        assert_int_equal(image_writer_close(s->w, slot, 0, NULL), 0);
}

/* The receiver's result for all of it. The end mark is missing while objects are open: -EPIPE then
 * says that there was no other error. */
static int take(struct scene *s) {
        struct image_place *p = image_place_create();
        struct image_reader *reader = NULL;
        int r;

        (void) image_writer_end(s->w, NULL);
        image_place_images(p, s->directory);
        assert_int_equal(image_reader_create(&s->m.source, image_place_target(p), image_place_delta(p), &reader, NULL), 0);
        r = image_reader_run(reader, &s->err);
        assert_int_equal(r, s->err.code);
        s->figures = *image_reader_figures(reader);
        s->has_pages = image_place_has_pages(p);
        s->later_bytes = image_place_later_bytes(p);
        image_reader_destroy(reader);
        image_place_destroy(p);
        return r;
}

static int file_open(const struct scene *s, const char *pid) {
        cleanup_free char *path = xasprintf("%s/" IMAGE_PAGES_DIRECTORY "/%s", s->directory, pid);

        return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* The value of all bytes of a page; a hole has 0. */
static int page_of(int fd, uint64_t address) {
        uint8_t data[PAGE] = { 0 };

        assert_true(pread(fd, data, PAGE, (off_t) address) >= 0);
        for (size_t i = 1; i < PAGE; i++)
                assert_int_equal(data[i], data[0]);
        return data[0];
}

static uint64_t pages_there(int fd) {
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        return (uint64_t) st.st_blocks * 512 / PAGE;
}

static void test_the_last_ones_count(void **state) {
        struct scene *s = *state;
        const uint64_t there[] = { 5 * PAGE, 8 * PAGE, HIGH, HIGH + PAGE };
        uint32_t slot = pages_begin(s, "17");
        struct stat st;
        int fd;

        fill(s, slot, HIGH, 1, 2);
        fill(s, slot, 4 * PAGE, 2, 6); /* 4 to 9; 4, 8 and 9 are not there in the end */
        fill(s, slot, 5 * PAGE, 3, 1);
        fill(s, slot, 6 * PAGE, 0, 1); /* zeros are a hole */
        present(s, "17", there, 2);
        end(s, slot);
        assert_int_equal(take(s), 0);
        assert_true(s->has_pages);
        assert_int_equal(s->figures.have_bytes, 0); /* they are not looked for among the blocks sent ahead */
        fd = file_open(s, "17");
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(pages_there(fd), 3);
        assert_int_equal(page_of(fd, 5 * PAGE), 3);
        assert_int_equal(page_of(fd, 7 * PAGE), 2);
        assert_int_equal(page_of(fd, HIGH), 1);
        (void) close(fd);
}

static void test_processes_in_any_mixture(void **state) {
        struct scene *s = *state;
        const uint64_t of_a[] = { PAGE, 2 * PAGE, 9 * PAGE, 10 * PAGE }, of_b[] = { PAGE, 3 * PAGE };
        uint32_t a = pages_begin(s, "2");
        uint32_t b = pages_begin(s, "4194304");
        uint32_t ended = pages_begin(s, "3");
        int fd;

        fill(s, a, PAGE, 1, 1);
        fill(s, ended, PAGE, 9, 3);
        fill(s, b, PAGE, 2, 2);
        fill(s, a, 9 * PAGE, 1, 1);
        present(s, "3", NULL, 0); /* it has ended meanwhile */
        present(s, "2", of_a, 2);
        end(s, ended);
        fill(s, b, PAGE, 4, 1);
        present(s, "4194304", of_b, 1);
        end(s, b);
        end(s, a);
        assert_int_equal(take(s), 0);
        fd = file_open(s, "2");
        assert_int_equal(pages_there(fd), 2);
        (void) close(fd);
        fd = file_open(s, "4194304");
        assert_int_equal(pages_there(fd), 2);
        assert_int_equal(page_of(fd, PAGE), 4);
        assert_int_equal(page_of(fd, 2 * PAGE), 2);
        (void) close(fd);
        assert_int_equal(file_open(s, "3"), -1);
}

static uint64_t random_next(uint64_t *x) {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        return *x;
}

/* Against a model in memory. */
static void test_random_rounds(void **state) {
        enum { PAGES = 3000 };
        struct scene *s = *state;
        const uint64_t base = HIGH - 1000 * PAGE;
        uint8_t model[PAGES] = { 0 };
        uint32_t slot = pages_begin(s, "8");
        uint64_t x = 77, reported = 0, kept = 0;
        uint32_t list;
        int fd;

        assert_int_equal(image_writer_zero(s->w, slot, base, PAGES * PAGE, NULL), 0);
        for (unsigned i = 0; i < 400; i++) {
                size_t at = random_next(&x) % PAGES, n = 1 + random_next(&x) % 200;
                uint8_t value = random_next(&x) % 3 == 0 ? 0 : (uint8_t) random_next(&x);

                if (n > PAGES - at)
                        n = PAGES - at;
                if (value == 0 && i % 2)
                        assert_int_equal(image_writer_zero(s->w, slot, base + at * PAGE, n * PAGE, NULL), 0);
                else
                        fill(s, slot, base + at * PAGE, value, n);
                memset(model + at, value, n);
        }
        list = begin(s, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, "8");
        for (size_t at = 0; at < PAGES;) {
                size_t n = 1 + random_next(&x) % 50;
                size_t gap = 1 + random_next(&x) % 20;

                n = n > PAGES - at ? PAGES - at : n;
                run_put(s, list, reported, base + at * PAGE, base + (at + n) * PAGE);
                reported += IMAGE_PRESENT_RUN_BYTES;
                at += n;
                for (; gap > 0 && at < PAGES; gap--)
                        model[at++] = 0;
        }
        assert_int_equal(image_writer_close(s->w, list, reported, NULL), 0);
        end(s, slot);
        assert_int_equal(take(s), 0);
        fd = file_open(s, "8");
        for (size_t i = 0; i < PAGES; i++) {
                assert_int_equal(page_of(fd, base + i * PAGE), model[i]);
                kept += model[i] != 0;
        }
        assert_int_equal(pages_there(fd), kept);
        (void) close(fd);
}

/* ---- what comes later ---- */

static void later(struct scene *s, const char *pid, const uint64_t *runs, size_t n) {
        uint32_t slot = begin(s, RM__IMAGE_KIND__IMAGE_KIND_LATER, pid);

        for (size_t i = 0; i < n; i++)
                run_put(s, slot, i * IMAGE_PRESENT_RUN_BYTES, runs[2 * i], runs[2 * i + 1]);
        assert_int_equal(image_writer_close(s->w, slot, n * IMAGE_PRESENT_RUN_BYTES, NULL), 0);
}

/* Pages that had come of it are older, and pages that are not present in the end are not waited
 * for. */
static void test_later(void **state) {
        const uint64_t first[] = { 2 * PAGE, 4 * PAGE, 6 * PAGE, 9 * PAGE }, second[] = { 3 * PAGE, 5 * PAGE };
        const uint64_t there[] = { PAGE, 4 * PAGE, 7 * PAGE, 8 * PAGE, 20 * PAGE, 21 * PAGE };
        struct scene *s = *state;
        uint32_t slot = pages_begin(s, "7"), other = pages_begin(s, "8");
        cleanup_close int fd = -1, list_fd = -1;
        cleanup_free char *path = NULL;
        uint64_t runs[5] = { 0 };

        fill(s, slot, PAGE, 1, 5);
        fill(s, slot, 20 * PAGE, 2, 1);
        fill(s, other, PAGE, 3, 1);
        later(s, "7", first, 2);
        later(s, "7", second, 1);
        present(s, "7", there, 3);
        present(s, "8", there, 0);
        end(s, slot);
        end(s, other);
        assert_int_equal(take(s), 0);
        assert_int_equal(s->later_bytes, 3 * PAGE);
        fd = file_open(s, "7");
        assert_int_equal(page_of(fd, PAGE), 1);
        assert_int_equal(page_of(fd, 20 * PAGE), 2);
        assert_int_equal(pages_there(fd), 2);
        path = xasprintf("%s/" IMAGE_LATER_DIRECTORY "/7", s->directory);
        list_fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(list_fd, runs, sizeof(runs)), 4 * sizeof(*runs));
        assert_true(le64toh(runs[0]) == 2 * PAGE && le64toh(runs[1]) == 4 * PAGE);
        assert_true(le64toh(runs[2]) == 7 * PAGE && le64toh(runs[3]) == 8 * PAGE);
}

/* All of a process. */
static void test_all_later(void **state) {
        const uint64_t runs[] = { PAGE, 4 * PAGE };
        struct scene *s = *state;
        uint32_t slot = pages_begin(s, "7");
        cleanup_close int fd = -1;

        later(s, "7", runs, 1);
        present(s, "7", runs, 1);
        end(s, slot);
        assert_int_equal(take(s), 0);
        assert_int_equal(s->later_bytes, 3 * PAGE);
        fd = file_open(s, "7");
        assert_true(fd >= 0);
        assert_int_equal(pages_there(fd), 0);
}

/* ---- what a hostile writer could say ---- */

static void test_order(void **state) {
        /* Steps for one process: p, d, z, c: open, data, zeros, close of PAGES; l, t: open, close
         * of PRESENT; a: of LATER, open. */
        static const struct {
                const char *steps;
                int result;
        } cases[] = {
                { "p", -EPIPE },     { "pd", -EPIPE },      { "pdltc", 0 },        { "pdlt", -EPIPE },    { "pdzdltc", 0 },
                { "pc", -EBADMSG },  { "pdc", -EBADMSG },   { "pdlc", -EBADMSG },  { "l", -EBADMSG },     { "pp", -EBADMSG },
                { "pltcp", -EPIPE }, { "pltcl", -EBADMSG }, { "pll", -EBADMSG },   { "pltl", -EBADMSG },  { "pld", -EBADMSG },
                { "plz", -EBADMSG }, { "pltd", -EBADMSG },  { "pltz", -EBADMSG },  { "pltdc", -EBADMSG }, { "pat", -EPIPE },
                { "patatltc", 0 },   { "patd", -EBADMSG },  { "patz", -EBADMSG },  { "pad", -EBADMSG },   { "pal", -EBADMSG },
                { "pac", -EBADMSG }, { "a", -EBADMSG },     { "pltat", -EBADMSG }, { "patc", -EBADMSG },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                void *inner = NULL;
                uint32_t slot = 0, list = 0;
                struct scene *s;

                assert_int_equal(setup(&inner), 0);
                s = inner;
                for (const char *step = cases[i].steps; *step; step++) {
                        if (*step == 'p')
                                slot = pages_begin(s, "7");
                        else if (*step == 'l')
                                list = begin(s, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, "7");
                        else if (*step == 'a')
                                list = begin(s, RM__IMAGE_KIND__IMAGE_KIND_LATER, "7");
                        else if (*step == 'd')
                                fill(s, slot, PAGE, 1, 1);
                        else if (*step == 'z')
                                assert_int_equal(image_writer_zero(s->w, slot, 0, PAGE, NULL), 0);
                        else
                                (void) image_writer_close(s->w, *step == 't' ? list : slot, 0, NULL);
                }
                if (take(s) != cases[i].result)
                        fail_msg("%s: %s", cases[i].steps, error_text(&s->err));
                (void) teardown(&inner);
        }
}

/* The receiver's result for this list of present pages, of a process that has sent two, and one of
 * zeros behind them. */
static int present_judge(const void *list, size_t size_bytes, uint64_t offset, uint64_t close_bytes, struct rm_error *ret_err) {
        void *inner = NULL;
        struct scene *s;
        uint32_t pages, slot;
        int r;

        assert_int_equal(setup(&inner), 0);
        s = inner;
        pages = pages_begin(s, "7");
        fill(s, pages, PAGE, 1, 2);
        fill(s, pages, 3 * PAGE, 0, 1);
        slot = begin(s, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, "7");
        assert_int_equal(put(s, slot, offset, list, size_bytes), 0);
        assert_int_equal(image_writer_close(s->w, slot, close_bytes, NULL), 0);
        end(s, pages);
        r = take(s);
        if (ret_err)
                *ret_err = s->err;
        (void) teardown(&inner);
        return r;
}

/* Someone has to find out which memory that was. */
static void test_missing_are_named(void **state) {
        const uint64_t list[] = { htole64(PAGE), htole64(2 * PAGE), htole64(3 * PAGE), htole64(5 * PAGE) };
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(present_judge(list, sizeof(list), 0, sizeof(list), &err), -EBADMSG);
        assert_non_null(strstr(err.text, "never came of process 7: the one at 4000, in a run of 2; 3 pages of it came"));
}

static int runs_judge(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
        const uint64_t list[] = { htole64(a), htole64(b), htole64(c), htole64(d) };

        return present_judge(list, sizeof(list), 0, sizeof(list), NULL);
}

/* The receiver's result for one sum, of a process that has sent two pages, and one of zeros behind
 * them; `known`: the sum comes when it has told which there are. */
static int sum_judge(uint64_t start, uint64_t stop, uint64_t hash, bool known, size_t size_bytes) {
        const uint64_t list[] = { htole64(PAGE), htole64(4 * PAGE) };
        const uint64_t sum[] = { htole64(start), htole64(stop), htole64(hash), 0 };
        void *inner = NULL;
        struct scene *s;
        uint32_t pages, slot;
        int r;

        assert_int_equal(setup(&inner), 0);
        s = inner;
        pages = pages_begin(s, "7");
        fill(s, pages, PAGE, 1, 2);
        fill(s, pages, 3 * PAGE, 0, 1);
        for (int i = known ? 0 : 1; i < 2; i++) {
                slot = begin(s, i == 0 ? RM__IMAGE_KIND__IMAGE_KIND_PRESENT : RM__IMAGE_KIND__IMAGE_KIND_SUMS, "7");
                assert_int_equal(put(s, slot, 0, i == 0 ? list : sum, i == 0 ? sizeof(list) : size_bytes), 0);
                assert_int_equal(image_writer_close(s->w, slot, i == 0 ? sizeof(list) : size_bytes, NULL), 0);
        }
        end(s, pages);
        r = take(s);
        (void) teardown(&inner);
        return r;
}

static void test_sums(void **state) {
        uint8_t pages[3 * IMAGE_BLOCK_BYTES] = { 0 };
        uint64_t hash;

        (void) state;
        memset(pages, 1, 2 * (size_t) PAGE);
        hash = XXH3_64bits(pages, sizeof(pages));
        assert_int_equal(sum_judge(PAGE, 4 * PAGE, hash, true, IMAGE_SUM_BYTES), 0);
        assert_int_equal(sum_judge(PAGE, 4 * PAGE, hash + 1, true, IMAGE_SUM_BYTES), -EBADMSG);
        assert_int_equal(sum_judge(2 * PAGE, 5 * PAGE, hash, true, IMAGE_SUM_BYTES), -EBADMSG);
        assert_int_equal(sum_judge(PAGE, 4 * PAGE, hash, false, IMAGE_SUM_BYTES), -EBADMSG);
        assert_int_equal(sum_judge(PAGE, 4 * PAGE, hash, true, IMAGE_SUM_BYTES / 2), -EBADMSG);
        assert_int_equal(sum_judge(PAGE, PAGE, hash, true, IMAGE_SUM_BYTES), -EBADMSG);
        assert_int_equal(sum_judge(PAGE, PAGE + IMAGE_SUM_MAX_BYTES + PAGE, hash, true, IMAGE_SUM_BYTES), -EBADMSG);
        assert_int_equal(sum_judge(PAGE + 1, 4 * PAGE + 1, hash, true, IMAGE_SUM_BYTES), -EBADMSG);
}

static void test_hostile_present(void **state) {
        const uint64_t list[] = { htole64(PAGE), htole64(2 * PAGE) };
        uint8_t zeros[IMAGE_BLOCK_BYTES] = { 0 };

        (void) state;
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 2 * PAGE, 3 * PAGE), 0);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 3 * PAGE, 4 * PAGE), 0);
        /* pages that never came */
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 4 * PAGE, 5 * PAGE), -EBADMSG);
        assert_int_equal(runs_judge(0, PAGE, PAGE, 2 * PAGE), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 2 * PAGE, UINT64_C(1) << 56), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 2 * PAGE, (UINT64_C(1) << 56) + PAGE), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 2 * PAGE, 2 * PAGE), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 3 * PAGE, 2 * PAGE), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 3 * PAGE, 2 * PAGE, 4 * PAGE), -EBADMSG); /* overlap */
        assert_int_equal(runs_judge(2 * PAGE, 3 * PAGE, PAGE, 2 * PAGE), -EBADMSG); /* out of order */
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 2 * PAGE, 3 * PAGE + 1), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, 2 * PAGE + 16, 3 * PAGE), -EBADMSG);
        assert_int_equal(runs_judge(PAGE, 2 * PAGE, UINT64_MAX - PAGE + 1, UINT64_MAX - PAGE + 1), -EBADMSG);
        assert_int_equal(present_judge(list, 16, 0, 16, NULL), 0);
        assert_int_equal(present_judge(list, 15, 0, 15, NULL), -EBADMSG);
        assert_int_equal(present_judge(list, 8, 0, 8, NULL), -EBADMSG);
        assert_int_equal(present_judge(list, 16, 16, 32, NULL), -EBADMSG);
        assert_int_equal(present_judge(list, 16, 16, 16, NULL), -EBADMSG);
        assert_int_equal(present_judge(list, 16, 0, 0, NULL), -EBADMSG);
        assert_int_equal(present_judge(list, 16, 0, 32, NULL), -EBADMSG);
        assert_int_equal(present_judge(list, 16, IMAGE_PRESENT_MAX_BYTES, 16, NULL), -EBADMSG);
        assert_int_equal(present_judge(zeros, sizeof(zeros), 0, sizeof(zeros), NULL), -EBADMSG);
}

/* A process ends, and another one gets its pid. */
static void test_pid_again(void **state) {
        struct scene *s = *state;
        const uint64_t there[] = { PAGE, 2 * PAGE };
        uint32_t slot = pages_begin(s, "7");
        int fd;

        fill(s, slot, PAGE, 1, 2);
        present(s, "7", NULL, 0);
        end(s, slot);
        slot = pages_begin(s, "7");
        fill(s, slot, PAGE, 2, 1);
        present(s, "7", there, 1);
        end(s, slot);
        assert_int_equal(take(s), 0);
        fd = file_open(s, "7");
        assert_int_equal(pages_there(fd), 1);
        assert_int_equal(page_of(fd, PAGE), 2);
        (void) close(fd);
}

/* A process has pages in the end, and another one gets its pid. */
static void test_pid_twice(void **state) {
        struct scene *s = *state;
        const uint64_t there[] = { PAGE, 2 * PAGE };
        uint32_t slot = pages_begin(s, "7");

        fill(s, slot, PAGE, 1, 1);
        present(s, "7", there, 1);
        end(s, slot);
        (void) pages_begin(s, "7");
        assert_int_equal(take(s), -EBADMSG);
}

static void test_many_processes(void **state) {
        const struct rlimit files = { 2 * IMAGE_PAGES_MAX, 2 * IMAGE_PAGES_MAX };
        struct scene *s = *state;
        struct rlimit before;
        char pid[16];

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        if (before.rlim_cur < files.rlim_cur)
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        for (unsigned i = 1; i <= IMAGE_PAGES_MAX + 50; i++) {
                uint32_t slot;

                (void) snprintf(pid, sizeof(pid), "%u", i);
                slot = pages_begin(s, pid);
                if (i > 50)
                        continue;
                present(s, pid, NULL, 0);
                end(s, slot);
        }
        assert_int_equal(take(s), -EPIPE);
        assert_int_equal(remove_tree(s->directory), 0);
        assert_int_equal(mkdir(s->directory, 0700), 0);
        (void) pages_begin(s, "10000");
        s->m.at = 0;
        s->err = (struct rm_error) { 0 };
        assert_int_equal(take(s), -EFBIG);
}

/* A link in the place of the files leads nowhere else. */
static void test_nothing_is_followed(void **state) {
        struct scene *s = *state;
        cleanup_free char *directory = xasprintf("%s/" IMAGE_PAGES_DIRECTORY, s->directory);

        assert_int_equal(symlink("/dev/shm", directory), 0);
        (void) pages_begin(s, "7");
        assert_int_equal(take(s), -EEXIST);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_last_ones_count, setup, teardown),
                cmocka_unit_test_setup_teardown(test_processes_in_any_mixture, setup, teardown),
                cmocka_unit_test_setup_teardown(test_random_rounds, setup, teardown),
                cmocka_unit_test_setup_teardown(test_later, setup, teardown),
                cmocka_unit_test_setup_teardown(test_all_later, setup, teardown),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_missing_are_named),
                cmocka_unit_test(test_sums),
                cmocka_unit_test(test_hostile_present),
                cmocka_unit_test_setup_teardown(test_pid_again, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pid_twice, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_processes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nothing_is_followed, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
