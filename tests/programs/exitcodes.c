/* Ends in every way a rank can end.
 *
 * usage: exitcodes ok | exit RANK CODE | signal RANK SIGNO | abort RANK CODE | unfinalized RANK
 *         CODE [--delay-msec=D]
 *   exit         after MPI_Finalize, RANK leaves with CODE and the others with 0
 *   signal       RANK raises SIGNO while the others wait for it
 *   abort        RANK calls MPI_Abort(CODE) while the others wait for it
 *   unfinalized  RANK leaves with CODE without MPI_Finalize while the others wait for it */
#include <mpi.h>
#include <signal.h>
#include <sys/resource.h>

#include "common.h"

int main(int argc, char **argv) {
        const char *how = argc > 1 ? argv[1] : "";
        int who = argc > 2 ? atoi(argv[2]) : 0;
        int code = argc > 3 ? atoi(argv[3]) : 0;
        /* No core files where the test runs. */
        const struct rlimit no_core = { 0, 0 };
        int rank;

        (void) setrlimit(RLIMIT_CORE, &no_core);
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Barrier(MPI_COMM_WORLD);
        pause_usec(option_number(argc, argv, "delay-msec", 0) * 1000);
        if (rank == who && strcmp(how, "signal") == 0) {
                (void) signal(code, SIG_DFL);
                (void) raise(code);
        }
        if (rank == who && strcmp(how, "abort") == 0)
                MPI_Abort(MPI_COMM_WORLD, code);
        if (rank == who && strcmp(how, "unfinalized") == 0)
                _exit(code);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return rank == who && strcmp(how, "exit") == 0 ? code : 0;
}
