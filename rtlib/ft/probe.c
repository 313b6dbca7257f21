/* A message from a dead rank is found, so that the program takes it, and has nothing in it. */
#include "rtlib/ft/ft.h"
#include "rtlib/ft/watch.h"

static int probed(int rc, int *there, int from, int tag, MPI_Comm comm, MPI_Status *status) {
        ft_keep_up();
        if (rc == MPI_SUCCESS)
                return rc;
        if (error_is_pending(rc) || (error_is_loss(rc) && from == MPI_ANY_SOURCE)) {
                ft_acknowledge();
                *there = 0;
        } else if (error_is_loss(rc)) {
                if (ft.losses.count == 0)
                        ft_await_loss();
                *there = 1;
                status_set_empty(status, from, tag);
        } else
                return error_raise(comm_find(comm), rc);
        return MPI_SUCCESS;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
        int rc = REAL(Iprobe)(from, tag, comm, there, status);

        return ft.on && !ft.ended ? probed(rc, there, from, tag, comm, status) : rc;
}
FT_WRAPS(Iprobe);

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
        int there = 0, rc = MPI_SUCCESS;

        if (!ft.on || ft.ended)
                return REAL(Probe)(from, tag, comm, status);
        watch_enter(comm_find(comm));
        while (!there && rc == MPI_SUCCESS)
                rc = MPI_Iprobe(from, tag, comm, &there, status);
        watch_leave();
        return rc;
}
FT_WRAPS(Probe);

int MPI_Improbe(int from, int tag, MPI_Comm comm, int *there, MPI_Message *message, MPI_Status *status) {
        int rc = REAL(Improbe)(from, tag, comm, there, message, status);

        if (!ft.on || ft.ended || rc == MPI_SUCCESS)
                return rc;
        rc = probed(rc, there, from, tag, comm, status);
        if (rc == MPI_SUCCESS && *there)
                *message = mpi.message_no_proc;
        return rc;
}
FT_WRAPS(Improbe);

int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
        int there = 0, rc = MPI_SUCCESS;

        if (!ft.on || ft.ended)
                return REAL(Mprobe)(from, tag, comm, message, status);
        watch_enter(comm_find(comm));
        while (!there && rc == MPI_SUCCESS) {
                rc = MPI_Improbe(from, tag, comm, &there, message, status);
                ft_keep_up();
        }
        watch_leave();
        return rc;
}
FT_WRAPS(Mprobe);

int MPI_Mrecv(void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
        MPI_Request request;
        int rc;

        if (!ft.on || ft.ended)
                return REAL(Mrecv)(data, count, type, message, status);
        rc = mpi.Imrecv(data, count, type, message, &request);
        return rc == MPI_SUCCESS ? MPI_Wait(&request, status) : error_raise(NULL, rc);
}
FT_WRAPS(Mrecv);
