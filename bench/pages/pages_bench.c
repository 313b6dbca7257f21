/* Measures the cost of tracking: pages-bench [MIB] [REPETITIONS], as root. A child of MIB of memory
 * is tracked; prints the median of each step. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/passing.h"
#include "daemon/pages/serve.h"
#include "daemon/pages/track.h"

enum { PAGE = PAGES_PAGE_BYTES, REPETITIONS_MAX = 101, READ_BYTES = 1 << 20, PID = 1, FINISHED = 0x52535446 };

enum step {
        START,
        STOPPED,
        FIRST_ROUND,
        CLEAN_ROUND,
        CLEAN_LAST,
        PASS_PROTECTED,
        PASS_FREE,
        DIRTY_1_LAST,
        DIRTY_1_ROUND,
        DIRTY_ALL_LAST,
        DIRTY_ALL_ROUND,
        PRESENT,
        READ,
        WRITE,
        KEEP,
        ADOPT,
        SERVE,
        END,
        STEPS,
};

static const char *const names[STEPS] = {
        "start tracking",
        "  its threads stopped, at most",
        "first round: all told, all protected",
        "round, nothing written",
        "last, nothing written",
        "program writes each page, protected",
        "program writes each page, not protected",
        "last, 1 % written",
        "round, 1 % written",
        "last, all written",
        "round, all written",
        "presence",
        "read all pages",
        "write all into a store",
        "presence to the store",
        "take over the store",
        "serve all to a program that waits for none",
        "end tracking",
};

struct bench {
        size_t pages;
        struct track *track;
        struct page_store *store;
        uint64_t usec[STEPS][REPETITIONS_MAX];
        size_t repetition;
        uint8_t data[READ_BYTES];
        uint64_t reported;
        uint64_t write_usec;
};

static void need(bool condition, const char *what) {
        if (condition)
                return;
        (void) fprintf(stderr, "pages-bench: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void note(struct bench *b, enum step step, uint64_t usec) {
        b->usec[step][b->repetition] = usec;
}

/* ---- the program ---- */

/* Where neither this program nor another has anything. */
static char *map_area(size_t size_bytes) {
        union {
                uint64_t address;
                void *pointer;
        } at = { .address = UINT64_C(1) << 40 };
        void *area = mmap(at.pointer, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

        need(area == at.pointer, "mmap");
        return area;
}

static void write_each(char *area, size_t pages, size_t every) {
        for (size_t i = 0; i < pages; i += every)
                area[i * PAGE + 64]++;
}

/* For each byte, which says of how many pages one is written, it answers how long that took. */
static void program(int link, size_t pages) {
        char *area = map_area(pages * PAGE);
        uint8_t every = 0;
        uint64_t usec = 0;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        memset(area, 1, pages * PAGE);
        while (write_all(link, &usec, sizeof(usec)) == 0 && read_all(link, &every, 1) == 0) {
                uint64_t begin = now_usec();

                write_each(area, pages, every);
                usec = now_usec() - begin;
        }
        _exit(0);
}

static uint64_t let_write(int link, uint8_t every) {
        uint64_t usec = 0;

        need(write_all(link, &every, 1) == 0 && read_all(link, &usec, sizeof(usec)) == 0, "the program");
        return usec;
}

/* ---- steps ---- */

static int count_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct bench *b = ctx;

        (void) kind;
        b->reported += (end - start) / PAGE;
        return 0;
}

static int read_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct bench *b = ctx;

        (void) kind;
        for (uint64_t at = start; at < end; at += READ_BYTES) {
                size_t size = end - at < READ_BYTES ? end - at : READ_BYTES;
                uint64_t begin;

                need(track_read(b->track, at, b->data, size) == (ssize_t) size, "read");
                begin = now_usec();
                need(page_store_write(b->store, at, b->data, size) == 0, "store");
                b->write_usec += now_usec() - begin;
        }
        return 0;
}

static int keep_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct bench *b = ctx;

        (void) kind;
        return page_store_keep(b->store, start, end);
}

static void step(struct bench *b, enum step which, int (*round)(struct track *, track_run_cb, void *, struct rm_error *)) {
        struct rm_error err = { 0 };
        uint64_t begin = now_usec();

        b->reported = 0;
        need(round(b->track, count_run, b, &err) == 0, error_text(&err));
        note(b, which, now_usec() - begin);
}

static void rounds(struct bench *b, int link) {
        step(b, FIRST_ROUND, track_round);
        need(b->reported >= b->pages, "first round");
        step(b, CLEAN_ROUND, track_round);
        step(b, CLEAN_LAST, track_last);
        note(b, PASS_PROTECTED, let_write(link, 1));
        note(b, PASS_FREE, let_write(link, 1));
        step(b, DIRTY_ALL_LAST, track_last);
        step(b, DIRTY_ALL_ROUND, track_round);
        (void) let_write(link, 100);
        step(b, DIRTY_1_LAST, track_last);
        step(b, DIRTY_1_ROUND, track_round);
        step(b, PRESENT, track_present);
}

static void take_all(struct bench *b) {
        struct rm_error err = { 0 };
        struct page_store *other;
        uint64_t begin = now_usec();

        need(page_store_create("bench", &b->store) == 0, "store");
        b->write_usec = 0;
        need(track_present(b->track, read_run, b, &err) == 0, error_text(&err));
        note(b, READ, now_usec() - begin - b->write_usec);
        note(b, WRITE, b->write_usec);
        begin = now_usec();
        need(track_present(b->track, keep_run, b, &err) == 0 && page_store_drop_others(b->store) == 0, "presence");
        note(b, KEEP, now_usec() - begin);
        begin = now_usec();
        need(page_store_adopt(dup(page_store_fd(b->store)), &other) == 0, "adopt");
        note(b, ADOPT, now_usec() - begin);
        page_store_destroy(other);
}

/* ---- a program that has none of the pages ---- */

static void lazy(int link, uint64_t start, uint64_t end) {
        const uint64_t features =
                UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE;
        struct uffdio_api api = { .api = UFFD_API, .features = features };
        struct uffdio_register r = { .range = { .start = start, .len = end - start }, .mode = UFFDIO_REGISTER_MODE_MISSING };
        const int32_t pid = PID, finished = FINISHED;
        int uffd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        need((uint64_t) (uintptr_t) map_area(end - start) == start, "mmap");
        need(uffd >= 0 && ioctl(uffd, UFFDIO_API, &api) == 0 && ioctl(uffd, UFFDIO_REGISTER, &r) == 0, "userfaultfd");
        need(write_all(link, &pid, sizeof(pid)) == 0 && passing_send(link, "", 1, uffd) == 0 &&
                     write_all(link, &finished, sizeof(finished)) == 0,
             "say");
        (void) close(uffd);
        for (;;)
                (void) pause();
}

static int longest_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        uint64_t *longest = ctx;

        (void) kind;
        if (end - start > longest[1] - longest[0]) {
                longest[0] = start;
                longest[1] = end;
        }
        return 0;
}

static void serve_all(struct bench *b) {
        struct serve *serve = serve_create(NULL, NULL);
        struct rm_error err = { 0 };
        uint64_t range[2] = { 0 };
        int ends[2];
        pid_t pid;

        need(track_present(b->track, longest_run, range, &err) == 0, "presence");
        need(page_store_drop(b->store, range[1], STORE_END) == 0 && (range[0] == 0 || page_store_drop(b->store, 0, range[0]) == 0),
             "drop");
        need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
        pid = fork();
        if (pid == 0)
                lazy(ends[1], range[0], range[1]);
        serve_add(serve, PID, b->store);
        need(serve_accept(serve, ends[0], &err) == 0 && serve_run(serve, &err) == 0, error_text(&err));
        note(b, SERVE, serve_figures(serve)->usec);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(ends[0]);
        (void) close(ends[1]);
        serve_destroy(serve);
}

static void once(struct bench *b) {
        struct rm_error err = { 0 };
        uint64_t begin, usec;
        int ends[2], pidfd;
        pid_t pid;

        need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
        pid = fork();
        if (pid == 0) {
                (void) close(ends[0]);
                program(ends[1], b->pages);
        }
        pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        need(read_all(ends[0], &usec, sizeof(usec)) == 0 && pidfd >= 0, "the program");
        begin = now_usec();
        need(track_start(pidfd, 1U << MAP_KIND_LAZY, 1000000, &b->track, &err) == 0, error_text(&err));
        note(b, START, now_usec() - begin);
        note(b, STOPPED, track_figures(b->track)->stopped_usec);
        rounds(b, ends[0]);
        take_all(b);
        serve_all(b);
        begin = now_usec();
        track_end(b->track);
        note(b, END, now_usec() - begin);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(pidfd);
        (void) close(ends[0]);
        (void) close(ends[1]);
}

static int compare(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv) {
        struct bench *b = xcalloc(1, sizeof(*b));
        int64_t mib = 1024, repetitions = 5;
        size_t middle;

        if ((argc > 1 && parse_i64(argv[1], 1, 1 << 16, &mib) < 0) ||
            (argc > 2 && parse_i64(argv[2], 1, REPETITIONS_MAX, &repetitions) < 0) || argc > 3) {
                (void) fprintf(stderr, "usage: pages-bench [MIB] [REPETITIONS]\n");
                return 2;
        }
        b->pages = (size_t) mib * 256;
        middle = (size_t) repetitions / 2;
        for (b->repetition = 0; b->repetition < (size_t) repetitions; b->repetition++)
                once(b);
        printf("%lld MiB, median of %lld (least, most), ms\n", (long long) mib, (long long) repetitions);
        for (int i = 0; i < STEPS; i++) {
                qsort(b->usec[i], (size_t) repetitions, sizeof(b->usec[i][0]), compare);
                printf("%-45s %9.3f (%.3f, %.3f)\n", names[i], (double) b->usec[i][middle] / 1e3, (double) b->usec[i][0] / 1e3,
                       (double) b->usec[i][repetitions - 1] / 1e3);
        }
        free(b);
        return 0;
}
