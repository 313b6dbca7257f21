/* Writes numbered records to standard output and standard error, and verifies what arrived: each
 * once, whole, in order. mpirun may cut and mix what ranks write anywhere, so each rank writes in
 * sixteen letters of its own.
 *
 * usage: flood [--lines=N | --stop-file=F] [--width=W] [--pause-usec=U] [--no-newline]
 *         [--only=out|err]
 *          --no-newline  the last line has none
 *          --pause-usec  after each line; a stream is then written line by line
 *          --only        one of the streams: Open MPI 5.0.7's mpirun itself lets unfinished lines
 *                        of a rank's one stream slip into the other when chunks, not lines, come in
 *                        on both
 *        flood --check=out|err [--ranks=R] [--width=W]     verifies standard input (at most 4
 *                                                          ranks); not an MPI program */
#include <mpi.h>

#include "common.h"

#define RANKS_MAX 4
#define NUMBER_DIGITS 8
#define END_NUMBER 0x7fffffffU
#define ERR_FLAG 0x80000000U
#define WIDTH_DEFAULT 40

static char letter(int rank, unsigned digit) {
        return (char) ('0' + rank * 16 + (int) (digit & 15));
}

static void put_number(FILE *to, int rank, uint32_t number) {
        for (int shift = 28; shift >= 0; shift -= 4)
                (void) putc(letter(rank, number >> shift), to);
}

static void put(FILE *to, int rank, uint32_t flag, long number, int width) {
        put_number(to, rank, flag | (uint32_t) number);
        for (int i = 0; i < width; i++)
                (void) putc(letter(rank, (unsigned) (number + i)), to);
        (void) putc('\n', to);
}

static void put_end(FILE *to, int rank, uint32_t flag, long count, bool newline) {
        put_number(to, rank, flag | END_NUMBER);
        put_number(to, rank, (uint32_t) count);
        if (newline)
                (void) putc('\n', to);
        (void) fflush(to);
}

/* ---- checking ---- */

struct stream {
        uint32_t number; /* of the record that is coming in */
        int at;          /* letters of it so far */
        uint32_t next;
        bool ending;
        bool ended;
        uint64_t letters;
};

static int complain(const struct stream *s, int rank, const char *what) {
        printf("rank %d, record %u, letter %d: %s\n", rank, s->next, s->at, what);
        return 1;
}

static int take(struct stream *s, int rank, unsigned digit, uint32_t flag, int width) {
        s->letters++;
        if (s->ended)
                return complain(s, rank, "more after the end");
        if (s->at < NUMBER_DIGITS) {
                s->number = s->number << 4 | digit;
                if (++s->at < NUMBER_DIGITS)
                        return 0;
                if (s->ending) {
                        s->ended = true;
                        return s->number == s->next ? 0 : complain(s, rank, "the end tells another number of records");
                }
                if ((s->number & ERR_FLAG) != flag)
                        return complain(s, rank, "it is of the other stream, or damaged");
                s->number &= ~ERR_FLAG;
                if (s->number == END_NUMBER) {
                        s->ending = true;
                        s->at = 0;
                        s->number = 0;
                        return 0;
                }
                if (s->number != s->next)
                        return complain(s, rank, "it has another number");
        } else if (digit != ((s->number + (uint32_t) (s->at++ - NUMBER_DIGITS)) & 15)) {
                return complain(s, rank, "it is damaged");
        }
        if (s->at == NUMBER_DIGITS + width) {
                s->next++;
                s->at = 0;
                s->number = 0;
        }
        return 0;
}

static int check(uint32_t flag, int ranks, int width) {
        struct stream streams[RANKS_MAX] = { 0 };
        uint64_t records = 0;
        int c;

        while ((c = getchar()) != EOF) {
                int rank = (c - '0') / 16;

                if (c == '\n' || c == '\r')
                        continue;
                if (c < '0' || rank >= ranks) {
                        printf("a letter of nobody: %d\n", c);
                        return 1;
                }
                if (take(&streams[rank], rank, (unsigned) (c - '0') & 15, flag, width))
                        return 1;
        }
        for (int rank = 0; rank < ranks; rank++) {
                if (!streams[rank].ended)
                        return complain(&streams[rank], rank, "nothing more comes");
                records += streams[rank].next;
        }
        printf("%llu records of %d ranks, each once, whole and in order\n", (unsigned long long) records, ranks);
        return 0;
}

int main(int argc, char **argv) {
        static char buffers[2][1 << 16];
        const char *checks = option_text(argc, argv, "check", NULL);
        int width = (int) option_number(argc, argv, "width", WIDTH_DEFAULT);
        long lines = option_number(argc, argv, "lines", 1000);
        long pause = option_number(argc, argv, "pause-usec", 0);
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        const char *only = option_text(argc, argv, "only", "");
        bool newline = !option_set(argc, argv, "no-newline");
        long i;
        int rank;

        if (checks)
                return check(checks[0] == 'e' ? ERR_FLAG : 0, (int) option_number(argc, argv, "ranks", 1), width);
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        /* A line, or as much as there is room for, at a time: as a program with a terminal, and as
         * one with a file. */
        (void) setvbuf(stdout, buffers[0], pause ? _IOLBF : _IOFBF, sizeof(buffers[0]));
        (void) setvbuf(stderr, buffers[1], pause ? _IOLBF : _IOFBF, sizeof(buffers[1]));
        for (i = 0; stop_file ? access(stop_file, F_OK) != 0 : i < lines; i++) {
                if (only[0] != 'e')
                        put(stdout, rank, 0, i, width);
                if (only[0] != 'o')
                        put(stderr, rank, ERR_FLAG, i, width);
                pause_usec(pause);
        }
        if (only[0] != 'e')
                put_end(stdout, rank, 0, i, newline);
        if (only[0] != 'o')
                put_end(stderr, rank, ERR_FLAG, i, newline);
        MPI_Finalize();
        return 0;
}
