/* Copies of running processes, made from the pages that tracking tells: each must be right once the
 * process stands still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "common/util.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/track.h"
#include "programs.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        LIMIT_USEC = 2000000,
        ROUNDS = 6,
        ROUND_USEC = 10000,
        STEP_PAGES = 64,
        SCATTERED_PAGES = 1300,
        LARGE_PAGES = 16384,
        RESIZED_ROUNDS = 500,
};

/* ---- the copy ---- */

struct copy {
        struct track *track;
        struct page_store *store;
        uint64_t reported; /* pages, in this round */
        uint64_t present;
        uint64_t wrong;
        uint64_t first_wrong;
};

static int copy_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        static uint8_t data[STEP_PAGES * PAGE];
        struct copy *copy = ctx;

        assert_int_equal(kind, MAP_KIND_LAZY);
        assert_true(start < end && start % PAGE == 0 && end % PAGE == 0);
        copy->reported += (end - start) / PAGE;
        while (start < end) {
                size_t size = end - start < sizeof(data) ? end - start : sizeof(data);
                ssize_t n = track_read(copy->track, start, data, size);

                /* Pages may vanish; what is behind them is still to be read. */
                if (n >= PAGE)
                        assert_int_equal(page_store_write(copy->store, start, data, (size_t) n / PAGE * PAGE), 0);
                start += n >= PAGE ? (uint64_t) n / PAGE * PAGE : PAGE;
        }
        return 0;
}

static int keep_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct copy *copy = ctx;

        (void) kind;
        copy->present += (end - start) / PAGE;
        return page_store_keep(copy->store, start, end);
}

static int compare_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        static const uint8_t zeros[PAGE];
        struct copy *copy = ctx;
        uint8_t theirs[PAGE], ours[PAGE];

        (void) kind;
        for (uint64_t at = start; at < end; at += PAGE) {
                if (track_read(copy->track, at, theirs, PAGE) != PAGE)
                        continue; /* not for the process either */
                if (!page_store_has(copy->store, at))
                        memcpy(ours, zeros, PAGE);
                else
                        assert_int_equal(page_store_read(copy->store, at, ours, PAGE), 0);
                if (memcmp(ours, theirs, PAGE) == 0)
                        continue;
                if (copy->wrong == 0)
                        copy->first_wrong = at;
                copy->wrong++;
        }
        return 0;
}

static struct copy copy_begin(const struct child *child) {
        struct copy copy = { 0 };
        struct rm_error err = { 0 };

        assert_int_equal(page_store_create("copy", &copy.store), 0);
        if (track_start(child->pidfd, 1U << MAP_KIND_LAZY, LIMIT_USEC, &copy.track, &err) < 0)
                fail_msg("%s", err.text);
        return copy;
}

static uint64_t copy_round(struct copy *copy, int (*round)(struct track *, track_run_cb, void *, struct rm_error *)) {
        struct rm_error err = { 0 };

        copy->reported = 0;
        if (round(copy->track, copy_run, copy, &err) < 0)
                fail_msg("%s", err.text);
        return copy->reported;
}

static void copy_end(struct copy *copy) {
        track_end(copy->track);
        page_store_destroy(copy->store);
}

static void stop(const struct child *child) {
        int status;

        assert_int_equal(kill(child->pid, SIGSTOP), 0);
        assert_int_equal(waitpid(child->pid, &status, WUNTRACED), child->pid);
        assert_true(WIFSTOPPED(status));
}

/* The child stands still. */
static void copy_check(struct copy *copy) {
        struct rm_error err = { 0 };

        copy->reported = copy->present = 0;
        if (track_last_and_present(copy->track, copy_run, keep_run, copy, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(page_store_drop_others(copy->store), 0);
        /* A page that could not be read is present and not there. */
        assert_true(page_store_bytes(copy->store) <= copy->present * PAGE);
        assert_int_equal(track_present(copy->track, compare_run, copy, &err), 0);
        if (copy->wrong > 0)
                fail_msg("%llu of %llu pages wrong, the first at %llx", (unsigned long long) copy->wrong,
                         (unsigned long long) copy->present, (unsigned long long) copy->first_wrong);
}

/* ---- programs ---- */

static void follow(const struct child *child, struct copy *copy) {
        for (int i = 0; i < ROUNDS; i++) {
                uint64_t reported = copy_round(copy, track_round);

                assert_true(i > 0 || reported > 0);
                (void) usleep(ROUND_USEC);
        }
}

static void test_programs(void **state) {
        (void) state;
        for (size_t i = 0; i < PROGRAMS; i++) {
                struct child child;
                struct copy copy;

                child = child_begin(programs[i]);
                copy = copy_begin(&child);
                follow(&child, &copy);
                stop(&child);
                copy_check(&copy);
                copy_end(&copy);
                assert_int_equal(child_end(&child), SIGKILL);
        }
}

/* ---- memory that another process writes, as ranks on one node do ---- */

struct writer {
        pid_t pid;
        char *area;
        volatile bool end;
        bool failed;
};

static void be_written(int link) {
        char *area = map_area(AREA_PAGES);

        child_ready(link);
        child_assert(write_all(link, &area, sizeof(area)) == 0);
        for (;;)
                (void) pause();
}

static void *write_there(void *ctx) {
        struct writer *w = ctx;

        for (uint32_t i = 0; !w->end; i++) {
                char *at = w->area + (size_t) (i * 7919U % (AREA_PAGES - 1)) * PAGE + i % PAGE;
                struct iovec here = { .iov_base = &i, .iov_len = sizeof(i) };
                struct iovec there = { .iov_base = at, .iov_len = sizeof(i) };

                if (process_vm_writev(w->pid, &here, 1, &there, 1, 0) != sizeof(i) ||
                    process_vm_readv(w->pid, &here, 1, &there, 1, 0) != sizeof(i))
                        w->failed = true;
        }
        return NULL;
}

static void test_written_by_others(void **state) {
        struct child child = child_begin(be_written);
        struct writer writer = { .pid = child.pid };
        struct copy copy = copy_begin(&child);
        pthread_t thread;

        (void) state;
        assert_int_equal(read_all(child.link, &writer.area, sizeof(writer.area)), 0);
        assert_int_equal(pthread_create(&thread, NULL, write_there, &writer), 0);
        follow(&child, &copy);
        writer.end = true;
        (void) pthread_join(thread, NULL);
        assert_false(writer.failed);
        stop(&child);
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- what rounds tell ---- */

static void write_when_reported(int link) {
        char *area = map_area(AREA_PAGES);

        memset(area, 7, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        for (size_t i = 0; i < AREA_PAGES; i += 100)
                area[i * PAGE] = 1;
        child_ready(link);
        for (;;)
                (void) pause();
}

/* No more than what was written, and what the program itself needs for that. */
static void test_only_written(void **state) {
        struct child child = child_begin(write_when_reported);
        struct copy copy;
        uint64_t reported;

        (void) state;
        child_settle(&child);
        copy = copy_begin(&child);
        assert_true(copy_round(&copy, track_round) >= AREA_PAGES);
        assert_int_equal(copy_round(&copy, track_round), 0);
        child_go(&child);
        child_expect(&child);
        child_settle(&child);
        reported = copy_round(&copy, track_round);
        assert_in_range(reported, 11, 30);
        assert_int_equal(copy_round(&copy, track_round), 0);
        stop(&child);
        copy_check(&copy);
        assert_int_equal(copy.reported, 0);
        assert_in_range(copy.present, AREA_PAGES, AREA_PAGES * 16); /* more with sanitizers */
        assert_int_equal(track_figures(copy.track)->rounds, 5);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* At each byte it gets memory in another way. */
static void get_memory(int link) {
        char *area = map_area(AREA_PAGES);
        char *to = map_area(2 * AREA_PAGES) + PAGE;

        memset(area, 7, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        memset(map_area(AREA_PAGES), 1, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        child_assert(mremap(area, AREA_PAGES * PAGE, AREA_PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        child_ready(link);
        child_wait(link);
        memset(sbrk(AREA_PAGES * PAGE), 2, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        for (;;)
                (void) pause();
}

/* The middle of an area moves away and, once it has been tracked elsewhere, back, where it becomes
 * one mapping with what is beside it. Then that is written. At each byte a step. */
static void move_away_and_back(int link) {
        const size_t size = AREA_PAGES / 4 * (size_t) PAGE;
        char *area = map_area(3 * (AREA_PAGES / 4));
        char *to = map_area(3 * (AREA_PAGES / 4)) + size;

        memset(area, 7, 3 * size);
        child_ready(link);
        child_wait(link);
        child_assert(mremap(area + size, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        child_ready(link);
        child_wait(link);
        child_assert(mremap(to, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, area + size) == area + size);
        for (size_t i = 0; i < 3 * size; i += (size_t) 7 * PAGE)
                area[i] = 8;
        child_ready(link);
        child_wait(link);
        for (size_t i = PAGE; i < 3 * size; i += (size_t) 7 * PAGE)
                area[i] = 9;
        child_ready(link);
        for (;;)
                (void) pause();
}

/* The kernel ends the tracking of the neighbours then, and leaves them marked as unwritten. */
static void check_neighbours(int rounds) {
        struct child child = child_begin(move_away_and_back);
        struct copy copy;

        child_settle(&child);
        copy = copy_begin(&child);
        (void) copy_round(&copy, track_round);
        for (int i = 0; i < 3; i++) {
                child_go(&child);
                child_expect(&child);
                child_settle(&child);
                for (int k = 0; k < rounds || (k == 0 && i == 0); k++)
                        (void) copy_round(&copy, track_round);
        }
        stop(&child);
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(kill(child.pid, SIGCONT), 0);
        /* Marks that are left do not mislead a tracker that begins again. */
        copy = copy_begin(&child);
        (void) copy_round(&copy, track_round);
        stop(&child);
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_neighbours_of_moved(void **state) {
        (void) state;
        for (int rounds = 0; rounds < 3; rounds++)
                check_neighbours(rounds);
}

/* Memory that shrinks and grows again all the time, wherever it is then: mremap(2) takes one
 * mapping only. */
static void resize_for_ever(int link) {
        char *area = map_area(AREA_PAGES);
        size_t now = AREA_PAGES;

        memset(area, 7, (size_t) AREA_PAGES * PAGE);
        for (uint32_t i = 0;; i++) {
                size_t pages = AREA_PAGES / 2 + i * 7919U % (AREA_PAGES / 2);

                area = mremap(area, now * PAGE, pages * PAGE, MREMAP_MAYMOVE);
                child_assert(area != MAP_FAILED);
                area[(pages - 1) * PAGE] = (char) i;
                area[i * 31U % pages * PAGE] = (char) i;
                now = pages;
                if (i == 100)
                        child_ready(link);
        }
}

static void test_resized(void **state) {
        struct child child = child_begin(resize_for_ever);
        struct copy copy = copy_begin(&child);

        (void) state;
        for (int i = 0; i < RESIZED_ROUNDS; i++)
                (void) copy_round(&copy, track_round);
        stop(&child); /* it has not ended: none of its calls has failed */
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* The sanitizer's record of new memory is an eighth of it, and new too. */
#if defined(__SANITIZE_ADDRESS__)
#define NEW_MAX (AREA_PAGES * 9 / 8 + 30)
#else
#define NEW_MAX (AREA_PAGES + 30)
#endif

/* New memory is reported once, and protected from then on. */
static void test_new_memory(void **state) {
        struct child child = child_begin(get_memory);
        struct copy copy;

        (void) state;
        child_settle(&child);
        copy = copy_begin(&child);
        (void) copy_round(&copy, track_round);
        for (int i = 0; i < 3; i++) {
                child_go(&child);
                child_expect(&child);
                child_settle(&child);
                assert_in_range(copy_round(&copy, track_round), AREA_PAGES, NEW_MAX);
                assert_int_equal(copy_round(&copy, track_round), 0);
        }
        stop(&child);
        copy_check(&copy);
        assert_int_equal(copy.reported, 0);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* Many runs, one page each. */
static void write_every_other(int link) {
        char *area = map_area(2 * SCATTERED_PAGES);

        for (size_t i = 0; i < SCATTERED_PAGES; i++)
                area[2 * i * PAGE] = 7;
        child_ready(link);
        for (;;)
                (void) pause();
}

struct order {
        uint64_t end; /* of the last run */
        size_t runs;
};

static int ascend(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct order *order = ctx;

        (void) kind;
        assert_true(start >= order->end);
        order->end = end;
        order->runs++;
        return 0;
}

/* The kernel finds more runs than it keeps at a time, and comes to the end of the mapping before
 * the receiver's list is full. */
static void test_each_run_once(void **state) {
        struct child child = child_begin(write_every_other);
        struct copy copy = copy_begin(&child);
        struct order order = { 0 };

        (void) state;
        stop(&child);
        assert_int_equal(track_present(copy.track, ascend, &order, NULL), 0);
        assert_true(order.runs >= SCATTERED_PAGES);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void hold_large(int link) {
        char *area = map_area(LARGE_PAGES);

        memset(area, 7, (size_t) LARGE_PAGES * PAGE);
        child_ready(link);
        child_assert(write_all(link, &area, sizeof(area)) == 0);
        for (;;)
                (void) pause();
}

/* Writes to the last page, once the first is reported. */
static int write_behind(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct writer *w = ctx;
        struct iovec here = { .iov_base = w, .iov_len = 1 };
        struct iovec there = { .iov_base = w->area + (size_t) (LARGE_PAGES - 1) * PAGE, .iov_len = 1 };

        (void) kind;
        if (w->end || start > (uint64_t) (uintptr_t) w->area || end <= (uint64_t) (uintptr_t) w->area)
                return 0;
        w->end = true;
        return process_vm_writev(w->pid, &here, 1, &there, 1, 0) == 1 ? 0 : -EIO;
}

/* Pages that a program writes while a round is sent, and that the round has not come to, are not
 * left to the next one. */
static void test_pages_behind(void **state) {
        struct child child = child_begin(hold_large);
        struct writer writer = { .pid = child.pid };
        struct copy copy;

        (void) state;
        assert_int_equal(read_all(child.link, &writer.area, sizeof(writer.area)), 0);
        child_settle(&child);
        copy = copy_begin(&child);
        assert_int_equal(track_round(copy.track, write_behind, &writer, NULL), 0);
        assert_true(writer.end);
        assert_int_equal(copy_round(&copy, track_round), 0);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- pages that the kernel adds ---- */

struct uffd_handler {
        struct copy copy;
        const struct child *child;
        char *area;
        bool filled;
};

static int fill_when_reported(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct uffd_handler *c = ctx;

        if (start == (uint64_t) (uintptr_t) c->area)
                c->filled = fill_holes(c->child->pidfd, c->area);
        return copy_run(&c->copy, start, end, kind);
}

static int count_present(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct uffd_handler *c = ctx;

        (void) kind;
        c->copy.present += (end - start) / PAGE;
        return 0;
}

/* Pages of zeros that come while others are told are not told as present, of which none was
 * told. */
static void test_holes_are_filled(void **state) {
        struct child child = child_begin(have_holes);
        struct uffd_handler c = { .child = &child };

        (void) state;
        assert_int_equal(read_all(child.link, &c.area, sizeof(c.area)), 0);
        stop(&child);
        assert_int_equal(page_store_create("copy", &c.copy.store), 0);
        assert_int_equal(track_open(child.pidfd, 1U << MAP_KIND_LAZY, &c.copy.track, NULL), 0);
        assert_int_equal(track_last_and_present(c.copy.track, fill_when_reported, count_present, &c, NULL), 0);
        assert_true(c.filled);
        assert_int_equal(c.copy.present, c.copy.reported);
        copy_end(&c.copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* Where pages are protected, the kernel leaves holes as they are. */
static void test_holes_stay(void **state) {
        struct child child = child_begin(have_holes);
        struct copy copy = copy_begin(&child);
        char *area;

        (void) state;
        assert_int_equal(read_all(child.link, &area, sizeof(area)), 0);
        (void) copy_round(&copy, track_round);
        stop(&child);
        assert_false(fill_holes(child.pidfd, area));
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

static int refuse(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        (void) ctx, (void) start, (void) end, (void) kind;
        return -ECANCELED;
}

static void test_receiver_fails(void **state) {
        struct child child = child_begin(write_when_reported);
        struct copy copy = copy_begin(&child);

        (void) state;
        assert_int_equal(track_round(copy.track, refuse, NULL, NULL), -ECANCELED);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* A round that fails has not told what it has protected: the last one does. */
static void test_round_fails(void **state) {
        struct child child = child_begin(write_when_reported);
        struct copy copy = copy_begin(&child);

        (void) state;
        (void) copy_round(&copy, track_round);
        child_go(&child);
        child_expect(&child);
        assert_int_equal(track_round(copy.track, refuse, NULL, NULL), -ECANCELED);
        stop(&child);
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

static int refuse_to_go_on(void *ctx) {
        (void) ctx;
        return -ECANCELED;
}

/* The poll ends the round by the first call: while mappings are registered, or, where none are,
 * some time later. */
static void test_poll_ends_rounds(void **state) {
        struct child child = child_begin(write_when_reported);
        struct copy copy = copy_begin(&child);

        (void) state;
        track_set_poll(copy.track, refuse_to_go_on, NULL);
        assert_int_equal(track_round(copy.track, copy_run, &copy, NULL), -ECANCELED);
        assert_int_equal(copy.reported, 0);
        assert_int_equal(track_last(copy.track, copy_run, &copy, NULL), -ECANCELED);
        track_set_poll(copy.track, NULL, NULL);
        stop(&child);
        copy_check(&copy);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- other memory than before ---- */

static void execute(int link) {
        char *area = map_area(AREA_PAGES);

        memset(area, 7, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        child_assert(dup2(link, STDOUT_FILENO) == STDOUT_FILENO); /* without close-on-exec */
        (void) execl("/bin/sh", "sh", "-c", "printf x; kill -STOP $$", (char *) NULL);
        _exit(1);
}

static void test_executed(void **state) {
        struct child child = child_begin(execute);
        struct copy copy = copy_begin(&child);
        struct rm_error err = { 0 };

        (void) state;
        (void) copy_round(&copy, track_round);
        child_go(&child);
        child_expect(&child);
        assert_int_equal(track_round(copy.track, copy_run, &copy, &err), -ESTALE);
        assert_non_null(strstr(err.text, "another program"));
        /* The last round takes all of the new one, and presence leaves nothing of the old. */
        stop(&child);
        copy_check(&copy);
        assert_true(copy.reported == copy.present && copy.reported > 0);
        copy_end(&copy);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_ended(void **state) {
        struct child child = child_begin(write_when_reported);
        struct copy copy = copy_begin(&child);
        struct rm_error err = { 0 };
        siginfo_t info;

        (void) state;
        (void) copy_round(&copy, track_round);
        (void) kill(child.pid, SIGKILL);
        assert_int_equal(waitid(P_PID, (id_t) child.pid, &info, WEXITED | WNOWAIT), 0);
        assert_int_equal(track_round(copy.track, copy_run, &copy, &err), -ESRCH);
        assert_int_equal(child_end(&child), SIGKILL);
        assert_int_equal(track_round(copy.track, copy_run, &copy, &err), -ESRCH);
        copy_end(&copy);
}

/* The process stays as it is, when the tracking ends: no mapping is marked, and no descriptor is
 * left. */
static void test_leaves_nothing(void **state) {
        struct child child = child_begin(write_when_reported);
        unsigned descriptors = child_descriptors(child.pid);
        cleanup_free char *path = xasprintf("/proc/%d/smaps", (int) child.pid);
        cleanup_free char *during = NULL;
        cleanup_free char *after = NULL;
        struct copy copy = copy_begin(&child);

        (void) state;
        (void) copy_round(&copy, track_round);
        assert_int_equal(read_file(path, 1U << 24, &during, NULL), 0);
        assert_non_null(strstr(during, " uw"));
        copy_end(&copy);
        assert_int_equal(read_file(path, 1U << 24, &after, NULL), 0);
        assert_null(strstr(after, " uw"));
        assert_int_equal(child_descriptors(child.pid), descriptors);
        child_go(&child);
        child_expect(&child);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_supported(void **state) {
        struct rm_error err = { 0 };

        (void) state;
        if (track_supported(&err) < 0)
                fail_msg("%s", err.text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_supported),         cmocka_unit_test(test_programs),
                cmocka_unit_test(test_written_by_others), cmocka_unit_test(test_only_written),
                cmocka_unit_test(test_new_memory),        cmocka_unit_test(test_neighbours_of_moved),
                cmocka_unit_test(test_resized),           cmocka_unit_test(test_each_run_once),
                cmocka_unit_test(test_pages_behind),      cmocka_unit_test(test_holes_are_filled),
                cmocka_unit_test(test_holes_stay),        cmocka_unit_test(test_receiver_fails),
                cmocka_unit_test(test_round_fails),       cmocka_unit_test(test_poll_ends_rounds),
                cmocka_unit_test(test_executed),          cmocka_unit_test(test_ended),
                cmocka_unit_test(test_leaves_nothing),
        };

        priority_normal();
        return cmocka_run_group_tests_name("pages-track", tests, NULL, NULL);
}
