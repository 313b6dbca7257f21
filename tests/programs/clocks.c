/* No clock that a program can see may go backwards in a rank, whatever node it runs on; how far it
 * jumped is printed.
 *
 * usage: clocks [--seconds=S] [--stop-file=F] [--max-jump-msec=M] */
#include <mpi.h>

#include "common.h"

struct watch {
        const char *name;
        int64_t last_usec;
        int64_t start_usec;
        int64_t largest_usec;
        long backwards;
};

static int64_t wtime_usec(void) {
        return (int64_t) (MPI_Wtime() * 1e6);
}

static void watch_start(struct watch *w, const char *name, int64_t value) {
        *w = (struct watch) { .name = name, .last_usec = value, .start_usec = value };
}

static void watch_step(struct watch *w, int rank, int64_t value) {
        int64_t step = value - w->last_usec;

        if (step < 0) {
                w->backwards++;
                (void) fprintf(stderr, "clocks: rank %d: %s went back by %lld us\n", rank, w->name, (long long) -step);
        }
        if (step > w->largest_usec)
                w->largest_usec = step;
        w->last_usec = value;
}

int main(int argc, char **argv) {
        int64_t length = option_number(argc, argv, "seconds", 5) * 1000000;
        int64_t max_jump = option_number(argc, argv, "max-jump-msec", 10000) * 1000;
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        struct watch clocks[3];
        int bad = 0;
        int all_bad;
        int go = 1;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        watch_start(&clocks[0], "CLOCK_MONOTONIC", now_usec());
        watch_start(&clocks[1], "MPI_Wtime", wtime_usec());
        watch_start(&clocks[2], "CLOCK_BOOTTIME", clock_usec(CLOCK_BOOTTIME));
        if (rank == 0) {
                printf("clocks: running\n");
                (void) fflush(stdout);
        }
        while (go) {
                for (int i = 0; i < 100; i++) {
                        watch_step(&clocks[0], rank, now_usec());
                        watch_step(&clocks[1], rank, wtime_usec());
                        watch_step(&clocks[2], rank, clock_usec(CLOCK_BOOTTIME));
                        pause_usec(100);
                }
                go = stop_file ? access(stop_file, F_OK) != 0 : clocks[0].last_usec - clocks[0].start_usec < length;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; i < 3; i++) {
                bad += clocks[i].backwards > 0 || clocks[i].largest_usec > max_jump;
                printf("clocks: rank %d %s: %lld ms passed, largest step %lld ms, %ld steps back\n", rank, clocks[i].name,
                       (long long) (clocks[i].last_usec - clocks[i].start_usec) / 1000, (long long) clocks[i].largest_usec / 1000,
                       clocks[i].backwards);
        }
        MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("clocks: %s\n", all_bad ? "BAD" : "good");
        MPI_Finalize();
        return all_bad ? 1 : 0;
}
