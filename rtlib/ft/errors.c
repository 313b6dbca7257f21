#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/members.h"
#include "rtlib/ft/peers.h"

#define WORD_SEC 60 /* where rmd does not say how long it may take to name the lost rank */
#define TURNS_MAX 8 /* of a second each */

static int class_of(int rc) {
        int class = rc;

        (void) mpi.Error_class(rc, &class);
        return class;
}

/* rmd says how long it may take, which depends on its node_timeout. */
static int64_t word_sec(void) {
        const char *text = getenv("RM_LOSS_WAIT");
        int64_t sec = WORD_SEC;

        if (text)
                (void) parse_i64(text, 1, INT32_MAX, &sec);
        return sec;
}

/* False: rmd has not named the lost rank within that time. */
static bool await_loss(void) {
        const int64_t most_sec = word_sec();
        struct timespec start, now;
        int flag;

        (void) clock_gettime(CLOCK_MONOTONIC, &start);
        for (unsigned turns = 0; !ft_is_behind(); wait_pause(&turns)) {
                (void) mpi.Iprobe(ft.rank, 0, ft.meeting, &flag, MPI_STATUS_IGNORE);
                (void) clock_gettime(CLOCK_MONOTONIC, &now);
                if (now.tv_sec - start.tv_sec > most_sec)
                        return false;
        }
        return true;
}

/* Collective operations of Open MPI (libnbc) that meet a closed connection or a revoked
 * communicator while they begin a round return what OMPI_ERROR is. */
static bool is_vague(int class) {
        return class == MPI_ERR_OTHER || class == MPI_ERR_INTERN || class == MPI_ERR_UNKNOWN || class == MPI_ERR_IN_STATUS;
}

bool error_is_loss(int rc) {
        int class = class_of(rc);

        return class == MPI_ERR_PROC_FAILED || class == MPI_ERR_REVOKED || (is_vague(class) && await_loss());
}

bool error_is_pending(int rc) {
        return class_of(rc) == MPI_ERR_PROC_FAILED_PENDING;
}

/* Mostly all ranks give up at once, and mpirun of PRRTE 3.0.8 may wait for itself indefinitely when
 * several ask it at once to end the job: the lowest that lives asks it, and each of the others a
 * second later than the one before, if the job has not ended by then. */
static void await_turn(void) {
        const struct timespec turn = { .tv_sec = 1 };
        unsigned before = members_before(ft.rank);

        for (unsigned i = 0; i < before && i < TURNS_MAX; i++)
                (void) nanosleep(&turn, NULL);
}

void ft_say(const char *format, ...) {
        char line[1024];
        int begin = snprintf(line, sizeof(line), "librmrt-ft: rank %d: ", ft.rank), n;
        va_list args;

        va_start(args, format);
        n = vsnprintf(line + begin, sizeof(line) - (size_t) begin, format, args);
        va_end(args);
        n = n < 0 ? begin : begin + n < (int) sizeof(line) - 1 ? begin + n : (int) sizeof(line) - 1;
        line[n] = '\n';
        (void) !write(STDERR_FILENO, line, (size_t) n + 1);
}

void ft_give_up(const char *format, ...) {
        char text[256];
        int initialized = 0;
        va_list args;

        va_start(args, format);
        (void) vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        ft_say("%s", text);
        if (mpi.Initialized(&initialized) != MPI_SUCCESS || !initialized)
                _exit(1);
        await_turn();
        (void) mpi.Abort(mpi.comm_world, 1);
        abort();
}

void ft_await_loss(void) {
        if (!await_loss())
                ft_give_up("MPI has lost a rank that rmd has not lost");
}

uint32_t ft_count_detected(void) {
        MPI_Group failed;
        int n = 0;

        if (mpi.failed) {
                (void) mpi.Group_size(*mpi.failed, &n);
                return (uint32_t) n;
        }
        if (mpi.Comm_get_failed(ft.meeting, &failed) != MPI_SUCCESS)
                return 0;
        (void) mpi.Group_size(failed, &n);
        (void) mpi.Group_free(&failed);
        return (uint32_t) n;
}

bool ft_was_hit(MPI_Comm comm, uint32_t losses) {
        int revoked = 0;

        (void) mpi.Comm_is_revoked(comm, &revoked);
        return revoked || ft_count_detected() > losses;
}

void ft_acknowledge(void) {
        for (struct comm *c = comm_first(); c; c = c->next)
                peers_acknowledge(c);
}

int error_raise(struct comm *c, int rc) {
        MPI_Comm on = c ? c->user : mpi.comm_world;

        if (rc == MPI_SUCCESS)
                return rc;
        if (!c)
                c = ft.world;
        /* While it is called, MPI's own calls on the communicator are to return what goes wrong. */
        (void) mpi.Comm_set_errhandler(on, c->handler ? c->handler : mpi.errors_fatal);
        (void) mpi.Comm_call_errhandler(on, rc);
        (void) mpi.Comm_set_errhandler(on, mpi.errors_return);
        return rc;
}
