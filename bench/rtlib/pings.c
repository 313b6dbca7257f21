/* The program of bench/rank-loss --cost. It prints microseconds of messages and sums, medians of
 * rounds: half a round trip between ranks 0 and 1, and MPI_Allreduce() of all ranks; a line each:
 * what, bytes, microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, MOST_BYTES = 65536 };

static char out[MOST_BYTES], in[MOST_BYTES];
static int rank;

static void ping(int bytes, int times) {
        for (int i = 0; i < times; i++) {
                if (rank == 0)
                        MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
                if (rank < 2)
                        MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                if (rank == 1)
                        MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
}

static void sum(int bytes, int times) {
        for (int i = 0; i < times; i++)
                MPI_Allreduce(out, in, bytes / (int) sizeof(int), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

static void measure(const char *what, void (*run)(int bytes, int times), int bytes, int parts) {
        int times = bytes > 4096 ? 500 : 2000;
        double usec[ROUNDS];

        for (int i = 0; i < ROUNDS; i++) {
                double begun;

                MPI_Barrier(MPI_COMM_WORLD);
                begun = MPI_Wtime();
                run(bytes, times);
                usec[i] = (MPI_Wtime() - begun) / times / parts * 1e6;
        }
        qsort(usec, ROUNDS, sizeof(*usec), compare);
        if (rank == 0)
                printf("%s %d %.3f\n", what, bytes, usec[ROUNDS / 2]);
}

int main(int argc, char **argv) {
        static const int sizes[] = { 8, 1024, 4096, MOST_BYTES };

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                measure("message", ping, sizes[i], 2);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                measure("sum", sum, sizes[i], 1);
        MPI_Finalize();
        return 0;
}
