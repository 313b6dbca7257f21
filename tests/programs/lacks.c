/* Uses memory that it lacks, after a restore that gives it back bit by bit, in every way that a
 * program and the kernel for it can.
 *
 * usage: lacks MB       prints "ready"; then for each line on standard input "good" when all of its
 *                       memory has been as it was
 *
 * It has three processes: itself, a partner with a quarter of the memory, and a holder with as
 * much, which waits for its end and never touches it. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "common.h"

enum { PAGE = 4096, THREADS = 4, BLOCK = 64 };

struct shared {
        pthread_mutex_t robust; /* the holder has it */
        volatile int held;
};

struct memory {
        unsigned char *base;
        size_t pages;
};

struct world {
        struct memory own;
        struct memory partners; /* at the same addresses in the partner */
        struct shared *shared;
        pid_t partner;
        pid_t holder;
};

static void must(bool good, const char *what) {
        if (good)
                return;
        printf("BAD: %s (%s)\n", what, strerror(errno));
        (void) fflush(stdout);
        _exit(9);
}

static uint64_t word_of(uint64_t page) {
        uint64_t seed = page;

        return random_next(&seed);
}

/* Some pages are zeros, and were never written. */
static bool page_good(const void *at, uint64_t page) {
        const uint64_t *words = at;

        for (size_t i = 0; i < PAGE / 8; i++)
                if (words[i] != (page % 23 == 7 ? 0 : word_of(page) + i))
                        return false;
        return true;
}

static struct memory make_memory(size_t mb) {
        struct memory m = { .pages = mb * 256 };

        m.base = mmap(NULL, m.pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(m.base != MAP_FAILED, "memory");
        for (size_t page = 0; page < m.pages; page++)
                for (size_t i = 0; i < PAGE / 8 && page % 23 != 7; i++)
                        ((uint64_t *) (void *) (m.base + page * PAGE))[i] = word_of(page) + i;
        return m;
}

static void check_pages(const struct memory *m, size_t from, size_t to, const char *who) {
        for (size_t page = from; page < to; page++)
                must(page_good(m->base + page * PAGE, page), who);
}

/* ---- the other processes ---- */

static pid_t start_partner(struct memory *m, size_t mb) {
        int ends[2];
        pid_t pid;

        must(pipe(ends) == 0, "pipe");
        pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) {
                *m = make_memory(mb);
                must(write(ends[1], &m->base, sizeof(m->base)) == sizeof(m->base), "partner");
                for (;;)
                        (void) pause();
        }
        must(read(ends[0], &m->base, sizeof(m->base)) == sizeof(m->base), "partner");
        m->pages = mb * 256;
        (void) close(ends[0]);
        (void) close(ends[1]);
        return pid;
}

/* The holder's other memory lies below the C library's record of its thread: that would come
 * last. */
static pid_t start_holder(struct shared *shared, size_t mb) {
        pid_t pid = fork();

        must(pid >= 0, "fork");
        if (pid == 0) {
                (void) make_memory(mb);
                must(pthread_mutex_lock(&shared->robust) == 0, "lock");
                shared->held = 1;
                for (;;)
                        (void) pause();
        }
        while (!shared->held)
                pause_usec(1000);
        return pid;
}

static struct shared *make_shared(void) {
        struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pthread_mutexattr_t attributes;

        must(shared != MAP_FAILED && pthread_mutexattr_init(&attributes) == 0, "shared memory");
        must(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0, "shared mutex");
        must(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0, "robust mutex");
        must(pthread_mutex_init(&shared->robust, &attributes) == 0, "mutex");
        return shared;
}

/* ---- ways of use ---- */

/* The kernel must find in the holder's memory that it has the mutex, when it ends. */
static void kill_holder(struct world *w) {
        struct timespec limit;

        if (w->holder == 0)
                return;
        must(kill(w->holder, SIGKILL) == 0 && waitpid(w->holder, NULL, 0) == w->holder, "end of the holder");
        must(clock_gettime(CLOCK_REALTIME, &limit) == 0, "clock");
        limit.tv_sec += 5;
        must(pthread_mutex_timedlock(&w->shared->robust, &limit) == EOWNERDEAD, "robust mutex of a process that has ended");
        w->holder = 0;
}

static void read_partner(const struct world *w) {
        enum { STRIDE = 7 };
        unsigned char data[PAGE];

        for (size_t page = 0; page < w->partners.pages; page += STRIDE) {
                struct iovec to = { data, PAGE };
                struct iovec from = { w->partners.base + page * PAGE, PAGE };

                must(process_vm_readv(w->partner, &to, 1, &from, 1, 0) == PAGE, "process_vm_readv");
                must(page_good(data, page), "memory of the partner");
        }
}

static void let_kernel_read(const struct memory *m) {
        unsigned char data[PAGE];
        int ends[2];

        must(pipe(ends) == 0, "pipe");
        for (size_t page = m->pages / 2; page < m->pages; page += 61) {
                must(write(ends[1], m->base + page * PAGE, PAGE) == PAGE, "write");
                must(read(ends[0], data, PAGE) == PAGE && page_good(data, page), "what write() took from memory");
        }
        /* Into a page that is missing: the rest of it must come all the same. */
        for (size_t page = m->pages / 2 + 1; page < m->pages; page += 61) {
                unsigned char *at = m->base + page * PAGE + 100;
                uint64_t word = page % 23 == 7 ? 0 : word_of(page) + 12;

                must(write(ends[1], (char *) &word + 4, 4) == 4 && read(ends[0], at, 4) == 4, "read");
        }
        (void) close(ends[0]);
        (void) close(ends[1]);
}

static void wait_on_futex(const struct memory *m) {
        for (size_t page = m->pages / 3; page < m->pages; page += 331) {
                uint32_t *word = (uint32_t *) (void *) (m->base + page * PAGE);
                uint32_t now = page % 23 == 7 ? 0 : (uint32_t) word_of(page);

                must(syscall(SYS_futex, word, FUTEX_WAIT, now + 1, NULL, NULL, 0) < 0 && errno == EAGAIN, "futex");
        }
}

static void *check_all(void *ctx) {
        const struct memory *m = ctx;

        check_pages(m, 0, m->pages, "memory, in a thread");
        return NULL;
}

static void run_threads(struct memory *m) {
        pthread_t threads[THREADS];

        for (size_t i = 0; i < THREADS; i++)
                must(pthread_create(&threads[i], NULL, check_all, m) == 0, "thread");
        for (size_t i = 0; i < THREADS; i++)
                must(pthread_join(threads[i], NULL) == 0, "thread");
}

static pid_t fork_check(const struct memory *m) {
        pid_t pid = fork();

        must(pid >= 0, "fork");
        if (pid == 0) {
                for (size_t page = 0; page < m->pages; page += 5)
                        must(page_good(m->base + page * PAGE, page), "memory of a child");
                _exit(0);
        }
        return pid;
}

/* Moves a block away and back, gives one back to the kernel, and maps one anew; restores what was
 * there. */
static void change_mappings(const struct memory *m) {
        unsigned char *moved = m->base + m->pages * 3 / 4 / BLOCK * BLOCK * PAGE;
        unsigned char *given_back = moved + BLOCK * PAGE;
        unsigned char *again = moved + 2 * BLOCK * PAGE;
        unsigned char *elsewhere = mmap(NULL, BLOCK * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t first = (size_t) (moved - m->base) / PAGE;

        must(mremap(moved, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere, "mremap");
        for (size_t i = 0; i < BLOCK; i += 3)
                must(page_good(elsewhere + i * PAGE, first + i), "memory that has moved");
        must(mremap(elsewhere, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved, "mremap back");
        must(madvise(given_back, BLOCK * PAGE, MADV_DONTNEED) == 0, "madvise");
        must(mmap(again, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == again, "mmap");
        for (size_t i = 0; i < 2 * BLOCK; i++)
                for (size_t k = 0; k < PAGE; k += 512)
                        must(given_back[i * PAGE + k] == 0, "memory that was given back is not zero");
        for (size_t page = first + BLOCK; page < first + 3 * (size_t) BLOCK; page++)
                for (size_t i = 0; i < PAGE / 8 && page % 23 != 7; i++)
                        ((uint64_t *) (void *) (m->base + page * PAGE))[i] = word_of(page) + i;
}

static void use_all(struct world *w) {
        pid_t child;
        int status;

        kill_holder(w);
        read_partner(w);
        let_kernel_read(&w->own);
        wait_on_futex(&w->own);
        child = fork_check(&w->own);
        change_mappings(&w->own);
        run_threads(&w->own);
        must(waitpid(child, &status, 0) == child && status == 0, "child");
        check_pages(&w->own, 0, w->own.pages, "memory");
}

int main(int argc, char **argv) {
        size_t mb = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
        struct world w = { .shared = make_shared() };
        char line[64];

        w.holder = start_holder(w.shared, mb / 4);
        w.partner = start_partner(&w.partners, mb / 4);
        w.own = make_memory(mb);
        printf("ready\n");
        (void) fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                int64_t begin_usec = now_usec();

                use_all(&w);
                printf("good %lld usec\n", (long long) (now_usec() - begin_usec));
                (void) fflush(stdout);
        }
        (void) kill(w.partner, SIGKILL);
        return 0;
}
