/* Compares how much a checkpoint writes and how long that takes, by the method that finds the
 * changes: everything, pages that were written, blocks of a fixed size by their hash, and adaptive
 * blocks (rtlib/checkpoint/adaptive.h) with a table of as many bytes, of which none becomes larger
 * than four of the fixed ones. Of nine kernels (traces.c), as a table like that of Agarwal et al.
 * 2004, with the speed of the storage beside it.
 *
 * Time is that of SHA-256 and of the tables, as measured, and that of the bytes at that speed, as
 * calculated: as in a program that waits until both are done. What is written is hashed, too, where
 * changes are not found by hashes, since a restore verifies all. A section of neighbouring blocks
 * has a header of 32 bytes, as in that text; librmrt-checkpoint has some 35 for each block, so
 * small blocks look better here than there. The first half of the checkpoints does not count: in
 * these adaptive blocks find their sizes. That a page is caught when it is first written to costs
 * the program something, which is not counted either. */
#include <openssl/evp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/rtlib/traces.h"
#include "common/util.h"
#include "rtlib/checkpoint/adaptive.h"

enum { CHECKPOINTS = 16, PAGE_BYTES = 4096, HEADER_BYTES = 32 };

/* ---- pages that were written: by the signal of the first write to each ---- */

/* A handler has no argument of its own. */
static struct {
        uint8_t *memory;
        size_t bytes;
        uint8_t *written; /* by page */
} watched;

static void page_written(int signal, siginfo_t *info, void *context) {
        size_t at = (size_t) ((uint8_t *) info->si_addr - watched.memory);

        if ((uint8_t *) info->si_addr < watched.memory || at >= watched.bytes ||
            mprotect(watched.memory + at / PAGE_BYTES * PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_WRITE) < 0)
                abort();
        watched.written[at / PAGE_BYTES] = 1;
}

static void watch(void) {
        memset(watched.written, 0, watched.bytes / PAGE_BYTES + 1);
        if (mprotect(watched.memory, watched.bytes, PROT_READ) < 0)
                abort();
}

static void watch_begin(const struct trace *trace) {
        struct sigaction action = { .sa_sigaction = page_written, .sa_flags = SA_SIGINFO };

        watched.bytes = (trace->bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        watched.memory = mmap(NULL, watched.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        watched.written = xcalloc(watched.bytes / PAGE_BYTES + 1, 1);
        if (watched.memory == MAP_FAILED || sigaction(SIGSEGV, &action, NULL) < 0)
                abort();
}

static void watch_end(void) {
        (void) munmap(watched.memory, watched.bytes);
        free(watched.written);
}

/* ---- who compete ---- */

enum method { FULL, PAGES, FIXED, ADAPTIVE };

struct contender {
        enum method method;
        size_t block_bytes; /* ADAPTIVE: the table is as large as for fixed ones of this size */
        const char *name;
        uint64_t caps; /* ADAPTIVE: no block is larger than so many of block_bytes */
        uint8_t *hashes;
        struct adaptive adaptive;
        /* The sums of the second half of all checkpoints. */
        uint64_t bytes, sections, nsec;
};

#define FULL_BLOCK_BYTES ((size_t) 16 << 10)

static struct contender contenders[] = {
        { FULL, FULL_BLOCK_BYTES, "full" },
        { PAGES, PAGE_BYTES, "pages written" },
        { FIXED, 65536, "fixed 64 KiB" },
        { FIXED, 16384, "fixed 16 KiB" },
        { FIXED, 4096, "fixed 4 KiB" },
        { FIXED, 512, "fixed 512" },
        { FIXED, 128, "fixed 128" },
        { ADAPTIVE, 16384, "adaptive, as 16 KiB", .caps = 4 },
        { ADAPTIVE, 4096, "adaptive, as 4 KiB", .caps = 4 },
        { ADAPTIVE, 512, "adaptive, as 512", .caps = 4 },
        { ADAPTIVE, 128, "adaptive, as 128", .caps = 4 },
        { ADAPTIVE, 512, "512 without a cap", .caps = 1 << 20 },
};

static EVP_MD_CTX *digest;
static EVP_MD *sha256;

static void hash(const void *data, size_t bytes, uint8_t ret[static ADAPTIVE_HASH_BYTES]) {
        if (EVP_DigestInit_ex2(digest, sha256, NULL) != 1 || EVP_DigestUpdate(digest, data, bytes) != 1 ||
            EVP_DigestFinal_ex(digest, ret, NULL) != 1)
                abort();
}

static void contender_begin(struct contender *c, size_t bytes) {
        c->bytes = c->sections = c->nsec = 0;
        c->hashes = xcalloc(bytes / c->block_bytes + 1, ADAPTIVE_HASH_BYTES);
        if (c->method == ADAPTIVE)
                adaptive_init(&c->adaptive, bytes, bytes / c->block_bytes * ADAPTIVE_HASH_BYTES / sizeof(struct adaptive_block),
                              HEADER_BYTES, c->caps * c->block_bytes);
}

static void contender_end(struct contender *c) {
        free(c->hashes);
        adaptive_finish(&c->adaptive);
}

static bool block_dirty(const struct contender *c, size_t block, const uint8_t *data, size_t bytes) {
        uint8_t *old = c->hashes + block * ADAPTIVE_HASH_BYTES, now[ADAPTIVE_HASH_BYTES];
        bool differs;

        if (c->method == PAGES && !watched.written[block])
                return false;
        hash(data, bytes, now);
        differs = c->method != FIXED || memcmp(now, old, sizeof(now)) != 0;
        memcpy(old, now, sizeof(now));
        return differs;
}

static uint64_t adaptive_checkpoint(struct adaptive *a, const uint8_t *memory, size_t *ret_sections) {
        size_t blocks;
        uint64_t bytes;

        adaptive_scan(a, memory, hash);
        bytes = adaptive_dirty(a, ret_sections, &blocks);
        adaptive_adapt(a, memory, hash);
        return bytes;
}

static uint64_t fixed_checkpoint(const struct contender *c, const uint8_t *memory, size_t bytes, size_t *ret_sections) {
        uint64_t sum = 0;
        bool before = false;

        *ret_sections = 0;
        for (size_t at = 0; at < bytes; at += c->block_bytes) {
                size_t n = bytes - at < c->block_bytes ? bytes - at : c->block_bytes;
                bool dirty = block_dirty(c, at / c->block_bytes, memory + at, n);

                sum += dirty ? n : 0;
                *ret_sections += dirty && !before;
                before = dirty;
        }
        return sum;
}

static void checkpoint(struct contender *c, const uint8_t *memory, size_t bytes, bool counts) {
        uint64_t begin = thread_nsec(), written;
        size_t sections = 0;

        written = c->method == ADAPTIVE ? adaptive_checkpoint(&c->adaptive, memory, &sections)
                                        : fixed_checkpoint(c, memory, bytes, &sections);
        if (!counts)
                return;
        c->nsec += thread_nsec() - begin;
        c->bytes += written + sections * HEADER_BYTES;
        c->sections += sections;
}

/* ---- tables ---- */

static const double speeds[] = { 10e6, 100e6, 1e9 };
enum { N_SPEEDS = ARRAY_SIZE(speeds), N_COUNTED = CHECKPOINTS / 2 };

/* Seconds of one checkpoint. */
static double contender_sec(const struct contender *c, double speed) {
        return ((double) c->nsec / 1e9 + (double) c->bytes / speed) / N_COUNTED;
}

static void contender_report(const struct contender *c) {
        (void) printf("  %-20s %7.2f %6.1f %% %9lu %8.1f", c->name, (double) c->bytes / 1e6 / N_COUNTED,
                      100.0 * (double) c->bytes / (double) contenders[0].bytes, (unsigned long) (c->sections / N_COUNTED),
                      (double) c->nsec / 1e6 / N_COUNTED);
        for (size_t s = 0; s < N_SPEEDS; s++)
                (void) printf(" %9.3f", contender_sec(c, speeds[s]));
        (void) printf("\n");
}

/* The least of all of a method; `speed` 0: of bytes. */
static double best(enum method method, double speed) {
        double least = 0;

        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
                const struct contender *c = &contenders[i];
                double is = speed > 0 ? contender_sec(c, speed) : (double) c->bytes;

                if (c->method == method && (least == 0 || is < least))
                        least = is;
        }
        return least;
}

static const struct contender *find(enum method method, size_t block_bytes) {
        size_t i = 0;

        while (contenders[i].method != method || contenders[i].block_bytes != block_bytes)
                i++;
        return &contenders[i];
}

/* How much more or less adaptive blocks write and take. */
static void compare_report(void) {
        static const size_t tables[] = { 16384, 4096, 512, 128 };

        for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
                const struct contender *a = find(ADAPTIVE, tables[i]), *f = find(FIXED, tables[i]);

                (void) printf("  adaptive to fixed %5zu: bytes %+6.1f %%, time", tables[i],
                              100.0 * ((double) a->bytes / (double) f->bytes - 1));
                for (size_t s = 0; s < N_SPEEDS; s++)
                        (void) printf(" %+7.1f %%", 100 * (contender_sec(a, speeds[s]) / contender_sec(f, speeds[s]) - 1));
                (void) printf("\n");
        }
        (void) printf("  best of each:            bytes %+6.1f %%, time", 100 * (best(ADAPTIVE, 0) / best(FIXED, 0) - 1));
        for (size_t s = 0; s < N_SPEEDS; s++)
                (void) printf(" %+7.1f %%", 100 * (best(ADAPTIVE, speeds[s]) / best(FIXED, speeds[s]) - 1));
        (void) printf("\n");
}

static void run(const struct trace *trace) {
        int number = 0;

        (void) printf("%s: %s, %.1f MB, mean of %d checkpoints\n", trace->name, trace->what, (double) trace->bytes / 1e6,
                      N_COUNTED);
        (void) fflush(stdout);
        watch_begin(trace);
        trace->begin(watched.memory);
        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                contender_begin(&contenders[i], trace->bytes);
        for (int n = 0; n < CHECKPOINTS; n++) {
                watch();
                for (int i = 0; i < trace->steps; i++)
                        trace->step(watched.memory, number++);
                for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                        checkpoint(&contenders[i], watched.memory, trace->bytes, n >= CHECKPOINTS - N_COUNTED);
        }
        (void) printf("  %-20s %7s %8s %9s %8s %9s %9s %9s\n", "", "MB", "of full", "sections", "hash ms", "s 10 MB/s", "100 MB/s",
                      "1 GB/s");
        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                contender_report(&contenders[i]);
        compare_report();
        (void) fflush(stdout);
        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                contender_end(&contenders[i]);
        watch_end();
}

int main(int argc, char **argv) {
        size_t n_run = 0;

        digest = EVP_MD_CTX_new();
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        if (!digest || !sha256)
                return 1;
        for (size_t i = 0; i < n_traces; i++)
                if (argc < 2 || strcmp(argv[1], traces[i].name) == 0) {
                        run(&traces[i]);
                        n_run++;
                }
        EVP_MD_free(sha256);
        EVP_MD_CTX_free(digest);
        if (n_run == 0)
                (void) fprintf(stderr, "blocks_bench: there is no kernel '%s'\n", argv[1]);
        return n_run > 0 ? 0 : 2;
}
