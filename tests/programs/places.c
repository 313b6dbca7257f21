/* A program that has messages on their way nearly all the time, but at one place of each iteration,
 * where it says so (rmrt_checkpoint_here). Each rank knows where it was whenever its clock jumped
 * by more than JUMP_USEC, that is, where it was stopped for a restart. With the library, so it is
 * built by its test.
 *
 * usage: places --stop-file=FILE [--without] [--late=RANK]     without: it says nothing; late: RANK
 *         comes to no place but the first */
#include <mpi.h>
#include <rm/rmrt.h>

#include "common.h"

#define JUMP_USEC 4000000
#define WORDS 65536 /* of a message: too large to be sent unasked */
#define EXCHANGES 5
#define BUSY_USEC 3000 /* in each exchange */

static bool sending; /* messages are on their way */
static int64_t seen_usec;
static unsigned jumps_sending, jumps_placed;
static char places[256];

static void scan(uint64_t iteration) {
        int64_t now = clock_usec(CLOCK_REALTIME);
        size_t n = strlen(places);

        if (seen_usec > 0 && now - seen_usec > JUMP_USEC) {
                jumps_sending += sending;
                jumps_placed += !sending;
                (void) snprintf(places + n, sizeof(places) - n, " %llu", (unsigned long long) iteration);
        }
        seen_usec = now;
}

/* Around the ring. What it would compute meanwhile it sleeps. */
static bool exchange(int rank, int ranks, uint64_t iteration) {
        static uint64_t out[WORDS], in[WORDS];
        int64_t begin = now_usec();
        MPI_Request requests[2];
        int done = 0;

        out[0] = out[WORDS - 1] = iteration;
        sending = true;
        (void) MPI_Irecv(in, WORDS, MPI_UINT64_T, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &requests[0]);
        (void) MPI_Isend(out, WORDS, MPI_UINT64_T, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &requests[1]);
        while (!done || now_usec() - begin < BUSY_USEC) {
                scan(iteration);
                if (!done)
                        (void) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
                pause_usec(done ? 500 : 50);
        }
        sending = false;
        return in[0] == iteration && in[WORDS - 1] == iteration;
}

static bool goes_on(const char *stop_file, int rank) {
        int on = rank > 0 || access(stop_file, F_OK) < 0;

        sending = true;
        (void) MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        sending = false;
        return on;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "");
        long late = option_number(argc, argv, "late", -1);
        bool without = option_set(argc, argv, "without"), good = true;
        uint64_t iteration = 0;
        int rank, ranks;

        (void) MPI_Init(&argc, &argv);
        (void) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        (void) MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        (void) rmrt_init();
        if (rank == 0)
                (void) printf("places: running\n");
        (void) fflush(stdout);
        while (goes_on(stop_file, rank)) {
                for (int i = 0; i < EXCHANGES; i++)
                        good &= exchange(rank, ranks, iteration);
                scan(iteration);
                if (!without && (rank != late || iteration == 0))
                        rmrt_checkpoint_here();
                scan(iteration);
                iteration++;
        }
        (void) printf("rank %d: stopped %u times at its place, %u elsewhere; %s; iterations%s of %llu\n", rank, jumps_placed,
                      jumps_sending, good ? "all is right" : "WRONG", places, (unsigned long long) iteration);
        (void) fflush(stdout);
        rmrt_finalize();
        (void) MPI_Finalize();
        return good ? 0 : 2;
}
