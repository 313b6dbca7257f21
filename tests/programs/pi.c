/* Pi by Monte Carlo, in rounds: each rank throws darts, and all learn after each round what all
 * have. It is an ordinary program, in which a rank may be lost.
 *
 * usage: pi [ROUNDS [DARTS [LOST ROUND]]...]
 * LOST and ROUND: this rank kills itself in this round; may be several. Rank 0, or the lowest that
 * lives, says at the end: "pi ROUNDS SUM-OF-RANKS PI". */
#include <mpi.h>
#include <signal.h>

#include "common.h"

static long throw_darts(uint64_t *state, long darts) {
        long hits = 0;

        for (long i = 0; i < darts; i++) {
                double x = (double) (random_next(state) >> 11) / 9007199254740992.0,
                       y = (double) (random_next(state) >> 11) / 9007199254740992.0;

                hits += x * x + y * y < 1;
        }
        return hits;
}

static void maybe_die(int argc, char **argv, int rank, long round) {
        for (int i = 3; i + 1 < argc; i += 2)
                if (atoi(argv[i]) == rank && atol(argv[i + 1]) == round)
                        (void) raise(SIGKILL);
}

int main(int argc, char **argv) {
        long rounds = argc > 1 ? atol(argv[1]) : 100, darts = argc > 2 ? atol(argv[2]) : 100000;
        long all[3] = { 0 };
        uint64_t state;
        int rank, lowest;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        state = (uint64_t) rank + 1;
        for (long round = 0; round < rounds; round++) {
                long mine[3] = { throw_darts(&state, darts), darts, 1 << rank % 30 }, sum[3];

                maybe_die(argc, argv, rank, round);
                MPI_Allreduce(mine, sum, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
                all[0] += sum[0];
                all[1] += sum[1];
                all[2] = sum[2];
        }
        MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (rank == lowest)
                printf("pi %ld %ld %.5f\n", rounds, all[2], 4 * (double) all[0] / (double) all[1]);
        MPI_Finalize();
        return 0;
}
