/* Compares how much librmrt-checkpoint writes in an increment, and how long a save takes, by
 * RMRT_BLOCK: blocks of three sizes, adaptive ones, and auto, which measures both and then keeps to
 * one. Of the kernels of blocks_bench (traces.c), by one rank, with all that the library does:
 * hashes, index, sync. The first half of the saves does not count: adaptive blocks find their sizes
 * in these, and auto decides.
 *
 * usage: kinds_bench DIRECTORY [KERNEL] */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/rtlib/traces.h"
#include "common/util.h"
#include "rm/rmrt_checkpoint.h"
#include "rtlib/checkpoint/folder.h"

enum { SAVES = 24, COUNTED = SAVES / 2 };

static int broadcast(void *ctx, void *data, size_t bytes, int root) {
        return 0;
}

static int gather(void *ctx, const void *mine, void *all, size_t bytes) {
        memcpy(all, mine, bytes);
        return 0;
}

static const struct rmrt_ranks alone = { .size = 1, .broadcast = broadcast, .gather = gather };

/* The newest, and whether its blocks have sizes of their own. */
static uint64_t newest_bytes(const char *directory, bool *ret_adaptive) {
        cleanup_close int dir = folder_open(directory, false, NULL);
        cleanup_free uint64_t *numbers = NULL;
        Portable__Manifest *m = NULL;
        uint64_t bytes = 0, last;
        size_t n = 0;

        if (dir < 0 || folder_list(dir, &numbers, &n, &last, NULL) < 0 || n == 0 ||
            folder_read_manifest(dir, numbers[0], &m, NULL, NULL) < 0)
                exit(1);
        *ret_adaptive = manifest_has_sizes(m);
        bytes = m->files[0]->size_bytes;
        portable__manifest__free_unpacked(m, NULL);
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
        (void) fprintf(stderr, "kinds_bench: RMRT_BLOCK=%s: %s\n", kind, rmrt_checkpoint_error());
        exit(1);
}

/* In a process of its own, since the library has one state. */
static void measure(const struct trace *trace, const char *directory, const char *kind) {
        const struct rmrt_type type = { RMRT_INTEGER, 1, 1 };
        uint8_t *memory = mmap(NULL, trace->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t bytes = 0, usec = 0, cpu_nsec = 0;
        bool adaptive = false;
        int number = 0;

        if (memory == MAP_FAILED)
                exit(1);
        trace->begin(memory);
        (void) setenv("RMRT_BLOCK", kind, 1);
        if (rmrt_set_directory(directory) < 0 || rmrt_register_typed("memory", memory, trace->bytes, &type, RMRT_PRIVATE) < 0)
                exit(1);
        for (int n = 0; n < SAVES; n++) {
                uint64_t begin, cpu;

                for (int i = 0; i < trace->steps; i++)
                        trace->step(memory, number++);
                begin = now_usec();
                cpu = thread_nsec();
                save(kind);
                if (n < SAVES - COUNTED)
                        continue;
                usec += now_usec() - begin;
                cpu_nsec += thread_nsec() - cpu;
                bytes += newest_bytes(directory, &adaptive);
        }
        (void) printf("  %-10s %8.2f %9.1f %9.1f  %s\n", kind, (double) bytes / 1e6 / COUNTED, (double) usec / 1e3 / COUNTED,
                      (double) cpu_nsec / 1e6 / COUNTED, strcmp(kind, "auto") == 0 ? adaptive ? "adaptive" : "16 KiB" : "");
        (void) fflush(stdout);
        _exit(0);
}

static void run(const struct trace *trace, const char *directory) {
        static const char *const kinds[] = { "16K", "4K", "512", "adaptive", "auto" };

        (void) printf("%s: %s, %.1f MB, mean of %d increments\n  %-10s %8s %9s %9s  %s\n", trace->name, trace->what,
                      (double) trace->bytes / 1e6, COUNTED, "RMRT_BLOCK", "MB", "ms", "of a core", "auto took");
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
        size_t n_run = 0;

        if (argc < 2 || (mkdir(argv[1], 0700) < 0 && errno != EEXIST)) {
                (void) fputs("usage: kinds_bench DIRECTORY [KERNEL]\n", stderr);
                return 2;
        }
        (void) setenv("RMRT_FULL_EVERY", "1000", 1);
        for (size_t i = 0; i < n_traces; i++)
                if (argc < 3 || strcmp(argv[2], traces[i].name) == 0) {
                        run(&traces[i], argv[1]);
                        n_run++;
                }
        (void) rmdir(argv[1]);
        if (n_run == 0)
                (void) fprintf(stderr, "kinds_bench: there is no kernel '%s'\n", argv[2]);
        return n_run > 0 ? 0 : 2;
}
