/* The program of bench/rank-loss. It makes steps of a millisecond, after each of which all ranks
 * learn a sum; one kills itself, and the lowest of those that were there all the time prints how
 * long the longest time between two sums was, in microseconds, and how long one takes otherwise
 * (median). If the one is critical, its sum is that with the process that replaces it.
 *
 *      outlives STEPS LOST [critical] */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS, BEGINNERS, STEPS, NUMBERS };

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

/* Counted with those that replace others. */
static int process_number(int rank) {
        const char *text = getenv("OMPI_COMM_WORLD_RANK");

        return text ? atoi(text) : rank;
}

int main(int argc, char **argv) {
        int steps = argc > 1 ? atoi(argv[1]) : 1000, lost = argc > 2 ? atoi(argv[2]) : -1, critical = argc > 3, rank, size, place,
            lowest;
        long sum[NUMBERS];
        double *took, before;
        int begins;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        begins = process_number(rank) != rank;
        place = begins ? size + rank : rank; /* it has not seen them all */
        took = calloc((size_t) steps, sizeof(*took));
        for (int i = 0; i < steps; i++) {
                const long mine[NUMBERS] = { 1, begins, begins ? 0 : i };

                if (!begins)
                        usleep(1000);
                if (i == steps / 2 && process_number(rank) == lost)
                        (void) raise(SIGKILL);
                before = MPI_Wtime();
                MPI_Allreduce(mine, sum, NUMBERS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
                took[i] = (MPI_Wtime() - before) * 1e6;
                if (sum[RANKS] != size - (!critical && i >= steps / 2 && lost >= 0 && lost < size) && i != steps / 2)
                        MPI_Abort(MPI_COMM_WORLD, 1);
                if (sum[BEGINNERS] > 0)
                        i = (int) (sum[STEPS] / (sum[RANKS] - sum[BEGINNERS]));
                begins = 0;
        }
        MPI_Allreduce(&place, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        qsort(took, (size_t) steps, sizeof(*took), compare);
        if (place == lowest)
                printf("outlives %.0f %.0f\n", took[steps - 1], took[steps / 2]);
        MPI_Finalize();
        free(took);
        return 0;
}
