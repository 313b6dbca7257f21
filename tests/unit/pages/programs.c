#include "programs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "common/util.h"
#include "daemon/pages/maps.h"

enum { PAGE = PAGES_PAGE_BYTES };

static uint32_t seed = 1;

static uint32_t draw(uint32_t limit) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % limit;
}

char *map_area(size_t pages) {
        char *area = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        child_assert(area != MAP_FAILED);
        return area;
}

void share_processor(uint32_t step, uint32_t every) {
        if (step % every == 0)
                (void) usleep(50);
}

/* The end of a step of programs whose step is a call or a few. */
static void end_step(void) {
        static uint32_t steps;

        share_processor(++steps, 8);
}

/* Some bytes of some of the pages. */
static void scribble(char *area, size_t pages, uint32_t times) {
        for (uint32_t i = 0; i < times; i++) {
                uint32_t *word = (uint32_t *) (void *) (area + (size_t) draw((uint32_t) pages) * PAGE) + draw(PAGE / 4);

                *word = draw(UINT32_MAX);
        }
}

static void write_pages(int link) {
        char *area = map_area(AREA_PAGES);

        memset(area, 7, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        for (;;) {
                scribble(area, AREA_PAGES, 100);
                end_step();
        }
}

static void *write_in_thread(void *ctx) {
        char *area = ctx;

        for (uint32_t i = 1;; i++) {
                area[(i * 7919U % AREA_PAGES) * PAGE + i % PAGE] = (char) i;
                share_processor(i, 4096);
        }
        return NULL;
}

static void threads(int link) {
        char *area = map_area(AREA_PAGES);
        pthread_t thread;

        for (int i = 0; i < 3; i++)
                child_assert(pthread_create(&thread, NULL, write_in_thread, area) == 0);
        child_ready(link);
        (void) write_in_thread(area);
}

/* Blocks go round through the slots, over each other's old places. */
static void remap(int link) {
        enum { SLOTS = 8, BLOCK = 32 };
        char *base = map_area((size_t) (SLOTS + 1) * BLOCK);
        char *spare = base + (size_t) SLOTS * BLOCK * PAGE;

        scribble(base, (size_t) SLOTS * BLOCK, 4000);
        child_ready(link);
        for (;;) {
                char *slot = base + (size_t) draw(SLOTS) * BLOCK * PAGE;
                char *hole;

                child_assert(mremap(slot, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, spare) == spare);
                hole = mmap(slot, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
                child_assert(hole == slot);
                if (draw(2) == 0)
                        scribble(hole, BLOCK, 5);
                if (draw(2) == 0)
                        child_assert(mremap(spare, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, hole) == hole);
                else
                        scribble(spare, BLOCK, 5);
                if (draw(2) == 0)
                        child_assert(mmap(spare, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                          0) == spare);
                end_step();
        }
}

static void give_back(int link) {
        char *area = map_area(AREA_PAGES);
        volatile char sum = 0;

        memset(area, 7, (size_t) AREA_PAGES * PAGE);
        child_ready(link);
        for (;;) {
                size_t first = draw(AREA_PAGES - 32);

                child_assert(madvise(area + first * PAGE, 32 * PAGE, draw(4) == 0 ? MADV_FREE : MADV_DONTNEED) == 0);
                /* Some are read before they are written again, some remain absent. */
                sum = (char) (sum + area[(first + draw(32)) * PAGE]);
                scribble(area + first * PAGE, 32, 8);
                end_step();
        }
}

static void grow(int link) {
        child_ready(link);
        for (;;) {
                char *at = sbrk(64 * PAGE);

                child_assert(at != MAP_FAILED); /* which is the same value */
                scribble(at, 63, 30);
                if (draw(3) != 0 || (uintptr_t) at % 128 < 64)
                        (void) sbrk(-64 * PAGE);
                (void) usleep(50);
        }
}

static void map_and_unmap(int link) {
        enum { SLOTS = 64, BLOCK = 16 };
        char *base = map_area((size_t) SLOTS * BLOCK);

        child_ready(link);
        for (;;) {
                char *slot = base + (size_t) draw(SLOTS) * BLOCK * PAGE;

                if (draw(2) == 0)
                        child_assert(munmap(slot, BLOCK * PAGE) == 0);
                child_assert(mmap(slot, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                             slot);
                scribble(slot, BLOCK, draw(12));
                end_step();
        }
}

/* The program protects memory, which it cannot read when it is copied. */
static void protect(int link) {
        static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
        char *area = map_area(AREA_PAGES);

        scribble(area, AREA_PAGES, 4000);
        child_ready(link);
        for (;;) {
                char *at = area + (size_t) draw(AREA_PAGES / 16) * 16 * PAGE;

                child_assert(mprotect(at, 16 * PAGE, PROT_READ | PROT_WRITE) == 0);
                scribble(at, 16, 4);
                child_assert(mprotect(at, 16 * PAGE, protections[draw(3)]) == 0);
                end_step();
        }
}

/* The kernel writes it, not the program. */
static void let_kernel_write(int link) {
        char *area = map_area(AREA_PAGES);
        int zero = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
        int ends[2];

        child_assert(zero >= 0 && pipe2(ends, O_CLOEXEC) == 0);
        child_ready(link);
        for (uint32_t i = 0;; i++) {
                char *at = area + (size_t) draw(AREA_PAGES - 2) * PAGE + draw(PAGE);

                child_assert(read(zero, at, 100) == 100);
                child_assert(write(ends[1], &i, sizeof(i)) == sizeof(i));
                at = area + (size_t) draw(AREA_PAGES - 1) * PAGE + draw(PAGE);
                child_assert(read(ends[0], at, sizeof(i)) == sizeof(i));
                end_step();
        }
}

static void huge(int link) {
        enum { HUGE_BYTES = 2 << 20 };
        char *area = map_area(5 * HUGE_BYTES / PAGE);

        area = (char *) (((uintptr_t) area + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES); /* NOLINT(performance-no-int-to-ptr) */
        (void) madvise(area, (size_t) 4 * HUGE_BYTES, MADV_HUGEPAGE);
        memset(area, 1, (size_t) 4 * HUGE_BYTES);
        child_ready(link);
        for (;;) {
                scribble(area, 4 * HUGE_BYTES / PAGE, 10);
                end_step();
                if (draw(2000) == 0) {
                        char *one = area + (size_t) draw(4) * HUGE_BYTES;

                        child_assert(madvise(one, HUGE_BYTES, MADV_DONTNEED) == 0);
                        memset(one, (int) draw(256), PAGE);
                }
        }
}

static void lock(int link) {
        char *area = map_area(AREA_PAGES);

        child_ready(link);
        for (;;) {
                char *at = area + (size_t) draw(AREA_PAGES / 16) * 16 * PAGE;

                child_assert(mlock(at, 16 * PAGE) == 0);
                scribble(at, 16, 20);
                child_assert(draw(2) == 0 || munlock(at, 16 * PAGE) == 0);
                end_step();
        }
}

/* Pages without contents, which end who touches them; a kernel before 6.13 has none. */
static void guard(int link) {
        enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };
        char *area = map_area(AREA_PAGES);

        scribble(area, AREA_PAGES, 4000);
        child_ready(link);
        for (;;) {
                char *at = area + (size_t) draw(AREA_PAGES / 16) * 16 * PAGE;

                (void) madvise(at, 16 * PAGE, GUARD_REMOVE);
                scribble(at, 16, 20);
                if (draw(2) == 0)
                        (void) madvise(at, 16 * PAGE, GUARD_INSTALL);
                end_step();
        }
}

/* Pages that it shares with children by copy on write. */
static void breed(int link) {
        char *area = map_area(AREA_PAGES);

        scribble(area, AREA_PAGES, 4000);
        child_ready(link);
        for (;;) {
                pid_t pid = fork();

                if (pid == 0) {
                        scribble(area, AREA_PAGES, 200);
                        _exit(0);
                }
                scribble(area, AREA_PAGES, 200);
                child_assert(waitpid(pid, NULL, 0) == pid);
                (void) usleep(1000);
        }
}

/* The recursion touches all of the stack in one go. */
static void deep(uint32_t depth) {
        volatile char frame[3 * PAGE];

        frame[draw(sizeof(frame))] = (char) depth;
        if (depth > 0)
                deep(depth - 1);
        frame[0] = 1;
}

static void all_kinds(int link) {
        char *area = map_area(AREA_PAGES);
        char *heap = NULL;

        child_ready(link);
        for (;;) {
                char *at = area + (size_t) draw(AREA_PAGES / 8) * 8 * PAGE;

                switch (draw(6)) {
                case 0:
                        child_assert(madvise(at, 8 * PAGE, MADV_DONTNEED) == 0);
                        break;
                case 1:
                        child_assert(mmap(at, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                                     at);
                        break;
                case 2:
                        free(heap);
                        heap = malloc(1 + draw(1U << 20));
                        child_assert(heap);
                        heap[0] = 1;
                        break;
                case 3:
                        deep(draw(30));
                        break;
                default:
                        scribble(at, 8, 30);
                }
                end_step();
        }
}

void (*const programs[PROGRAMS])(int link) = {
        write_pages, threads, remap, give_back, grow, map_and_unmap, protect, let_kernel_write, huge, lock, guard, breed, all_kinds,
};

void have_holes(int link) {
        char *area = map_area(2 * HOLES_BYTES / PAGE);

        area += HOLES_BYTES - (uintptr_t) area % HOLES_BYTES;
        for (size_t i = 0; i < HOLES_BYTES / PAGE; i += 2)
                memset(area + i * PAGE, 7, PAGE);
        child_ready(link);
        child_assert(write_all(link, &area, sizeof(area)) == 0);
        for (;;)
                (void) pause();
}

bool fill_holes(int pidfd, char *area) {
        struct iovec there = { .iov_base = area, .iov_len = HOLES_BYTES };

        return syscall(SYS_process_madvise, pidfd, &there, 1, MADV_COLLAPSE, 0) == HOLES_BYTES;
}
