/* The watch on a real directory and a real loop: every way in which editors, shells, network file
 * systems and accidents change a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/node/availability_watch.h"

#define SECOND 1000000U

struct fixture {
        char root[64];
        char *directory;
        char *path;
        struct event_base *base;
        struct file_reader *reader;
        struct availability_watch *watch;
        uint64_t poll_usec;
        bool was_taken;
        uid_t uid;
        gid_t gid;
        bool knows_n9;
        bool destroy_in_callback;
        unsigned contents;
        unsigned errors;
        char content[4096]; /* "n1=4 n2=0" */
        char error[1024];
        bool in_error;
        bool stalled; /* the machine kept us waiting, so that what is to happen in time may have happened late */
};

static const char *find(void *userdata, const char *host) {
        const struct fixture *f = userdata;

        return strcmp(host, "n9") == 0 && !f->knows_n9 ? NULL : host;
}

static void called(struct fixture *f) {
        if (f->destroy_in_callback)
                availability_watch_destroy(take_ptr(f->watch));
}

static void on_content(void *userdata, const struct availability *availability) {
        struct fixture *f = userdata;
        size_t used = 0;

        f->contents++;
        f->in_error = false;
        f->content[0] = 0;
        for (size_t i = 0; i < availability->n_entries && used < sizeof(f->content) - 300; i++)
                used += (size_t) sprintf(f->content + used, "%s%s=%u", i ? " " : "", availability->entries[i].host,
                                         availability->entries[i].cores);
        called(f);
}

static void on_error(void *userdata, const char *text) {
        struct fixture *f = userdata;

        f->errors++;
        f->in_error = true;
        (void) snprintf(f->error, sizeof(f->error), "%s", text);
        called(f);
}

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        strcpy(f->root, "/tmp/test-watch-XXXXXX");
        if (!mkdtemp(f->root))
                return -1;
        f->directory = xasprintf("%s/dir", f->root);
        f->path = xasprintf("%s/availability", f->directory);
        f->base = event_base_new();
        f->reader = file_reader_create(&(struct file_reader_config) { .base = f->base });
        f->uid = USER_NONE;
        /* So rarely that what a test sees in time was seen by inotify. */
        f->poll_usec = 100U * SECOND;
        *state = f;
        return mkdir(f->directory, 0755);
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        availability_watch_destroy(f->watch);
        file_reader_destroy(f->reader);
        event_base_free(f->base);
        (void) remove_tree(f->root);
        free(f->directory);
        free(f->path);
        free(f);
        return 0;
}

static void start(struct fixture *f) {
        static const struct availability_watch_ops ops = { .find = find, .on_content = on_content, .on_error = on_error };
        struct availability_watch_config config = {
                .path = f->path,
                .poll_usec = f->poll_usec,
                .uid = f->uid,
                .gid = f->gid,
                .reader = f->reader,
                .was_taken = f->was_taken,
        };
        struct rm_error err = { 0 };

        assert_int_equal(availability_watch_create(f->base, &config, &ops, f, &f->watch, &err), 0);
}

static void stop_loop(evutil_socket_t fd, short what, void *userdata) {
        (void) event_base_loopbreak(userdata);
}

static void spin(struct fixture *f, uint64_t usec) {
        struct timeval delay = { (time_t) (usec / SECOND), (suseconds_t) (usec % SECOND) };
        struct event *timer = evtimer_new(f->base, stop_loop, f->base);
        uint64_t begun = now_usec();

        (void) evtimer_add(timer, &delay);
        (void) event_base_dispatch(f->base);
        event_free(timer);
        f->stalled |= now_usec() - begun > usec + 15000;
}

static void write_at(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, text, strlen(text)), 0);
        (void) close(fd);
}

/* Replaces the file as `mv` and most editors do. */
static void replace(struct fixture *f, const char *text) {
        assert_int_equal(write_file_atomic(f->path, text, strlen(text), 0644, false), 0);
}

/* Time is counted in turns of the loop, so that a machine that stands still for a while fails no
 * test. */
#define TURN_USEC 5000U
#define TURNS_MAX 600U

static uint64_t wait_content(struct fixture *f, const char *expected) {
        unsigned turns = 0;

        while ((f->in_error || f->contents == 0 || strcmp(f->content, expected) != 0) && turns++ < TURNS_MAX)
                spin(f, TURN_USEC);
        if (f->in_error || strcmp(f->content, expected) != 0)
                fail_msg("expected '%s', have '%s', error '%s'", expected, f->content, f->in_error ? f->error : "");
        return (uint64_t) turns * TURN_USEC;
}

/* The content in force must stay as it is. */
static void wait_error(struct fixture *f, const char *expected) {
        cleanup_free char *before = xstrdup(f->content);
        unsigned turns = 0;

        while ((!f->in_error || !strstr(f->error, expected)) && turns++ < TURNS_MAX)
                spin(f, TURN_USEC);
        if (!f->in_error || !strstr(f->error, expected))
                fail_msg("expected error '%s', have '%s'", expected, f->in_error ? f->error : "none");
        assert_memory_equal(f->error, f->path, strlen(f->path));
        assert_string_equal(f->content, before);
}

static void started_with(struct fixture *f, const char *text, const char *expected) {
        write_at(f->path, text);
        start(f);
        (void) wait_content(f, expected);
        assert_int_equal(f->contents, 1);
}

/* ---- good changes ---- */

static void test_ways_to_write(void **state) {
        struct fixture *f = *state;
        int fd;

        started_with(f, "n1:1\n", "n1=1");
        write_at(f->path, "n1:2\n");
        assert_true(wait_content(f, "n1=2") < SECOND);
        replace(f, "n1:3\n");
        assert_true(wait_content(f, "n1=3") < SECOND);
        assert_int_equal(unlink(f->path), 0);
        write_at(f->path, "n1:4\n");
        assert_true(wait_content(f, "n1=4") < SECOND);
        /* The new file is watched, too. */
        write_at(f->path, "n1:5\n");
        assert_true(wait_content(f, "n1=5") < SECOND);
        /* Written, and kept open for writing. */
        fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_int_equal(write_all(fd, "n2:0\n", 5), 0);
        assert_true(wait_content(f, "n1=5 n2=0") < SECOND);
        assert_int_equal(write_all(fd, "n3:1\n", 5), 0);
        assert_true(wait_content(f, "n1=5 n2=0 n3=1") < SECOND);
        (void) close(fd);
        write_at(f->path, "n1:6\nn2:7");
        assert_true(wait_content(f, "n1=6 n2=7") < SECOND);
        write_at(f->path, "n1:1\r\nn2:2\r\n");
        assert_true(wait_content(f, "n1=1 n2=2") < SECOND);
        replace(f, "# nothing\n");
        assert_true(wait_content(f, "") < SECOND);
        assert_int_equal(f->errors, 0);
}

static void test_moved_aside_and_back(void **state) {
        struct fixture *f = *state;
        cleanup_free char *aside = xasprintf("%s~", f->path);

        /* vim, with a backup. */
        started_with(f, "n1:1\n", "n1=1");
        assert_int_equal(rename(f->path, aside), 0);
        spin(f, 50000);
        write_at(f->path, "n1:2\n");
        assert_true(wait_content(f, "n1=2") < SECOND);
        assert_int_equal(rename(aside, f->path), 0);
        assert_true(wait_content(f, "n1=1") < SECOND);
        assert_true(f->errors == 0 || f->stalled);
}

static void test_nothing_new_is_not_told(void **state) {
        struct fixture *f = *state;

        started_with(f, "n1:1\n", "n1=1");
        write_at(f->path, "n1:1\n");
        spin(f, 300000);
        replace(f, "# other words\nn1:1 # the same\n");
        spin(f, 300000);
        assert_int_equal(chmod(f->path, 0600), 0);
        spin(f, 300000);
        assert_int_equal(f->contents, 1);
        assert_int_equal(f->errors, 0);
}

static void test_twenty_edits_in_two_seconds(void **state) {
        struct fixture *f = *state;
        char text[32];

        started_with(f, "n1:100\n", "n1=100");
        for (unsigned i = 1; i <= 20; i++) {
                (void) snprintf(text, sizeof(text), "n1:%u%s", i, i % 3 ? "\n" : "");
                if (i % 2)
                        replace(f, text);
                else
                        write_at(f->path, text);
                spin(f, 100000);
        }
        assert_true(wait_content(f, "n1=20") < SECOND);
        assert_true(f->contents > 5);
        spin(f, 500000);
        assert_string_equal(f->content, "n1=20");
        assert_int_equal(f->errors, 0);
}

/* Changes without any pause must not put off the reading for ever. */
static void test_renames_without_pause(void **state) {
        struct fixture *f = *state;
        char text[32];

        started_with(f, "n1:100\n", "n1=100");
        for (unsigned i = 0; i < 400; i++) {
                (void) snprintf(text, sizeof(text), "n1:%u\n", i % 50);
                replace(f, text);
                spin(f, 3000);
        }
        assert_true(f->contents >= 3);
        assert_int_equal(f->errors, 0);
}

/* ---- half-written ---- */

static void test_slow_writer(void **state) {
        struct fixture *f = *state;
        static const char text[] = "n1:12\nn2:34\nn3:56\n";
        int fd;

        started_with(f, "n1:1\n", "n1=1");
        fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        for (size_t i = 0; i < sizeof(text) - 1; i++) {
                spin(f, 60000);
                assert_true(f->contents == 1 || f->stalled);
                assert_int_equal(write_all(fd, text + i, 1), 0);
        }
        (void) close(fd);
        assert_true(wait_content(f, "n1=12 n2=34 n3=56") < SECOND);
        assert_true((f->contents == 2 && f->errors == 0) || f->stalled);
}

/* A writer that opens the file for each line, and fast. */
static void test_appended_by_lines(void **state) {
        struct fixture *f = *state;

        started_with(f, "n1:1\n", "n1=1");
        write_at(f->path, "");
        for (unsigned i = 0; i < 20; i++) {
                char line[32];
                int fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);

                (void) snprintf(line, sizeof(line), "m%u:0\n", i);
                assert_int_equal(write_all(fd, line, strlen(line)), 0);
                (void) close(fd);
                spin(f, 2000);
        }
        for (unsigned i = 0; i < TURNS_MAX && !strstr(f->content, "m19=0"); i++)
                spin(f, TURN_USEC);
        assert_non_null(strstr(f->content, "m19=0"));
        assert_true((f->contents == 2 && f->errors == 0) || f->stalled);
}

/* Closed, but not at the end of a line: there may be more to come, and a number cut short looks
 * like one. */
static void test_continued_in_the_line(void **state) {
        struct fixture *f = *state;
        int fd;

        started_with(f, "n1:3\n", "n1=3");
        replace(f, "n2:0\nn1:1");
        spin(f, 80000);
        assert_true(f->contents == 1 || f->stalled);
        fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_int_equal(write_all(fd, "2\n", 2), 0);
        (void) close(fd);
        (void) wait_content(f, "n2=0 n1=12");
        assert_true(f->contents == 2 || f->stalled);
}

static void test_cut_to_nothing(void **state) {
        struct fixture *f = *state;

        started_with(f, "n1:0\n", "n1=0");
        write_at(f->path, "");
        wait_error(f, ":1: the file is empty");
        write_at(f->path, " \n\n");
        wait_error(f, ":1: the file is empty");
        assert_int_equal(f->errors, 1);
        write_at(f->path, "n1:0\n");
        (void) wait_content(f, "n1=0"); /* told again: the error is over */
        assert_int_equal(f->contents, 2);
        assert_int_equal(unlink(f->path), 0);
        write_at(f->path, "");
        wait_error(f, ":1: the file is empty");
        replace(f, "");
        (void) wait_content(f, "");
        assert_int_equal(f->errors, 2);
        /* The content stays good, whatever makes us look again; and a rename helps only the file
         * that it brought. */
        assert_int_equal(chmod(f->path, 0600), 0);
        spin(f, 300000);
        availability_watch_recheck(f->watch);
        spin(f, 300000);
        assert_int_equal(f->errors, 2);
        replace(f, "n1:0\n");
        (void) wait_content(f, "n1=0");
        write_at(f->path, "");
        wait_error(f, ":1: the file is empty");
        replace(f, "what\n");
        wait_error(f, ":1: expected");
        write_at(f->path, "");
        wait_error(f, ":1: the file is empty");
}

static void test_empty_at_the_start(void **state) {
        struct fixture *f = *state;

        started_with(f, "", "");
        assert_int_equal(f->errors, 0);
        availability_watch_destroy(take_ptr(f->watch));
        f->was_taken = true;
        start(f);
        wait_error(f, ":1: the file is empty");
}

/* ---- bad content ---- */

static void test_bad_content_changes_nothing(void **state) {
        struct fixture *f = *state;
        cleanup_free char *large = xcalloc(1, AVAILABILITY_MAX_BYTES + 2);

        started_with(f, "n1:2\nn2:0\n", "n1=2 n2=0");
        replace(f, "n1:1\nn2");
        wait_error(f, ":2: expected hostname:numCores, found 'n2'");
        replace(f, "n1:-1\n");
        wait_error(f, ":1: cores of 'n1' are '-1'");
        write_at(f->path, "n1:1\nn1:1\n");
        wait_error(f, ":2: node 'n1' is already in line 1");
        replace(f, "n1:1\nn9:1\n");
        wait_error(f, ":2: no node 'n9' in this cluster");
        memset(large, '#', AVAILABILITY_MAX_BYTES + 1);
        replace(f, large);
        wait_error(f, ": the file is larger than 1048576 bytes");
        assert_int_equal(f->contents, 1);
        assert_int_equal(f->errors, 5);
        spin(f, 500000);
        assert_int_equal(f->errors, 5);
        replace(f, "n1:2\nn2:0\n");
        (void) wait_content(f, "n1=2 n2=0");
        assert_int_equal(f->contents, 2);
}

static void test_recheck(void **state) {
        struct fixture *f = *state;

        write_at(f->path, "n9:1\n");
        start(f);
        wait_error(f, ":1: no node 'n9' in this cluster");
        f->knows_n9 = true;
        availability_watch_recheck(f->watch);
        availability_watch_recheck(f->watch);
        (void) wait_content(f, "n9=1");
        f->knows_n9 = false;
        availability_watch_recheck(f->watch);
        wait_error(f, ":1: no node 'n9' in this cluster");
        assert_int_equal(f->contents, 1);
        assert_int_equal(f->errors, 2);
}

/* ---- missing ---- */

static void test_never_there(void **state) {
        struct fixture *f = *state;

        start(f);
        spin(f, 500000);
        assert_int_equal(f->contents, 0);
        assert_int_equal(f->errors, 0);
        replace(f, "n1:1\n");
        assert_true(wait_content(f, "n1=1") < SECOND);
}

static void test_vanished(void **state) {
        struct fixture *f = *state;

        started_with(f, "n1:1\n", "n1=1");
        assert_int_equal(unlink(f->path), 0);
        wait_error(f, ": the file is missing");
        spin(f, 500000);
        assert_int_equal(f->errors, 1);
        write_at(f->path, "n1:1\n");
        assert_true(wait_content(f, "n1=1") < SECOND);
}

static void test_vanished_before_the_watch(void **state) {
        struct fixture *f = *state;

        f->was_taken = true;
        start(f);
        wait_error(f, ": the file is missing");
}

/* A bad file that was never in force leaves nothing behind when it goes. */
static void test_bad_and_gone(void **state) {
        struct fixture *f = *state;

        write_at(f->path, "what\n");
        start(f);
        wait_error(f, ":1: expected");
        assert_int_equal(unlink(f->path), 0);
        (void) wait_content(f, "");
        assert_int_equal(f->errors, 1);
}

static void test_directory_comes_and_goes(void **state) {
        struct fixture *f = *state;
        cleanup_free char *aside = xasprintf("%s/aside", f->root);

        f->poll_usec = 200000;
        assert_int_equal(rmdir(f->directory), 0);
        start(f);
        spin(f, 500000);
        assert_int_equal(f->errors, 0);
        assert_int_equal(mkdir(f->directory, 0755), 0);
        write_at(f->path, "n1:1\n");
        assert_true(wait_content(f, "n1=1") < SECOND);
        /* Another directory in its place. */
        assert_int_equal(rename(f->directory, aside), 0);
        assert_int_equal(mkdir(f->directory, 0755), 0);
        write_at(f->path, "n1:2\n");
        assert_true(wait_content(f, "n1=2") < SECOND);
        replace(f, "n1:3\n");
        assert_true(wait_content(f, "n1=3") < SECOND);
        assert_int_equal(remove_tree(f->directory), 0);
        wait_error(f, ": the file is missing");
        assert_int_equal(rename(aside, f->directory), 0);
        assert_true(wait_content(f, "n1=1") < SECOND);
}

/* ---- not a file ---- */

static void test_only_regular_files(void **state) {
        struct fixture *f = *state;

        started_with(f, "n1:1\n", "n1=1");
        assert_int_equal(unlink(f->path), 0);
        assert_int_equal(mkfifo(f->path, 0666), 0);
        wait_error(f, ": not a regular file");
        assert_int_equal(unlink(f->path), 0);
        assert_int_equal(symlink("/dev/zero", f->path), 0);
        spin(f, 500000);
        wait_error(f, ": not a regular file");
        assert_int_equal(unlink(f->path), 0);
        assert_int_equal(mkdir(f->path, 0755), 0);
        spin(f, 500000);
        wait_error(f, ": not a regular file");
        assert_int_equal(rmdir(f->path), 0);
        assert_int_equal(symlink("availability", f->path), 0);
        wait_error(f, ": cannot be opened: Too many levels of symbolic links");
        replace(f, "n1:2\n");
        (void) wait_content(f, "n1=2");
}

static void test_through_a_symlink(void **state) {
        struct fixture *f = *state;
        cleanup_free char *real = xasprintf("%s/real", f->root);

        write_at(real, "n1:1\n");
        assert_int_equal(symlink(real, f->path), 0);
        start(f);
        (void) wait_content(f, "n1=1");
        write_at(real, "n1:2\n");
        assert_true(wait_content(f, "n1=2") < SECOND);
}

/* ---- whose rights ---- */

#define NOBODY 65534U

static void as_nobody(struct fixture *f) {
        if (geteuid() != 0)
                skip();
        assert_int_equal(chmod(f->root, 0755), 0);
        f->uid = NOBODY;
        f->gid = NOBODY;
}

static void test_files_of_users(void **state) {
        struct fixture *f = *state;
        static const gid_t groups[] = { 0, 4 };

        as_nobody(f);
        f->poll_usec = 100000; /* the kernel is not asked to tell of them */
        assert_int_equal(setgroups(ARRAY_SIZE(groups), groups), 0);
        write_at(f->path, "n1:1\n");
        assert_int_equal(chmod(f->path, 0600), 0);
        start(f);
        wait_error(f, ": cannot be opened: Permission denied");
        assert_int_equal(chown(f->path, NOBODY, NOBODY), 0);
        (void) wait_content(f, "n1=1");
        /* A file that only root's own group may read is not readable for the user. */
        assert_int_equal(chown(f->path, 0, 0), 0);
        assert_int_equal(chmod(f->path, 0640), 0);
        wait_error(f, ": cannot be opened: Permission denied");
        assert_int_equal(chmod(f->path, 0644), 0);
        (void) wait_content(f, "n1=1");
        assert_int_equal(geteuid(), 0);
        assert_int_equal(access("/proc/1/environ", R_OK), 0);
}

static void test_groups_stay(void **state) {
        struct fixture *f = *state;
        gid_t before[64];
        gid_t after[64];
        int n;

        as_nobody(f);
        n = getgroups(64, before);
        started_with(f, "n1:1\n", "n1=1");
        assert_int_equal(getgroups(64, after), n);
        assert_memory_equal(before, after, (size_t) n * sizeof(gid_t));
}

/* The contents of /proc depend on the reader: rmd may see files there that the user may not. */
static void test_nothing_of_proc(void **state) {
        struct fixture *f = *state;
        cleanup_free char *before = NULL, *after = NULL, *link = xasprintf("%s/link", f->root);
        char of_child[64];
        const char *const paths[] = { "/proc/self/maps",         "/proc/self/fd/0", "/proc/self/cwd/availability",
                                      "/proc/1/root/etc/passwd", of_child,          link };
        const pid_t child = fork();
        int results[ARRAY_SIZE(paths)], fd;
        struct stat st;

        if (child == 0) {
                (void) !chdir(f->directory);
                for (;;)
                        (void) pause();
        }
        (void) snprintf(of_child, sizeof(of_child), "/proc/%d/cwd/availability", (int) child);
        assert_int_equal(symlink("/proc/self/status", link), 0);
        write_at(f->path, "n1:1\n");
        assert_int_equal(read_file("/proc/thread-self/status", 65536, &before, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                results[i] = user_file_open(paths[i], NOBODY, NOBODY, &fd, &st);
        (void) kill(child, SIGKILL);
        (void) waitpid(child, NULL, 0);
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                assert_true(results[i] == -ENOTSUP || results[i] == -ELOOP || results[i] == -EACCES);
        assert_int_equal(user_file_open(f->path, geteuid(), getegid(), &fd, &st), 0);
        (void) close(fd);
        assert_int_equal(read_file("/proc/thread-self/status", 65536, &after, NULL), 0);
        assert_string_equal(strndupa(strstr(after, "CapInh"), 120), strndupa(strstr(before, "CapInh"), 120));
        (void) unlink(link);
}

static void test_directory_that_cannot_be_listed(void **state) {
        struct fixture *f = *state;

        as_nobody(f);
        /* A directory that may be passed but not listed cannot be watched, only polled. */
        f->poll_usec = 100000;
        write_at(f->path, "n1:1\n");
        assert_int_equal(chmod(f->directory, 0711), 0);
        start(f);
        (void) wait_content(f, "n1=1");
        replace(f, "n1:2\n");
        assert_true(wait_content(f, "n1=2") < SECOND);
}

/* ---- polling ---- */

/* No inotify is to be had when all descriptors are taken; the same code runs as on a network file
 * system. */
static void start_without_inotify(struct fixture *f) {
        struct rlimit old;
        struct rlimit none;

        (void) event_base_loop(f->base, EVLOOP_NONBLOCK);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
        none = old;
        none.rlim_cur = 0;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        start(f);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void test_polling_alone(void **state) {
        struct fixture *f = *state;

        f->poll_usec = 100000;
        write_at(f->path, "n1:1\n");
        start_without_inotify(f);
        (void) wait_content(f, "n1=1");
        write_at(f->path, "n1:2\n");
        assert_true(wait_content(f, "n1=2") < SECOND);
        replace(f, "n1:3\n");
        assert_true(wait_content(f, "n1=3") < SECOND);
        assert_int_equal(unlink(f->path), 0);
        wait_error(f, ": the file is missing");
        write_at(f->path, "n1:4");
        assert_true(wait_content(f, "n1=4") < SECOND);
        write_at(f->path, "");
        wait_error(f, ": the file is empty");
}

/* ---- life ---- */

static void test_several_at_once(void **state) {
        struct fixture *f = *state;
        struct fixture others[8];

        for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
                others[i] = *f;
                others[i].path = i == 0 ? xstrdup(f->path) : xasprintf("%s/other%u", f->directory, i / 2);
                others[i].watch = NULL;
        }
        started_with(f, "n1:1\n", "n1=1");
        for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
                start(&others[i]);
        for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
                char text[32];
                char expected[32];

                (void) snprintf(text, sizeof(text), "m%u:%u\n", i, i);
                (void) snprintf(expected, sizeof(expected), "m%u=%u", i, i);
                replace(&others[i], text);
                assert_true(wait_content(&others[i], expected) < SECOND);
        }
        assert_string_equal(f->content, "m0=0");
        for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
                assert_int_equal(others[i].errors, 0);
                availability_watch_destroy(others[i].watch);
                free(others[i].path);
        }
}

static void test_destroyed_in_callbacks(void **state) {
        struct fixture *f = *state;

        f->destroy_in_callback = true;
        write_at(f->path, "n1:1\n");
        start(f);
        (void) wait_content(f, "n1=1");
        assert_null(f->watch);
        write_at(f->path, "what\n");
        start(f);
        wait_error(f, ":1: expected");
        assert_null(f->watch);
        start(f);
        availability_watch_destroy(take_ptr(f->watch));
        availability_watch_destroy(NULL);
        spin(f, 50000);
}

static void test_bad_paths(void **state) {
        struct fixture *f = *state;
        static const char *const paths[] = { "", "relative", "./x", "/", "/etc/" };
        static const struct availability_watch_ops ops = { .on_content = on_content, .on_error = on_error };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                struct availability_watch_config config = { .path = paths[i], .uid = USER_NONE };
                struct availability_watch *watch = NULL;
                struct rm_error err = { 0 };

                assert_int_equal(availability_watch_create(f->base, &config, &ops, f, &watch, &err), -EINVAL);
                assert_null(watch);
                assert_non_null(strstr(err.text, "absolute path"));
        }
}

/* A file that is not edited costs a wake-up a second at most, and no descriptors are lost. */
static void test_idle(void **state) {
        struct fixture *f = *state;
        struct rusage before;
        struct rusage after;
        unsigned n_before;
        int64_t cpu_usec;

        f->poll_usec = 0;
        started_with(f, "n1:1\n", "n1=1");
        spin(f, 2500000);
        n_before = (unsigned) dup(0);
        (void) close((int) n_before);
        assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
        spin(f, 3 * SECOND);
        assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
        /* Three looks; the rest is what a loaded machine makes of them. */
        assert_true(after.ru_nvcsw - before.ru_nvcsw <= 30);
        cpu_usec = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec - before.ru_utime.tv_usec +
                   (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
        assert_true(cpu_usec < 10000);
        assert_int_equal(dup(0), n_before);
        (void) close((int) n_before);
        assert_int_equal(f->contents, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* ---- a file system that does not answer ---- */

static sem_t answer_now; /* one hung call goes on */

/* As a path on a server that is gone: in the system call, and nothing ends it. */
static int open_or_hang(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct stat *ret_stat) {
        if (strstr(path, "/hung/"))
                (void) sem_wait(&answer_now);
        return user_file_open(path, uid, gid, ret_fd, ret_stat);
}

static void hang_on_some_paths(struct fixture *f) {
        assert_int_equal(sem_init(&answer_now, 0, 0), 0);
        file_reader_destroy(f->reader);
        f->reader =
                file_reader_create(&(struct file_reader_config) { .base = f->base, .late_usec = SECOND / 5, .open = open_or_hang });
}

static void start_hung(struct fixture *f, struct fixture *hung) {
        *hung = (struct fixture) {
                .base = f->base, .reader = f->reader, .poll_usec = SECOND / 20, .uid = geteuid(), .gid = getegid()
        };
        hung->directory = xasprintf("%s/hung", f->root);
        hung->path = xasprintf("%s/availability", hung->directory);
        assert_int_equal(mkdir(hung->directory, 0755), 0);
        write_at(hung->path, "n1:1\n");
        start(hung);
}

static void finish_hung(struct fixture *hung) {
        free(hung->path);
        free(hung->directory);
}

static void test_hung_path_stops_the_loop(void **state) {
        struct fixture *f = *state, hung;

        hang_on_some_paths(f);
        start_hung(f, &hung);
        write_at(f->path, "n1:4\n");
        start(f);
        (void) wait_content(f, "n1=4"); /* another user's */
        wait_error(&hung, "does not respond");
        assert_int_equal(hung.contents, 0);
        write_at(f->path, "n1:3\n");
        (void) wait_content(f, "n1=3");
        spin(f, SECOND / 2);
        assert_int_equal(hung.errors, 1); /* told once */
        /* The server answers again: the question, and those after that. */
        for (int i = 0; i < 1000; i++)
                (void) sem_post(&answer_now);
        (void) wait_content(&hung, "n1=1");
        write_at(hung.path, "n1:2\n");
        (void) wait_content(&hung, "n1=2");
        availability_watch_destroy(hung.watch);
        finish_hung(&hung);
}

/* The thread is left behind, and what it comes back with goes nowhere. */
static void test_watch_ends_while_its_path_hangs(void **state) {
        struct fixture *f = *state, hung;

        hang_on_some_paths(f);
        start_hung(f, &hung);
        wait_error(&hung, "does not respond");
        availability_watch_destroy(hung.watch);
        spin(f, SECOND / 20);
        start(&hung); /* waits behind the other one */
        spin(f, SECOND / 20);
        availability_watch_destroy(hung.watch);
        file_reader_destroy(take_ptr(f->reader));
        for (int i = 0; i < 1000; i++)
                (void) sem_post(&answer_now);
        spin(f, SECOND / 5);
        assert_int_equal(hung.contents, 0);
        finish_hung(&hung);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_ways_to_write),
                T(test_moved_aside_and_back),
                T(test_nothing_new_is_not_told),
                T(test_twenty_edits_in_two_seconds),
                T(test_renames_without_pause),
                T(test_slow_writer),
                T(test_appended_by_lines),
                T(test_continued_in_the_line),
                T(test_cut_to_nothing),
                T(test_empty_at_the_start),
                T(test_bad_content_changes_nothing),
                T(test_recheck),
                T(test_never_there),
                T(test_vanished),
                T(test_vanished_before_the_watch),
                T(test_bad_and_gone),
                T(test_directory_comes_and_goes),
                T(test_only_regular_files),
                T(test_through_a_symlink),
                T(test_files_of_users),
                T(test_groups_stay),
                T(test_nothing_of_proc),
                T(test_directory_that_cannot_be_listed),
                T(test_polling_alone),
                T(test_several_at_once),
                T(test_destroyed_in_callbacks),
                T(test_bad_paths),
                T(test_idle),
                T(test_hung_path_stops_the_loop),
                T(test_watch_ends_while_its_path_hangs),
        };

        return cmocka_run_group_tests_name("availability_watch", tests, NULL, NULL);
}
