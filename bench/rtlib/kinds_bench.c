/* Compares how much librmrt-checkpoint writes in an increment, and how long a save takes, by
 * RMRT_BLOCK: blocks of three sizes, adaptive ones, and auto, which measures both and then keeps to
 * one. Beside these, "full" writes everything each time, and "pages" the pages that were written,
 * which the library does not offer: the same file, made by its functions. Of the kernels of
 * blocks_bench (traces.c), by one rank, with all that the library does: hashes, index, sync. The
 * first half of the saves does not count: adaptive blocks find their sizes in these, and auto
 * decides. The last figure is the time that the program itself computes between two saves, which
 * is more where pages are protected. Of the files only the newest is kept, as memory has room for.
 *
 * usage: kinds_bench DIRECTORY [--sizes agarwal|cores] [KERNEL] */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/rtlib/traces.h"
#include "bench/rtlib/written.h"
#include "common/util.h"
#include "rm/rmrt_checkpoint.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/rank_file.h"

enum { SAVES = 24, COUNTED = SAVES / 2 };

static int broadcast(void *ctx, void *data, size_t bytes, int root) {
        return 0;
}

static int gather(void *ctx, const void *mine, void *all, size_t bytes) {
        memcpy(all, mine, bytes);
        return 0;
}

static const struct rmrt_ranks alone = { .size = 1, .broadcast = broadcast, .gather = gather };

static void failed(const char *what, const struct rm_error *err) {
        (void) fprintf(stderr, "kinds_bench: %s: %s\n", what, err->text);
        exit(1);
}

/* The size of the newest file, and whether its blocks have sizes of their own. The one before it is
 * removed: nothing is restored here. */
static uint64_t newest_bytes(int dir, bool *ret_adaptive) {
        cleanup_free uint64_t *numbers = NULL;
        Portable__Manifest *m = NULL;
        struct rm_error err = { 0 };
        uint64_t bytes = 0, last;
        size_t n = 0;

        if (folder_list(dir, &numbers, &n, &last, &err) < 0 || n == 0 || folder_read_manifest(dir, numbers[0], &m, NULL, &err) < 0)
                failed("what was saved", &err);
        *ret_adaptive = manifest_has_sizes(m);
        bytes = m->files[0]->size_bytes;
        portable__manifest__free_unpacked(m, NULL);
        folder_remove_rank(dir, last - 1, 0);
        return bytes;
}

static void empty(const char *directory) {
        DIR *d = opendir(directory);
        struct dirent *e;

        while (d && (e = readdir(d)) != NULL)
                if (e->d_name[0] != '.')
                        (void) unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                (void) closedir(d);
}

static void save(const char *kind) {
        if (rmrt_save_by(&alone) == 0)
                return;
        (void) fprintf(stderr, "kinds_bench: %s: %s\n", kind, rmrt_checkpoint_error());
        exit(1);
}

/* Returns the size of the file. */
static uint64_t save_pages(int dir, uint64_t number, struct written *w, size_t bytes) {
        struct rm_error err = { 0 };
        uint8_t digest[PORTABLE_DIGEST_BYTES];
        uint64_t file_bytes = 0;
        int fd = folder_create_rank(dir, number, 0, &err), r = fd < 0 ? fd : 0;
        struct rank_writer *writer = fd < 0 ? NULL : rank_writer_create(fd, 1, WRITTEN_PAGE_BYTES, 0);

        written_take(w);
        for (size_t at = 0; r == 0 && at < bytes; at += WRITTEN_PAGE_BYTES) {
                uint32_t n = bytes - at < WRITTEN_PAGE_BYTES ? (uint32_t) (bytes - at) : WRITTEN_PAGE_BYTES;

                if (!w->pages[at / WRITTEN_PAGE_BYTES])
                        continue;
                portable_digest(w->memory + at, n, digest);
                r = rank_writer_put(writer, 0, at, w->memory + at, n, digest, &err);
        }
        if (r == 0)
                r = rank_writer_end(writer, &file_bytes, digest, &err);
        rank_writer_destroy(writer);
        if (r < 0)
                failed("pages", &err);
        folder_remove_rank(dir, number - 1, 0);
        return file_bytes;
}

/* ---- a kind ---- */

struct sums {
        uint64_t bytes, usec, cpu_nsec, program_nsec;
};

static void report(const char *kind, const struct sums *sums, const char *took) {
        (void) printf("  %-10s %8.2f %9.1f %9.1f %9.1f  %s\n", kind, (double) sums->bytes / 1e6 / COUNTED,
                      (double) sums->usec / 1e3 / COUNTED, (double) sums->cpu_nsec / 1e6 / COUNTED,
                      (double) sums->program_nsec / 1e6 / COUNTED, took);
        (void) fflush(stdout);
}

static void library_begin(const char *kind, const char *directory, const struct written *w, size_t bytes) {
        const struct rmrt_type type = { RMRT_INTEGER, 1, 1 };

        (void) setenv("RMRT_FULL_EVERY", strcmp(kind, "full") == 0 ? "1" : "1000", 1);
        (void) setenv("RMRT_BLOCK", strcmp(kind, "full") == 0 ? "16K" : kind, 1);
        if (rmrt_set_directory(directory) < 0 || rmrt_register_typed("memory", w->memory, bytes, &type, RMRT_PRIVATE) < 0)
                exit(1);
}

/* In a process of its own, since the library has one state. */
static void measure(const struct trace *trace, const char *directory, const char *kind) {
        const bool pages = strcmp(kind, "pages") == 0;
        const size_t bytes = trace_bytes(trace);
        struct sums sums = { 0 };
        struct written w;
        bool adaptive = false;
        int number = 0, dir = folder_open(directory, false, NULL);

        if (dir < 0)
                exit(1);
        written_begin(&w, bytes);
        trace_begin(trace, w.memory);
        if (pages)
                written_protect(&w);
        else
                library_begin(kind, directory, &w, bytes);
        for (int n = 0; n < SAVES; n++) {
                struct sums now = { .program_nsec = thread_nsec() };

                trace_run(trace, w.memory, &number);
                now.program_nsec = thread_nsec() - now.program_nsec;
                now.usec = now_usec();
                now.cpu_nsec = thread_nsec();
                if (pages)
                        now.bytes = save_pages(dir, (uint64_t) n + 1, &w, bytes);
                else
                        save(kind);
                now.usec = now_usec() - now.usec;
                now.cpu_nsec = thread_nsec() - now.cpu_nsec;
                if (!pages)
                        now.bytes = newest_bytes(dir, &adaptive);
                if (n < SAVES - COUNTED)
                        continue;
                sums.bytes += now.bytes;
                sums.usec += now.usec;
                sums.cpu_nsec += now.cpu_nsec;
                sums.program_nsec += now.program_nsec;
        }
        report(kind, &sums, strcmp(kind, "auto") == 0 ? adaptive ? "adaptive" : "16 KiB" : "");
        _exit(0);
}

static void run(void *ctx, const struct trace *trace) {
        static const char *const kinds[] = { "full", "pages", "16K", "4K", "512", "adaptive", "auto" };
        const char *directory = ctx;

        (void) printf("%s: %s, %.1f MB, mean of %d saves\n  %-10s %8s %9s %9s %9s  %s\n", trace->name, trace->kernel->what,
                      (double) trace_bytes(trace) / 1e6, COUNTED, "RMRT_BLOCK", "MB", "ms", "of a core", "program", "auto took");
        (void) fflush(stdout);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                pid_t child = fork();
                int status = 0;

                if (child == 0)
                        measure(trace, directory, kinds[i]);
                if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
                        exit(1);
                empty(directory);
        }
}

int main(int argc, char **argv) {
        struct selection selection;
        int r;

        if (argc < 2 || (mkdir(argv[1], 0700) < 0 && errno != EEXIST)) {
                (void) fputs("usage: kinds_bench DIRECTORY [--sizes agarwal|cores] [KERNEL]\n", stderr);
                return 2;
        }
        selection = selection_read(argc - 1, argv + 1);
        r = selection_run(&selection, run, argv[1]);
        (void) rmdir(argv[1]);
        return r;
}
