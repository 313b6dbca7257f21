/* A program that keeps its own state (rmrt_own_state): rank 0 writes the number of steps to a file
 * every so often, and begins with what is there. Each of its processes tells, in FILE.begun, what
 * it began with. With the library, so it is built by its test.
 *
 * usage: keeper --stop-file=FILE --state=FILE [--stuck]     stuck: rank 0 holds what no move can
 *                                                           carry */
#include <fcntl.h>
#include <mpi.h>
#include <mqueue.h>
#include <rm/rmrt.h>

#include "common.h"

#define STEP_USEC 10000
#define SAVE_STEPS 50

static unsigned long long load(const char *path) {
        FILE *f = fopen(path, "re");
        unsigned long long steps = 0;

        if (f && fscanf(f, "%llu", &steps) != 1)
                steps = 0;
        if (f)
                (void) fclose(f);
        return steps;
}

static void save(const char *path, unsigned long long steps, const char *mode) {
        FILE *f = fopen(path, mode);

        if (!f)
                abort();
        (void) fprintf(f, "%llu\n", steps);
        (void) fclose(f);
}

static void save_whole(const char *path, unsigned long long steps) {
        char new_path[512];

        (void) snprintf(new_path, sizeof(new_path), "%s.new", path);
        save(new_path, steps, "we");
        if (rename(new_path, path) < 0)
                abort();
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", ""), *state = option_text(argc, argv, "state", "");
        unsigned long long steps = load(state);
        char begun[512];
        int rank, on = 1;

        rmrt_own_state(true);
        (void) MPI_Init(&argc, &argv);
        (void) rmrt_init();
        (void) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        (void) snprintf(begun, sizeof(begun), "%s.begun", state);
        if (rank == 0)
                save(begun, steps, "ae");
        if (rank == 0 && option_set(argc, argv, "stuck") && mq_open("/keeper", O_CREAT | O_RDWR, 0600, NULL) < 0)
                abort();
        if (rank == 0)
                (void) printf("keeper: running\n");
        (void) fflush(stdout);
        while (on) {
                pause_usec(STEP_USEC);
                steps++;
                if (rank == 0 && steps % SAVE_STEPS == 0)
                        save_whole(state, steps);
                (void) rmrt_step(steps, 0);
                on = rank > 0 || access(stop_file, F_OK) < 0;
                (void) MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        if (rank == 0)
                (void) printf("keeper: %llu steps\n", steps);
        (void) fflush(stdout);
        rmrt_finalize();
        (void) MPI_Finalize();
        return 0;
}
