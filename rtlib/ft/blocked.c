#include <stddef.h>

#include "rtlib/ft/ft.h"

#define THREADS_MAX 64

/* One for each thread that has made a collective call; with more, those of the others are not interrupted but by MPI itself. */
static struct {
        _Atomic(MPI_Comm) comms[THREADS_MAX];
        atomic_int used;
} blocked;

static _Thread_local int mine __attribute__((tls_model("initial-exec"))) = -1;

void blocked_enter(MPI_Comm comm) {
        if (mine < 0)
                mine = blocked.used < THREADS_MAX ? blocked.used++ : THREADS_MAX;
        if (mine < THREADS_MAX)
                atomic_store_explicit(&blocked.comms[mine], comm, memory_order_relaxed);
}

void blocked_leave(void) {
        if (mine >= 0 && mine < THREADS_MAX)
                atomic_store_explicit(&blocked.comms[mine], NULL, memory_order_relaxed);
}

/* Called by Open MPI whenever it waits. Word of a revoked communicator is handled at the same place, so revoking here is nothing that it would not do. */
static int look(void) {
        int revoked;

        if (ft.losses.count == ft.in_hand || ft.ended)
                return 0;
        for (int i = 0; i < blocked.used && i < THREADS_MAX; i++) {
                MPI_Comm comm = blocked.comms[i];

                if (comm && comm != mpi.comm_self && mpi.Comm_is_revoked(comm, &revoked) == MPI_SUCCESS && !revoked)
                        (void) mpi.Comm_revoke(comm);
        }
        return 0;
}

void blocked_init(void) {
        if (mpi.progress_register)
                (void) mpi.progress_register(look);
}
