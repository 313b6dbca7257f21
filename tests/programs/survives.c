/* Every collective operation of MPI on one communicator after another, with results that each rank can check also when some are lost on the way: what is in them from a rank is
 * whole, or, if the rank is dead, missing. Nothing that a living rank has given may be.
 *
 * usage: survives ROUNDS SEED [LOST STEP]...
 * LOST and STEP: this rank kills itself before its operation number STEP, or within it if STEP is negative: a thread does it, a little later. Ranks that live say nothing; the
 * lowest says "survives: N ranks". Exit 3: a result is wrong. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>

#include "common.h"

#define COUNT 3
#define LARGE 3000 /* beyond what is kept of an operation */

static int rank, size, step, arguments;
static char **argument;
static long seed;

static void wrong(const char *what, int from, long is) {
        fprintf(stderr, "rank %d step %d: %s: %ld from rank %d\n", rank, step, what, is, from);
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static void *die(void *arg) {
        pause_usec((int64_t) (uintptr_t) arg);
        (void) raise(SIGKILL);
        return NULL;
}

static void next_step(void) {
        step++;
        for (int i = 3; i + 1 < arguments; i += 2) {
                pthread_t thread;

                if (atoi(argument[i]) != rank)
                        continue;
                if (atoi(argument[i + 1]) == step)
                        (void) raise(SIGKILL);
                if (atoi(argument[i + 1]) == -step)
                        (void) pthread_create(&thread, NULL, die, (void *) (uintptr_t) (seed % 200));
        }
}

/* What a rank puts in: nobody else has these bits. */
static long bit(int from) {
        return 1L << from;
}

/* A sum of bits: mine is in it, and nothing that is none. */
static void check_sum(const char *what, long is, long factor) {
        if (is % factor || (is / factor & bit(rank)) == 0 || is / factor >= bit(size))
                wrong(what, rank, is);
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
        for (int i = 0; i < count; i++) {
                check_sum("scan", out[i], i % 5 + 1);
                if (out[i] / (i % 5 + 1) >= 2 * bit(rank))
                        wrong("scan", rank, out[i]);
        }
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

/* A part of `from` for `to`; a dead rank's may be missing. */
static long part(int from, int to) {
        return 1000 + from * 100 + to;
}

static void check_parts(const char *what, const long *is, int count, int to, const char *lives) {
        for (int from = 0; from < size; from++)
                for (int i = 0; i < count; i++)
                        if (is[from * count + i] != part(from, to) && (is[from * count + i] != -100 - rank || lives[from]))
                                wrong(what, from, is[from * count + i]);
}

static void fill(long *data, int n, long value) {
        for (int i = 0; i < n; i++)
                data[i] = value;
}

static void exchanges(int count, int root, char *lives) {
        long *in = calloc((size_t) (count * size), sizeof(*in)), *out = calloc((size_t) (count * size), sizeof(*out));
        int *counts = calloc((size_t) size, sizeof(*counts)), *firsts = calloc((size_t) size, sizeof(*firsts));

        for (int i = 0; i < size; i++) {
                counts[i] = count;
                firsts[i] = (size - 1 - i) * count;
        }
        fill(out, count * size, -100 - rank);
        fill(in, count, part(rank, 77));
        next_step();
        MPI_Allgather(in, count, MPI_LONG, out, count, MPI_LONG, MPI_COMM_WORLD);
        check_parts("allgather", out, count, 77, lives);
        next_step();
        fill(out, count * size, -100 - rank);
        MPI_Allgatherv(in, count, MPI_LONG, out, counts, firsts, MPI_LONG, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
                if (out[firsts[from]] != part(from, 77) && (out[firsts[from]] != -100 - rank || lives[from]))
                        wrong("allgatherv", from, out[firsts[from]]);
        next_step();
        fill(out, count * size, -100 - rank);
        MPI_Gather(in, count, MPI_LONG, out, count, MPI_LONG, root, MPI_COMM_WORLD);
        if (rank == root)
                check_parts("gather", out, count, 77, lives);
        next_step();
        fill(out, count * size, -100 - rank);
        MPI_Gatherv(in, count, MPI_LONG, out, counts, firsts, MPI_LONG, root, MPI_COMM_WORLD);
        if (rank == root && out[firsts[root]] != part(root, 77))
                wrong("gatherv", root, out[firsts[root]]);
        for (int to = 0; to < size; to++)
                fill(in + to * count, count, part(rank, to));
        next_step();
        fill(out, count * size, -100 - rank);
        MPI_Alltoall(in, count, MPI_LONG, out, count, MPI_LONG, MPI_COMM_WORLD);
        check_parts("alltoall", out, count, rank, lives);
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

/* Who lives, as all see it alike: a rank that is dead now was so before, and a rank that lives is in the sum. */
static void look_who_lives(char *lives) {
        long mine = bit(rank), all = 0;

        next_step();
        MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        check_sum("who lives", all, 1);
        for (int i = 0; i < size; i++)
                lives[i] = (all & bit(i)) != 0;
}

/* Ranks die also between the look and what is checked by it: those that are to die are never missed. */
static void forgive(char *lives) {
        for (int i = 3; i + 1 < arguments; i += 2)
                lives[atoi(argument[i])] = 0;
}

/* One that is to die does not come through. */
static void await_end(void) {
        for (int i = 3; i + 1 < arguments; i += 2)
                while (atoi(argument[i]) == rank)
                        (void) pause();
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 10, lowest;
        char lives[64];

        arguments = argc;
        argument = argv;
        seed = argc > 2 ? atol(argv[2]) : 0;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        for (int round = 0; round < rounds; round++) {
                int root = size - 1, count = round % 4 == 3 ? LARGE : COUNT;

                look_who_lives(lives);
                forgive(lives);
                reductions(count, root);
                exchanges(count, root, lives);
                ring();
        }
        await_end();
        look_who_lives(lives);
        for (lowest = 0; !lives[lowest]; lowest++)
                ;
        if (rank == lowest) {
                int n = 0;

                for (int i = 0; i < size; i++)
                        n += lives[i];
                printf("survives: %d ranks\n", n);
        }
        MPI_Finalize();
        return 0;
}
