/* Compares how much a checkpoint writes and how long that takes, by the method that finds the
 * changes: everything, pages that were written, blocks of a fixed size by their hash, and adaptive
 * blocks (rtlib/checkpoint/adaptive.h) with a table of as many bytes, of which none becomes larger
 * than four of the fixed ones. Of kernels (traces.c) with the memory that programs have in the
 * texts, as a table like that of Agarwal et al. 2004, with the speed of the storage beside it.
 *
 * Time is that of SHA-256 and of the tables, as measured, and that of the bytes at that speed, as
 * calculated: as in a program that waits until both are done. What is written is hashed, too, where
 * changes are not found by hashes, since a restore verifies all. A section of neighbouring blocks
 * has a header of 32 bytes, as in that text; librmrt-checkpoint has some 35 for each block, so
 * small blocks look better here than there. The first half of the checkpoints does not count: in
 * these adaptive blocks find their sizes. That a page is caught when it is first written to costs
 * the program something, which is not counted either (kinds_bench has it).
 *
 * usage: blocks_bench [--sizes agarwal|cores] [KERNEL] */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rtlib/traces.h"
#include "bench/rtlib/written.h"
#include "common/util.h"
#include "rtlib/checkpoint/adaptive.h"

enum { CHECKPOINTS = 16, HEADER_BYTES = 32 };

/* The memory of the kernel that runs. */
struct program {
        struct written written;
        size_t bytes;
        uint64_t scan_nsec; /* how long it took to find the pages */
};

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
        { PAGES, WRITTEN_PAGE_BYTES, "pages written" },
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

static bool block_dirty(const struct contender *c, const struct program *p, size_t block, const uint8_t *data, size_t bytes) {
        uint8_t *old = c->hashes + block * ADAPTIVE_HASH_BYTES, now[ADAPTIVE_HASH_BYTES];
        bool differs;

        if (c->method == PAGES && !p->written.pages[block])
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

static uint64_t fixed_checkpoint(const struct contender *c, const struct program *p, size_t *ret_sections) {
        uint64_t sum = 0;
        bool before = false;

        *ret_sections = 0;
        for (size_t at = 0; at < p->bytes; at += c->block_bytes) {
                size_t n = p->bytes - at < c->block_bytes ? p->bytes - at : c->block_bytes;
                bool dirty = block_dirty(c, p, at / c->block_bytes, p->written.memory + at, n);

                sum += dirty ? n : 0;
                *ret_sections += dirty && !before;
                before = dirty;
        }
        return sum;
}

static void checkpoint(struct contender *c, const struct program *p, bool counts) {
        uint64_t begin = thread_nsec(), written;
        size_t sections = 0;

        written = c->method == ADAPTIVE ? adaptive_checkpoint(&c->adaptive, p->written.memory, &sections)
                                        : fixed_checkpoint(c, p, &sections);
        if (!counts)
                return;
        c->nsec += thread_nsec() - begin + (c->method == PAGES ? p->scan_nsec : 0);
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

static void take_pages(struct program *p) {
        uint64_t begin = thread_nsec();

        written_take(&p->written);
        p->scan_nsec = thread_nsec() - begin;
}

static void run(void *ctx, const struct trace *trace) {
        struct program p = { .bytes = trace_bytes(trace) };
        int number = 0;

        (void) printf("%s: %s, %.1f MB, mean of %d checkpoints\n", trace->name, trace->kernel->what, (double) p.bytes / 1e6,
                      N_COUNTED);
        (void) fflush(stdout);
        written_begin(&p.written, p.bytes);
        trace_begin(trace, p.written.memory);
        written_protect(&p.written);
        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                contender_begin(&contenders[i], p.bytes);
        for (int n = 0; n < CHECKPOINTS; n++) {
                trace_run(trace, p.written.memory, &number);
                take_pages(&p);
                for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                        checkpoint(&contenders[i], &p, n >= CHECKPOINTS - N_COUNTED);
        }
        (void) printf("  %-20s %7s %8s %9s %8s %9s %9s %9s\n", "", "MB", "of full", "sections", "hash ms", "s 10 MB/s", "100 MB/s",
                      "1 GB/s");
        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                contender_report(&contenders[i]);
        compare_report();
        (void) fflush(stdout);
        for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
                contender_end(&contenders[i]);
        written_end(&p.written);
}

int main(int argc, char **argv) {
        const struct selection selection = selection_read(argc, argv);
        int r;

        digest = EVP_MD_CTX_new();
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        if (!digest || !sha256)
                return 1;
        r = selection_run(&selection, run, NULL);
        EVP_MD_free(sha256);
        EVP_MD_CTX_free(digest);
        return r;
}
