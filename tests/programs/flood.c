/* Writes numbered lines to standard output and standard error: each line must arrive once, whole and in order.
 *
 * usage: flood [--lines=N] [--width=W] [--pause-usec=U] [--stop-file=F] [--no-newline]
 *   a line: "out RANK NUMBER xxx..." or "err RANK NUMBER xxx..."; the last line of a stream is "out RANK end NUMBER"
 *   --stop-file   go on until F exists
 *   --no-newline  the last line has none */
#include <mpi.h>

#include "common.h"

static void put(FILE *to, const char *name, int rank, long number, int width) {
        static const char fill[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

        (void) fprintf(to, "%s %d %ld ", name, rank, number);
        for (int left = width; left > 0; left -= 100)
                (void) fwrite(fill, 1, (size_t) (left < 100 ? left : 100), to);
        (void) fputc('\n', to);
}

int main(int argc, char **argv) {
        static char buffers[2][1 << 16];
        long lines = option_number(argc, argv, "lines", 1000);
        int width = (int) option_number(argc, argv, "width", 40);
        long pause = option_number(argc, argv, "pause-usec", 0);
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        const char *end = option_set(argc, argv, "no-newline") ? "" : "\n";
        long i;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        /* A line, or a part of one, at a time: as a program with a terminal, and as one with a file. */
        (void) setvbuf(stdout, buffers[0], pause ? _IOLBF : _IOFBF, sizeof(buffers[0]));
        (void) setvbuf(stderr, buffers[1], pause ? _IOLBF : _IOFBF, sizeof(buffers[1]));
        for (i = 0; stop_file ? access(stop_file, F_OK) != 0 : i < lines; i++) {
                put(stdout, "out", rank, i, width);
                put(stderr, "err", rank, i, width);
                pause_usec(pause);
        }
        (void) fprintf(stdout, "out %d end %ld%s", rank, i, end);
        (void) fprintf(stderr, "err %d end %ld%s", rank, i, end);
        (void) fflush(NULL);
        MPI_Finalize();
        return 0;
}
