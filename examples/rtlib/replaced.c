/* A sum over all ranks and steps that misses nothing, whichever ranks are lost: each is replaced,
 * and learns from the others how far they are.
 *
 *      mpicc -O2 -o replaced replaced.c $(pkg-config --cflags --libs rmrt)
 *      rm-mpirun -n 4 --on-rank-loss continue:critical=0-3 --spare-ranks 2 ./replaced 10000
 *
 * Where a step begins, all say how far they are. A rank that has replaced another says that it does
 * not know; then all do the same once more. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rm/rmrt.h>

enum { UNKNOWN = -1 };

struct word {
        long step, value, total; /* the value is the rank's own, of this step; the total is of all, before it */
};

/* The computation of a step takes a millisecond. */
static long compute(int rank, long step) {
        usleep(1000);
        return (rank + 1) * (step % 7);
}

/* False: some rank did not know; now all do. If none knows, all begin. */
static bool add_up(struct word *mine, const struct word *all, int size) {
        const struct word *known = NULL;
        bool complete = true;
        long sum = 0;

        for (int i = 0; i < size; i++) {
                if (all[i].step == UNKNOWN)
                        complete = false;
                else
                        known = &all[i];
                sum += all[i].value;
        }
        mine->step = known ? known->step + complete : 0;
        mine->total = (known ? known->total : 0) + (complete ? sum : 0);
        return complete;
}

int main(int argc, char **argv) {
        long steps = argc > 1 ? atol(argv[1]) : 1000;
        struct word mine = { 0 }, *all;
        int rank, size;

        MPI_Init(&argc, &argv);
        rmrt_init();
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        all = calloc((size_t) size, sizeof(*all));
        if (!all)
                MPI_Abort(MPI_COMM_WORLD, 1);
        if (rmrt_is_respawned())
                mine.step = UNKNOWN;
        while (mine.step < steps) {
                if (mine.step != UNKNOWN)
                        mine.value = compute(rank, mine.step);
                MPI_Allgather(&mine, 3, MPI_LONG, all, 3, MPI_LONG, MPI_COMM_WORLD);
                if (add_up(&mine, all, size) && rank == 0)
                        rmrt_step((uint64_t) mine.step, (uint64_t) steps);
        }
        if (rank == 0)
                printf("total %ld after %ld steps of %d ranks\n", mine.total, steps, size);
        free(all);
        rmrt_finalize();
        MPI_Finalize();
        return 0;
}
