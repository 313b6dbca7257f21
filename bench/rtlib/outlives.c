/* For bench/rank-loss. Steps of a millisecond, after each of which all ranks learn a sum; one kills itself, and the lowest of the others prints how long the longest time
 * between two sums was, in microseconds, and how long one takes otherwise (median).
 *
 *      outlives STEPS LOST */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

int main(int argc, char **argv) {
        int steps = argc > 1 ? atoi(argv[1]) : 1000, lost = argc > 2 ? atoi(argv[2]) : -1, rank, size, lowest;
        double *took, before;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        took = calloc((size_t) steps, sizeof(*took));
        for (int i = 0; i < steps; i++) {
                int one = 1, sum = 0;

                usleep(1000);
                if (i == steps / 2 && rank == lost)
                        (void) raise(SIGKILL);
                before = MPI_Wtime();
                MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                took[i] = (MPI_Wtime() - before) * 1e6;
                if (sum != size - (i >= steps / 2 && lost >= 0 && lost < size) && i != steps / 2)
                        MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        qsort(took, (size_t) steps, sizeof(*took), compare);
        if (rank == lowest)
                printf("outlives %.0f %.0f\n", took[steps - 1], took[steps / 2]);
        MPI_Finalize();
        free(took);
        return 0;
}
