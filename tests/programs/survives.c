/* Every collective operation of MPI on one communicator after another, with results that each rank
 * can check also when some are lost on the way: what is in them from a rank is whole, or, if the
 * rank is dead, missing. Nothing that a living rank has given may be.
 *
 * usage: survives ROUNDS SEED [LOST STEP]...
 * LOST and STEP: this rank kills itself before its operation number STEP, or within it if STEP is
 * negative: a thread does it, a little later. Ranks that live say nothing; the lowest says
 * "survives: N ranks". Exit 3: a result is wrong. */
#include "loses.h"

#define COUNT 3
#define LARGE 3000 /* beyond what is kept of an operation */

/* Checks the sum of the ranks up to this one. */
static void check_scan(long is, long factor) {
        if (is % factor || (is / factor & bit(rank)) == 0 || is / factor >= 2 * bit(rank))
                wrong("scan", rank, is);
}

static void reductions(int count, int root) {
        long *in = calloc((size_t) (count * size), sizeof(*in)), *out = calloc((size_t) (count * size), sizeof(*out));

        for (int i = 0; i < count * size; i++)
                in[i] = bit(rank) * (i % 5 + 1);
        next_step();
        MPI_Allreduce(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
                check_sum("allreduce", out[i], i % 5 + 1);
        for (int i = 1; i < count; i++)
                if (out[i] / (i % 5 + 1) != out[0])
                        wrong("allreduce, parts differ", rank, out[i]);
        next_step();
        memcpy(out, in, (size_t) count * sizeof(*in));
        MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
                check_sum("allreduce in place", out[i], i % 5 + 1);
        next_step();
        MPI_Reduce(in, out, count, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < count; i++)
                check_sum("reduce", out[i], i % 5 + 1);
        next_step();
        MPI_Scan(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
                check_scan(out[i], i % 5 + 1);
        next_step();
        memset(out, 0, (size_t) count * sizeof(*out));
        MPI_Exscan(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
                if (out[i] / (i % 5 + 1) >= bit(rank))
                        wrong("exscan", rank, out[i]);
        next_step();
        MPI_Reduce_scatter_block(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
                check_sum("reduce_scatter_block", out[i], (rank * count + i) % 5 + 1);
        free(in);
        free(out);
}

static void check_parts(const char *what, const long *is, int count, int to) {
        for (int from = 0; from < size; from++)
                for (int i = 0; i < count; i++)
                        check_part(what, from, is[from * count + i], part(from, to));
}

static void exchanges(int count, int root) {
        long *in = calloc((size_t) (count * size), sizeof(*in)), *out = calloc((size_t) (count * size), sizeof(*out));
        int *counts = calloc((size_t) size, sizeof(*counts)), *firsts = calloc((size_t) size, sizeof(*firsts));

        for (int i = 0; i < size; i++) {
                counts[i] = count;
                firsts[i] = (size - 1 - i) * count;
        }
        fill(out, count * size, hole());
        fill(in, count, part(rank, 77));
        next_step();
        MPI_Allgather(in, count, MPI_LONG, out, count, MPI_LONG, MPI_COMM_WORLD);
        check_parts("allgather", out, count, 77);
        next_step();
        fill(out, count * size, hole());
        MPI_Allgatherv(in, count, MPI_LONG, out, counts, firsts, MPI_LONG, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
                check_part("allgatherv", from, out[firsts[from]], part(from, 77));
        next_step();
        fill(out, count * size, hole());
        MPI_Gather(in, count, MPI_LONG, out, count, MPI_LONG, root, MPI_COMM_WORLD);
        if (rank == root)
                check_parts("gather", out, count, 77);
        next_step();
        fill(out, count * size, hole());
        MPI_Gatherv(in, count, MPI_LONG, out, counts, firsts, MPI_LONG, root, MPI_COMM_WORLD);
        if (rank == root && out[firsts[root]] != part(root, 77))
                wrong("gatherv", root, out[firsts[root]]);
        for (int to = 0; to < size; to++)
                fill(in + to * count, count, part(rank, to));
        next_step();
        fill(out, count * size, hole());
        MPI_Alltoall(in, count, MPI_LONG, out, count, MPI_LONG, MPI_COMM_WORLD);
        check_parts("alltoall", out, count, rank);
        next_step();
        memcpy(out, in, (size_t) (count * size) * sizeof(*in));
        MPI_Alltoall(MPI_IN_PLACE, count, MPI_LONG, out, count, MPI_LONG, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
                if (out[from * count] != part(from, rank) && (out[from * count] != part(rank, from) || lives[from]))
                        wrong("alltoall in place", from, out[from * count]);
        next_step();
        fill(out, count, -1);
        MPI_Scatter(in, count, MPI_LONG, out, count, MPI_LONG, root, MPI_COMM_WORLD);
        if (out[0] != part(root, rank) || out[count - 1] != part(root, rank))
                wrong("scatter", root, out[0]);
        next_step();
        fill(out, count, rank == root ? part(root, 5) : -1);
        MPI_Bcast(out, count, MPI_LONG, root, MPI_COMM_WORLD);
        if (out[0] != part(root, 5) || out[count - 1] != part(root, 5))
                wrong("bcast", root, out[0]);
        next_step();
        MPI_Barrier(MPI_COMM_WORLD);
        free(in);
        free(out);
        free(counts);
        free(firsts);
}

/* Round a ring, over whoever is dead: the message is missing then, and nothing else. */
static void ring(void) {
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        long out = part(rank, to), in = -1;
        MPI_Request requests[2];

        next_step();
        MPI_Irecv(&in, 1, MPI_LONG, from, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_LONG, to, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (in != part(from, rank) && in != -1)
                wrong("ring", from, in);
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 10;

        begin(argc, argv);
        for (int round = 0; round < rounds; round++) {
                int root = size - 1, count = round % 4 == 3 ? LARGE : COUNT;

                if (round > 0)
                        scan_living(true);
                reductions(count, root);
                exchanges(count, root);
                ring();
        }
        return end("survives");
}
