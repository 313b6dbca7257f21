/* Counts what comes from standard input, which mpirun gives to rank 0, and hashes it (FNV-1a, byte
 * by byte).
 *
 * usage: input [--pause-usec=U] [--ignore]
 *   --pause-usec  sleep after each read, so that input piles up on the way
 *   --ignore      never read it: neither may whoever feeds it be blocked for ever, nor the end be
 *                 missed */
#include <mpi.h>

#include "common.h"

int main(int argc, char **argv) {
        static unsigned char buffer[65536];
        uint64_t hash = HASH_START;
        uint64_t bytes = 0;
        long pause = option_number(argc, argv, "pause-usec", 0);
        bool ignore = option_set(argc, argv, "ignore");
        ssize_t n;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        /* So that all are connected: a rank that others wait to be connected to cannot be moved
         * until it is in MPI again. */
        MPI_Barrier(MPI_COMM_WORLD);
        while (!ignore && rank == 0 && (n = read(STDIN_FILENO, buffer, sizeof(buffer))) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        perror("input: read");
                        MPI_Abort(MPI_COMM_WORLD, 1);
                }
                for (ssize_t i = 0; i < n; i++)
                        hash = (hash ^ buffer[i]) * UINT64_C(0x100000001b3);
                bytes += (uint64_t) n;
                pause_usec(pause);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
                printf("input: %llu bytes hash %016llx\n", (unsigned long long) bytes, (unsigned long long) hash);
        MPI_Finalize();
        return 0;
}
