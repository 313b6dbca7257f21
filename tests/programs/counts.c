/* A program that goes on without a lost rank, and then waits for what never comes: rank 0 counts
 * one message from each of the others, of which one is dead.
 *
 * usage: counts [SECONDS|all]: without, it hangs, and is to be ended; with SECONDS, the last rank
 *         computes for so long before it sends, and all is well but for the dead; with "all"
 * each rank waits for such a message, so that the end of one lets no other go on. */
#include <mpi.h>
#include <signal.h>

#include "common.h"

int main(int argc, char **argv) {
        int seconds = argc > 1 ? atoi(argv[1]) : 0, rank, size, one = 1, sum = 0;
        bool all = argc > 1 && strcmp(argv[1], "all") == 0;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
                (void) raise(SIGKILL);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == size - 1)
                pause_usec(seconds * 1000000L);
        if (all)
                MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = seconds ? 2 : 1; rank == 0 && i < size; i++)
                MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0)
                MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
                printf("counts: all\n");
        MPI_Finalize();
        return 0;
}
