/* Movers that carry the private memory of running processes: what has arrived is compared with what
 * they have when they stand still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../pages/child.h"
#include "../pages/programs.h"
#include "../pages/slow_call.h"
#include "arrived.h"
#include "common/util.h"
#include "daemon/pages/maps.h"
#include "fuse_file.h"
#include "group.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        LARGE_PAGES = 16 << 20 >> 12,
        LOCKED_PAGES = 2 * LARGE_PAGES,
        GRANTED_PAGES = 16 * LARGE_PAGES / 4,
        /* From when the sender has begun with the freeze: then it has also done what it does at its
         * start. */
        FIRST_SCAN_USEC = 200000,
};

/* Offsets are addresses: too large for most file systems. */
static int setup(void **state) {
        struct bed *b;

        (void) bed_setup(state);
        b = *state;
        b->codec = RM__MOVER_CODEC__MOVER_CODEC_NONE;
        assert_int_equal(mount("none", b->out, "tmpfs", 0, "size=1g"), 0);
        return 0;
}

/* ---- a move ---- */

static void begin_in(struct bed *b, const char *environment, const pid_t *pids, size_t n, uint64_t bytes_per_sec) {
        cleanup_free char *procs = procs_of(pids, n);
        cleanup_free char *before = xasprintf("%s/pages", b->out);

        assert_int_equal(remove_tree(before), 0);
        connect_unstarted(b, environment);
        say_precopy(b, procs, true, bytes_per_sec);
}

static void begin(struct bed *b, const pid_t *pids, size_t n, uint64_t bytes_per_sec) {
        begin_in(b, NULL, pids, n, bytes_per_sec);
}

/* The figures that are told then. */
static Rm__MoverEvent *await_precopied(struct bed *b, bool pages) {
        Rm__MoverEvent *e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);

        assert_non_null(e);
        if (pages && !e->precopied->figures->pages)
                fail_msg("%s", e->precopied->figures->untracked);
        assert_true(e->precopied->figures->pages == pages);
        assert_true((e->precopied->figures->untracked[0] == 0) == pages);
        assert_true(e->precopied->figures->ahead_rounds > 0);
        assert_true(e->precopied->figures->ahead_bytes > 0);
        return e;
}

static void precopied(struct bed *b) {
        rm__mover_event__free_unpacked(await_precopied(b, true), NULL);
}

/* The sender's last figures. */
static Rm__MoverEvent *await_end(struct bed *b, bool pages) {
        Rm__MoverEvent *sent = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        Rm__MoverEvent *received = pair_expect(&b->pair, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_RECEIVED);

        assert_non_null(sent);
        assert_non_null(received);
        assert_true(sent->acknowledged->figures->pages == pages);
        assert_true(received->received->figures->pages == pages);
        rm__mover_event__free_unpacked(received, NULL);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        image_check(b, "inventory.img", "inventory", 9);
        return sent;
}

static void finish(struct bed *b) {
        pair_say_start(&b->pair);
        group_dump(b->images);
        say_done(b);
        rm__mover_event__free_unpacked(await_end(b, true), NULL);
}

static void test_programs(void **state) {
        struct bed *b = *state;

        for (size_t i = 0; i < PROGRAMS; i++) {
                struct child child = child_begin(programs[i]);

                begin(b, &child.pid, 1, 0);
                precopied(b);
                (void) usleep(5000);
                stand_still(child.pid);
                finish(b);
                compare(b, child.pid);
                assert_int_equal(child_end(&child), SIGKILL);
        }
}

/* The program writes when CRIU has stopped it already, as system calls do that are interrupted. */
static void write_when_reported(int link) {
        char *area = map_area(LARGE_PAGES);

        for (size_t i = 0; i < LARGE_PAGES; i++)
                memset(area + i * PAGE, (int) (i % 255 + 1), PAGE);
        for (char c = 1;; c++) {
                child_ready(link);
                child_wait(link);
                for (size_t i = 0; i < LARGE_PAGES; i++)
                        area[i * PAGE + i % PAGE] = c;
        }
}

static void let_write(const struct child *child) {
        child_go(child);
        child_expect(child);
}

static void test_written_after_the_start(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_when_reported);

        begin(b, &child.pid, 1, 0);
        precopied(b);
        stand_still(child.pid);
        pair_say_start(&b->pair);
        group_dump(b->images);
        (void) usleep(FIRST_SCAN_USEC);
        assert_int_equal(kill(child.pid, SIGCONT), 0);
        let_write(&child);
        stand_still(child.pid);
        say_done(b);
        rm__mover_event__free_unpacked(await_end(b, true), NULL);
        compare(b, child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* The limit is for what goes ahead. So low a rate that what is not limited is faster on any
 * machine. */
static void test_figures_and_rate(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_when_reported);
        const uint64_t rate = 2 << 20;
        Rm__MoverFigures *f;
        Rm__MoverEvent *e;

        begin(b, &child.pid, 1, rate);
        e = await_precopied(b, true);
        f = e->precopied->figures;
        assert_true(f->ahead_bytes >= LARGE_PAGES * PAGE);
        assert_true(f->ahead_bytes * 1000000 / f->ahead_usec < rate / 2 * 3);
        rm__mover_event__free_unpacked(e, NULL);
        let_write(&child);
        stand_still(child.pid);
        pair_say_start(&b->pair);
        group_dump(b->images);
        say_done(b);
        e = await_end(b, true);
        f = e->acknowledged->figures;
        assert_in_range(f->last_bytes, LARGE_PAGES * PAGE, (uint64_t) LARGE_PAGES * PAGE + (2 << 20));
        assert_in_range(f->last_usec, 1, f->last_bytes * 1000000 / rate / 2);
        assert_true(f->ahead_rounds >= 2);
        assert_true(f->raw_bytes < (uint64_t) LARGE_PAGES * PAGE + (4 << 20));
        rm__mover_event__free_unpacked(e, NULL);
        compare(b, child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- fault points that hold the sender ---- */

/* RM_FAULT_FILE. */
static char *fault_file(const struct bed *b) {
        return xasprintf("%s/fault", b->base);
}

static void fault_write(const struct bed *b, const char *text) {
        cleanup_free char *path = fault_file(b);

        assert_int_equal(write_file_atomic(path, text, strlen(text), 0600, false), 0);
}

static void fault_await(const struct bed *b, const char *text) {
        cleanup_free char *path = fault_file(b);

        for (;;) {
                cleanup_free char *now = NULL;

                assert_int_equal(read_file(path, PAGE, &now, NULL), 0);
                if (strcmp(now, text) == 0)
                        return;
                (void) usleep(1000);
        }
}

/* The sender waits before its first round until the fault file says otherwise. */
static void begin_held(struct bed *b, const pid_t *pids, size_t n) {
        cleanup_free char *path = fault_file(b);
        cleanup_free char *environment = xasprintf("RM_FAULT_FILE=%s", path);

        fault_write(b, "mover.send.tracked:hold");
        begin_in(b, environment, pids, n, 0);
        fault_await(b, "mover.send.tracked:held");
}

/* ---- writes that are no page faults ---- */

static void be_written(int link) {
        char *area = map_area(LARGE_PAGES);

        memset(area, 1, (size_t) LARGE_PAGES * PAGE);
        child_ready(link);
        child_assert(write_all(link, &area, sizeof(area)) == 0);
        for (;;)
                (void) pause();
}

struct pinned {
        pid_t pid;
        char *there;
        volatile bool end;
};

/* The kernel looks up many pages at a time, and then copies into them. */
static void *write_pinned(void *ctx) {
        struct pinned *w = ctx;
        char *data = map_area(LARGE_PAGES);

        for (int i = 2; !w->end; i = i % 200 + 1) {
                struct iovec here = { .iov_base = data, .iov_len = (size_t) LARGE_PAGES * PAGE };
                struct iovec there = { .iov_base = w->there, .iov_len = here.iov_len };

                memset(data, i, here.iov_len);
                if (process_vm_writev(w->pid, &here, 1, &there, 1, 0) <= 0)
                        break;
        }
        (void) munmap(data, (size_t) LARGE_PAGES * PAGE);
        return NULL;
}

/* The last write of the other process ends before the last rounds do. */
static void test_written_by_others(void **state) {
        struct bed *b = *state;

        for (int i = 0; i < 6; i++) {
                struct child child = child_begin(be_written);
                struct pinned writer = { .pid = child.pid };
                pthread_t thread;

                assert_int_equal(read_all(child.link, &writer.there, sizeof(writer.there)), 0);
                assert_int_equal(pthread_create(&thread, NULL, write_pinned, &writer), 0);
                begin(b, &child.pid, 1, 0);
                (void) usleep((useconds_t) (10000 + 15000 * i));
                writer.end = true;
                (void) pthread_join(thread, NULL);
                precopied(b);
                stand_still(child.pid);
                finish(b);
                compare(b, child.pid);
                assert_int_equal(child_end(&child), SIGKILL);
        }
}

/* A write that is under way when its page is told, and ends when that has been read. */
static void test_slow_write_by_another(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(be_written);
        struct child writer = child_begin(write_what_is_missing);
        const pid_t pids[] = { child.pid, writer.pid };
        struct target target = { .pid = child.pid };

        assert_int_equal(read_all(child.link, &target.there, sizeof(target.there)), 0);
        begin_held(b, pids, 2);
        assert_int_equal(write_all(writer.link, &target, sizeof(target)), 0);
        child_expect(&writer);
        fault_write(b, "");
        precopied(b);
        child_go(&writer);
        child_expect(&writer);
        stand_still(child.pid);
        stand_still(writer.pid);
        finish(b);
        compare(b, child.pid);
        compare(b, writer.pid);
        assert_int_equal(child_end(&child), SIGKILL);
        assert_int_equal(child_end(&writer), SIGKILL);
}

static void open_direct(int link) {
        char name[] = "/var/tmp/direct.XXXXXX";
        int fd = mkostemp(name, O_DIRECT);

        child_assert(fd >= 0 && unlink(name) == 0);
        child_ready(link);
        for (;;)
                (void) pause();
}

static void open_direct_when_reported(int link) {
        child_ready(link);
        child_wait(link);
        open_direct(link);
}

/* Neither a pipe of packets, nor a file that is only written. */
static void open_others(int link) {
        char name[] = "/var/tmp/direct.XXXXXX";
        int fd = mkstemp(name), ends[2];

        child_assert(fd >= 0 && open(name, O_WRONLY | O_DIRECT) >= 0 && unlink(name) == 0 && pipe2(ends, O_DIRECT) == 0);
        child_ready(link);
        for (;;)
                (void) pause();
}

static void test_direct_reads(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(open_direct);
        Rm__MoverEvent *e;
        int code;
        bool end_mark;

        begin(b, &child.pid, 1, 0);
        e = await_precopied(b, false);
        assert_non_null(strstr(e->precopied->figures->untracked, "with O_DIRECT"));
        rm__mover_event__free_unpacked(e, NULL);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(child_end(&child), SIGKILL);

        child = child_begin(open_others);
        begin(b, &child.pid, 1, 0);
        precopied(b);
        stand_still(child.pid);
        finish(b);
        assert_int_equal(child_end(&child), SIGKILL);

        /* Opened when the tracking has begun. */
        child = child_begin(open_direct_when_reported);
        begin_held(b, &child.pid, 1);
        let_write(&child);
        fault_write(b, "");
        expect_failure(b, PAIR_SEND, "with O_DIRECT", &code, &end_mark);
        assert_int_equal(code, -EOPNOTSUPP);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* Opens the file whose name comes, and reads a page of it, by a thread, so that a signal stops
 * this one; closes it when told. */
struct reading {
        int fd;
        char *to;
};

static void *read_a_page(void *ctx) {
        const struct reading *r = ctx;

        child_assert(read(r->fd, r->to, PAGE) == PAGE);
        return NULL;
}

static void read_when_reported(int link) {
        char path[128] = { 0 };
        struct reading r = { .to = map_area(1) };
        pthread_t thread = 0;

        memset(r.to, 1, PAGE);
        child_ready(link);
        child_assert(read_all(link, path, sizeof(path)) == 0);
        r.fd = open(path, O_RDONLY | O_CLOEXEC);
        child_assert(r.fd >= 0 && pthread_create(&thread, NULL, read_a_page, &r) == 0);
        child_assert(pthread_join(thread, NULL) == 0 && close(r.fd) == 0);
        child_ready(link);
        for (;;)
                (void) pause();
}

/* A read past the page cache, without O_DIRECT, is under way when its page is told. That is seen
 * before this is read: at the end of the round it may be over, and its file closed. */
static void test_direct_read_in_a_round(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(read_when_reported);
        struct fuse_file file;
        char path[128] = { 0 };
        int code;
        bool end_mark;

        if (!fuse_file_begin(&file, b->out))
                skip();
        (void) snprintf(path, sizeof(path), "%s", file.path);
        begin_held(b, &child.pid, 1);
        assert_int_equal(write_all(child.link, path, sizeof(path)), 0);
        fuse_file_await_read(&file);
        fault_write(b, "mover.send.round:fail");
        expect_failure(b, PAIR_SEND, "on FUSE", &code, &end_mark);
        assert_int_equal(code, -EOPNOTSUPP);
        pair_finish(&b->pair, b->codes);
        fuse_file_answer(&file, 2, PAGE);
        child_expect(&child);
        assert_int_equal(child_end(&child), SIGKILL);
        fuse_file_end(&file);
}

static int teardown_reading(void **state) {
        const struct bed *b = *state;

        fuse_file_abort(b->out);
        return bed_teardown(state);
}

/* ---- processes that come and go ---- */

static void write_for_ever(int link) {
        char *area = map_area(AREA_PAGES);

        for (uint32_t i = 0;; i++) {
                area[(size_t) i * 7919 % AREA_PAGES * PAGE + i % PAGE] = (char) i;
                if (i == AREA_PAGES)
                        child_ready(link);
                share_processor(i, 4096);
        }
}

/* At each byte a child that writes; its pid goes back. */
static void have_children(int link) {
        char *area = map_area(AREA_PAGES);

        memset(area, 5, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        for (;;) {
                pid_t pid;

                child_wait(link);
                pid = fork();
                if (pid == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        for (uint32_t i = 0;; i++) {
                                area[(size_t) i * 31 % AREA_PAGES * PAGE + i % PAGE] = (char) i;
                                share_processor(i, 4096);
                        }
                }
                child_assert(write_all(link, &pid, sizeof(pid)) == 0);
                memset(area, (int) pid, (size_t) AREA_PAGES / 2 * PAGE);
        }
}

static pid_t another_child(const struct child *parent) {
        pid_t pid = -1;

        child_go(parent);
        assert_int_equal(read_all(parent->link, &pid, sizeof(pid)), 0);
        assert_true(pid > 0);
        return pid;
}

static void execute_when_reported(int link) {
        char *area = map_area(AREA_PAGES);

        memset(area, 9, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        child_assert(dup2(link, STDOUT_FILENO) == STDOUT_FILENO);
        (void) execl("/bin/sh", "sh", "-c", "printf x; while :; do a=$a.; [ ${#a} -lt 9999 ] || a=; done", (char *) NULL);
        _exit(1);
}

static void test_processes_come_and_go(void **state) {
        struct bed *b = *state;
        struct child parent = child_begin(have_children);
        struct child ends = child_begin(write_for_ever);
        struct child ends_late = child_begin(write_for_ever);
        struct child executes = child_begin(execute_when_reported);
        struct child executes_late = child_begin(execute_when_reported);
        pid_t pids[6] = { parent.pid, executes.pid, executes_late.pid, ends_late.pid, ends.pid };
        cleanup_free char *gone[2] = { arrived(b, ends.pid), arrived(b, ends_late.pid) };
        cleanup_free char *during = NULL;
        cleanup_free char *after = NULL;

        /* The first round takes a second or two. */
        begin(b, pids, 5, 16 << 20);
        (void) usleep(300000);
        pids[4] = another_child(&parent);
        let_write(&executes);
        assert_int_equal(child_end(&ends), SIGKILL);
        during = procs_of(pids, 5);
        procs_write(b, during);
        precopied(b);
        pids[3] = another_child(&parent);
        assert_int_equal(child_end(&ends_late), SIGKILL);
        let_write(&executes_late);
        after = procs_of(pids, 5);
        procs_write(b, after);
        for (size_t i = 0; i < 5; i++)
                stand_still(pids[i]);
        finish(b);
        for (size_t i = 0; i < 5; i++)
                compare(b, pids[i]);
        assert_int_equal(access(gone[0], F_OK), -1);
        assert_int_equal(access(gone[1], F_OK), -1);
        assert_int_equal(child_end(&parent), SIGKILL);
        assert_int_equal(child_end(&executes), SIGKILL);
        assert_int_equal(child_end(&executes_late), SIGKILL);
        free(gone[1]);
}

/* Nothing protects the memory of one that begins after the last round: behind the last look at
 * it the kernel fills its holes. */
static void test_holes_are_filled(void **state) {
        struct bed *b = *state;
        struct child first = child_begin(write_for_ever);
        struct child late;
        cleanup_free char *procs = procs_of(&first.pid, 1);
        cleanup_free char *path = fault_file(b);
        cleanup_free char *environment = xasprintf("RM_FAULT_FILE=%s", path);
        cleanup_free char *after = NULL;
        char *area;

        fault_write(b, "mover.send.present:hold");
        connect_unstarted(b, environment);
        say_precopy(b, procs, true, 0);
        precopied(b);
        assert_int_equal(child_end(&first), SIGKILL);
        late = child_begin(have_holes);
        assert_int_equal(read_all(late.link, &area, sizeof(area)), 0);
        after = procs_of(&late.pid, 1);
        procs_write(b, after);
        stand_still(late.pid);
        pair_say_start(&b->pair);
        group_dump(b->images);
        say_done(b);
        fault_await(b, "mover.send.present:held");
        assert_true(fill_holes(late.pidfd, area));
        fault_write(b, "");
        rm__mover_event__free_unpacked(await_end(b, true), NULL);
        compare(b, late.pid);
        assert_int_equal(child_end(&late), SIGKILL);
}

static void be_used_again(struct bed *b, bool during_a_round) {
        struct child first = child_begin(write_for_ever);
        struct child other = child_begin(write_for_ever);
        const pid_t pids[] = { first.pid, other.pid };
        struct child second;

        begin(b, pids, 2, 16 << 20);
        if (during_a_round)
                (void) usleep(200000);
        else
                precopied(b);
        assert_int_equal(child_end(&first), SIGKILL);
        second = child_with_pid(write_when_reported, pids[0]);
        if (during_a_round)
                precopied(b);
        stand_still(second.pid);
        stand_still(other.pid);
        finish(b);
        compare(b, second.pid);
        compare(b, other.pid);
        assert_int_equal(child_end(&second), SIGKILL);
        assert_int_equal(child_end(&other), SIGKILL);
}

/* By another process, which is not that of which some has been sent. */
static void test_a_pid_is_used_again(void **state) {
        be_used_again(*state, true);
        be_used_again(*state, false);
}

/* CRIU may have taken it for living: the other side would run it with no memory. */
static void test_ended_in_the_freeze(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_for_ever);
        bool end_mark_sent = true;

        begin(b, &child.pid, 1, 0);
        precopied(b);
        stand_still(child.pid);
        pair_say_start(&b->pair);
        group_dump(b->images);
        (void) usleep(FIRST_SCAN_USEC);
        assert_int_equal(child_end(&child), SIGKILL);
        say_done(b);
        expect_failure(b, PAIR_SEND, "transfer memory: process", NULL, &end_mark_sent);
        assert_false(end_mark_sent);
        finish_failed(b);
}

static void abort_now(struct bed *b) {
        int code = 0;

        pair_say_abort(&b->pair, PAIR_SEND, "enough");
        expect_failure(b, PAIR_SEND, "enough", &code, NULL);
        assert_int_equal(code, -ECANCELED);
        finish_failed(b);
}

/* ---- what cannot be tracked ---- */

/* The move goes on, without. */
static void untracked(struct bed *b, const struct child *child, const char *reason) {
        cleanup_free char *path = arrived(b, child->pid);
        Rm__MoverEvent *e;

        begin(b, &child->pid, 1, 0);
        e = await_precopied(b, false);
        if (!strstr(e->precopied->figures->untracked, reason))
                fail_msg("'%s' should say '%s'", e->precopied->figures->untracked, reason);
        assert_true(e->precopied->figures->ahead_bytes > 0);
        rm__mover_event__free_unpacked(e, NULL);
        pair_say_start(&b->pair);
        group_dump(b->images);
        say_done(b);
        e = await_end(b, false);
        assert_non_null(strstr(e->acknowledged->figures->untracked, reason));
        rm__mover_event__free_unpacked(e, NULL);
        assert_int_equal(access(path, F_OK), -1);
}

static void test_traced(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_for_ever);

        assert_int_equal(ptrace(PTRACE_SEIZE, child.pid, NULL, NULL), 0);
        untracked(b, &child, "traced");
        assert_int_equal(child_end(&child), SIGKILL);
}

static void lock_memory(int link) {
        child_assert(syscall(SYS_mlock, map_area(LOCKED_PAGES), (size_t) LOCKED_PAGES * PAGE) == 0);
        child_ready(link);
        for (;;)
                (void) pause();
}

enum { STUCK = 4, BEGIN_USEC = 6000000 };

/* In vfork(2), where it does not stop, until it is killed and the link is closed. */
static void wait_in_vfork(int link) {
        char byte;

        child_ready(link);
        if (vfork() == 0) { /* NOLINT(bugprone-unsafe-functions): what programs do */
                (void) !read(link, &byte, 1);
                _exit(0);
        }
        _exit(1);
}

/* A single process that cannot be tracked shows that the group goes untracked; to try the others
 * as well would take as long for each. */
static void test_many_do_not_stop(void **state) {
        struct bed *b = *state;
        struct child children[STUCK];
        pid_t pids[STUCK];
        Rm__MoverEvent *e;
        uint64_t begin_usec;

        for (size_t i = 0; i < STUCK; i++) {
                children[i] = child_begin(wait_in_vfork);
                pids[i] = children[i].pid;
        }
        begin(b, pids, STUCK, 0);
        begin_usec = now_usec();
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);
        begin_usec = now_usec() - begin_usec;
        assert_non_null(e);
        print_message("%d processes: '%s' after %u ms\n", STUCK, e->precopied->figures->untracked, (unsigned) (begin_usec / 1000));
        assert_false(e->precopied->figures->pages);
        assert_true(begin_usec < BEGIN_USEC);
        rm__mover_event__free_unpacked(e, NULL);
        abort_now(b);
        for (size_t i = 0; i < STUCK; i++)
                assert_int_equal(child_end(&children[i]), SIGKILL);
}

/* Nor is there anything to be had of it otherwise. */
static void test_no_processes(void **state) {
        struct bed *b = *state;
        Rm__MoverEvent *e;

        begin(b, NULL, 0, 0);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);
        assert_non_null(e);
        assert_false(e->precopied->figures->pages);
        assert_non_null(strstr(e->precopied->figures->untracked, "names 0 processes"));
        rm__mover_event__free_unpacked(e, NULL);
        abort_now(b);
}

static void test_locked(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(lock_memory);

        untracked(b, &child, "locked");
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- what was granted ---- */

/* No page is like another. */
static void have_much(int link) {
        char *area = map_area(LARGE_PAGES);

        for (uint64_t i = 0; i < LARGE_PAGES; i++)
                memcpy(area + i * PAGE, &i, sizeof(i));
        child_ready(link);
        for (;;)
                (void) pause();
}

static void refused(struct bed *b, bool pages) {
        struct child child = child_begin(have_much);
        cleanup_free char *procs = procs_of(&child.pid, 1);
        int code = 0;

        b->max_bytes = LARGE_PAGES * PAGE / 4;
        connect_unstarted(b, NULL);
        say_precopy(b, procs, pages, 0);
        expect_failure(b, PAIR_RECEIVE, "granted", &code, NULL);
        assert_int_equal(code, -ENOSPC);
        expect_failure(b, PAIR_SEND, "granted", NULL, NULL);
        finish_failed(b);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* The excess would take up memory of the node that is not charged to the group. */
static void test_more_than_granted(void **state) {
        struct bed *b = *state;
        cleanup_free char *before = xasprintf("%s/pages", b->out);

        refused(b, false);
        refused(b, true);
        assert_int_equal(remove_tree(before), 0);
}

/* So large that what the program has besides does not count, also with sanitizers. */
static void write_large_for_ever(int link) {
        char *area = map_area(GRANTED_PAGES);

        for (uint32_t i = 0;; i++) {
                area[(size_t) i * 7919 % GRANTED_PAGES * PAGE + i % PAGE] = (char) i;
                if (i == GRANTED_PAGES)
                        child_ready(link);
        }
}

/* Returns what was sent ahead. How much the program writes meanwhile depends on how much of a
 * processor it has. */
static uint64_t granted(struct bed *b) {
        struct child child = child_begin(write_large_for_ever);
        Rm__MoverEvent *e;
        uint64_t ahead_bytes;

        begin(b, &child.pid, 1, 0);
        e = await_precopied(b, true);
        ahead_bytes = e->precopied->figures->ahead_bytes;
        rm__mover_event__free_unpacked(e, NULL);
        stand_still(child.pid);
        finish(b);
        compare(b, child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
        return ahead_bytes;
}

/* With sanitizers the program has more memory besides, and is sent more slowly. */
#if defined(__SANITIZE_ADDRESS__)
#define GRANTED_EIGHTHS 12
#else
#define GRANTED_EIGHTHS 9
#endif

/* Pages that are sent again take up no more. */
static void test_granted(void **state) {
        enum { TRIES = 5 };
        struct bed *b = *state;
        uint64_t ahead_bytes = 0;

        b->max_bytes = (uint64_t) GRANTED_PAGES * PAGE * GRANTED_EIGHTHS / 8;
        for (int i = 0; i < TRIES && ahead_bytes <= b->max_bytes; i++) {
                ahead_bytes = granted(b);
                print_message("%u kB of %u kB were sent ahead\n", (unsigned) (ahead_bytes / 1000),
                              (unsigned) (b->max_bytes / 1000));
        }
        assert_true(ahead_bytes > b->max_bytes);
}

/* ---- a deadline ---- */

/* Rounds and the word of what cut them, of a program that writes all the time, with a rate at which
 * one takes 0.5 s. */
static void deadlined(struct bed *b, uint64_t deadline_usec, uint64_t then_usec, uint64_t *ret_rounds,
                      uint64_t *ret_expedite_usec) {
        struct child child = child_begin(write_large_for_ever);
        Rm__MoverEvent *e;

        b->deadline_usec = deadline_usec;
        b->codec = RM__MOVER_CODEC__MOVER_CODEC_NONE;
        begin(b, &child.pid, 1, (uint64_t) GRANTED_PAGES * PAGE * 2);
        if (then_usec != deadline_usec)
                say_expedite(b, then_usec);
        e = await_precopied(b, true);
        *ret_rounds = e->precopied->figures->ahead_rounds;
        *ret_expedite_usec = e->precopied->figures->expedite_usec;
        rm__mover_event__free_unpacked(e, NULL);
        stand_still(child.pid);
        finish(b);
        compare(b, child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
        b->deadline_usec = 0;
}

/* All of the memory is sent once, and what is written meanwhile in the freeze. */
static void test_deadline(void **state) {
        static const struct {
                uint64_t first_usec, then_usec;
                bool cut;
        } cases[] = { { 0, 0, false }, { 1, 1, true },         { 1900000, 1900000, true },
                      { 0, 1, true },  { 1, 60000000, false }, { 1, 0, false } };
        uint64_t rounds, expedite_usec;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                deadlined(*state, cases[i].first_usec, cases[i].then_usec, &rounds, &expedite_usec);
                print_message("case %zu: %u rounds, cut %u us before the deadline\n", i, (unsigned) rounds,
                              (unsigned) expedite_usec);
                assert_true(cases[i].cut == (expedite_usec > 0));
                assert_true(cases[i].cut == (rounds == 1));
                assert_true(expedite_usec < 1900000);
        }
}

/* ---- aborts ---- */

/* On a busy machine it may be that nothing has come yet. */
static int64_t bytes_arrived(const struct bed *b, pid_t pid) {
        cleanup_free char *path = arrived(b, pid);
        struct stat st;

        if (stat(path, &st) == 0)
                return st.st_blocks * 512;
        assert_int_equal(errno, ENOENT);
        return 0;
}

/* In the middle of a round, however it is limited; the program goes on as it was. */
static void test_abort_in_a_round(void **state) {
        static const uint64_t rates[] = { 1 << 20, 64 << 20, 0 };
        struct bed *b = *state;
        struct child child = child_begin(write_when_reported);

        for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
                begin(b, &child.pid, 1, rates[i]);
                (void) usleep(rates[i] ? 100000 : 5000);
                abort_now(b);
                check_free(&child);
                let_write(&child);
                assert_true(rates[i] != 1 << 20 || bytes_arrived(b, child.pid) < 8 << 20);
        }
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_abort_in_the_freeze(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_when_reported);

        begin(b, &child.pid, 1, 0);
        precopied(b);
        let_write(&child);
        stand_still(child.pid);
        pair_say_start(&b->pair);
        (void) usleep(2000);
        abort_now(b);
        assert_int_equal(kill(child.pid, SIGCONT), 0);
        check_free(&child);
        let_write(&child);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_fault_point(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_for_ever);
        cleanup_free char *procs = procs_of(&child.pid, 1);
        bool end_mark_sent = true;

        connect_unstarted(b, "RM_FAULT=mover.send.pages:fail");
        say_precopy(b, procs, true, 0);
        precopied(b);
        stand_still(child.pid);
        pair_say_start(&b->pair);
        group_dump(b->images);
        say_done(b);
        expect_failure(b, PAIR_SEND, "fault point", NULL, &end_mark_sent);
        assert_false(end_mark_sent);
        finish_failed(b);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- for CRIU ---- */

static void test_flags(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_for_ever);
        cleanup_free char *dir = xasprintf("%s/vmflags", b->images);
        cleanup_free char *path = xasprintf("%s/%d", dir, (int) child.pid);
        cleanup_free char *flags = NULL;
        struct stat st;

        begin(b, &child.pid, 1, 0);
        precopied(b);
        assert_int_equal(stat(dir, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_int_equal(read_file(path, 1U << 24, &flags, NULL), 0);
        assert_non_null(strstr(flags, "[stack]"));
        assert_non_null(strstr(flags, "\nVmFlags: rd wr"));
        assert_null(strstr(flags, "\nRss:"));
        abort_now(b);
        assert_int_equal(child_end(&child), SIGKILL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_programs, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_written_after_the_start, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_figures_and_rate, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_written_by_others, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_slow_write_by_another, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_direct_reads, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_direct_read_in_a_round, setup, teardown_reading),
                cmocka_unit_test_setup_teardown(test_processes_come_and_go, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_holes_are_filled, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_a_pid_is_used_again, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_ended_in_the_freeze, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_traced, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_many_do_not_stop, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_no_processes, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_locked, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_more_than_granted, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_granted, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_deadline, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_abort_in_a_round, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_abort_in_the_freeze, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_fault_point, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_flags, setup, bed_teardown),
        };

        priority_normal();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
