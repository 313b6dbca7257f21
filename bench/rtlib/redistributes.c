/* How long it takes to bring an array from its distribution over half of the ranks to that over all
 * of them, and back: by rmrt_redistribute(), and by a file that the ranks write and read, each its
 * part. The file is left in the page cache (the best that a file can be), or synced before it is
 * read, as where it has to last.
 *
 * usage: redistributes FILE RUNS MIB...       (each line: MIB DIRECTION WAY SECONDS) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rm/rmrt_resize.h>

enum way { BY_MESSAGES, BY_FILE, BY_SYNCED_FILE, WAYS };

static const char *const way_names[WAYS] = { "redistribute", "file", "synced-file" };

static int rank, size;
static const char *path;

/* Where the part of a rank begins, in elements, if the first `ranks` have it all. */
static size_t begins(size_t all, int of, int ranks) {
        return of >= ranks ? all : all / (size_t) ranks * (size_t) of;
}

static size_t part(size_t all, int ranks) {
        return begins(all, rank + 1, ranks) - begins(all, rank, ranks);
}

static void must(int good, const char *what) {
        if (good)
                return;
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void all_of(ssize_t (*call)(int, void *, size_t, off_t), int fd, void *data, size_t bytes, size_t at) {
        for (size_t n = 0; n < bytes;) {
                ssize_t r = call(fd, (char *) data + n, bytes - n, (off_t) (at + n));

                must(r > 0, path);
                n += (size_t) r;
        }
}

static ssize_t write_at(int fd, void *data, size_t bytes, off_t at) {
        return pwrite(fd, data, bytes, at);
}

static void through_file(double *from, double *to, size_t all, int before, int now, int synced) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        must(fd >= 0, path);
        all_of(write_at, fd, from, part(all, before) * sizeof(double), begins(all, rank, before) * sizeof(double));
        if (synced)
                must(fsync(fd) == 0, path);
        MPI_Barrier(MPI_COMM_WORLD);
        all_of(pread, fd, to, part(all, now) * sizeof(double), begins(all, rank, now) * sizeof(double));
        close(fd);
}

static void fill(double *cells, size_t all, int ranks) {
        for (size_t i = 0; i < part(all, ranks); i++)
                cells[i] = (double) (begins(all, rank, ranks) + i);
}

static void verify(const double *cells, size_t all, int ranks) {
        for (size_t i = 0; i < part(all, ranks); i++)
                must(cells[i] == (double) (begins(all, rank, ranks) + i), "wrong data");
}

static double once(enum way way, double *from, double *to, size_t all, int before, int now) {
        struct rmrt_resize event = { RMRT_RESIZED, before, now, MPI_COMM_WORLD };
        double begin, end;

        fill(from, all, before);
        memset(to, 0, part(all, now) * sizeof(*to)); /* its pages are there */
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        if (way == BY_MESSAGES)
                must(rmrt_redistribute(&event, from, part(all, before), to, part(all, now), MPI_DOUBLE) == 0, "rmrt_redistribute");
        else
                through_file(from, to, all, before, now, way == BY_SYNCED_FILE);
        MPI_Barrier(MPI_COMM_WORLD);
        end = MPI_Wtime();
        verify(to, all, now);
        if (rank == 0)
                (void) unlink(path);
        MPI_Barrier(MPI_COMM_WORLD);
        return end - begin;
}

static void measure(long mib, int before, int now, int runs) {
        size_t all = (size_t) mib * 1024 * 1024 / sizeof(double), least = (size_t) (before < now ? before : now);
        double *from = malloc((all / least + all % least + 1) * sizeof(*from)),
               *to = malloc((all / least + all % least + 1) * sizeof(*to));

        must(from && to, "memory");
        for (int i = -1; i < runs; i++)
                for (enum way way = 0; way < WAYS; way++) {
                        double seconds = once(way, from, to, all, before, now);

                        if (rank == 0 && i >= 0) /* the first of each is not counted: connections are made */
                                (void) printf("%ld %s %s %.6f\n", mib, before < now ? "grow" : "shrink", way_names[way], seconds);
                }
        free(from);
        free(to);
}

int main(int argc, char **argv) {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (argc < 4 || size < 2) {
                (void) fprintf(stderr, "usage: redistributes FILE RUNS MIB...    (on 2 ranks or more)\n");
                MPI_Abort(MPI_COMM_WORLD, 2);
        }
        path = argv[1];
        for (int i = 3; i < argc; i++) {
                measure(strtol(argv[i], NULL, 10), size / 2, size, atoi(argv[2]));
                measure(strtol(argv[i], NULL, 10), size, size / 2, atoi(argv[2]));
        }
        MPI_Finalize();
        return 0;
}
