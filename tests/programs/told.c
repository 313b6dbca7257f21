/* Records the notices of moves and checkpoints (rmrt_at): each rank remembers it as a word of
 * letters, in the order in which it came, and prints that at the end. m M: before and after a move,
 * c C: a checkpoint, r: after a restart; `!` before one that came outside of rmrt_step(), or in
 * another thread. With the library, so it is built by its test.
 *
 * usage: told --stop-file=FILE [--deaf=RANK] [--busy]     RANK steps once, at the end; busy: none
 *                                                         sleeps between steps */
#include <mpi.h>
#include <pthread.h>
#include <rm/rmrt.h>

#include "common.h"

static char word[256];
static int rank;
static bool stepping;
static pthread_t stepper;

static void on_event(enum rmrt_event event, void *data) {
        const char *letters = data;
        size_t n = strlen(word);

        if (n + 2 >= sizeof(word))
                return;
        if (!stepping || !pthread_equal(pthread_self(), stepper))
                word[n++] = '!';
        word[n] = letters[event];
        /* Each is called twice, in this order, by the two that are registered. */
        if (letters[0] == '2' && (n == 0 || word[n - 1] != letters[event]))
                word[n] = '?';
        else if (letters[0] == '2')
                word[n] = 0;
        if (letters[0] == '2' && event == RMRT_BEFORE_MOVE)
                (void) dprintf(STDOUT_FILENO, "told: rank %d is to be moved\n", rank);
}

static void step(uint64_t done) {
        stepping = true;
        (void) rmrt_step(done, 0);
        stepping = false;
}

static bool goes_on(const char *stop_file) {
        int on = rank > 0 || access(stop_file, F_OK) < 0;

        (void) MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return on;
}

int main(int argc, char **argv) {
        static char first[] = "1mcMCr", second[] = "2mcMCr";
        const char *stop_file = option_text(argc, argv, "stop-file", "");
        long deaf = option_number(argc, argv, "deaf", -1);
        bool busy = option_set(argc, argv, "busy");
        uint64_t done = 0;

        (void) MPI_Init(&argc, &argv);
        (void) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        stepper = pthread_self();
        for (enum rmrt_event event = RMRT_BEFORE_MOVE; event <= RMRT_AFTER_RESTART; event++)
                if (rmrt_at(event, on_event, first) < 0 || rmrt_at(event, on_event, second) < 0)
                        return 3;
        if (rmrt_at(0, on_event, NULL) == 0 || rmrt_at(RMRT_AFTER_MOVE, NULL, NULL) == 0)
                return 4;
        (void) rmrt_init();
        if (rank == 0)
                (void) printf("told: running\n");
        (void) fflush(stdout);
        while (goes_on(stop_file)) {
                if (!busy)
                        pause_usec(5000);
                if (rank != deaf)
                        step(++done);
        }
        step(++done);
        rmrt_finalize();
        (void) printf("rank %d: %s\n", rank, word);
        (void) fflush(stdout);
        (void) MPI_Finalize();
        return 0;
}
