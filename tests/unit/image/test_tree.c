/* Trees: written from one directory, placed in another, compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/place.h"
#include "daemon/image/tree.h"
#include "tests/unit/repeat.h"
#include "trees.h"

struct places {
        char base[64];
        char *from;
        char *to;
};

static int setup(void **state) {
        struct places *p = xcalloc(1, sizeof(*p));

        strcpy(p->base, "/tmp/rmd-test-tree.XXXXXX");
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

static uint64_t random_next(uint64_t *x) {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        return *x;
}

static void sparse_file_make(int dir, const char *name, uint64_t *x) {
        int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
        uint64_t size_bytes = random_next(x) % 3 == 0 ? random_next(x) % (20U << 20) : random_next(x) % 10000;
        unsigned pieces = (unsigned) (random_next(x) % 6);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t) size_bytes), 0);
        for (unsigned i = 0; i < pieces && size_bytes > 0; i++) {
                char data[5000];

                memset(data, (int) (random_next(x) % 4), sizeof(data));
                assert_true(pwrite(fd, data, random_next(x) % sizeof(data) + 1, (off_t) (random_next(x) % size_bytes)) > 0);
        }
        (void) close(fd);
}

static void meta_set(int dir, const char *name, uint64_t *x) {
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                     { .tv_sec = (time_t) (random_next(x) % 2000000000),
                                       .tv_nsec = (long) (random_next(x) % 1000000000) } };
        struct stat st;

        assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
        if (geteuid() == 0)
                assert_int_equal(fchownat(dir, name, (uid_t) (random_next(x) % 3), (gid_t) (random_next(x) % 3),
                                          AT_SYMLINK_NOFOLLOW),
                                 0);
        if (!S_ISLNK(st.st_mode))
                assert_int_equal(fchmodat(dir, name, (mode_t) (random_next(x) % 010000) | (geteuid() ? 0700 : 0), 0), 0);
        assert_int_equal(utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void tree_make(int dir, unsigned depth, uint64_t *x) {
        unsigned n = (unsigned) (random_next(x) % 8) + 1;
        char last[32] = "";

        for (unsigned i = 0; i < n; i++) {
                char name[32];
                int fd;

                (void) snprintf(name, sizeof(name), "%s%u", random_next(x) % 2 ? "e \xc3\xa4\n" : ".x", i);
                switch (random_next(x) % 6) {
                case 0:
                        assert_int_equal(mkfifoat(dir, name, 0600), 0);
                        break;
                case 1:
                        assert_int_equal(symlinkat(i % 2 ? "/etc" : "../..", dir, name), 0);
                        break;
                case 2:
                        if (*last && linkat(dir, last, dir, name, 0) == 0)
                                continue; /* its owner and times are those of the other name */
                        sparse_file_make(dir, name, x);
                        break;
                case 3:
                        assert_int_equal(mkdirat(dir, name, 0700), 0);
                        if (depth < 4) {
                                fd = openat(dir, name, O_RDONLY | O_DIRECTORY);
                                tree_make(fd, depth + 1, x);
                                (void) close(fd);
                        }
                        break;
                default:
                        sparse_file_make(dir, name, x);
                        strcpy(last, name);
                }
                meta_set(dir, name, x);
        }
}

static void contents_compare(int a, int b, const char *name, const struct stat *st) {
        char *x = xcalloc(1, (size_t) st->st_size);
        char *y = xcalloc(1, (size_t) st->st_size);
        int fa = openat(a, name, O_RDONLY);
        int fb = openat(b, name, O_RDONLY);

        assert_true(fa >= 0 && fb >= 0);
        assert_int_equal(read_all(fa, x, (size_t) st->st_size), 0);
        assert_int_equal(read_all(fb, y, (size_t) st->st_size), 0);
        assert_memory_equal(x, y, (size_t) st->st_size);
        (void) close(fa);
        (void) close(fb);
        free(x);
        free(y);
}

static unsigned trees_compare(int a, int b) {
        DIR *d = fdopendir(dup(a));
        struct dirent *e;
        unsigned n = 0;

        rewinddir(d);
        while ((e = readdir(d))) {
                char la[256] = { 0 };
                char lb[256] = { 0 };
                struct stat x;
                struct stat y;

                if (strcmp(e->d_name, "..") == 0)
                        continue;
                assert_int_equal(fstatat(a, e->d_name, &x, AT_SYMLINK_NOFOLLOW), 0);
                if (S_ISSOCK(x.st_mode))
                        continue;
                assert_int_equal(fstatat(b, e->d_name, &y, AT_SYMLINK_NOFOLLOW), 0);
                assert_int_equal(x.st_mode, y.st_mode);
                assert_int_equal(x.st_uid, y.st_uid);
                assert_int_equal(x.st_gid, y.st_gid);
                assert_int_equal(x.st_nlink, y.st_nlink);
                assert_memory_equal(&x.st_mtim, &y.st_mtim, sizeof(x.st_mtim));
                if (strcmp(e->d_name, ".") == 0)
                        continue;
                n++;
                if (S_ISREG(x.st_mode)) {
                        assert_int_equal(x.st_size, y.st_size);
                        contents_compare(a, b, e->d_name, &x);
                        assert_true(y.st_blocks <= x.st_blocks + 16);
                }
                if (S_ISLNK(x.st_mode)) {
                        assert_true(readlinkat(a, e->d_name, la, sizeof(la) - 1) > 0);
                        assert_true(readlinkat(b, e->d_name, lb, sizeof(lb) - 1) > 0);
                        assert_string_equal(la, lb);
                }
                if (S_ISDIR(x.st_mode)) {
                        int fa = openat(a, e->d_name, O_RDONLY | O_DIRECTORY);
                        int fb = openat(b, e->d_name, O_RDONLY | O_DIRECTORY);

                        n += trees_compare(fa, fb);
                        (void) close(fa);
                        (void) close(fb);
                }
        }
        (void) closedir(d);
        return n;
}

static void saved_state(const struct places *p, const struct image_tree_options *options, struct image_tree_figures *figures) {
        struct rm_error err = { 0 };
        struct memory m;

        if (trees_store(&m, p->from, options, figures, &err) < 0 || trees_place(&m, p->to, &err) < 0)
                fail_msg("%s", error_text(&err));
        memory_finish(&m);
}

static unsigned compare(const struct places *p) {
        int a = open(p->from, O_RDONLY | O_DIRECTORY);
        int b = open(p->to, O_RDONLY | O_DIRECTORY);
        unsigned n = trees_compare(a, b);

        (void) close(a);
        (void) close(b);
        return n;
}

static void test_random_trees(void **state) {
        uint64_t x = 4711;
        unsigned n = 0;

        for (unsigned i = 0; i < repetitions(12); i++) {
                void *inner = NULL;
                struct image_tree_figures figures = { 0 };
                struct places *p;
                int fd;

                assert_int_equal(setup(&inner), 0);
                p = inner;
                fd = open(p->from, O_RDONLY | O_DIRECTORY);
                for (unsigned k = 0; k < 3; k++) {
                        char name[8] = { 'd', (char) ('0' + k), 0 };
                        int sub;

                        assert_int_equal(mkdirat(fd, name, 0755), 0);
                        sub = openat(fd, name, O_RDONLY | O_DIRECTORY);
                        tree_make(sub, 0, &x);
                        (void) close(sub);
                }
                meta_set(fd, ".", &x);
                (void) close(fd);
                saved_state(p, NULL, &figures);
                n += compare(p);
                (void) teardown(&inner);
        }
        assert_true(n > 25 * repetitions(12));
        (void) state;
}

static void file_put(const char *dir, const char *name, const char *text, mode_t mode) {
        char path[300];

        (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
        assert_int_equal(write_file_atomic(path, text, strlen(text), mode, false), 0);
}

static void socket_put(const char *dir, const char *name) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, name);
        assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        (void) close(fd);
}

static char *in(const char *dir, const char *name) {
        return xasprintf("%s/%s", dir, name);
}

static void test_excludes_and_sockets(void **state) {
        const struct places *p = *state;
        const char *exclude[] = { "rm/images", "criu.kdat", NULL };
        const struct image_tree_options options = { .exclude = exclude };
        struct image_tree_figures figures = { 0 };
        cleanup_free char *rm = in(p->from, "rm");
        cleanup_free char *images = in(p->from, "rm/images");
        cleanup_free char *left = in(p->to, "rm/images");
        cleanup_free char *kdat = in(p->to, "criu.kdat");
        cleanup_free char *kept = in(p->to, "rm/kept");
        cleanup_free char *sock = in(p->to, "sock");

        assert_int_equal(mkdir(rm, 0755), 0);
        assert_int_equal(mkdir(images, 0755), 0);
        file_put(images, "x", "x", 0600);
        file_put(p->from, "criu.kdat", "x", 0600);
        file_put(rm, "kept", "yes", 0600);
        file_put(rm, "criu.kdat", "another", 0600);
        socket_put(p->from, "sock");
        saved_state(p, &options, &figures);
        assert_int_equal(figures.sockets_skipped, 1);
        assert_int_equal(access(kept, F_OK), 0);
        assert_int_equal(access(left, F_OK), -1);
        assert_int_equal(access(kdat, F_OK), -1);
        assert_int_equal(access(sock, F_OK), -1);
}

/* A prepared capsule has some objects already: directories, and FIFOs that its init holds open. */
static void test_what_is_there_already(void **state) {
        const struct places *p = *state;
        struct image_tree_figures figures = { 0 };
        cleanup_free char *from_fifo = in(p->from, "fifo");
        cleanup_free char *to_fifo = in(p->to, "fifo");
        cleanup_free char *from_dir = in(p->from, "dir");
        cleanup_free char *to_dir = in(p->to, "dir");
        cleanup_free char *to_link = in(p->to, "file");
        cleanup_free char *to_kept = in(p->to, "kept");
        struct stat kept_before;
        struct stat before;
        struct stat after;

        assert_int_equal(mkfifo(from_fifo, 0640), 0);
        assert_int_equal(mkdir(from_dir, 0750), 0);
        file_put(from_dir, "a", "new", 0600);
        file_put(p->from, "file", "new", 0600);
        assert_int_equal(mkfifo(to_fifo, 0600), 0);
        assert_int_equal(mkdir(to_dir, 0700), 0);
        file_put(to_dir, "a", "older and longer", 0644);
        assert_int_equal(symlink("/etc/passwd", to_link), 0);
        file_put(p->to, "kept", "older and longer", 0644);
        file_put(p->from, "kept", "new", 0600);
        assert_int_equal(stat(to_kept, &kept_before), 0);
        assert_int_equal(stat(to_fifo, &before), 0);
        saved_state(p, NULL, &figures);
        assert_int_equal(stat(to_fifo, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(stat(to_kept, &after), 0);
        assert_int_equal(kept_before.st_ino, after.st_ino);
        assert_int_equal(access("/etc/passwd", R_OK), 0);
        (void) compare(p);
}

/* A symlink in the way, made by somebody on the receiving side, leads nowhere. */
static void test_no_way_through_symlinks(void **state) {
        const struct places *p = *state;
        struct image_writer *w = NULL;
        struct rm_error err = { 0 };
        struct image_object o = {
                .kind = RM__IMAGE_KIND__IMAGE_KIND_REGULAR, .role = "tmp", .path = "way/file", .target = "", .mode = 0600
        };
        cleanup_free char *way = in(p->to, "way");
        cleanup_free char *escaped = in(p->base, "file");
        uint32_t slot = 0;
        struct memory m;

        assert_int_equal(symlink("..", way), 0);
        for (unsigned i = 0; i < 4; i++) {
                memory_init(&m);
                assert_int_equal(image_writer_create(&m.sink, NULL, NULL, &w, NULL), 0);
                if (i == 0) {
                        assert_int_equal(image_writer_open(w, &o, &slot, NULL), 0);
                        assert_int_equal(image_writer_close(w, slot, 0, NULL), 0);
                } else if (i == 1) {
                        o.kind = RM__IMAGE_KIND__IMAGE_KIND_FIFO;
                        assert_int_equal(image_writer_open(w, &o, NULL, NULL), 0);
                } else if (i == 2) {
                        o.kind = RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END;
                        o.path = "way";
                        assert_int_equal(image_writer_open(w, &o, NULL, NULL), 0);
                } else {
                        o.kind = RM__IMAGE_KIND__IMAGE_KIND_HARDLINK;
                        o.path = "stolen";
                        o.target = "way/secret";
                        file_put(p->base, "secret", "x", 0600);
                        assert_int_equal(image_writer_open(w, &o, NULL, NULL), 0);
                }
                assert_int_equal(image_writer_end(w, NULL), 0);
                image_writer_destroy(w);
                assert_true(trees_place(&m, p->to, &err) < 0);
                memory_finish(&m);
        }
        assert_int_equal(access(escaped, F_OK), -1);
}

static void test_unknown_role_is_refused(void **state) {
        const struct places *p = *state;
        struct image_tree_figures figures = { 0 };
        struct image_place *place = image_place_create();
        struct image_reader *reader = NULL;
        struct rm_error err = { 0 };
        struct memory m;

        file_put(p->from, "x", "x", 0600);
        assert_int_equal(trees_store(&m, p->from, NULL, &figures, NULL), 0);
        assert_int_equal(image_reader_create(&m.source, image_place_target(place), NULL, &reader, NULL), 0);
        assert_int_equal(image_reader_run(reader, &err), -ENOENT);
        assert_non_null(strstr(err.text, "tmp"));
        image_reader_destroy(reader);
        image_place_destroy(place);
        memory_finish(&m);
}

static void spool_saved_state(int fd, const char *to, uint64_t offset) {
        struct image_tree_figures figures = { 0 };
        struct image_place *place = image_place_create();
        struct image_reader *reader = NULL;
        struct image_writer *w = NULL;
        struct memory m;

        memory_init(&m);
        assert_int_equal(image_writer_create(&m.sink, NULL, NULL, &w, NULL), 0);
        assert_int_equal(image_spool_write(w, "stdout", fd, offset, NULL, &figures, NULL), 0);
        assert_int_equal(image_writer_end(w, NULL), 0);
        image_writer_destroy(w);
        image_place_file(place, "stdout", to);
        assert_int_equal(image_reader_create(&m.source, image_place_target(place), NULL, &reader, NULL), 0);
        assert_int_equal(image_reader_run(reader, NULL), 0);
        image_reader_destroy(reader);
        image_place_destroy(place);
        memory_finish(&m);
}

static void test_spool_files(void **state) {
        const struct places *p = *state;
        cleanup_free char *from = in(p->from, "stdout");
        cleanup_free char *to = in(p->to, "stdout");
        cleanup_close int fd = -1;
        cleanup_free char *text = NULL;
        size_t size_bytes = 0;

        file_put(p->from, "stdout", "0123456789", 0600);
        fd = open(from, O_RDWR);
        spool_saved_state(fd, to, 0);
        assert_int_equal(read_file(to, 100, &text, &size_bytes), 0);
        assert_string_equal(text, "0123456789");
        free(take_ptr(text));
        /* The tail only; what was there before it stays, what was there behind it goes. */
        file_put(p->to, "stdout", "abcdefghijklmnop", 0600);
        spool_saved_state(fd, to, 6);
        assert_int_equal(read_file(to, 100, &text, &size_bytes), 0);
        assert_string_equal(text, "abcdef6789");
        free(take_ptr(text));
        /* A hole in the source is zeros at the destination, whatever was there. */
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(ftruncate(fd, 20000), 0);
        assert_int_equal(pwrite(fd, "x", 1, 19999), 1);
        spool_saved_state(fd, to, 0);
        assert_int_equal(read_file(to, 30000, &text, &size_bytes), 0);
        assert_int_equal(size_bytes, 20000);
        assert_int_equal(text[0], 0);
        assert_int_equal(text[19999], 'x');
}

static int stop(void *ctx, const char *path, struct rm_error *err) {
        (void) path;
        return --*(int *) ctx < 0 ? error_set(err, -ECANCELED, "stop") : 0;
}

static void test_walk_can_be_stopped(void **state) {
        const struct places *p = *state;
        struct image_tree_figures figures = { 0 };
        int left = 1;
        const struct image_tree_options options = { .poll = stop, .ctx = &left };
        struct rm_error err = { 0 };
        struct memory m;

        file_put(p->from, "a", "x", 0600);
        file_put(p->from, "b", "x", 0600);
        assert_int_equal(trees_store(&m, p->from, &options, &figures, &err), -ECANCELED);
        assert_int_equal(err.code, -ECANCELED);
        memory_finish(&m);
}

static void test_deep_trees_are_refused(void **state) {
        const struct places *p = *state;
        struct image_tree_figures figures = { 0 };
        struct rm_error err = { 0 };
        struct memory m;
        int fd = open(p->from, O_RDONLY | O_DIRECTORY);

        for (unsigned i = 0; i <= IMAGE_TREE_DEPTH_MAX; i++) {
                int next;

                assert_int_equal(mkdirat(fd, "d", 0700), 0);
                next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
                (void) close(fd);
                fd = next;
        }
        (void) close(fd);
        assert_int_equal(trees_store(&m, p->from, NULL, &figures, &err), -ELOOP);
        memory_finish(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random_trees),
                cmocka_unit_test_setup_teardown(test_excludes_and_sockets, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_there_already, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_way_through_symlinks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unknown_role_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_spool_files, setup, teardown),
                cmocka_unit_test_setup_teardown(test_walk_can_be_stopped, setup, teardown),
                cmocka_unit_test_setup_teardown(test_deep_trees_are_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
