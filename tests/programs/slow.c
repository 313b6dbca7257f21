/* Spends long in MPI_Init or in MPI_Finalize: rank 0 comes late, so that all others wait inside.
 *
 * usage: slow init|finalize [--seconds=S | --stop-file=F] */
#include <mpi.h>

#include "common.h"

static void come_late(const char *stop_file, long seconds) {
        int64_t end = now_usec() + seconds * 1000000;

        while (stop_file ? access(stop_file, F_OK) != 0 : now_usec() < end)
                pause_usec(10000);
}

/* Known before MPI_Init, as from any launcher that gives ranks their number in the environment. */
static int rank_from_environment(void) {
        const char *text = getenv("OMPI_COMM_WORLD_RANK");

        return text ? atoi(text) : 0;
}

int main(int argc, char **argv) {
        const char *phase = argc > 1 ? argv[1] : "";
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        long seconds = option_number(argc, argv, "seconds", 3);
        int early = rank_from_environment();
        int rank;
        int size;
        int sum;

        if (strcmp(phase, "init") != 0 && strcmp(phase, "finalize") != 0) {
                (void) fprintf(stderr, "usage: slow init|finalize [--seconds=S | --stop-file=F]\n");
                return 2;
        }
        printf("slow: rank %d enters MPI_Init\n", early);
        (void) fflush(stdout);
        if (phase[0] == 'i' && early == 0)
                come_late(stop_file, seconds);
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        printf("slow: rank %d of %d enters MPI_Finalize, sum %s\n", rank, size, sum == size * (size - 1) / 2 ? "right" : "WRONG");
        (void) fflush(stdout);
        if (phase[0] == 'f' && rank == 0)
                come_late(stop_file, seconds);
        MPI_Finalize();
        printf("slow: rank %d is through\n", rank);
        return sum == size * (size - 1) / 2 ? 0 : 1;
}
