#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/nonblocking.h"
#include "rtlib/ft/peers.h"
#include "rtlib/ft/watch.h"

#define THREADS_MAX 64
#define COMMS_MAX 4096 /* that are looked at; a program with more is waited for in vain */

/* Each thread that has made a collective call has an entry; with more threads, those without one
 * are not interrupted but by MPI itself. */
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

/* The communicators that exist while one is being made, whose maker waits for others and which has
 * no name yet: by index in Fortran. The new one is found by comparing with them. */
static struct {
        MPI_Comm *before;
        int n; /* 0: none is being made */
} unnamed;

static _Thread_local bool makes __attribute__((tls_model("initial-exec")));

void blocked_enter_unnamed(void) {
        int n = 0;

        unnamed.before = xcalloc(COMMS_MAX, sizeof(MPI_Comm));
        for (int i = 0; i < COMMS_MAX; i++) {
                unnamed.before[i] = mpi.Comm_f2c(i);
                if (unnamed.before[i])
                        n = i + 2; /* the next may be the new one */
        }
        unnamed.n = n < COMMS_MAX ? n : COMMS_MAX;
        makes = true;
}

void blocked_leave_unnamed(void) {
        makes = false;
        unnamed.n = 0;
        free(take_ptr(unnamed.before));
}

bool blocked_is_unnamed(void) {
        return makes;
}

static void revoke(MPI_Comm comm) {
        int revoked;

        if (comm && comm != mpi.comm_self && mpi.Comm_is_revoked(comm, &revoked) == MPI_SUCCESS && !revoked)
                (void) mpi.Comm_revoke(comm);
}

static void revoke_unnamed(void) {
        for (int i = 0; makes && i < unnamed.n; i++) {
                MPI_Comm comm = mpi.Comm_f2c(i);

                if (comm != unnamed.before[i])
                        revoke(comm);
        }
}

/* Called by Open MPI whenever it waits. Word of a revoked communicator is handled at the same
 * place, so revoking here is nothing that it would not do. */
static int scan(void) {
        if (ft.ended)
                return 0;
        nonblocking_scan();
        peers_scan();
        watch_scan();
        if (ft.losses.count == ft.in_hand)
                return 0;
        for (int i = 0; i < blocked.used && i < THREADS_MAX; i++)
                revoke(blocked.comms[i]);
        revoke_unnamed();
        return 0;
}

void blocked_init(void) {
        if (mpi.progress_register)
                (void) mpi.progress_register(scan);
}
