/* MPI-IO into one file that grows: in each iteration every rank writes a block at the end, by
 * MPI_File_write_at_all() and MPI_File_write_at() in turn, and reads one of another rank's of a
 * random earlier iteration. In the end each rank reads the whole file.
 *
 * usage: mpiio FILE --stop-file=F     exit 9: a block is not what was written */
#include <mpi.h>

#include "common.h"

enum { LONGS = 512 };

static int rank, size;

static void must(int rc, const char *what) {
        if (rc == MPI_SUCCESS)
                return;
        (void) fprintf(stderr, "mpiio: rank %d: %s: error %d\n", rank, what, rc);
        MPI_Abort(MPI_COMM_WORLD, 8);
}

static long value(long iteration, int of, int i) {
        return (iteration * 1000 + of) * 1000 + i;
}

static MPI_Offset offset(long iteration, int of) {
        return ((MPI_Offset) iteration * size + of) * (MPI_Offset) (LONGS * sizeof(long));
}

static void check(MPI_File file, long iteration, int of) {
        long block[LONGS] = { 0 };

        must(MPI_File_read_at(file, offset(iteration, of), block, LONGS, MPI_LONG, MPI_STATUS_IGNORE), "read");
        for (int i = 0; i < LONGS; i++)
                if (block[i] != value(iteration, of, i)) {
                        (void) fprintf(stderr, "mpiio: rank %d: block of rank %d in iteration %ld has %ld at %d, not %ld\n", rank,
                                       of, iteration, block[i], i, value(iteration, of, i));
                        MPI_Abort(MPI_COMM_WORLD, 9);
                }
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        uint64_t random;
        long block[LONGS], iteration = 0;
        MPI_File file;
        int go = 1;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        random = (uint64_t) rank + 1;
        must(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
        if (rank == 0) {
                printf("mpiio: running\n");
                (void) fflush(stdout);
        }
        for (; go; iteration++) {
                for (int i = 0; i < LONGS; i++)
                        block[i] = value(iteration, rank, i);
                if (iteration % 2)
                        must(MPI_File_write_at(file, offset(iteration, rank), block, LONGS, MPI_LONG, MPI_STATUS_IGNORE), "write");
                else
                        must(MPI_File_write_at_all(file, offset(iteration, rank), block, LONGS, MPI_LONG, MPI_STATUS_IGNORE),
                             "write all");
                must(MPI_File_sync(file), "sync");
                MPI_Barrier(MPI_COMM_WORLD);
                check(file, (long) (random_next(&random) % (uint64_t) (iteration + 1)), (rank + 1) % size);
                pause_usec(10000);
                go = access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        for (long i = 0; i < iteration; i++)
                for (int of = 0; of < size; of++)
                        check(file, i, of);
        must(MPI_File_close(&file), "close");
        if (rank == 0)
                printf("mpiio: %ld blocks of %d ranks, all as written\n", iteration, size);
        MPI_Finalize();
        return 0;
}
