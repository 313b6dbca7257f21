/* Order-sensitive floating point arithmetic over a ring, an allreduce and an alltoallv, with a
 * checksum in every message. One lost, repeated, exchanged or damaged byte changes the hash that it
 * prints at the end.
 *
 * usage: ordered [--iterations=N] [--stop-file=F] [--pause-usec=U] [--doubles=D] [--each]
 *   --iterations  how many (default 200)
 *   --stop-file   go on after them until F exists, and then say how many it were: a second run with
 *                 --iterations set to that number must print the same hash
 *   --pause-usec  sleep in every iteration, which changes nothing in the result (default 0, with
 *                 --stop-file 20000)
 *   --doubles     of state in each rank (default 16384)
 *   --each        print the hash after each iteration, as if that were the last */
#include <math.h>
#include <mpi.h>

#include "common.h"

#define TINY_MAX 64
#define LARGE_EVERY 8

struct work {
        int rank;
        int size;
        long iteration;
        size_t n;
        double *state;
        double *incoming;
        uint64_t hash;
};

/* The sum travels beside the data, in a message of its own, as the data arrives in one piece or not
 * at all. */
static void check(const struct work *w, const char *what, int from, uint64_t have, uint64_t want) {
        if (have == want)
                return;
        (void) fprintf(stderr, "ordered: rank %d, iteration %ld: %s from rank %d is damaged (%016llx, not %016llx)\n", w->rank,
                       w->iteration, what, from, (unsigned long long) have, (unsigned long long) want);
        MPI_Abort(MPI_COMM_WORLD, 9);
}

static void compute(struct work *w) {
        double saved_state = 1.0 / (double) (w->rank + 3);

        /* Each value depends on the one before: no other order gives the same bits. */
        for (size_t i = 0; i < w->n; i++) {
                saved_state = saved_state * 0.999 + w->state[i] / 3.0;
                w->state[i] = w->state[i] * 0.7 + saved_state * 0.1 + 1e-3 * (double) (i % 7);
        }
        w->state[0] += sin(saved_state);
}

static void ring_tiny(struct work *w) {
        unsigned char out[TINY_MAX + 8];
        unsigned char in[TINY_MAX + 8];
        uint64_t seed = (uint64_t) w->iteration * 1000003U + (uint64_t) w->rank;
        int length = 1 + (int) (random_next(&seed) % TINY_MAX);
        int right = (w->rank + 1) % w->size;
        int left = (w->rank + w->size - 1) % w->size;
        MPI_Status status;
        uint64_t sum;
        int got;

        memcpy(out + 8, w->state, (size_t) length);
        sum = hash_more(HASH_START, out + 8, (size_t) length);
        memcpy(out, &sum, 8);
        MPI_Sendrecv(out, length + 8, MPI_BYTE, right, 1, in, sizeof(in), MPI_BYTE, left, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        memcpy(&sum, in, 8);
        check(w, "a tiny message", left, hash_more(HASH_START, in + 8, (size_t) got - 8), sum);
        w->hash = hash_more(w->hash, in, (size_t) got);
}

static void ring_large(struct work *w) {
        int right = (w->rank + 1) % w->size;
        int left = (w->rank + w->size - 1) % w->size;
        uint64_t sum = hash_more(HASH_START, w->state, w->n * sizeof(double));
        uint64_t want;

        MPI_Sendrecv(&sum, 1, MPI_UINT64_T, right, 2, &want, 1, MPI_UINT64_T, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(w->state, (int) w->n, MPI_DOUBLE, right, 3, w->incoming, (int) w->n, MPI_DOUBLE, left, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check(w, "a large message", left, hash_more(HASH_START, w->incoming, w->n * sizeof(double)), want);
        for (size_t i = 0; i < w->n; i++)
                w->state[i] = w->state[i] * 0.5 + w->incoming[i] * 0.5 + 1e-9;
        w->hash = hash_more(w->hash, &want, sizeof(want));
}

static void reduce(struct work *w) {
        double mine[16];
        double all[16];

        for (int i = 0; i < 16; i++)
                mine[i] = w->state[((size_t) i * 4099 + (size_t) w->iteration) % w->n];
        MPI_Allreduce(mine, all, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < 16; i++)
                w->state[((size_t) i * 5003 + 1) % w->n] += all[i] * 1e-3;
        w->hash = hash_more(w->hash, all, sizeof(all));
}

/* The amount that each pair exchanges in this iteration, nothing now and then. */
static int share(const struct work *w, int from, int to) {
        uint64_t seed = (uint64_t) w->iteration * 7919U + (uint64_t) from * 104729U + (uint64_t) to;
        uint64_t r = random_next(&seed);

        return r % 5 == 0 ? 0 : (int) (r / 8 % 2048);
}

static void exchange(struct work *w) {
        int *counts = calloc((size_t) w->size * 4, sizeof(int));
        uint64_t *sums = calloc((size_t) w->size * 2, sizeof(uint64_t));
        int *offsets = counts + w->size;
        int *in_counts = offsets + w->size;
        int *in_offsets = in_counts + w->size;
        int out_total = 0;
        int in_total = 0;
        double *out;
        double *in;

        if (!counts || !sums)
                abort();
        for (int i = 0; i < w->size; i++) {
                counts[i] = share(w, w->rank, i);
                in_counts[i] = share(w, i, w->rank);
                offsets[i] = out_total;
                in_offsets[i] = in_total;
                out_total += counts[i];
                in_total += in_counts[i];
        }
        out = malloc(((size_t) out_total + 1) * sizeof(double));
        in = malloc(((size_t) in_total + 1) * sizeof(double));
        if (!out || !in)
                abort();
        for (int i = 0; i < out_total; i++)
                out[i] = w->state[((size_t) i * 31 + (size_t) w->rank) % w->n];
        for (int i = 0; i < w->size; i++)
                sums[i] = hash_more(HASH_START, out + offsets[i], (size_t) counts[i] * sizeof(double));
        MPI_Alltoall(sums, 1, MPI_UINT64_T, sums + w->size, 1, MPI_UINT64_T, MPI_COMM_WORLD);
        MPI_Alltoallv(out, counts, offsets, MPI_DOUBLE, in, in_counts, in_offsets, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int i = 0; i < w->size; i++)
                check(w, "its share of an exchange", i,
                      hash_more(HASH_START, in + in_offsets[i], (size_t) in_counts[i] * sizeof(double)), sums[w->size + i]);
        for (int i = 0; i < in_total; i++)
                w->state[((size_t) i * 17 + 5) % w->n] += in[i] * 1e-4;
        w->hash = hash_more(w->hash, in, (size_t) in_total * sizeof(double));
        free(out);
        free(in);
        free(counts);
        free(sums);
}

static void iterate(struct work *w) {
        compute(w);
        ring_tiny(w);
        if (w->iteration % LARGE_EVERY == 0)
                ring_large(w);
        reduce(w);
        exchange(w);
}

static bool more(const struct work *w, long iterations, const char *stop_file) {
        int go = w->iteration < iterations || (stop_file && access(stop_file, F_OK) != 0);

        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return go;
}

static void report(const struct work *w, int64_t start_usec) {
        uint64_t *all = calloc((size_t) w->size, sizeof(uint64_t));
        uint64_t mine = hash_more(w->hash, w->state, w->n * sizeof(double));

        if (!all)
                abort();
        MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (w->rank == 0)
                printf("ordered: ranks %d iterations %ld hash %016llx (%.1f s)\n", w->size, w->iteration,
                       (unsigned long long) hash_more(HASH_START, all, (size_t) w->size * 8),
                       (double) (now_usec() - start_usec) / 1e6);
        free(all);
}

int main(int argc, char **argv) {
        struct work w = { .hash = HASH_START };
        long iterations = option_number(argc, argv, "iterations", 200);
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        long pause = option_number(argc, argv, "pause-usec", stop_file ? 20000 : 0);
        bool each = option_set(argc, argv, "each");
        int64_t start = now_usec();

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &w.size);
        w.n = (size_t) option_number(argc, argv, "doubles", 16384);
        w.state = malloc(w.n * sizeof(double));
        w.incoming = malloc(w.n * sizeof(double));
        if (!w.state || !w.incoming)
                abort();
        for (size_t i = 0; i < w.n; i++)
                w.state[i] = 1.0 / (double) (i + 1) + (double) w.rank;
        if (w.rank == 0) {
                printf("ordered: running\n");
                (void) fflush(stdout);
        }
        for (; more(&w, iterations, stop_file); w.iteration++) {
                if (each && w.iteration > 0)
                        report(&w, start);
                iterate(&w);
                pause_usec(pause);
        }
        report(&w, start);
        free(w.state);
        free(w.incoming);
        MPI_Finalize();
        return 0;
}
