/* Ranks talk in pairs, and in other pairs as soon as a file is there; each message carries what
 * proves it whole.
 *
 * usage: pairs --stop-file=F [--shift-file=S] [--bytes=B] [--pause-usec=U]
 *   --stop-file   ends when F exists
 *   --shift-file  rank r talks to r ^ 1, and to SIZE - 1 - r as soon as S exists; the number of
 *                 ranks must be even
 *   --bytes       of a message (default 100000)
 *   --pause-usec  between two messages (default 20000) */
#include <mpi.h>

#include "common.h"

struct pairs {
        int rank;
        int size;
        int bytes;
        unsigned char *out;
        unsigned char *in;
};

static void fill(const struct pairs *p, unsigned char *data, int rank, long round) {
        uint64_t seed = (uint64_t) rank << 32 ^ (uint64_t) round;

        for (int i = 0; i + 8 <= p->bytes; i += 8) {
                uint64_t word = random_next(&seed);

                memcpy(data + i, &word, 8);
        }
}

static void exchange(const struct pairs *p, int partner, long round) {
        fill(p, p->out, p->rank, round);
        MPI_Sendrecv(p->out, p->bytes, MPI_BYTE, partner, 1, p->in, p->bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        fill(p, p->out, partner, round);
        if (memcmp(p->out, p->in, (size_t) p->bytes) != 0) {
                (void) fprintf(stderr, "pairs: rank %d: message %ld of rank %d is damaged\n", p->rank, round, partner);
                MPI_Abort(MPI_COMM_WORLD, 9);
        }
}

int main(int argc, char **argv) {
        struct pairs p = { .bytes = (int) option_number(argc, argv, "bytes", 100000) };
        const char *stop_file = option_text(argc, argv, "stop-file", "");
        const char *shift_file = option_text(argc, argv, "shift-file", "");
        long pause = option_number(argc, argv, "pause-usec", 20000);
        int what[2] = { 1, 0 }; /* go on, shifted */
        long round;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &p.size);
        p.out = calloc(1, (size_t) p.bytes);
        p.in = calloc(1, (size_t) p.bytes);
        if (!p.out || !p.in || p.size % 2)
                MPI_Abort(MPI_COMM_WORLD, 2);
        for (round = 0; what[0]; round++) {
                if (round == 1 && p.rank == 0) {
                        printf("pairs: running\n");
                        (void) fflush(stdout);
                }
                exchange(&p, what[1] ? p.size - 1 - p.rank : p.rank ^ 1, round);
                pause_usec(pause);
                if (round % 20 == 0) {
                        what[0] = access(stop_file, F_OK) != 0;
                        what[1] = access(shift_file, F_OK) == 0;
                        MPI_Bcast(what, 2, MPI_INT, 0, MPI_COMM_WORLD);
                }
        }
        if (p.rank == 0)
                printf("pairs: %ld messages, all whole\n", round);
        MPI_Finalize();
        return 0;
}
