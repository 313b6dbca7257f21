/* The calls of MPI as the library finds them behind its own: it is loaded into programs that have
 * no MPI, too, so nothing of MPI may be needed to load it. */
#ifndef RM_RTLIB_FT_CALLS_H
#define RM_RTLIB_FT_CALLS_H

#include <mpi.h>

#include <stdbool.h>

/* Programs still make calls that MPI no longer wants. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct mpi {
        bool ready;
#define FT_CALL(name) __typeof__(&MPI_##name) name;
#include "rtlib/ft/names.inc"
#undef FT_CALL
        int (*Comm_revoke)(MPI_Comm comm); /* these four are NULL in an Open MPI without ULFM */
        int (*Comm_failure_ack)(MPI_Comm comm);
        int (*Comm_is_revoked)(MPI_Comm comm, int *flag);
        int (*Comm_get_failed)(MPI_Comm comm, MPI_Group *ret);
        /* A function of Open MPI's lower part, which calls `callback` whenever a call waits; may be
         * NULL. */
        int (*progress_register)(int (*callback)(void));
        /* A variable of Open MPI itself: all ranks that it knows to be dead; may be NULL.
         * MPIX_Comm_get_failed() makes a new group each time. */
        const MPI_Group *failed;
        MPI_Comm comm_world, comm_self, comm_null;
        MPI_Datatype byte, int_type, uint64, datatype_null;
        MPI_Op op_null, op_max, op_replace, op_no_op;
        MPI_Errhandler errors_return, errors_fatal;
        MPI_Request request_null;
        MPI_Info info_null;
        MPI_Message message_no_proc;
        MPI_Win win_null;
        MPI_File file_null;
};

extern struct mpi mpi;

void mpi_resolve(void);

/* The function that a wrapper passes its call on to, at any time. */
#define REAL(name) ((mpi.ready ? (void) 0 : mpi_resolve()), mpi.name)

/* A call and its PMPI_ name, which Open MPI's Fortran calls. */
#define FT_WRAPS(name) __attribute__((visibility("default"), alias("MPI_" #name))) __typeof__(MPI_##name) PMPI_##name

/* The names of mpi.h are addresses in libmpi. */
#undef MPI_COMM_WORLD
#undef MPI_COMM_SELF
#undef MPI_COMM_NULL
#undef MPI_BYTE
#undef MPI_INT
#undef MPI_MAX
#undef MPI_UINT64_T
#undef MPI_DATATYPE_NULL
#undef MPI_OP_NULL
#undef MPI_REPLACE
#undef MPI_NO_OP
#undef MPI_WIN_NULL
#undef MPI_FILE_NULL
#undef MPI_ERRORS_RETURN
#undef MPI_ERRORS_ARE_FATAL
#undef MPI_REQUEST_NULL
#undef MPI_INFO_NULL
#undef MPI_MESSAGE_NO_PROC

#endif
