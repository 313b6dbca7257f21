/* Does nothing of use for a while, so that there is a job.
 *
 * usage: spin [--seconds=S] [--stop-file=F] [--catch] [--ignore] [--save=PREFIX [--save-msec=M]
 *         [--then=exit|signal|finalize] [--only=RANK]]
 *   --catch   on SIGINT or SIGTERM: say so and leave with 7
 *   --ignore  SIGINT and SIGTERM
 *   --save    on SIGTERM, of all ranks or only of RANK: write M ms (1500) long into PREFIX.RANK,
 *             whose last line is then "saved", say so, and leave with 7, by that signal, or with
 *             the other ranks by MPI_Finalize */
#include <mpi.h>
#include <signal.h>

#include "common.h"

static volatile sig_atomic_t caught;

static void on_signal(int signo) {
        caught = signo;
}

/* Saves as programs do whose saving takes long. */
static void save(int argc, char **argv, int rank) {
        const char *then = option_text(argc, argv, "then", "exit");
        int64_t end = now_usec() + option_number(argc, argv, "save-msec", 1500) * 1000;
        char path[4096];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s.%d", option_text(argc, argv, "save", NULL), rank);
        f = fopen(path, "w");
        while (f && now_usec() < end) {
                (void) fprintf(f, "half of it\n");
                (void) fflush(f);
                pause_usec(50000);
        }
        if (!f || fprintf(f, "saved\n") < 0 || fclose(f) < 0)
                _exit(8);
        printf("spin: rank %d has saved\n", rank);
        (void) fflush(stdout);
        if (strcmp(then, "exit") == 0)
                _exit(7);
        (void) signal(caught, SIG_DFL);
        if (strcmp(then, "signal") == 0)
                (void) raise(caught);
}

int main(int argc, char **argv) {
        int64_t end = now_usec() + option_number(argc, argv, "seconds", 3600) * 1000000;
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        bool catches = option_set(argc, argv, "catch");
        bool saves;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        saves = option_text(argc, argv, "save", NULL) && option_number(argc, argv, "only", rank) == rank;
        if (saves)
                (void) signal(SIGTERM, on_signal);
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
        if (caught && saves) {
                save(argc, argv, rank);
        } else if (caught) {
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
