/* Each rank leaves the time in a file all the time, so that it is seen from outside, of a node out
 * of reach too, when it last ran.
 *
 * usage: ticks --file=F --stop-file=S
 *   --file       rank r writes F.HOST.r, every 2 ms: microseconds since the Epoch; and in a second
 *                line, when it began
 *   --stop-file  ends when S exists; then all ranks talk to each other once more */
#include <fcntl.h>
#include <mpi.h>

#include "common.h"

static int open_file(const char *file, int rank) {
        char host[256];
        char path[4096];
        int fd;

        if (gethostname(host, sizeof(host)) < 0)
                abort();
        (void) snprintf(path, sizeof(path), "%s.%s.%d", file, host, rank);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd < 0) {
                perror(path);
                MPI_Abort(MPI_COMM_WORLD, 2);
        }
        return fd;
}

static void tick(int fd, int64_t begin) {
        char text[64];
        int n = snprintf(text, sizeof(text), "%017lld\n%017lld\n", (long long) clock_usec(CLOCK_REALTIME), (long long) begin);

        if (pwrite(fd, text, (size_t) n, 0) != n)
                MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv) {
        const char *file = option_text(argc, argv, "file", NULL);
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        int64_t begin = clock_usec(CLOCK_REALTIME);
        int rank, size, fd, sum = 0;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (!file || !stop_file)
                MPI_Abort(MPI_COMM_WORLD, 2);
        fd = open_file(file, rank);
        tick(fd, begin);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("ticks: running\n");
                (void) fflush(stdout);
        }
        while (access(stop_file, F_OK) < 0) {
                tick(fd, begin);
                pause_usec(2000);
        }
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("ticks: all %d ranks are there: %s\n", size, sum == size * (size - 1) / 2 ? "yes" : "no");
        MPI_Finalize();
        return 0;
}
