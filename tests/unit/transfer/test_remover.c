/* Directories are removed by other processes, a few at once, while the event loop goes on. Its
 * argument is rm-mover. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/transfer/remover.h"

#define MEMORY_BYTES (UINT64_C(256) << 20)
#define WAIT_USEC (20U * 1000000U)
#define TICK_USEC 2000U

static const char *program;

struct bed {
        struct event_base *base;
        struct event *ticker;
        struct remover *remover;
        char dir[64];
        uint64_t last_usec, longest_usec; /* between two ticks */
};

static void on_tick(evutil_socket_t fd, short what, void *arg) {
        struct bed *bed = arg;
        uint64_t now = now_usec();

        if (now - bed->last_usec > bed->longest_usec)
                bed->longest_usec = now - bed->last_usec;
        bed->last_usec = now;
        timer_arm(bed->ticker, TICK_USEC);
}

static int set_up(void **state) {
        struct bed *bed = xcalloc(1, sizeof(*bed));

        (void) snprintf(bed->dir, sizeof(bed->dir), "/tmp/test-remover.XXXXXX");
        assert_non_null(mkdtemp(bed->dir));
        bed->base = event_base_new();
        bed->ticker = evtimer_new(bed->base, on_tick, bed);
        bed->remover = remover_create(bed->base, program);
        *state = bed;
        return 0;
}

static int tear_down(void **state) {
        struct bed *bed = *state;

        remover_destroy(bed->remover);
        event_free(bed->ticker);
        event_base_free(bed->base);
        while (umount2(bed->dir, MNT_DETACH) == 0)
                ;
        (void) remove_tree(bed->dir);
        free(bed);
        return 0;
}

static char *make_dir(const struct bed *bed, const char *name) {
        char *dir = xasprintf("%s/%s", bed->dir, name);
        cleanup_free char *below = xasprintf("%s/pages", dir);
        cleanup_free char *file = xasprintf("%s/1", below);

        assert_int_equal(mkdir_p(below, 0700), 0);
        assert_int_equal(write_file_atomic(file, "x", 1, 0600, false), 0);
        return dir;
}

static bool exists(const char *path) {
        struct stat st;

        return lstat(path, &st) == 0;
}

static size_t count_children(void) {
        cleanup_free char *path = xasprintf("/proc/self/task/%d/children", (int) getpid());
        cleanup_free char *text = NULL;
        size_t n = 0;

        assert_int_equal(read_file(path, 65536, &text, NULL), 0);
        for (const char *p = text; *p; p++)
                n += *p == ' ';
        return n;
}

/* Until no process runs, and the directory of the bed has no more entries than these. */
static void await_entries(struct bed *bed, nlink_t n) {
        uint64_t end = now_usec() + WAIT_USEC;
        struct stat st;

        do {
                assert_true(now_usec() < end);
                assert_int_equal(event_base_loop(bed->base, EVLOOP_NONBLOCK), 0);
                usleep(500);
                assert_int_equal(stat(bed->dir, &st), 0);
        } while (st.st_nlink > n + 2 || count_children() > 0);
}

/* A move may be tried again under the name while the memory of the last one still goes. */
static void test_name_is_free_at_once(void **state) {
        struct bed *bed = *state;
        cleanup_free char *dir = make_dir(bed, "7-destination"), *again = NULL;
        char *aside = remover_set_aside(bed->remover, dir);

        assert_non_null(aside);
        assert_false(exists(dir));
        assert_true(exists(aside));
        again = make_dir(bed, "7-destination");
        timer_arm(bed->ticker, 0);
        remover_add(bed->remover, aside);
        await_entries(bed, 1);
        assert_true(exists(dir));
        assert_null(remover_set_aside(bed->remover, "/nowhere/at/all"));
        remover_add(bed->remover, NULL);
}

static void test_few_at_once(void **state) {
        struct bed *bed = *state;

        timer_arm(bed->ticker, 0);
        for (int i = 0; i < 20; i++) {
                cleanup_free char *name = xasprintf("%d-source", i);
                cleanup_free char *dir = make_dir(bed, name);

                remover_add(bed->remover, remover_set_aside(bed->remover, dir));
                assert_true(count_children() <= 2);
        }
        await_entries(bed, 0);
}

static bool mount_memory(const struct bed *bed) {
        return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("test", bed->dir, "tmpfs", 0, "mode=0700,huge=never") == 0;
}

static void fill(const char *dir) {
        cleanup_free char *file = xasprintf("%s/pages/2", dir);
        cleanup_close int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(posix_fallocate(fd, 0, MEMORY_BYTES), 0);
}

static char *make_memory(const struct bed *bed) {
        char *dir = make_dir(bed, "8-destination");

        fill(dir);
        return dir;
}

/* The longest pause of the loop while another process removes it. */
static uint64_t measure(struct bed *bed) {
        cleanup_free char *dir = make_memory(bed);

        bed->last_usec = now_usec();
        bed->longest_usec = 0;
        timer_arm(bed->ticker, 0);
        remover_add(bed->remover, remover_set_aside(bed->remover, dir));
        await_entries(bed, 0);
        assert_false(exists(dir));
        return bed->longest_usec;
}

/* 256 MiB take the kernel 50 to 100 ms; the loop's own pauses are those of a busy machine. */
static void test_loop_goes_on(void **state) {
        struct bed *bed = *state;
        cleanup_free char *dir = NULL;
        uint64_t begin, here_usec, pause_usec = UINT64_MAX;

        if (!mount_memory(bed))
                skip();
        dir = make_memory(bed);
        begin = now_usec();
        assert_int_equal(remove_tree(dir), 0);
        here_usec = now_usec() - begin;
        for (int tries = 0; tries < 5 && pause_usec > here_usec / 2; tries++)
                pause_usec = measure(bed);
        print_message("in this process: %u us; the loop beside another: %u us\n", (unsigned) here_usec, (unsigned) pause_usec);
        assert_true(pause_usec <= here_usec / 2);
}

static uint64_t free_bytes(void) {
        cleanup_free char *text = NULL;
        const char *at;

        assert_int_equal(read_file("/proc/meminfo", 65536, &text, NULL), 0);
        at = strstr(text, "\nShmem:");
        assert_non_null(at);
        return strtoull(at + strlen("\nShmem:"), NULL, 10) << 10;
}

/* The directory of an earlier rmd is free at once, and its memory a little later. */
static void test_file_system(void **state) {
        struct bed *bed = *state;
        cleanup_free char *dir = NULL;
        uint64_t begin, took_usec, before;
        struct stat st, mounted;

        assert_int_equal(stat(bed->dir, &st), 0);
        remover_unmount(program, bed->dir); /* nothing */
        if (!mount_memory(bed) || mount("test", bed->dir, "tmpfs", 0, "mode=0700,huge=never") < 0)
                skip();
        dir = make_dir(bed, "9-destination");
        fill(dir);
        before = free_bytes();
        begin = now_usec();
        remover_unmount(program, bed->dir);
        took_usec = now_usec() - begin;
        assert_int_equal(stat(bed->dir, &mounted), 0);
        assert_true(mounted.st_dev == st.st_dev);
        print_message("unmounted in %u us\n", (unsigned) took_usec);
        for (begin = now_usec(); free_bytes() > before - MEMORY_BYTES / 2;) {
                assert_true(now_usec() < begin + WAIT_USEC);
                usleep(1000);
        }
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_name_is_free_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_few_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_loop_goes_on, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_file_system, set_up, tear_down),
        };

        if (argc != 2)
                return 2;
        program = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
