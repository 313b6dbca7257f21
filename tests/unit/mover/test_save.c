/* Checkpoints of running processes in a store: what is loaded is compared with what they had when
 * they stood still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../pages/programs.h"
#include "arrived.h"
#include "common/util.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/store_stream.h"
#include "daemon/pages/maps.h"
#include "group.h"
#include "saved.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        LARGE_PAGES = 16 << 20 >> 12,
        FEW_PAGES = 10,
        /* The other memory of a program, which it writes by itself, also with sanitizers. */
        OTHERS_BYTES = 4 << 20,
        CHUNK_BYTES = 2 << 20, /* more than one */
        RUN_USEC = 30000,
};

/* A checkpoint, and what was stored is what they have; they run again after that. */
static void make_and_compare(struct saved *s, uint64_t number, const pid_t *pids, size_t n) {
        rm__mover_event__free_unpacked(checkpoint_make(s, number, pids, n), NULL);
        load_make(s, number);
        for (size_t i = 0; i < n; i++)
                compare(s->bed, pids[i]);
        for (size_t i = 0; i < n; i++)
                let_run(pids[i]);
}

static void end_well(struct saved *s) {
        say_release(s);
        save_expect(s, RM__MOVER_EVENT__BODY_RELEASED);
        assert_int_equal(save_end(s), 0);
}

static void numbers_are(const struct saved *s, const char *expected) {
        cleanup_free char *numbers = stored_numbers(s);

        assert_string_equal(numbers, expected);
}

/* ---- programs ---- */

/* The programs change their memory in every way, during rounds and between checkpoints. */
static void test_programs(void **state) {
        struct saved *s = *state;

        for (size_t i = 0; i < PROGRAMS; i++) {
                struct child child = child_begin(programs[i]);

                print_message("program %zu of %d\n", i + 1, PROGRAMS);
                save_begin(s, NULL);
                for (uint64_t number = 1; number <= 3; number++) {
                        make_and_compare(s, i * 3 + number, &child.pid, 1);
                        (void) usleep(RUN_USEC);
                }
                end_well(s);
                check_free(&child);
                assert_int_equal(child_end(&child), SIGKILL);
        }
}

/* First all pages, later few. No page is like another. */
static void write_few(int link) {
        char *area = map_area(LARGE_PAGES);

        for (uint64_t i = 0; i < LARGE_PAGES; i++)
                for (size_t at = 0; at < PAGE; at += sizeof(i))
                        *(uint64_t *) (void *) (area + i * PAGE + at) = i * 0x9e3779b97f4a7c15U + at;
        for (char c = 1;; c++) {
                child_ready(link);
                child_wait(link);
                for (size_t i = 0; i < FEW_PAGES; i++)
                        memset(area + i * 37 * PAGE, c, PAGE);
        }
}

static void test_little_is_written(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_few);
        Rm__MoverEvent *e;

        save_begin(s, NULL);
        e = checkpoint_make(s, 1, &child.pid, 1);
        assert_true(e->stored->figures->pages);
        assert_true(e->stored->figures->ahead_bytes >= LARGE_PAGES * PAGE);
        assert_true(e->stored->raw_bytes >= LARGE_PAGES * PAGE);
        rm__mover_event__free_unpacked(e, NULL);
        for (uint64_t number = 2; number <= 4; number++) {
                let_run(child.pid);
                let_write(&child);
                e = checkpoint_make(s, number, &child.pid, 1);
                print_message("checkpoint %u: %u kB read ahead, %u kB in the freeze, %u kB stored\n", (unsigned) number,
                              (unsigned) (e->stored->figures->ahead_bytes / 1000),
                              (unsigned) (e->stored->figures->last_bytes / 1000), (unsigned) (e->stored->stored_bytes / 1000));
                assert_true(e->stored->figures->pages);
                /* So little is left to the freeze. */
                assert_in_range(e->stored->figures->ahead_bytes, 0, OTHERS_BYTES);
                assert_in_range(e->stored->figures->last_bytes, FEW_PAGES * PAGE, OTHERS_BYTES);
                assert_in_range(e->stored->stored_bytes, 1, OTHERS_BYTES);
                assert_true(e->stored->raw_bytes >= LARGE_PAGES * PAGE);
                rm__mover_event__free_unpacked(e, NULL);
                load_make(s, number);
                compare(s->bed, child.pid);
        }
        end_well(s);
        /* The earlier checkpoints are unchanged. */
        numbers_are(s, "1 2 3 4 ");
        load_make(s, 1);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* Each of its steps is a word of what happens to memory while nobody looks. */
static void change_mappings(int link) {
        char *area = map_area(LARGE_PAGES);
        char *moved = map_area(LARGE_PAGES / 4);
        const size_t part = (size_t) LARGE_PAGES / 4 * PAGE;

        memset(area, 1, (size_t) LARGE_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        child_assert(madvise(area, part, MADV_DONTNEED) == 0);
        area[0] = 2;
        child_assert(munmap(area + part, part) == 0);
        child_ready(link);
        child_wait(link);
        child_assert(mremap(area + 2 * part, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved);
        child_assert(mmap(area + 2 * part, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                     area + 2 * part);
        memset(area + 2 * part, 3, part / 2);
        child_ready(link);
        child_wait(link);
        /* Where there was something in the checkpoint before last. */
        child_assert(mmap(area + part, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                     area + part);
        area[part + 5 * PAGE] = 4;
        child_assert(area[part + 6 * PAGE] == 0);
        child_ready(link);
        for (;;)
                (void) pause();
}

static void test_mappings_change(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(change_mappings);

        save_begin(s, NULL);
        for (uint64_t number = 1; number <= 4; number++) {
                make_and_compare(s, number, &child.pid, 1);
                if (number < 4)
                        let_write(&child);
        }
        end_well(s);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- processes that come and go ---- */

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

static void write_for_ever(int link) {
        char *area = map_area(AREA_PAGES);

        for (uint32_t i = 0;; i++) {
                area[(size_t) i * 7919 % AREA_PAGES * PAGE + i % PAGE] = (char) i;
                if (i == AREA_PAGES)
                        child_ready(link);
                share_processor(i, 4096);
        }
}

static void test_processes_come_and_go(void **state) {
        struct saved *s = *state;
        struct child parent = child_begin(have_children);
        struct child executes = child_begin(execute_when_reported);
        struct child executes_late = child_begin(execute_when_reported);
        struct child ends = child_begin(write_for_ever);
        pid_t pids[5] = { parent.pid, executes.pid, executes_late.pid, ends.pid };
        cleanup_free char *gone = arrived(s->bed, ends.pid);

        save_begin(s, NULL);
        make_and_compare(s, 1, pids, 4);
        /* These changes come between two checkpoints. */
        let_write(&executes);
        assert_int_equal(child_end(&ends), SIGKILL);
        pids[3] = another_child(&parent);
        make_and_compare(s, 2, pids, 4);
        assert_int_equal(access(gone, F_OK), -1);
        /* Between the rounds and the freeze. */
        checkpoint_ahead(s, 3, pids, 4);
        let_write(&executes_late);
        pids[4] = another_child(&parent);
        {
                cleanup_free char *procs = procs_of(pids, 5);

                procs_write(s->bed, procs);
        }
        for (size_t i = 0; i < 5; i++)
                stand_still(pids[i]);
        checkpoint_freeze(s);
        save_expect(s, RM__MOVER_EVENT__BODY_CAPTURED);
        save_expect(s, RM__MOVER_EVENT__BODY_STORED);
        load_make(s, 3);
        for (size_t i = 0; i < 5; i++)
                compare(s->bed, pids[i]);
        for (size_t i = 0; i < 5; i++)
                let_run(pids[i]);
        (void) usleep(RUN_USEC);
        /* Processes that were not tracked in the freeze are tracked now. */
        make_and_compare(s, 4, pids, 5);
        (void) usleep(RUN_USEC);
        make_and_compare(s, 5, pids, 5);
        end_well(s);
        assert_int_equal(child_end(&parent), SIGKILL);
        assert_int_equal(child_end(&executes), SIGKILL);
        assert_int_equal(child_end(&executes_late), SIGKILL);
}

/* By another process, which has nothing of what the first one had. */
static void test_a_pid_is_used_again(void **state) {
        struct saved *s = *state;
        struct child other = child_begin(write_for_ever);
        struct child child = child_begin(write_few);
        const pid_t pids[] = { other.pid, child.pid };

        save_begin(s, NULL);
        make_and_compare(s, 1, pids, 2);
        assert_int_equal(child_end(&child), SIGKILL);
        child = child_with_pid(write_for_ever, pids[1]);
        make_and_compare(s, 2, pids, 2);
        /* In a checkpoint that has something of the first one already. */
        let_run(pids[1]);
        (void) usleep(RUN_USEC);
        checkpoint_ahead(s, 3, pids, 2);
        assert_int_equal(child_end(&child), SIGKILL);
        child = child_with_pid(write_few, pids[1]);
        stand_still(pids[0]);
        stand_still(pids[1]);
        checkpoint_freeze(s);
        save_expect(s, RM__MOVER_EVENT__BODY_CAPTURED);
        save_expect(s, RM__MOVER_EVENT__BODY_STORED);
        load_make(s, 3);
        compare(s->bed, pids[0]);
        compare(s->bed, pids[1]);
        let_run(pids[0]);
        let_run(pids[1]);
        make_and_compare(s, 4, pids, 2);
        end_well(s);
        assert_int_equal(child_end(&child), SIGKILL);
        assert_int_equal(child_end(&other), SIGKILL);
}

/* ---- what cannot be tracked ---- */

static void lock_when_reported(int link) {
        char *area = map_area(2 * LARGE_PAGES);

        memset(area, 1, (size_t) 2 * LARGE_PAGES * PAGE);
        child_ready(link);
        child_wait(link);
        child_assert(syscall(SYS_mlock, area, (size_t) 2 * LARGE_PAGES * PAGE) == 0);
        child_ready(link);
        child_wait(link);
        child_assert(syscall(SYS_munlock, area, (size_t) 2 * LARGE_PAGES * PAGE) == 0);
        area[0] = 2;
        child_ready(link);
        for (;;)
                (void) pause();
}

static void open_direct_when_reported(int link) {
        char name[] = "/var/tmp/direct.XXXXXX";
        int fd;

        child_ready(link);
        child_wait(link);
        fd = mkostemp(name, O_DIRECT);
        child_assert(fd >= 0 && unlink(name) == 0);
        child_ready(link);
        child_wait(link);
        (void) close(fd);
        child_ready(link);
        for (;;)
                (void) pause();
}

/* Tracked, then not, then tracked again with all it has. */
static void not_for_a_while(struct saved *s, void (*program)(int link), uint64_t number, const char *reason) {
        struct child child = child_begin(program);
        cleanup_free char *path = arrived(s->bed, child.pid);
        Rm__MoverEvent *e;

        save_begin(s, NULL);
        make_and_compare(s, number, &child.pid, 1);
        let_write(&child);
        e = checkpoint_make(s, number + 1, &child.pid, 1);
        assert_false(e->stored->figures->pages);
        if (!strstr(e->stored->figures->untracked, reason))
                fail_msg("'%s' should say '%s'", e->stored->figures->untracked, reason);
        rm__mover_event__free_unpacked(e, NULL);
        check_free(&child);
        load_make(s, number + 1);
        assert_int_equal(access(path, F_OK), -1);
        let_run(child.pid);
        let_write(&child);
        make_and_compare(s, number + 2, &child.pid, 1);
        make_and_compare(s, number + 3, &child.pid, 1);
        end_well(s);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_untracked(void **state) {
        not_for_a_while(*state, lock_when_reported, 1, "locked");
        not_for_a_while(*state, open_direct_when_reported, 11, "O_DIRECT");
}

/* ---- limits ---- */

static void write_all_when_reported(int link) {
        char *area = map_area(LARGE_PAGES);

        for (char c = 1;; c++) {
                for (uint64_t i = 0; i < LARGE_PAGES; i++) {
                        memset(area + i * PAGE, c, PAGE);
                        memcpy(area + i * PAGE, &i, sizeof(i));
                }
                child_ready(link);
                child_wait(link);
        }
}

static void test_rate(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_all_when_reported);
        Rm__MoverFigures *f;
        Rm__MoverEvent *e;

        /* So low a rate that what is not limited is faster on any machine. */
        s->bytes_per_sec = 2 << 20;
        save_begin(s, NULL);
        checkpoint_ahead(s, 1, &child.pid, 1);
        let_write(&child);
        stand_still(child.pid);
        checkpoint_freeze(s);
        e = save_receive(s, RM__MOVER_EVENT__BODY_CAPTURED);
        f = e->captured->figures;
        assert_true(f->ahead_bytes >= LARGE_PAGES * PAGE);
        assert_true(f->ahead_bytes * 1000000 / f->ahead_usec < s->bytes_per_sec / 2 * 3);
        /* No limit in the freeze; what came then is stored at that rate again. */
        assert_true(f->last_bytes >= LARGE_PAGES * PAGE);
        assert_in_range(f->last_usec, 1, f->last_bytes * 1000000 / s->bytes_per_sec / 2);
        assert_true(e->captured->in_memory_bytes >= f->last_bytes);
        rm__mover_event__free_unpacked(e, NULL);
        e = save_receive(s, RM__MOVER_EVENT__BODY_STORED);
        assert_true(e->stored->store_usec > (uint64_t) LARGE_PAGES * PAGE * 1000000 / s->bytes_per_sec * 2 / 3);
        rm__mover_event__free_unpacked(e, NULL);
        load_make(s, 1);
        compare(s->bed, child.pid);
        end_well(s);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* Then it is stored in the freeze. */
static void test_little_memory(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_all_when_reported);
        static const uint64_t limits[] = { 0, 1 << 20, 5 << 20 };
        Rm__MoverEvent *e;

        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                s->memory_bytes = limits[i];
                save_begin(s, NULL);
                checkpoint_ahead(s, i + 1, &child.pid, 1);
                let_write(&child);
                stand_still(child.pid);
                checkpoint_freeze(s);
                e = save_receive(s, RM__MOVER_EVENT__BODY_CAPTURED);
                assert_true(e->captured->figures->last_bytes >= LARGE_PAGES * PAGE);
                assert_in_range(e->captured->in_memory_bytes, limits[i] > CHUNK_BYTES ? limits[i] - CHUNK_BYTES : 0, limits[i]);
                rm__mover_event__free_unpacked(e, NULL);
                save_expect(s, RM__MOVER_EVENT__BODY_STORED);
                load_make(s, i + 1);
                compare(s->bed, child.pid);
                let_run(child.pid);
                end_well(s);
        }
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- ends ---- */

enum phase { READY, ROUND, PRECOPIED, STARTED, CAPTURED, STORED, PHASES };

/* So slow that a round, and what is stored after the freeze, takes a second. */
static void go_to(struct saved *s, enum phase phase, uint64_t number, const struct child *child) {
        s->bytes_per_sec = phase == ROUND || phase == CAPTURED ? LARGE_PAGES * PAGE : 0;
        save_begin(s, NULL);
        if (phase == READY)
                return;
        say_checkpoint(s, number, &child->pid, 1);
        if (phase == ROUND)
                (void) usleep(200000);
        if (phase <= ROUND)
                return;
        save_expect(s, RM__MOVER_EVENT__BODY_PRECOPIED);
        if (phase == PRECOPIED)
                return;
        let_write(child);
        stand_still(child->pid);
        pair_say_start(&s->pair);
        group_dump(s->bed->images);
        if (phase > STARTED) {
                say_captured(s);
                save_expect(s, RM__MOVER_EVENT__BODY_CAPTURED);
        }
        let_run(child->pid);
        if (phase == STORED)
                save_expect(s, RM__MOVER_EVENT__BODY_STORED);
}

/* The program goes on as it was, and can be saved after that. */
static void good_one(struct saved *s, uint64_t number, const struct child *child) {
        check_free(child);
        let_write(child);
        s->bytes_per_sec = 0;
        save_begin(s, NULL);
        make_and_compare(s, number, &child->pid, 1);
        end_well(s);
}

static void test_aborts(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_all_when_reported);
        uint64_t number = 1;

        for (enum phase phase = READY; phase < PHASES; phase++) {
                cleanup_free char *expected = NULL;
                cleanup_free char *found = NULL;

                go_to(s, phase, number, &child);
                pair_say_abort(&s->pair, PAIR_SEND, "enough");
                save_fails(s, "enough");
                expected = number == 1 && phase < STORED ? xstrdup("") : NULL;
                found = stored_numbers(s);
                if (expected)
                        assert_string_equal(found, expected);
                number += phase == STORED;
                if (phase == STORED || phase == CAPTURED)
                        good_one(s, number++, &child);
        }
        numbers_are(s, "1 2 3 ");
        assert_int_equal(child_end(&child), SIGKILL);
}

/* CRIU was told of a file that nobody had open: what it has copied is not stored. */
static void test_unknown_file(void **state) {
        static const uint8_t entry[] = { 23,  0,   0,   0,   0x08, 1,   0x10, 3,   0x1a, 17,  0x08, 3,    0x32, 11,
                                         '/', 'e', 't', 'c', '/',  's', 'h',  'a', 'd',  'o', 'w',  0x10, 0 };
        struct saved *s = *state;
        struct child child = child_begin(write_all_when_reported);

        save_begin(s, NULL);
        checkpoint_ahead(s, 1, &child.pid, 1);
        stand_still(child.pid);
        pair_say_start(&s->pair);
        group_dump_files(s->bed->images, entry, sizeof(entry));
        say_captured(s);
        save_expect(s, RM__MOVER_EVENT__BODY_CAPTURED);
        save_fails(s, "/etc/shadow, which no process had open");
        numbers_are(s, "");
        let_run(child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_releases(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_all_when_reported);

        for (enum phase phase = READY; phase < PHASES; phase++) {
                go_to(s, phase, phase + 1, &child);
                say_release(s);
                if (phase == ROUND || phase == PRECOPIED || phase == STARTED) {
                        save_fails(s, "released");
                        check_free(&child);
                        continue;
                }
                save_expect(s, RM__MOVER_EVENT__BODY_RELEASED);
                check_free(&child);
                if (phase == CAPTURED)
                        save_expect(s, RM__MOVER_EVENT__BODY_STORED);
                assert_int_equal(save_end(s), 0);
        }
        numbers_are(s, "5 6 ");
        good_one(s, 7, &child);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* At each point of a second checkpoint, which has no part in what is there then. */
static void test_killed(void **state) {
        static const char *const points[] = {
                "begin", "precopy", "start", "images", "pages", "trees", "captured", "store", "commit"
        };
        struct saved *s = *state;
        struct child child = child_begin(write_all_when_reported);

        save_begin(s, NULL);
        make_and_compare(s, 1, &child.pid, 1);
        end_well(s);
        for (size_t i = 0; i < 2 * ARRAY_SIZE(points); i++) {
                bool killed = i % 2;
                cleanup_free char *fault = xasprintf("RM_FAULT=mover.save.%s:%s", points[i / 2], killed ? "kill" : "fail");

                save_begin(s, fault);
                say_checkpoint(s, 2, &child.pid, 1);
                if (i / 2 >= 2) { /* which is behind what goes ahead */
                        save_expect(s, RM__MOVER_EVENT__BODY_PRECOPIED);
                        pair_say_start(&s->pair);
                        if (i / 2 > 2)
                                group_dump(s->bed->images);
                        say_captured(s);
                }
                if (killed) {
                        Rm__MoverEvent *e = pair_expect(&s->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_STORED);

                        assert_null(e);
                        assert_int_equal(save_end(s), 128 + SIGKILL);
                } else {
                        save_fails(s, "fault point");
                }
                check_free(&child);
                numbers_are(s, "1 ");
        }
        good_one(s, 2, &child);
        numbers_are(s, "1 2 ");
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- loading ---- */

static void load_fails(struct saved *s, uint64_t number, const char *text) {
        load_begin(s, number);
        expect_failure(s->bed, PAIR_SEND, text, NULL, NULL);
        pair_finish(&s->bed->pair, s->bed->codes);
        assert_int_equal(s->bed->codes[PAIR_SEND], 1);
        assert_int_equal(s->bed->codes[PAIR_RECEIVE], 1);
}

static void test_damaged(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_few);
        cleanup_free char *other_key = xasprintf("%s/other", s->bed->base);
        cleanup_free char *pack = xasprintf("%s/pack-1", s->store);

        save_begin(s, NULL);
        /* The child is frozen from here on: the loaded pages at the end are compared with the same
         * memory. */
        rm__mover_event__free_unpacked(checkpoint_make(s, 1, &child.pid, 1), NULL);
        end_well(s);
        load_fails(s, 2, "2");
        assert_int_equal(write_file_atomic(other_key, "fedcba9876543210fedcba9876543210", 32, 0600, false), 0);
        s->key_file = other_key;
        load_fails(s, 1, "manifest-1");
        s->key_file = s->bed->key_file;
        store_flip(s, "pack-1", 1 << 20);
        load_fails(s, 1, "pack-1");
        store_flip(s, "pack-1", 1 << 20);
        store_flip(s, "manifest-1", 100);
        load_fails(s, 1, "manifest-1");
        store_flip(s, "manifest-1", 100);
        load_make(s, 1);
        compare(s->bed, child.pid);
        assert_int_equal(unlink(pack), 0);
        load_fails(s, 1, "pack-1");
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- copies ---- */

/* Copies the checkpoint to another directory; the manifest has a name there that is invalid until
 * rmd gives it the right one. */
static uint64_t copy(struct saved *s, uint64_t number, const char *to, char **have, size_t n_have) {
        static const char token[] = TOKEN;
        const ProtobufCBinaryData token_data = { .data = (uint8_t *) (uintptr_t) token, .len = sizeof(token) - 1 };
        cleanup_free char *pack = xasprintf("pack-%u", (unsigned) number);
        cleanup_free char *manifest = xasprintf("manifest-%u", (unsigned) number);
        char *roles[] = { (char *) "pack-1", pack, manifest };
        Rm__MoverCommand command = RM__MOVER_COMMAND__INIT;
        Rm__MoverReceive receive = RM__MOVER_RECEIVE__INIT;
        Rm__MoverLoad load = RM__MOVER_LOAD__INIT;
        Rm__MoverStore store;
        Rm__MoverFile files[3], *list[3];
        cleanup_free char *temporary = xasprintf("%s/.manifest", to);
        cleanup_free char *final = xasprintf("%s/manifest-%u", to, (unsigned) number);
        Rm__MoverEvent *e;
        uint64_t bytes;

        for (size_t i = 0; i < 3; i++) {
                files[i] = (Rm__MoverFile) RM__MOVER_FILE__INIT;
                files[i].role = roles[i];
                files[i].path = i < 2 ? xasprintf("%s/%s", to, roles[i]) : xstrdup(temporary);
                list[i] = &files[i];
        }
        pair_start_as(&s->bed->pair, mover_load, false, NULL);
        receive.address = (char *) "127.0.0.1";
        receive.token = token_data;
        receive.key_file = s->bed->key_file;
        receive.cluster = (char *) "test";
        receive.files = list;
        receive.n_files = 3;
        receive.sync = true;
        command.body_case = RM__MOVER_COMMAND__BODY_RECEIVE;
        command.receive = &receive;
        pair_say(&s->bed->pair, PAIR_RECEIVE, &command);
        e = pair_expect(&s->bed->pair, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_LISTENING);
        assert_non_null(e);
        store_fill(s, &store);
        load.store = &store;
        load.port = e->listening->port;
        rm__mover_event__free_unpacked(e, NULL);
        load.checkpoint = number;
        load.host = (char *) "127.0.0.1";
        load.token = token_data;
        load.files_only = true;
        load.have = have;
        load.n_have = n_have;
        command.body_case = RM__MOVER_COMMAND__BODY_LOAD;
        command.load = &load;
        pair_say(&s->bed->pair, PAIR_SEND, &command);
        e = pair_expect(&s->bed->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        assert_non_null(e);
        bytes = e->acknowledged->figures->raw_bytes;
        rm__mover_event__free_unpacked(e, NULL);
        expect(s->bed, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_RECEIVED);
        pair_finish(&s->bed->pair, s->bed->codes);
        for (size_t i = 0; i < 3; i++)
                free(files[i].path);
        assert_int_equal(rename(temporary, final), 0);
        return bytes;
}

static void test_copies(void **state) {
        struct saved *s = *state;
        struct child child = child_begin(write_few);
        cleanup_free char *to = xasprintf("%s/copy", s->bed->base);
        char *have[] = { (char *) "pack-1", (char *) "manifest-1" };
        char *store = s->store;
        uint64_t all_bytes, new_bytes;

        save_begin(s, NULL);
        make_and_compare(s, 1, &child.pid, 1);
        let_write(&child);
        rm__mover_event__free_unpacked(checkpoint_make(s, 2, &child.pid, 1), NULL);
        end_well(s);
        assert_int_equal(mkdir(to, 0700), 0);
        all_bytes = copy(s, 1, to, NULL, 0);
        new_bytes = copy(s, 2, to, have, 2);
        print_message("%u kB, and then %u kB were copied\n", (unsigned) (all_bytes / 1000), (unsigned) (new_bytes / 1000));
        assert_true(new_bytes < OTHERS_BYTES);
        assert_int_equal(remove_tree(store), 0);
        s->store = to;
        numbers_are(s, "1 2 ");
        load_make(s, 2);
        compare(s->bed, child.pid);
        s->store = store;
        assert_int_equal(child_end(&child), SIGKILL);
}

/* ---- files ---- */

static void tree_put(const struct saved *s, const char *name, const void *data, size_t size_bytes) {
        cleanup_free char *path = xasprintf("%s/%s", s->bed->tree_from, name);

        assert_int_equal(write_file_atomic(path, data, size_bytes, 0600, false), 0);
}

static void tree_check(const struct saved *s, const char *name, const void *data, size_t size_bytes) {
        cleanup_free char *path = xasprintf("%s/%s", s->bed->tree_to, name);
        cleanup_free char *found = NULL;
        size_t found_bytes = 0;

        assert_int_equal(read_file(path, 64 << 20, &found, &found_bytes), 0);
        assert_int_equal(found_bytes, size_bytes);
        assert_memory_equal(found, data, size_bytes);
}

/* The files of trees, ahead and small, of each checkpoint. */
static void test_files(void **state) {
        enum { BIG = 3 << 20 };
        struct saved *s = *state;
        struct child child = child_begin(write_few);
        cleanup_free char *big = xcalloc(1, BIG);

        save_begin(s, NULL);
        for (uint64_t number = 1; number <= 3; number++) {
                cleanup_free char *small = xasprintf("small %u", (unsigned) number);

                memset(big + number * (256 << 10), (int) number, 256 << 10);
                tree_put(s, "big", big, BIG);
                tree_put(s, "small", small, strlen(small));
                make_and_compare(s, number, &child.pid, 1);
                tree_check(s, "big", big, BIG);
                tree_check(s, "small", small, strlen(small));
        }
        end_well(s);
        assert_int_equal(child_end(&child), SIGKILL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_programs, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_little_is_written, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_mappings_change, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_processes_come_and_go, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_a_pid_is_used_again, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_untracked, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_rate, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_little_memory, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_aborts, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_unknown_file, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_releases, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_killed, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_damaged, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_copies, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_files, saved_setup, saved_teardown),
        };

        priority_normal();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
