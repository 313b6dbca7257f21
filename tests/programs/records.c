/* Files that grow while a job runs, and one that is written in place: what they hold in the end
 * tells whether they went back with the job when it did.
 *
 * usage: records --dir=D [--iterations=N] [--stop-file=FILE] [--pause-usec=U] [--ledger]
 *   Each rank writes a line in each iteration to D/append.RANK (O_APPEND) and to D/write.RANK
 *   (open for writing from its beginning on), and rank 0 the number of the iteration in place to
 *   D/place. With --ledger each also adds that number to one of 1000 sums in D/ledger.RANK, and
 *   keeps as many in D/map.RANK, which is mapped: done twice, the sum is wrong. After N iterations,
 *   or once FILE is there, each rank reads its files again: every line must be there once, and in
 *   order. */
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>

#include "common.h"

static int open_file(const char *dir, const char *name, int rank, int flags) {
        char path[4096];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s.%d", dir, name, rank);
        fd = open(path, flags | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
                perror(path);
                MPI_Abort(MPI_COMM_WORLD, 3);
        }
        return fd;
}

static void put(int fd, long iteration) {
        char line[64];
        int n = snprintf(line, sizeof(line), "iteration %ld\n", iteration);

        if (write(fd, line, (size_t) n) != n) {
                perror("write");
                MPI_Abort(MPI_COMM_WORLD, 4);
        }
}

/* ---- sums that are written in place ---- */

enum { SUMS = 1000 };

static void add(int fd, long *map, long iteration) {
        off_t at = iteration % SUMS * (long) sizeof(long);
        long sum = 0;

        if (pread(fd, &sum, sizeof(sum), at) != (ssize_t) sizeof(sum))
                MPI_Abort(MPI_COMM_WORLD, 5);
        sum += iteration;
        if (pwrite(fd, &sum, sizeof(sum), at) != (ssize_t) sizeof(sum))
                MPI_Abort(MPI_COMM_WORLD, 5);
        map[iteration % SUMS] += iteration;
}

static int sums_good(int fd, const long *map, long iterations) {
        long want[SUMS] = { 0 }, found[SUMS];

        for (long i = 1; i <= iterations; i++)
                want[i % SUMS] += i;
        return pread(fd, found, sizeof(found), 0) == (ssize_t) sizeof(found) && memcmp(found, want, sizeof(want)) == 0 &&
               memcmp(map, want, sizeof(want)) == 0;
}

static int good(const char *dir, const char *name, int rank, long iterations) {
        char path[4096], line[64], want[64];
        long i = 0;
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/%s.%d", dir, name, rank);
        f = fopen(path, "r");
        while (f && fgets(line, sizeof(line), f)) {
                (void) snprintf(want, sizeof(want), "iteration %ld\n", ++i);
                if (strcmp(line, want) == 0)
                        continue;
                (void) fprintf(stderr, "records: %s: line %ld is %s", path, i, line);
                i = -1;
                break;
        }
        if (f)
                (void) fclose(f);
        return i == iterations;
}

int main(int argc, char **argv) {
        long iterations = option_number(argc, argv, "iterations", 200), pause_usec = option_number(argc, argv, "pause-usec", 0);
        const char *dir = option_text(argc, argv, "dir", NULL), *stop_file = option_text(argc, argv, "stop-file", NULL);
        int rank, size, append, plain, place, ledger = -1, mapped, ok, all = 0, more = 1;
        long *map = NULL, i;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (!dir)
                MPI_Abort(MPI_COMM_WORLD, 2);
        append = open_file(dir, "append", rank, O_WRONLY | O_APPEND | O_TRUNC);
        plain = open_file(dir, "write", rank, O_WRONLY | O_TRUNC);
        place = rank == 0 ? open_file(dir, "place", 0, O_RDWR | O_TRUNC) : -1;
        if (option_set(argc, argv, "ledger")) {
                ledger = open_file(dir, "ledger", rank, O_RDWR | O_TRUNC);
                mapped = open_file(dir, "map", rank, O_RDWR | O_TRUNC);
                if (ftruncate(ledger, SUMS * sizeof(long)) < 0 || ftruncate(mapped, SUMS * sizeof(long)) < 0)
                        MPI_Abort(MPI_COMM_WORLD, 5);
                map = mmap(NULL, SUMS * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
                if (map == MAP_FAILED)
                        MPI_Abort(MPI_COMM_WORLD, 5);
        }
        for (i = 1; more; i++) {
                if (map)
                        add(ledger, map, i);
                put(append, i);
                put(plain, i);
                if (place >= 0 && pwrite(place, &i, sizeof(i), 0) != (ssize_t) sizeof(i))
                        MPI_Abort(MPI_COMM_WORLD, 4);
                more = i < iterations && !(stop_file && access(stop_file, F_OK) == 0);
                MPI_Allreduce(MPI_IN_PLACE, &more, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
                if (pause_usec > 0)
                        (void) usleep((useconds_t) pause_usec);
        }
        iterations = i - 1;
        ok = good(dir, "append", rank, iterations) && good(dir, "write", rank, iterations);
        ok = ok && (!map || sums_good(ledger, map, iterations));
        MPI_Reduce(&ok, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
        if (rank == 0)
                (void) printf("records: ranks %d iterations %ld %s\n", size, iterations, all ? "good" : "BAD");
        MPI_Finalize();
        return rank == 0 && !all;
}
