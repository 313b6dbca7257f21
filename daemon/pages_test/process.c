#include "daemon/pages_test/process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/util.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

enum {
        PAGE = 4096,
        WORDS = PAGE / sizeof(uint64_t),
        SMALL = 16, /* pages */
        LARGE = PROCESS_LAZY_BYTES / PAGE,
};

/* Memory, and what its pages have: nothing was ever written into every eighth of them, and some are
 * given back when it changes. */
struct memory {
        const char *name;
        char *(*make)(size_t bytes); /* NULL: there is none of this kind here */
        size_t pages;
        int protection;  /* while it is not looked at */
        bool given_back; /* MADV_DONTNEED gives zeros */
        bool guarded;    /* some pages may not be touched, without being mappings of their own */
        char *at;
};

static char *map(size_t bytes, int flags, int fd) {
        char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

        return at == MAP_FAILED ? NULL : at;
}

static char *make_private(size_t bytes) {
        return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static char *make_heap(size_t bytes) {
        char *at = sbrk((intptr_t) bytes + PAGE);

        return at + (PAGE - (uintptr_t) at % PAGE) % PAGE;
}

static char *make_growing(size_t bytes) {
        return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1);
}

static char *make_not_inherited(size_t bytes) {
        char *at = make_private(bytes);

        return at && madvise(at, bytes, MADV_DONTFORK) == 0 ? at : NULL;
}

static char *make_named(size_t bytes) {
        char *at = make_private(bytes);

        (void) prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, bytes, "vdso"); /* not known to each kernel */
        return at;
}

static char *make_locked(size_t bytes) {
        char *at = make_private(bytes);

        return at && mlock(at, bytes) == 0 ? at : NULL;
}

static char *make_shared(size_t bytes) {
        return map(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static char *of_memfd(size_t bytes, int flags) {
        cleanup_close int fd = memfd_create("rm-pages-test", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

        return fd >= 0 && ftruncate(fd, (off_t) bytes) == 0 ? map(bytes, flags, fd) : NULL;
}

static char *make_memfd(size_t bytes) {
        return of_memfd(bytes, MAP_SHARED);
}

static char *make_private_memfd(size_t bytes) {
        return of_memfd(bytes, MAP_PRIVATE);
}

static char *make_zero(size_t bytes) {
        cleanup_close int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

        return map(bytes, MAP_PRIVATE, fd);
}

#define ALL (PROT_READ | PROT_WRITE)

static struct memory memories[] = {
        { "private memory", make_private, LARGE, ALL, true },
        { "the heap", make_heap, SMALL, ALL, true },
        { "memory with guard pages", make_private, SMALL, ALL, true, true },
        { "memory without access", make_private, SMALL, PROT_NONE, true },
        { "read-only memory", make_private, SMALL, PROT_READ, true },
        { "memory that grows downwards", make_growing, SMALL, ALL, true },
        { "memory that children do not get", make_not_inherited, SMALL, ALL, true },
        { "named memory", make_named, SMALL, ALL, true },
        { "locked memory", make_locked, SMALL, ALL, false },
        { "shared memory", make_shared, SMALL, ALL, false },
        { "memory of a file in memory", make_memfd, SMALL, ALL, false },
        { "private memory of a file in memory", make_private_memfd, SMALL, ALL, true },
        { "memory of /dev/zero", make_zero, SMALL, ALL, true },
        { "the stack", NULL, SMALL, ALL, true },
};

const char *process_memory_name(int status) {
        size_t i = (size_t) status - PROCESS_WRONG;

        return i < ARRAY_SIZE(memories) ? memories[i].name : "something";
}

static bool is_changed(size_t page) {
        return page % 16 == 1;
}

static bool is_given_back(const struct memory *memory, size_t page) {
        return memory->given_back && page % 16 == 9;
}

static bool is_untouched(size_t page) {
        return page % 8 == 3;
}

static uint64_t word_of(const struct memory *memory, size_t page, bool changed) {
        return ((uint64_t) (memory - memories) << 32 | page << 1 | changed) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static uint64_t *words_at(const struct memory *memory, size_t page) {
        return (uint64_t *) (void *) (memory->at + page * PAGE);
}

static void write_page(const struct memory *memory, size_t page, bool changed) {
        uint64_t *words = words_at(memory, page);

        for (size_t i = 0; i < WORDS; i++)
                words[i] = word_of(memory, page, changed) + i;
}

static bool is_guard(const struct memory *memory, size_t page) {
        return memory->guarded && page % 8 == 5;
}

static void fill(struct memory *memory) {
        for (size_t page = 0; page < memory->pages; page++) {
                if (!is_untouched(page))
                        write_page(memory, page, false);
                if (is_guard(memory, page) && madvise(memory->at + page * PAGE, PAGE, MADV_GUARD_INSTALL) < 0)
                        memory->guarded = false; /* this kernel has none */
        }
        (void) mprotect(memory->at, memory->pages * PAGE, memory->protection);
}

static void change(const struct memory *memory) {
        (void) mprotect(memory->at, memory->pages * PAGE, ALL);
        for (size_t page = 0; page < memory->pages; page++) {
                if (is_changed(page))
                        write_page(memory, page, true);
                if (is_given_back(memory, page))
                        (void) madvise(memory->at + page * PAGE, PAGE, MADV_DONTNEED);
        }
        (void) mprotect(memory->at, memory->pages * PAGE, memory->protection);
}

static bool is_right(const struct memory *memory) {
        (void) mprotect(memory->at, memory->pages * PAGE, ALL);
        for (size_t page = 0; page < memory->pages; page++) {
                bool empty = is_untouched(page) || is_given_back(memory, page);
                const uint64_t *words = words_at(memory, page);

                if (is_guard(memory, page)) {
                        if (madvise(memory->at + page * PAGE, PAGE, MADV_POPULATE_READ) == 0)
                                return false;
                        continue;
                }
                for (size_t i = 0; i < WORDS; i++)
                        if (words[i] != (empty ? 0 : word_of(memory, page, is_changed(page)) + i))
                                return false;
        }
        return true;
}

static void wait_for(int signal) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, signal);
        while (sigwaitinfo(&set, NULL) != signal)
                ;
}

_Noreturn void process_run(void) {
        char stack[(SMALL + 1) * PAGE];
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, PROCESS_CHANGE);
        sigaddset(&set, PROCESS_SCAN);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        memset(stack, 0, sizeof(stack));
        for (size_t i = 0; i < ARRAY_SIZE(memories); i++) {
                struct memory *memory = &memories[i];

                memory->at = memory->make ? memory->make(memory->pages * PAGE) : stack + PAGE - (uintptr_t) stack % PAGE;
                if (memory->at)
                        fill(memory);
                else if (i == 0)
                        _exit(PROCESS_CANNOT);
        }
        (void) raise(SIGSTOP);
        wait_for(PROCESS_CHANGE);
        for (size_t i = 0; i < ARRAY_SIZE(memories); i++)
                if (memories[i].at)
                        change(&memories[i]);
        (void) raise(SIGSTOP);
        wait_for(PROCESS_SCAN);
        for (size_t i = 0; i < ARRAY_SIZE(memories); i++)
                if (memories[i].at && !is_right(&memories[i]))
                        _exit(PROCESS_WRONG + (int) i);
        _exit(0);
}
