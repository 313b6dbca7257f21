/* A pipeline of small messages, as NPB's LU has it: each rank waits for a line from the one before
 * it, computes on it for some microseconds and passes it on, then the same back. So ranks wait most
 * of the time, and often. Waits as Open MPI does: see the Makefile.
 *
 * usage: wavefront [--sweeps=N] [--stop-file=F] [--lines=L] [--work=W]
 *   --sweeps     there and back, how many (default 1000)
 *   --stop-file  go on after them until F exists; --sweeps with the number that is then printed
 *                gives the same hash
 *   --lines      in a sweep (default 32)
 *   --work       additions on each line and rank (default 10000, some 10 us)
 * Says about every second how many lines it has done since it began, for how long it has run, and
 * how much processor time all ranks have used. */
#include <mpi.h>
#include <sys/resource.h>

#include "common.h"

enum { VALUES = 100, SCAN_USEC = 1000000 };

struct wavefront {
        int rank;
        int size;
        long lines;
        long work;
        long done; /* lines, there and back */
        double line[VALUES];
        double own[VALUES];
        uint64_t hash;
};

static void compute(struct wavefront *w) {
        for (long i = 0; i < w->work; i++) {
                double *x = &w->own[i % VALUES];

                *x = *x * 0.75 + w->line[(i + 1) % VALUES] * 0.25 + 1e-6;
                w->line[i % VALUES] = *x;
        }
}

static void sweep(struct wavefront *w, int from, int to) {
        for (long i = 0; i < w->lines; i++) {
                if (from >= 0 && from < w->size)
                        MPI_Recv(w->line, VALUES, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                compute(w);
                if (to >= 0 && to < w->size)
                        MPI_Send(w->line, VALUES, MPI_DOUBLE, to, 1, MPI_COMM_WORLD);
        }
        w->hash = hash_more(w->hash, w->line, sizeof(w->line));
        w->done += w->lines;
}

static long used_usec(void) {
        struct rusage u;

        if (getrusage(RUSAGE_SELF, &u) < 0)
                abort();
        return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static void report(const struct wavefront *w, int64_t start_usec) {
        long used = used_usec();
        long all = 0;

        MPI_Reduce(&used, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (w->rank == 0) {
                printf("wavefront: running, lines %ld usec %lld used %ld\n", w->done, (long long) (now_usec() - start_usec), all);
                (void) fflush(stdout);
        }
}

int main(int argc, char **argv) {
        struct wavefront w = { .hash = HASH_START };
        long sweeps = option_number(argc, argv, "sweeps", 1000);
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        int what[2] = { 1, 0 }; /* go on, tell */
        int64_t start = now_usec();
        int64_t reported = 0;
        uint64_t all = 0;
        long n;

        w.lines = option_number(argc, argv, "lines", 32);
        w.work = option_number(argc, argv, "work", 10000);
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &w.size);
        for (int i = 0; i < VALUES; i++)
                w.own[i] = w.line[i] = (double) (i * 7 + w.rank) / 100;
        for (n = 0;; n++) {
                what[0] = n < sweeps || (stop_file && access(stop_file, F_OK) != 0);
                what[1] = now_usec() - reported > SCAN_USEC;
                MPI_Bcast(what, 2, MPI_INT, 0, MPI_COMM_WORLD);
                if (what[1] || !what[0]) {
                        report(&w, start);
                        reported = now_usec();
                }
                if (!what[0])
                        break;
                sweep(&w, w.rank - 1, w.rank + 1);
                sweep(&w, w.rank + 1 < w.size ? w.rank + 1 : -1, w.rank - 1);
        }
        MPI_Reduce(&w.hash, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
        if (w.rank == 0)
                printf("wavefront: ranks %d sweeps %ld hash %016llx\n", w.size, n, (unsigned long long) all);
        MPI_Finalize();
        return 0;
}
