/* A file that a program has written and closed is known when the program is saved: with its size,
 * by its name of then, and only if it is the program's own. The test runs as root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/verify/written.h"

enum { OWNER = 4242, LINE_BYTES = 5 };

/* A file system that the payload sees at `dir`, and others at `elsewhere`. */
struct scene {
        char *dir, *elsewhere;
        char *writable[1];
        Capsule__Spec spec;
        struct core core;
        struct written *written;
        Capsule__Inventory *report;
};

static char *path_of(const char *dir, const char *name) {
        return xasprintf("%s/%s", dir, name);
}

static void add_line(const char *dir, const char *name) {
        cleanup_free char *path = path_of(dir, name);
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, "line\n", LINE_BYTES), LINE_BYTES);
        assert_int_equal(fchown(fd, OWNER, OWNER), 0);
}

static char *make_dir(void) {
        char *dir = xstrdup("/var/tmp/rmd-written-XXXXXX");

        assert_non_null(mkdtemp(dir));
        return dir;
}

/* Each lives as long as the process. */
static struct written *begun[16];
static size_t n_begun;

static void begin(struct scene *s) {
        s->core = (struct core) { .spec = &s->spec, .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
        s->written = begun[n_begun++] = written_create(&s->core);
        assert_true(n_begun < ARRAY_SIZE(begun));
        written_watch(s->written);
}

static int set_up(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));

        s->dir = make_dir();
        s->elsewhere = make_dir();
        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("test", s->dir, "tmpfs", 0, "mode=0755"), 0);
        assert_int_equal(mount(s->dir, s->elsewhere, NULL, MS_BIND, NULL), 0);
        capsule__spec__init(&s->spec);
        s->spec.uid = s->spec.gid = OWNER;
        s->writable[0] = s->dir;
        s->spec.writable = s->writable;
        s->spec.n_writable = 1;
        add_line(s->elsewhere, "old");
        add_line(s->elsewhere, "older");
        usleep(20000); /* the time of birth is as coarse as the kernel's tick */
        begin(s);
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        if (s->report)
                capsule__inventory__free_unpacked(s->report, NULL);
        (void) umount2(s->elsewhere, MNT_DETACH);
        (void) umount2(s->dir, MNT_DETACH);
        (void) rmdir(s->dir);
        (void) rmdir(s->elsewhere);
        free(s->dir);
        free(s->elsewhere);
        free(s);
        return 0;
}

/* As the loop does, five times a second: events that are alike in that time are one. */
static void notice(struct scene *s) {
        (void) loop_once(s->core.epoll_fd, 1000);
        written_timeout(s->written);
}

static const Capsule__ClosedFile *reported(struct scene *s, const char *name) {
        cleanup_free char *path = path_of(s->dir, name);

        for (size_t i = 0; i < s->report->n_closed_files; i++)
                if (strcmp(s->report->closed_files[i]->file->name, path) == 0)
                        return s->report->closed_files[i];
        return NULL;
}

/* `open_name` is open for writing, with a look or without. */
static void report_as(struct scene *s, const char *open_name, bool scan) {
        if (s->report)
                capsule__inventory__free_unpacked(s->report, NULL);
        s->report = xcalloc(1, sizeof(*s->report));
        capsule__inventory__init(s->report);
        if (open_name) {
                s->report->files = xcalloc(1, sizeof(*s->report->files)); /* NOLINT(bugprone-sizeof-expression) */
                s->report->files[0] = xcalloc(1, sizeof(*s->report->files[0]));
                capsule__inventory_file__init(s->report->files[0]);
                s->report->files[0]->name = path_of(s->dir, open_name);
                s->report->n_files = 1;
                s->report->tasks = xcalloc(1, sizeof(*s->report->tasks)); /* NOLINT(bugprone-sizeof-expression) */
                s->report->tasks[0] = xcalloc(1, sizeof(*s->report->tasks[0]));
                capsule__inventory_task__init(s->report->tasks[0]);
                s->report->n_tasks = 1;
                s->report->tasks[0]->descriptors =
                        xcalloc(1, sizeof(*s->report->tasks[0]->descriptors)); /* NOLINT(bugprone-sizeof-expression) */
                s->report->tasks[0]->descriptors[0] = xcalloc(1, sizeof(*s->report->tasks[0]->descriptors[0]));
                capsule__inventory_descriptor__init(s->report->tasks[0]->descriptors[0]);
                s->report->tasks[0]->descriptors[0]->flags = O_WRONLY;
                s->report->tasks[0]->n_descriptors = 1;
        }
        written_report(s->written, scan, s->report);
}

static void report(struct scene *s, const char *open_name) {
        report_as(s, open_name, true);
}

static bool is_the_jobs(struct scene *s, const char *name) {
        const Capsule__ClosedFile *closed = reported(s, name);

        return closed && !closed->others && (closed->writes > 1 || closed->file->birth_nsec >= s->report->made_since_nsec);
}

static void test_added_to(void **state) {
        struct scene *s = *state;
        const Capsule__ClosedFile *closed;
        uint64_t hash;

        report(s, NULL);
        assert_int_equal(s->report->n_closed_files, 0);
        add_line(s->dir, "new");
        add_line(s->dir, "old");
        report(s, NULL);
        closed = reported(s, "new");
        assert_non_null(closed);
        assert_int_equal(closed->file->size_bytes, LINE_BYTES);
        assert_int_equal(closed->file->uid, OWNER);
        hash = closed->hash;
        assert_int_not_equal(hash, 0);
        assert_true(is_the_jobs(s, "new"));
        assert_false(is_the_jobs(s, "old")); /* only once: it need not be the program's */
        add_line(s->dir, "old");
        add_line(s->dir, "new");
        report(s, NULL);
        assert_int_equal(reported(s, "new")->file->size_bytes, 2 * LINE_BYTES);
        assert_int_not_equal(reported(s, "new")->hash, hash);
        assert_int_equal(reported(s, "old")->file->size_bytes, 3 * LINE_BYTES);
        assert_true(is_the_jobs(s, "old"));
        report(s, "new");
        assert_null(reported(s, "new")); /* it is open */
        assert_non_null(reported(s, "old"));
}

static void test_names(void **state) {
        struct scene *s = *state;
        cleanup_free char *subdirectory = path_of(s->dir, "a b"), *moved = path_of(s->dir, "c"), *from = path_of(s->dir, "renamed");
        cleanup_free char *to = path_of(s->dir, "other"), *removed = path_of(s->dir, "removed"), *link = path_of(s->dir, "linked");

        assert_int_equal(mkdir(subdirectory, 0755), 0);
        add_line(s->dir, "a b/deep");
        add_line(s->dir, "renamed");
        add_line(s->dir, "removed");
        add_line(s->dir, "linked");
        assert_int_equal(rename(subdirectory, moved), 0);
        assert_int_equal(rename(from, to), 0);
        assert_int_equal(unlink(removed), 0);
        assert_int_equal(unlink(link), 0);
        assert_int_equal(symlink("other", link), 0);
        report(s, NULL);
        assert_non_null(reported(s, "c/deep"));
        assert_int_equal(s->report->n_closed_files, 1);
}

static void test_others_write_too(void **state) {
        struct scene *s = *state;

        for (int i = 0; i < 2; i++) {
                add_line(s->dir, "old");
                add_line(s->dir, "older");
                notice(s);
        }
        report(s, NULL);
        assert_int_equal(s->report->n_closed_files, 2);
        add_line(s->elsewhere, "old");
        report(s, NULL);
        assert_false(is_the_jobs(s, "old"));
        assert_true(is_the_jobs(s, "older"));
        add_line(s->dir, "old");
        report(s, NULL);
        assert_false(is_the_jobs(s, "old"));
        /* The file is open, and the writes to it are reported when it is closed. */
        add_line(s->elsewhere, "older");
        report(s, "older");
        report(s, NULL);
        assert_true(is_the_jobs(s, "older"));
}

static void test_not_the_owners(void **state) {
        struct scene *s = *state;
        cleanup_free char *path = path_of(s->dir, "hidden");

        add_line(s->dir, "hidden");
        add_line(s->dir, "seen");
        assert_int_equal(chown(path, 0, 0), 0);
        report(s, NULL);
        assert_non_null(reported(s, "seen"));
        assert_int_equal(s->report->n_closed_files, 1);
}

/* The other node gets names and handles in a move, and paths with a checkpoint. */
static void test_carried(void **state) {
        struct scene *s = *state;

        for (int looks = 0; looks < 2; looks++) {
                Capsule__Inventory *first;

                for (int i = 0; i < 3; i++) {
                        add_line(s->dir, "old");
                        notice(s);
                }
                add_line(s->dir, "older");
                add_line(s->dir, "new");
                add_line(s->dir, "shared");
                report(s, NULL);
                add_line(s->elsewhere, "shared");
                report(s, NULL);
                report_as(s, NULL, looks > 0);
                first = take_ptr(s->report);
                begin(s);
                report(s, NULL);
                assert_int_equal(s->report->n_closed_files, 0);
                written_load(s->written, first);
                capsule__inventory__free_unpacked(first, NULL);
                report(s, NULL);
                assert_int_equal(s->report->n_closed_files, 4);
                assert_true(is_the_jobs(s, "old") && is_the_jobs(s, "new"));
                assert_false(is_the_jobs(s, "shared"));
                add_line(s->dir, "old");
                report(s, NULL);
                assert_int_equal(reported(s, "old")->file->size_bytes, (1 + 4 * (1 + looks)) * LINE_BYTES);
                assert_int_equal(s->report->n_closed_files, 4);
        }
}

static void test_many(void **state) {
        struct scene *s = *state;
        char name[16];

        for (int i = 0; i < WRITTEN_FILES_MAX + 10; i++) {
                (void) snprintf(name, sizeof(name), "f%d", i);
                add_line(s->dir, name);
                if (i % 50 != 0)
                        continue;
                add_line(s->dir, "steady");
                notice(s);
        }
        report(s, NULL);
        assert_int_equal(s->report->n_closed_files, WRITTEN_FILES_MAX);
        assert_non_null(reported(s, "steady"));
        assert_non_null(reported(s, name));
        assert_null(reported(s, "f0"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_added_to, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_others_write_too, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_the_owners, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_carried, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
