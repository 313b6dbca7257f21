/* MPI returns all errors to the library; what the program wants to be done with them is done
 * here. */
#include "rtlib/ft/ft.h"

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
        struct comm *c = ft_comm(comm);
        int rc;

        if (!c)
                return REAL(Comm_set_errhandler)(comm, handler);
        rc = mpi.Comm_set_errhandler(comm, handler);
        if (rc != MPI_SUCCESS)
                return error_raise(c, rc);
        /* The handler that was got is ours, whatever the program frees. */
        rc = mpi.Comm_get_errhandler(comm, &c->handler);
        (void) mpi.Comm_set_errhandler(comm, mpi.errors_return);
        return rc;
}
FT_WRAPS(Comm_set_errhandler);

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *ret) {
        struct comm *c = ft_comm(comm);
        int rc;

        if (!c)
                return REAL(Comm_get_errhandler)(comm, ret);
        (void) mpi.Comm_set_errhandler(comm, c->handler ? c->handler : mpi.errors_fatal);
        rc = mpi.Comm_get_errhandler(comm, ret);
        (void) mpi.Comm_set_errhandler(comm, mpi.errors_return);
        return rc;
}
FT_WRAPS(Comm_get_errhandler);

int MPI_Comm_call_errhandler(MPI_Comm comm, int code) {
        struct comm *c = ft_comm(comm);

        if (!c)
                return REAL(Comm_call_errhandler)(comm, code);
        (void) error_raise(c, code);
        return MPI_SUCCESS;
}
FT_WRAPS(Comm_call_errhandler);
