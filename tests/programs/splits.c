/* Communicators beside MPI_COMM_WORLD: rows and columns of a grid, copies, and such as are made and
 * freed in each round, used in turns, also when ranks are lost on the way.
 *
 * usage: splits ROUNDS [LOST ROUND]...
 * The ranks are those of two rows. LOST and ROUND: this rank kills itself in this round. The lowest
 * rank that lives says "splits: N ranks". Exit 3: a result is wrong. */
#include <mpi.h>
#include <signal.h>

#include "common.h"

static int rank;

static void wrong(const char *what, long is) {
        fprintf(stderr, "rank %d: %s: %ld\n", rank, what, is);
        MPI_Abort(MPI_COMM_WORLD, 3);
}

/* The sum over all living ranks has this rank's value, and none of a rank that is not a member. */
static long sum_of(const char *what, MPI_Comm comm, long all) {
        long mine = 1L << rank, sum = 0;

        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        if ((sum & mine) == 0 || (sum & ~all) != 0)
                wrong(what, sum);
        return sum;
}

static void use_for_a_while(int round) {
        MPI_Comm comm, copy;
        int n, m;

        MPI_Comm_split(MPI_COMM_WORLD, (rank + round) % 3 == 0, -rank, &comm);
        MPI_Comm_dup(comm, &copy);
        MPI_Comm_size(comm, &n);
        MPI_Comm_size(copy, &m);
        if (m > n)
                wrong("copy", m);
        (void) sum_of("for a while", copy, ~0L);
        MPI_Comm_free(&comm);
        (void) sum_of("copy alone", copy, ~0L);
        MPI_Comm_free(&copy);
}

static void use_group(int size) {
        MPI_Group world, group;
        MPI_Comm comm;
        int ranks[64], n = 0;

        for (int i = 0; i < size; i += 2)
                ranks[n++] = i;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, n, ranks, &group);
        if (rank % 2 == 0) {
                MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &comm);
                (void) sum_of("of a group", comm, 0x5555555555555555);
                MPI_Comm_free(&comm);
        }
        MPI_Group_free(&world);
        MPI_Group_free(&group);
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 10, size, columns, bit;
        long all, row_ranks = 0, column_ranks = 0, living;
        MPI_Comm row, column;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        columns = size / 2;
        all = (1L << size) - 1;
        MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank, &row);
        MPI_Comm_split(MPI_COMM_WORLD, rank % columns, rank, &column);
        for (int i = 0; i < size; i++) {
                row_ranks |= i / columns == rank / columns ? 1L << i : 0;
                column_ranks |= i % columns == rank % columns ? 1L << i : 0;
        }
        for (int round = 0; round < rounds; round++) {
                long mine = 1L << rank, sum = 0;

                for (int i = 2; i + 1 < argc; i += 2) {
                        if (atoi(argv[i + 1]) != round)
                                continue;
                        MPI_Barrier(MPI_COMM_WORLD); /* who dies while others make a communicator may take them along: rmrt-ft(7) */
                        if (atoi(argv[i]) == rank)
                                (void) raise(SIGKILL);
                }
                (void) sum_of("row", row, row_ranks);
                /* A rank may be far ahead of the last of its row here. */
                MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, columns - 1, row);
                if (rank % columns == columns - 1 && ((sum & mine) == 0 || (sum & ~row_ranks) != 0))
                        wrong("reduce in a row", sum);
                (void) sum_of("column", column, column_ranks);
                use_for_a_while(round);
                use_group(size);
        }
        living = sum_of("all", MPI_COMM_WORLD, all);
        for (bit = 0; (living >> bit & 1) == 0; bit++)
                ;
        if (bit == rank)
                printf("splits: %d ranks\n", __builtin_popcountl((unsigned long) living));
        MPI_Finalize();
        return 0;
}
