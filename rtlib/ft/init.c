#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/ft/catch_up.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/members.h"
#include "rtlib/ft/program_socket.h"
#include "rtlib/ft/spare.h"
#include "rtlib/ft/translate.h"
#include "rtlib/ft/watch.h"

struct ft ft;

/* Makes the communicator of the program's ranks: MPI_COMM_NULL at spare processes. */
static int make_shadow(const int *ranks, MPI_Comm *ret) {
        MPI_Group all, group;
        int rc;

        if (ft.ranks == ft.size)
                return mpi.Comm_dup(mpi.comm_world, ret);
        (void) mpi.Comm_group(mpi.comm_world, &all);
        (void) mpi.Group_incl(all, ft.ranks, ranks, &group);
        rc = mpi.Comm_create(mpi.comm_world, group, ret);
        (void) mpi.Group_free(&group);
        (void) mpi.Group_free(&all);
        return rc;
}

static void make_world(void) {
        MPI_Comm shadow;
        int *ranks = xcalloc((size_t) ft.ranks, sizeof(*ranks));

        for (int i = 0; i < ft.ranks; i++)
                ranks[i] = i;
        if (mpi.Comm_dup(mpi.comm_world, &ft.meeting) != MPI_SUCCESS || make_shadow(ranks, &shadow) != MPI_SUCCESS)
                ft_give_up("MPI makes no communicators");
        (void) mpi.Comm_set_errhandler(mpi.comm_world, mpi.errors_return);
        (void) mpi.Comm_set_errhandler(ft.meeting, mpi.errors_return);
        if (shadow != mpi.comm_null)
                (void) mpi.Comm_set_errhandler(shadow, mpi.errors_return);
        ft.world = comm_add(mpi.comm_world, shadow, 0, ft.ranks, members_rank(ft.rank), ranks, 0);
        ft.world->established = true;
}

static void on_closed_connection(int signo) {
}

/* Open MPI writes to connections that a dead rank has just closed. By a handler, since programs
 * that are executed would inherit that it is ignored. */
static void outlive_closed_connections(void) {
        const struct sigaction handled = { .sa_handler = on_closed_connection, .sa_flags = SA_RESTART };
        struct sigaction now;

        if (sigaction(SIGPIPE, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
                (void) sigaction(SIGPIPE, &handled, NULL);
}

/* Reads a number that PRRTE has set, before MPI can be asked. */
static int number_of(const char *variable) {
        const char *text = getenv(variable);
        int64_t number = -1;

        return text && parse_i64(text, 0, INT32_MAX, &number) == 0 ? (int) number : -1;
}

static bool is_requested(void) {
        mpi_resolve();
        return program_socket_is_requested() && mpi.Comm_revoke && mpi.Comm_failure_ack && mpi.Comm_is_revoked &&
               mpi.Comm_get_failed;
}

/* From now on this rank is missed if it ends. */
static void announce(int rank, int size) {
        int r;

        ft.rank = rank;
        ft.size = size;
        losses_init(&ft.losses, (uint32_t) size);
        r = program_socket_start((uint32_t) rank, &ft.losses);
        if (r < 0)
                ft_give_up("cannot hear of lost ranks: %s", strerror(-r));
}

/* Before MPI is initialized, so that the others do not wait indefinitely for a rank that is lost in
 * there. */
static void prepare(void) {
        int rank = number_of("OMPI_COMM_WORLD_RANK"), size = number_of("OMPI_COMM_WORLD_SIZE");

        if (!is_requested() || rank < 0 || rank >= size)
                return;
        watch_call("MPI_Init");
        announce(rank, size);
}

/* Starts the library once MPI is initialized. */
static void start(int level) {
        int rank, size;

        if (ft.size == 0 && !is_requested())
                return;
        (void) mpi.Comm_rank(mpi.comm_world, &rank);
        (void) mpi.Comm_size(mpi.comm_world, &size);
        if (ft.size == 0) /* the program was not told */
                announce(rank, size);
        if (rank != ft.rank || size != ft.size)
                ft_give_up("is rank %d of %d of MPI", rank, size);
        ft.threads = level == MPI_THREAD_MULTIPLE;
        members_init();
        watch_init();
        make_world();
        blocked_init();
        outlive_closed_connections();
        if (ft.ranks < ft.size)
                translate_start();
        watch_call(NULL);
        ft.on = true;
        if (ft.rank >= ft.ranks)
                spare_wait();
}

int MPI_Init(int *argc, char ***argv) {
        int rc;

        prepare();
        rc = REAL(Init)(argc, argv);
        if (rc == MPI_SUCCESS)
                start(MPI_THREAD_SINGLE);
        return rc;
}
FT_WRAPS(Init);

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
        int rc;

        prepare();
        rc = REAL(Init_thread)(argc, argv, required, provided);
        if (rc == MPI_SUCCESS)
                start(*provided);
        return rc;
}
FT_WRAPS(Init_thread);

/* The exit handlers of MPI's own libraries may hang when a rank was lost, so they are skipped. */
static void leave(int status, void *data) {
        (void) fflush(NULL);
        _exit(status);
}

/* When a rank has come through the first barrier, all that live are in it, and none needs anything
 * of another any more; the second is there so that each of them comes to know that: a rank that
 * gets an error in it is through the first. */
static void end_together(void) {
        const struct op barrier = { .kind = OP_BARRIER, .name = "MPI_Finalize", .root = -1 };
        bool together;

        ft.ending = true;
        (void) collective(ft.world, &barrier);
        catch_up_finish();
        members_update(ft.repaired);
        if (members_first() == (uint32_t) ft.rank)
                spare_end_others();
        blocked_enter(ft.world->shadow);
        together = mpi.Barrier(ft.world->shadow) == MPI_SUCCESS;
        if (!together)
                (void) mpi.Comm_revoke(ft.world->shadow);
        blocked_leave();
        /* The rank that was to end the spare ones may have been lost. */
        if (!together)
                spare_end_others();
}

int MPI_Finalize(void) {
        int rc = MPI_SUCCESS;

        if (!ft.on || ft.ended)
                return REAL(Finalize)();
        end_together();
        ft.ended = true;
        if (ft.losses.count == 0) {
                watch_call("MPI_Finalize");
                rc = mpi.Finalize();
                watch_call(NULL);
        } else
                (void) on_exit(leave, NULL);
        if (rc == MPI_SUCCESS)
                program_socket_finish();
        return rc;
}
FT_WRAPS(Finalize);

int MPI_Finalized(int *ret) {
        int rc = REAL(Finalized)(ret);

        if (ft.ended)
                *ret = 1;
        return rc;
}
FT_WRAPS(Finalized);
