/* Collective operations that do not block, several at once, on two communicators, waited for in
 * another order than they were begun in, with results that each rank can check also when some are
 * lost on the way.
 *
 * usage: overlaps ROUNDS SEED [LOST STEP]...: loses.h. Says "overlaps: N ranks". Exit 3: a result
 *         is wrong. */
#include "loses.h"

#define LARGE 3000 /* beyond what is kept of an operation */
#define ROOT 0 /* never one that is to die */

static MPI_Comm other;

static void wait_backwards(MPI_Request *requests, int n) {
        for (int i = n - 1; i >= 0; i--)
                if (i % 2)
                        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void reductions(int count) {
        long *in = calloc((size_t) (count * size), sizeof(*in)), *out[7];
        int *counts = calloc((size_t) size, sizeof(*counts));
        MPI_Request requests[7];

        for (int i = 0; i < 7; i++)
                out[i] = calloc((size_t) (count * size), sizeof(*out[i]));
        for (int i = 0; i < count * size; i++)
                in[i] = bit(rank) * (i % 5 + 1);
        memcpy(out[1], in, (size_t) count * sizeof(*in));
        for (int i = 0; i < size; i++)
                counts[i] = count;
        next_step();
        MPI_Iallreduce(in, out[0], count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(MPI_IN_PLACE, out[1], count, MPI_LONG, MPI_SUM, other, &requests[1]);
        next_step();
        MPI_Ireduce(in, out[2], count, MPI_LONG, MPI_SUM, ROOT, MPI_COMM_WORLD, &requests[2]);
        MPI_Iscan(in, out[3], count, MPI_LONG, MPI_SUM, other, &requests[3]);
        next_step();
        MPI_Iexscan(in, out[4], count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[4]);
        MPI_Ireduce_scatter_block(in, out[5], count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[5]);
        MPI_Ireduce_scatter(in, out[6], counts, MPI_LONG, MPI_SUM, other, &requests[6]);
        next_step();
        wait_backwards(requests, 7);
        for (int i = 0; i < count; i++) {
                check_sum("iallreduce", out[0][i], i % 5 + 1);
                check_sum("iallreduce in place", out[1][i], i % 5 + 1);
                if (rank == ROOT)
                        check_sum("ireduce", out[2][i], i % 5 + 1);
                if ((out[3][i] / (i % 5 + 1) & bit(rank)) == 0 || out[3][i] / (i % 5 + 1) >= 2 * bit(rank))
                        wrong("iscan", rank, out[3][i]);
                if (out[4][i] / (i % 5 + 1) >= bit(rank))
                        wrong("iexscan", rank, out[4][i]);
                check_sum("ireduce_scatter_block", out[5][i], (rank * count + i) % 5 + 1);
                check_sum("ireduce_scatter", out[6][i], (rank * count + i) % 5 + 1);
        }
        for (int i = 0; i < 7; i++)
                free(out[i]);
        free(in);
        free(counts);
}

static void check_parts(const char *what, const long *is, int count, int to) {
        for (int from = 0; from < size; from++)
                for (int i = 0; i < count; i++)
                        check_part(what, from, is[from * count + i], part(from, to));
}

static void exchanges(int count) {
        long *to_all = calloc((size_t) (count * size), sizeof(*to_all)), *same = calloc((size_t) count, sizeof(*same)), *out[9];
        int *counts = calloc((size_t) size, sizeof(*counts)), *firsts = calloc((size_t) size, sizeof(*firsts));
        int *bytes = calloc((size_t) size, sizeof(*bytes));
        MPI_Datatype *types = calloc((size_t) size, sizeof(MPI_Datatype)), longs;
        MPI_Request requests[9];

        for (int i = 0; i < 9; i++) {
                out[i] = calloc((size_t) (count * size), sizeof(*out[i]));
                fill(out[i], count * size, hole());
        }
        for (int i = 0; i < size; i++) {
                counts[i] = count;
                firsts[i] = i * count;
                bytes[i] = i * count * (int) sizeof(long);
                types[i] = MPI_LONG;
                fill(to_all + i * count, count, part(rank, i));
        }
        fill(same, count, part(rank, 77));
        next_step();
        MPI_Igather(same, count, MPI_LONG, out[0], count, MPI_LONG, ROOT, MPI_COMM_WORLD, &requests[0]);
        MPI_Igatherv(same, count, MPI_LONG, out[1], counts, firsts, MPI_LONG, ROOT, other, &requests[1]);
        MPI_Iscatter(to_all, count, MPI_LONG, out[2], count, MPI_LONG, ROOT, MPI_COMM_WORLD, &requests[2]);
        next_step();
        MPI_Iscatterv(to_all, counts, firsts, MPI_LONG, out[3], count, MPI_LONG, ROOT, other, &requests[3]);
        /* The type is freed while it is in use. */
        MPI_Type_contiguous(count, MPI_LONG, &longs);
        MPI_Type_commit(&longs);
        MPI_Iallgather(same, 1, longs, out[4], 1, longs, MPI_COMM_WORLD, &requests[4]);
        MPI_Type_free(&longs);
        MPI_Iallgatherv(same, count, MPI_LONG, out[5], counts, firsts, MPI_LONG, MPI_COMM_WORLD, &requests[5]);
        next_step();
        MPI_Ialltoall(to_all, count, MPI_LONG, out[6], count, MPI_LONG, other, &requests[6]);
        MPI_Ialltoallv(to_all, counts, firsts, MPI_LONG, out[7], counts, firsts, MPI_LONG, MPI_COMM_WORLD, &requests[7]);
        MPI_Ialltoallw(to_all, counts, bytes, types, out[8], counts, bytes, types, other, &requests[8]);
        wait_backwards(requests, 9);
        if (rank == ROOT) {
                check_parts("igather", out[0], count, 77);
                check_parts("igatherv", out[1], count, 77);
        }
        for (int i = 0; i < count; i++)
                if (out[2][i] != part(ROOT, rank) || out[3][i] != part(ROOT, rank))
                        wrong("iscatter", ROOT, out[2][i]);
        check_parts("iallgather", out[4], count, 77);
        check_parts("iallgatherv", out[5], count, 77);
        for (int i = 6; i < 9; i++)
                check_parts("ialltoall", out[i], count, rank);
        for (int i = 0; i < 9; i++)
                free(out[i]);
        free(to_all);
        free(same);
        free(counts);
        free(firsts);
        free(bytes);
        free(types);
}

/* A rank begins one operation and then does another that blocks, on the other communicator; its
 * neighbour waits for the first before it begins the other. */
static void cross(void) {
        long mine = bit(rank), first = 0, second = 0;
        MPI_Request request;

        next_step();
        MPI_Iallreduce(&mine, &first, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        if (rank % 2)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &second, 1, MPI_LONG, MPI_SUM, other);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_sum("iallreduce beside", first, 1);
        check_sum("allreduce beside", second, 1);
        next_step();
        MPI_Ireduce(&mine, &first, 1, MPI_LONG, MPI_SUM, ROOT, other, &request);
        MPI_Allreduce(&mine, &second, 1, MPI_LONG, MPI_SUM, other);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == ROOT)
                check_sum("ireduce before", first, 1);
        check_sum("allreduce behind", second, 1);
}

/* A message is what the others wait for before they take part: it is not to be waited for by who
 * tests. */
static void poll(void) {
        long data[2] = { rank == ROOT ? 42 : 0, 0 }, token = rank;
        MPI_Request requests[2];
        int done = 0;

        next_step();
        if (rank != ROOT)
                MPI_Recv(&token, 1, MPI_LONG, ROOT, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibcast(data, 2, MPI_LONG, ROOT, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
        MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
        for (int to = 0; rank == ROOT && to < size; to++)
                if (to != ROOT)
                        MPI_Send(&token, 1, MPI_LONG, to, 9, MPI_COMM_WORLD);
        while (!done)
                MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (data[0] != 42)
                wrong("ibcast", ROOT, data[0]);
}

/* More than what is kept, all under way at once. */
static void many(void) {
        static long mine, sums[400];
        MPI_Request requests[400];

        mine = bit(rank);
        next_step();
        for (int i = 0; i < 400; i++)
                MPI_Iallreduce(&mine, &sums[i], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(400, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 400; i++)
                check_sum("one of many", sums[i], 1);
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 10, n;

        begin(argc, argv);
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
        MPI_Comm_size(other, &n);
        if (n < size) /* who was lost before it was made is no rank of it */
                other = MPI_COMM_WORLD;
        for (int round = 0; round < rounds; round++) {
                int count = round % 4 == 3 ? LARGE : 3;

                scan_living(true);
                reductions(count);
                exchanges(count);
                cross();
                poll();
                many();
        }
        return end("overlaps");
}
