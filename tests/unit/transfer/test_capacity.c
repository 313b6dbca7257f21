/* Whether a group finds room at its destination. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/node/core_time.h"
#include "daemon/node/memory_use.h"
#include "daemon/transfer/capacity.h"
#include "daemon/transfer/precopy_time.h"

#define GIB (UINT64_C(1) << 30)

static int check_need(const struct capacity_need *need, uint64_t free_memory, uint64_t free_images) {
        const struct capacity_free space = { .memory_bytes = free_memory, .images_bytes = free_images };
        struct rm_error err = { 0 };
        int r = capacity_check(need, &space, &err);

        assert_true(r == 0 || err.code == r);
        return r;
}

static int check(uint64_t memory, uint64_t files, bool ahead, uint64_t free_memory, uint64_t free_images) {
        const struct capacity_need need = { .memory_bytes = memory, .files_bytes = files, .ahead = ahead };

        return check_need(&need, free_memory, free_images);
}

/* Apart from CRIU's images memory is there once. */
static void test_pages(void **state) {
        struct capacity_need need = { .memory_bytes = 1000 << 20, .files_bytes = 10, .ahead = true, .pages = true };
        const uint64_t most = (UINT64_C(1164) << 20) + 10;

        (void) state;
        assert_int_equal(check_need(&need, most, most), 0);
        assert_int_equal(check_need(&need, most - 1, most), -ENOSPC);
        assert_int_equal(check_need(&need, most, most - 1), -ENOSPC);
        /* A small group needs no more than otherwise. */
        need.memory_bytes = 100;
        assert_int_equal(check_need(&need, 210, 210), 0);
        assert_int_equal(check_need(&need, 209, 210), -ENOSPC);
}

static void test_check(void **state) {
        (void) state;
        assert_int_equal(check(100, 10, true, 210, 210), 0);
        assert_int_equal(check(100, 10, true, 209, 210), -ENOSPC);
        assert_int_equal(check(100, 10, true, 210, 209), -ENOSPC);
        /* Nothing ahead: the image alone waits. */
        assert_int_equal(check(100, 10, false, 210, 100), 0);
        assert_int_equal(check(100, 10, false, 210, 99), -ENOSPC);
        assert_int_equal(check(0, 0, true, 0, 0), 0);
        /* A figure that could not be asked is no reason to refuse. */
        assert_int_equal(check(UINT32_MAX, 0, true, UINT64_MAX, UINT64_MAX), 0);
}

static uint64_t grant(const struct capacity_need *need, uint64_t free_bytes, uint64_t limit) {
        const struct capacity_free space = { .memory_bytes = free_bytes, .images_bytes = UINT64_MAX };

        return capacity_grant(need, &space, limit, GIB);
}

/* A group that was small when it was looked at can have a thousand times as much when it
 * arrives. */
static void test_grant(void **state) {
        const struct capacity_need small = { .memory_bytes = GIB / 8, .ahead = true };
        const struct capacity_need large = { .memory_bytes = 10 * GIB, .files_bytes = GIB, .ahead = true };
        struct capacity_need tracked = large;

        (void) state;
        tracked.pages = true;
        assert_int_equal(grant(&small, 100 * GIB, 0), GIB + GIB / 2);
        assert_int_equal(grant(&small, 100 * GIB, 8 * GIB), 16 * GIB);
        assert_int_equal(grant(&large, 100 * GIB, 8 * GIB), 43 * GIB);
        assert_int_equal(grant(&tracked, 100 * GIB, 8 * GIB), 43 * GIB);
        /* Other groups need some of the free memory, but a group that does not grow gets what was
         * seen to be there. */
        assert_int_equal(grant(&small, 10 * GIB, 8 * GIB), 9 * GIB);
        assert_int_equal(grant(&large, 21 * GIB + GIB / 2, 8 * GIB), 21 * GIB);
        assert_true(grant(&tracked, 12 * GIB, 8 * GIB) < 13 * GIB);
        assert_true(grant(&tracked, 12 * GIB, 8 * GIB) >= 12 * GIB);
        /* Without a limit for the group the node's is left, if the kernel tells it. */
        assert_int_equal(grant(&small, 100 * GIB, UINT64_MAX), 99 * GIB);
        assert_int_equal(grant(&small, UINT64_MAX, UINT64_MAX), 0);
        assert_int_equal(grant(&small, UINT64_MAX, 8 * GIB), 16 * GIB);
}

static void test_precopy_time(void **state) {
        const uint64_t least = UINT64_C(600000000);

        (void) state;
        assert_int_equal(precopy_time_usec(0, 0), least);
        assert_int_equal(precopy_time_usec(5000000000, 0), least + 1000000000);
        /* A transfer that [node] move_rate slows down has longer, and no less where the rate is
         * high. */
        assert_int_equal(precopy_time_usec(5000000000, 1000000), least + UINT64_C(20000000000));
        assert_int_equal(precopy_time_usec(5000000000, 1000000000), least + 1000000000);
        assert_int_equal(precopy_time_usec(0, 1), least);
        assert_true(precopy_time_usec(UINT64_C(1) << 60, 1) > least);
}

static void test_text(void **state) {
        const struct capacity_need need = { .memory_bytes = 2000000000, .ahead = true };
        struct capacity_free space = { .memory_bytes = UINT64_MAX, .images_bytes = 16000000 };
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(capacity_check(&need, &space, &err), -ENOSPC);
        assert_non_null(strstr(error_text(&err), "4000 MB"));
        assert_non_null(strstr(error_text(&err), "16 MB"));
        space = (struct capacity_free) { .memory_bytes = 1000000000, .images_bytes = UINT64_MAX };
        err = (struct rm_error) { 0 };
        assert_int_equal(capacity_check(&need, &space, &err), -ENOSPC);
        assert_non_null(strstr(error_text(&err), "not enough memory"));
}

static char *make_group(void) {
        char template[] = "/tmp/rmd-test-room.XXXXXX";

        assert_non_null(mkdtemp(template));
        return xstrdup(template);
}

static void put(const char *dir, const char *name, const char *text) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);

        assert_int_equal(write_file_atomic(path, text, strlen(text), 0600, false), 0);
}

static void test_processes(void **state) {
        const size_t size_bytes = 8U << 20;
        cleanup_free char *dir = make_group(), *text = xasprintf("%d\n999999999\n", (int) getpid());
        uint64_t before;
        char *memory;

        (void) state;
        put(dir, "cgroup.procs", text);
        before = memory_use_processes(dir, NULL, 2);
        assert_true(before > 0);
        memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        memset(memory, 1, size_bytes);
        assert_true(memory_use_processes(dir, NULL, 2) >= before + size_bytes / 2); /* the kernel counts in batches */
        (void) munmap(memory, size_bytes);
        assert_int_equal(remove_tree(dir), 0);
        assert_int_equal(memory_use_processes(dir, NULL, 2), 0);
}

#define OWN_BYTES (UINT64_C(64) << 20) /* beside which what the test itself takes is little */

/* A user can have tens of thousands; rmd's loop must not look at each, nor take them for
 * nothing. */
static void test_many_processes(void **state) {
        const size_t n = 200000;
        cleanup_free char *dir = make_group(), *own = xasprintf("%09d\n", (int) getpid());
        cleanup_free char *text = xcalloc(n + 1, strlen(own));
        uint64_t one, begin, took_usec, sum;
        size_t length = 0;
        char *memory = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        (void) state;
        assert_ptr_not_equal(memory, MAP_FAILED);
        put(dir, "cgroup.procs", own);
        one = memory_use_processes(dir, NULL, 1);
        for (size_t i = 0; i < n; i++)
                length += (size_t) sprintf(text + length, "%s", own);
        put(dir, "cgroup.procs", text);
        begin = thread_cpu_usec();
        sum = memory_use_processes(dir, NULL, 100);
        took_usec = thread_cpu_usec() - begin;
        print_message("%zu processes, %zu bytes: %u us\n", n, length, (unsigned) took_usec);
        assert_true(sum > one * n / 2 && sum < one * n * 2);
        assert_true(took_usec < 500000);
        /* The memory that the kernel has charged says more, whatever the version; but not less than
         * what was seen. */
        put(dir, "memory.stat", "anon 999000000000000\nfile 7\n");
        assert_true(memory_use_processes(dir, dir, 100) == 999000000000000);
        put(dir, "memory.stat", "cache 4\nrss 5\ntotal_cache 6\ntotal_rss 998000000000000\n");
        assert_true(memory_use_processes(dir, dir, 100) == 998000000000000);
        put(dir, "memory.stat", "anon 1\n");
        assert_true(memory_use_processes(dir, dir, 100) > one * 50);
        put(dir, "memory.stat", "nothing\n");
        assert_true(memory_use_processes(dir, dir, 100) > one * n / 2);
        /* Few are looked at themselves. */
        put(dir, "cgroup.procs", own);
        put(dir, "memory.stat", "anon 999000000000000\n");
        assert_true(memory_use_processes(dir, dir, 1) < 999000000000000);
        (void) munmap(memory, OWN_BYTES);
        assert_int_equal(remove_tree(dir), 0);
}

static void test_core_time(void **state) {
        cleanup_free char *dir = make_group(), *path = xasprintf("%s/cgroup.procs", dir);
        cleanup_free char *own = xasprintf("%d\n%d\n", (int) getpid(), (int) getpid());
        struct core_time time = { 1, 1 };

        (void) state;
        put(dir, "cgroup.procs", own);
        assert_int_equal(core_time_read(path, 1, &time), -E2BIG);
        assert_int_equal(time.ran_usec, 1);
        assert_int_equal(core_time_read(path, 2, &time), 0);
        assert_true(time.ran_usec > 1);
        assert_int_equal(remove_tree(dir), 0);
        assert_int_equal(core_time_read(path, 2, &time), 0);
        assert_int_equal(time.ran_usec, 0);
}

static void test_here(void **state) {
        struct capacity_free space = { 0 };

        (void) state;
        capacity_here("/tmp", &space);
        assert_true(space.memory_bytes > 0 && space.memory_bytes < UINT64_MAX);
        assert_true(space.images_bytes < UINT64_MAX);
        capacity_here("/nonexistent", &space);
        assert_true(space.images_bytes == UINT64_MAX);
        assert_int_equal(memory_use_files("/nonexistent"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_check),          cmocka_unit_test(test_pages),     cmocka_unit_test(test_text),
                cmocka_unit_test(test_precopy_time),   cmocka_unit_test(test_grant),     cmocka_unit_test(test_processes),
                cmocka_unit_test(test_many_processes), cmocka_unit_test(test_core_time), cmocka_unit_test(test_here),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
