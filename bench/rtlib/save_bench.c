/* Measures the cost of librmrt-checkpoint in one rank: a full checkpoint beside a plain file of the
 * same bytes, increments after small changes, a restore. Median of several runs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rm/rmrt_checkpoint.h"

enum { RUNS = 5 };
#define BYTES (UINT64_C(256) << 20)
#define CELLS (BYTES / sizeof(double))

static int alone_broadcast(void *ctx, void *data, size_t bytes, int root) {
        return 0;
}

static int alone_gather(void *ctx, const void *mine, void *all, size_t bytes) {
        memcpy(all, mine, bytes);
        return 0;
}

static const struct rmrt_ranks alone = { 0, 1, NULL, alone_broadcast, alone_gather };

static double now_sec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void must(int r) {
        if (r >= 0)
                return;
        (void) fprintf(stderr, "save_bench: %s\n", rmrt_checkpoint_error());
        exit(1);
}

static void report(const char *what, double *runs) {
        qsort(runs, RUNS, sizeof(*runs), compare);
        (void) printf("%-46s %6.0f ms (%.0f to %.0f), %5.0f MB/s of memory\n", what, runs[RUNS / 2] * 1e3, runs[0] * 1e3,
                      runs[RUNS - 1] * 1e3, (double) BYTES / 1e6 / runs[RUNS / 2]);
}

static void plain_file(const char *directory, const double *cells) {
        char path[4096];
        double runs[RUNS];

        (void) snprintf(path, sizeof(path), "%s/plain", directory);
        for (int i = 0; i < RUNS; i++) {
                double begin = now_sec();
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                uint64_t done = 0;

                while (fd >= 0 && done < BYTES) {
                        ssize_t n = write(fd, (const char *) cells + done, BYTES - done);

                        if (n <= 0)
                                exit(1);
                        done += (uint64_t) n;
                }
                if (fd < 0 || fsync(fd) < 0 || close(fd) < 0)
                        exit(1);
                runs[i] = now_sec() - begin;
        }
        (void) unlink(path);
        report("plain file", runs);
}

/* Saves an array of which one cell in so many has changed since the last time; 0: none. */
static void saves(const char *what, double *cells, uint64_t every) {
        double runs[RUNS];

        for (int i = 0; i < RUNS; i++) {
                double begin;

                for (uint64_t k = 0; every && k < CELLS; k += every)
                        cells[k] += 1;
                begin = now_sec();
                must(rmrt_save_by(&alone));
                runs[i] = now_sec() - begin;
        }
        report(what, runs);
}

static void restores(void) {
        double runs[RUNS];

        for (int i = 0; i < RUNS; i++) {
                double begin = now_sec();

                must(rmrt_restore_by(&alone));
                runs[i] = now_sec() - begin;
        }
        report("restore", runs);
}

int main(int argc, char **argv) {
        const struct rmrt_type type = { RMRT_FLOAT, 8, 1 };
        double *cells = argc == 2 ? malloc(BYTES) : NULL;

        if (!cells) {
                (void) fputs("usage: save_bench DIRECTORY\n", stderr);
                return 2;
        }
        for (uint64_t i = 0; i < CELLS; i++)
                cells[i] = (double) i / 3;
        must(rmrt_set_directory(argv[1]));
        must(rmrt_register_typed("cells", cells, CELLS, &type, RMRT_BLOCK));
        plain_file(argv[1], cells);
        (void) setenv("RMRT_KEEP", "1", 1);
        (void) setenv("RMRT_FULL_EVERY", "1", 1);
        saves("full", cells, 1);
        restores();
        (void) setenv("RMRT_ZSTD", "1", 1);
        saves("full, zstd 1", cells, 1);
        (void) setenv("RMRT_ZSTD", "0", 1);
        saves("full", cells, 1);
        (void) setenv("RMRT_FULL_EVERY", "1000", 1);
        saves("increment, a cell in each 100th block changed", cells, 100 * 2048);
        saves("increment, nothing changed", cells, 0);
        free(cells);
        return 0;
}
