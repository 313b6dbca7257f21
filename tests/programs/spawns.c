/* Starts further ranks by MPI_Comm_spawn(), which send a number round with those that started them.
 *
 * usage: spawns CHILDREN ROUNDS */
#include <mpi.h>

#include "common.h"

static void go_round(MPI_Comm all, int rank, int size) {
        long number = 0;

        if (rank == 0)
                MPI_Send(&number, 1, MPI_LONG, 1, 0, all);
        MPI_Recv(&number, 1, MPI_LONG, (rank + size - 1) % size, 0, all, MPI_STATUS_IGNORE);
        number++;
        if (rank != 0)
                MPI_Send(&number, 1, MPI_LONG, (rank + 1) % size, 0, all);
        else if (number != size)
                MPI_Abort(all, 9);
}

int main(int argc, char **argv) {
        char *arguments[] = { argv[1], argv[2], NULL };
        MPI_Comm parent, between, all;
        int rank, size;

        MPI_Init(&argc, &argv);
        MPI_Comm_get_parent(&parent);
        between = parent;
        if (parent == MPI_COMM_NULL)
                MPI_Comm_spawn(argv[0], arguments, atoi(argv[1]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
        MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all);
        MPI_Comm_rank(all, &rank);
        MPI_Comm_size(all, &size);
        for (int i = 0; i < atoi(argv[2]); i++)
                go_round(all, rank, size);
        if (rank == 0)
                printf("spawns: %d ranks, %s rounds\n", size, argv[2]);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&between);
        MPI_Finalize();
        return 0;
}
