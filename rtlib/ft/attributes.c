/* Attributes that the program sets are on its own communicator, and so must be where a copy is made
 * of it. */
#include "rtlib/ft/ft.h"

static int note(int rc, MPI_Comm comm) {
        struct comm *c = ft_comm(comm);

        if (c && rc == MPI_SUCCESS)
                c->attributes = true;
        return rc;
}

int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value) {
        return note(REAL(Comm_set_attr)(comm, key, value), comm);
}
FT_WRAPS(Comm_set_attr);

int MPI_Attr_put(MPI_Comm comm, int key, void *value) {
        return note(REAL(Attr_put)(comm, key, value), comm);
}
FT_WRAPS(Attr_put);
