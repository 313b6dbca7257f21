/* Does nothing of use for a while, so that there is a job.
 *
 * usage: spin [--seconds=S] [--stop-file=F] [--catch] [--ignore]
 *   --catch   on SIGINT or SIGTERM: say so and leave with 7
 *   --ignore  SIGINT and SIGTERM */
#include <mpi.h>
#include <signal.h>

#include "common.h"

static volatile sig_atomic_t caught;

static void on_signal(int signo) {
        caught = signo;
}

int main(int argc, char **argv) {
        int64_t end = now_usec() + option_number(argc, argv, "seconds", 3600) * 1000000;
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        bool catches = option_set(argc, argv, "catch");
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (catches || option_set(argc, argv, "ignore")) {
                (void) signal(SIGINT, catches ? on_signal : SIG_IGN);
                (void) signal(SIGTERM, catches ? on_signal : SIG_IGN);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("spin: running\n");
                (void) fflush(stdout);
        }
        while (now_usec() < end && !caught && !(stop_file && access(stop_file, F_OK) == 0))
                pause_usec(10000);
        if (caught) {
                printf("spin: rank %d caught signal %d\n", rank, (int) caught);
                (void) fflush(stdout);
                _exit(7);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        if (rank == 0)
                printf("spin: done\n");
        return 0;
}
