/* Uses memory of every kind that a program may have, and verifies it all the time: each page has
 * what was written to it last, or zeros. Ranks that are neighbours (0 and 1, 2 and 3, ...) also
 * read and write each other's memory.
 *
 * usage: kinds [--pages=N] --stop-file=F     N pages of each kind (default 512) */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "common.h"

#define RESERVED_BYTES (UINT64_C(300) << 30)

enum {
        PAGE = 4096,
        HUGE_PAGES = 512,
        BLOCK = 16, /* pages that are mapped, protected or given back at once */
        CHECKS_A_STEP = 24,
        WRITES_A_STEP = 8,
        CHILD_MSEC = 100,
        STACK_PAGES = 32,
};

struct area {
        const char *name;
        unsigned char *base;
        size_t pages;
        uint32_t *generation; /* of each page; 0: zeros */
        uint64_t random;
        uint64_t checked;
};

static int rank, size;

static _Noreturn void damaged(const struct area *a, size_t page, const char *how) {
        (void) fprintf(stderr, "kinds: rank %d: page %zu of %s %s\n", rank, page, a->name, how);
        _exit(9);
}

static void need(bool good, const char *what) {
        if (good)
                return;
        (void) fprintf(stderr, "kinds: rank %d: %s: %s\n", rank, what, strerror(errno));
        _exit(8);
}

/* ---- contents ---- */

static void contents(const struct area *a, int owner, size_t page, uint64_t ret[PAGE / 8]) {
        uint64_t seed = ((uint64_t) a->generation[page] << 32) ^ ((uint64_t) owner << 24) ^
                        ((uint64_t) (unsigned char) a->name[0] << 16) ^ page;

        if (a->generation[page] == 0)
                memset(ret, 0, PAGE);
        for (size_t i = 0; a->generation[page] > 0 && i < PAGE / 8; i++)
                ret[i] = random_next(&seed);
}

static size_t draw(struct area *a, size_t limit) {
        return (size_t) (random_next(&a->random) % limit);
}

static void check(struct area *a, size_t page) {
        uint64_t requested[PAGE / 8];

        contents(a, rank, page, requested);
        if (memcmp(requested, a->base + page * PAGE, PAGE) != 0)
                damaged(a, page, "is damaged");
        a->checked++;
}

static void check_all(struct area *a) {
        for (size_t page = 0; page < a->pages; page++)
                check(a, page);
}

static void write_page(struct area *a, size_t page) {
        uint64_t fresh[PAGE / 8];

        a->generation[page]++;
        contents(a, rank, page, fresh);
        memcpy(a->base + page * PAGE, fresh, PAGE);
}

static void write_some(struct area *a) {
        for (int i = 0; i < WRITES_A_STEP; i++)
                write_page(a, draw(a, a->pages));
}

static void forget(struct area *a, size_t first, size_t pages) {
        memset(a->generation + first, 0, pages * sizeof(*a->generation));
}

static void *map(void *at, size_t pages, int flags) {
        void *base = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags | (at ? MAP_FIXED : 0), -1, 0);

        need(base != MAP_FAILED, "mmap");
        return base;
}

/* ---- kinds: begin, step ---- */

static void begin_private(struct area *a) {
        a->base = map(NULL, a->pages, MAP_PRIVATE | MAP_ANONYMOUS);
}

static void begin_shared(struct area *a) {
        a->base = map(NULL, a->pages, MAP_SHARED | MAP_ANONYMOUS);
}

static void begin_huge(struct area *a) {
        unsigned char *base = map(NULL, a->pages + HUGE_PAGES, MAP_PRIVATE | MAP_ANONYMOUS);
        uintptr_t bytes = (uintptr_t) HUGE_PAGES * PAGE;

        a->base = base + (bytes - (uintptr_t) base % bytes) % bytes;
        (void) madvise(a->base, a->pages * PAGE, MADV_HUGEPAGE);
}

static void begin_locked(struct area *a) {
        begin_private(a);
        a->pages = BLOCK;
        need(mlock(a->base, a->pages * PAGE) == 0, "mlock");
}

static void begin_file(struct area *a) {
        char name[] = "/tmp/kinds.XXXXXX";
        int fd = mkstemp(name);

        need(fd >= 0 && ftruncate(fd, (off_t) a->pages * PAGE) == 0, "make a file in /tmp");
        a->base = mmap(NULL, a->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        need(a->base != MAP_FAILED, "mmap of a file");
        (void) close(fd);
}

/* Memory behind the heap is taken by others that call sbrk(2). */
static void begin_heap(struct area *a) {
        uintptr_t old = (uintptr_t) sbrk((intptr_t) (a->pages + 1) * PAGE);

        need(old != UINTPTR_MAX, "sbrk");
        a->base = (unsigned char *) ((old + PAGE - 1) / PAGE * PAGE);
}

/* Far more address space than there is memory, as runtimes of languages reserve it; some pages in
 * its midst are used. */
static void begin_reserved(struct area *a) {
        unsigned char *base = mmap(NULL, RESERVED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        need(base != MAP_FAILED, "mmap of a reservation");
        a->base = base + RESERVED_BYTES / 2;
        need(mprotect(a->base, a->pages * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

static void begin_overcommitted(struct area *a) {
        unsigned char *base =
                mmap(NULL, RESERVED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        need(base != MAP_FAILED, "mmap without reservation");
        a->base = base + RESERVED_BYTES / 2;
}

/* All of the area has one protection again, with pages in it. */
static void step_give_up_access(struct area *a) {
        need(mprotect(a->base, a->pages * PAGE, PROT_NONE) == 0, "mprotect");
        pause_usec(2000);
        need(mprotect(a->base, a->pages * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

static void step_move(struct area *a) {
        unsigned char *place = map(NULL, a->pages, MAP_PRIVATE | MAP_ANONYMOUS);

        need(mremap(a->base, a->pages * PAGE, a->pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place, "mremap");
        a->base = place;
}

static void step_resize(struct area *a) {
        size_t pages = a->pages / 2 + draw(a, a->pages / 2);

        a->base = mremap(a->base, a->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
        need(a->base != MAP_FAILED, "mremap");
        a->base = mremap(a->base, pages * PAGE, a->pages * PAGE, MREMAP_MAYMOVE);
        need(a->base != MAP_FAILED, "mremap");
        forget(a, pages, a->pages - pages);
}

static void step_protect(struct area *a) {
        static const int protections[] = { PROT_NONE, PROT_READ };
        size_t first = draw(a, a->pages / BLOCK) * BLOCK;

        need(mprotect(a->base + first * PAGE, BLOCK * PAGE, protections[draw(a, 2)]) == 0, "mprotect");
        pause_usec(2000);
        need(mprotect(a->base + first * PAGE, BLOCK * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
        for (size_t i = 0; i < BLOCK; i++)
                check(a, first + i);
}

static void step_give_back(struct area *a) {
        size_t first = draw(a, a->pages / BLOCK) * BLOCK;

        need(madvise(a->base + first * PAGE, BLOCK * PAGE, MADV_DONTNEED) == 0, "madvise");
        forget(a, first, BLOCK);
}

static void step_map_again(struct area *a) {
        size_t first = draw(a, a->pages / BLOCK) * BLOCK;

        need(munmap(a->base + first * PAGE, BLOCK * PAGE) == 0, "munmap");
        (void) map(a->base + first * PAGE, BLOCK, MAP_PRIVATE | MAP_ANONYMOUS);
        forget(a, first, BLOCK);
}

/* The kernel writes a page, not the program. */
static void step_read(struct area *a) {
        size_t page = draw(a, a->pages);
        uint64_t fresh[PAGE / 8];
        int ends[2];

        need(pipe(ends) == 0, "pipe");
        a->generation[page]++;
        contents(a, rank, page, fresh);
        need(write(ends[1], fresh, PAGE) == PAGE, "write to a pipe");
        pause_usec(1000);
        need(read(ends[0], a->base + page * PAGE, PAGE) == PAGE, "read from a pipe");
        (void) close(ends[0]);
        (void) close(ends[1]);
}

/* A child has what its parent had when it was made, while both write. */
static void step_fork(struct area *a) {
        static pid_t child;
        static int64_t until_usec;
        int status = 0;

        if (child > 0 && now_usec() < until_usec)
                return;
        if (child > 0)
                need(waitpid(child, &status, 0) == child && status == 0, "a child ended badly");
        until_usec = now_usec() + (int64_t) CHILD_MSEC * 1000;
        child = fork();
        need(child >= 0, "fork");
        if (child > 0)
                return;
        for (size_t page = 0; page < a->pages; page += 2)
                write_page(a, page);
        pause_usec((int64_t) CHILD_MSEC * 1000 / 2);
        check_all(a);
        _exit(0);
}

static const struct kind {
        const char *name; /* the first letters differ */
        void (*begin)(struct area *a);
        void (*step)(struct area *a); /* NULL: nothing but reads and writes */
} kinds[] = {
        { "private", begin_private, NULL },
        { "shared", begin_shared, NULL },
        { "huge pages", begin_huge, step_give_back },
        { "locked", begin_locked, NULL },
        { "file", begin_file, NULL },
        { "brk", begin_heap, NULL },
        { "moved", begin_private, step_move },
        { "resized", begin_private, step_resize },
        { "access changed", begin_private, step_protect },
        { "given back", begin_private, step_give_back },
        { "unmapped", begin_private, step_map_again },
        { "kernel writes", begin_private, step_read },
        { "copied by fork", begin_private, step_fork },
        { "in a reservation", begin_reserved, NULL },
        { "quiet reservation", begin_reserved, step_give_up_access },
        { "over-committed", begin_overcommitted, NULL },
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void area_begin(struct area *a, const char *name, size_t pages) {
        a->name = name;
        a->pages = pages;
        a->random = (uint64_t) rank * 31 + (unsigned char) name[0];
        a->generation = calloc(pages, sizeof(*a->generation));
        need(a->generation, "calloc");
}

static void step(struct area *a, const struct kind *kind) {
        for (int i = 0; i < CHECKS_A_STEP; i++)
                check(a, draw(a, a->pages));
        write_some(a);
        if (kind->step)
                kind->step(a);
}

/* ---- a thread, on its stack ---- */

static bool thread_ends;

static void *run_thread(void *ctx) {
        unsigned char stack[(STACK_PAGES + 1) * PAGE];
        struct area a = { 0 };
        uint64_t *ret_checked = ctx;

        area_begin(&a, "thread's stack", STACK_PAGES);
        a.base = stack + (PAGE - (uintptr_t) stack % PAGE) % PAGE;
        memset(stack, 0, sizeof(stack));
        while (!__atomic_load_n(&thread_ends, __ATOMIC_ACQUIRE)) {
                write_some(&a);
                check_all(&a);
                pause_usec(10000);
        }
        *ret_checked = a.checked;
        return NULL;
}

/* ---- the neighbour's memory ---- */

struct neighbour {
        int64_t pid;
        uint64_t base;
        uint64_t written;
};

static struct neighbour meet(int other, const struct area *read, const struct area *written) {
        struct neighbour here = { .pid = getpid(), .base = (uintptr_t) read->base, .written = (uintptr_t) written->base };
        struct neighbour there;

        MPI_Sendrecv(&here, sizeof(here), MPI_BYTE, other, 1, &there, sizeof(there), MPI_BYTE, other, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        return there;
}

/* `a` is written once only, so that of the neighbour has what it had at first. */
static void read_neighbour(struct area *a, int other, const struct neighbour *there) {
        uint64_t seen[PAGE / 8], requested[PAGE / 8];
        size_t page = draw(a, a->pages);
        struct iovec local = { .iov_base = seen, .iov_len = PAGE };
        struct iovec remote = { .iov_base = (void *) (uintptr_t) (there->base + page * PAGE), .iov_len = PAGE };

        need(process_vm_readv((pid_t) there->pid, &local, 1, &remote, 1, 0) == PAGE, "process_vm_readv");
        contents(a, other, page, requested);
        if (memcmp(seen, requested, PAGE) != 0)
                damaged(a, page, "is not what the neighbour wrote");
        a->checked++;
}

/* `a`: what this rank has written there, which only the neighbour has: pages that are read and
 * pages that are written, by a call each. */
static void write_neighbour(struct area *a, const struct neighbour *there) {
        uint64_t seen[PAGE / 8], requested[PAGE / 8];

        for (int i = 0; i < 2; i++) {
                size_t page = draw(a, a->pages);
                struct iovec local = { .iov_base = seen, .iov_len = PAGE };
                struct iovec remote = { .iov_base = (void *) (uintptr_t) (there->written + page * PAGE), .iov_len = PAGE };

                contents(a, rank, page, requested);
                need(process_vm_readv((pid_t) there->pid, &local, 1, &remote, 1, 0) == PAGE, "process_vm_readv");
                if (memcmp(seen, requested, PAGE) != 0)
                        damaged(a, page, "is not what this rank wrote there");
                a->checked++;
                a->generation[page]++;
                contents(a, rank, page, seen);
                need(process_vm_writev((pid_t) there->pid, &local, 1, &remote, 1, 0) == PAGE, "process_vm_writev");
        }
}

int main(int argc, char **argv) {
        size_t pages = (size_t) option_number(argc, argv, "pages", 512) / BLOCK * BLOCK;
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        struct area areas[KINDS] = { 0 }, common = { 0 }, written = { 0 };
        uint64_t checked = 0;
        struct neighbour there;
        pthread_t thread;
        int other, go = 1;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        other = rank ^ 1;
        need(stop_file && pages > 0 && size % 2 == 0, "an even number of ranks, --pages and --stop-file");
        for (size_t k = 0; k < KINDS; k++) {
                area_begin(&areas[k], kinds[k].name, pages);
                kinds[k].begin(&areas[k]);
        }
        area_begin(&common, "neighbour's", pages);
        begin_private(&common);
        for (size_t page = 0; page < pages; page++)
                write_page(&common, page);
        area_begin(&written, "written there", pages);
        begin_private(&written);
        there = meet(other, &common, &written);
        need(pthread_create(&thread, NULL, run_thread, &checked) == 0, "pthread_create");
        if (rank == 0) {
                printf("kinds: running\n");
                (void) fflush(stdout);
        }
        while (go) {
                for (size_t k = 0; k < KINDS; k++) {
                        step(&areas[k], &kinds[k]);
                        read_neighbour(&common, other, &there);
                        write_neighbour(&written, &there);
                        pause_usec(1000);
                }
                go = access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        __atomic_store_n(&thread_ends, true, __ATOMIC_RELEASE);
        (void) pthread_join(thread, NULL);
        for (size_t k = 0; k < KINDS; k++) {
                check_all(&areas[k]);
                checked += areas[k].checked;
        }
        printf("kinds: rank %d good, %llu pages verified, %llu of its neighbour\n", rank, (unsigned long long) checked,
               (unsigned long long) (common.checked + written.checked));
        MPI_Finalize();
        return 0;
}
