/* Messages between two ranks. What waits does so by MPI_Test, so that communicators can be made
 * again meanwhile: others may need this rank for that, and be what it waits for. Messages to and
 * from the dead are skipped. */
#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/data.h"
#include "rtlib/ft/ft.h"

#define LOCAL_BYTES 1024 /* a message of this size is sent without the receiver's help, by all ways that Open MPI has */

/* Finishes a call that has begun, or failed to. */
static int finish(int rc, MPI_Request *request, MPI_Status *status, int peer, int tag, MPI_Comm comm) {
        bool lost = false;

        if (rc == MPI_SUCCESS)
                rc = wait_request(request, status, &lost);
        else if (error_is_loss(rc)) {
                lost = true;
                rc = MPI_SUCCESS;
        }
        if (UNLIKELY(lost))
                status_set_empty(status, peer, tag);
        return rc == MPI_SUCCESS ? rc : error_raise(comm_find(comm), rc);
}

static int skip_lost(int rc, MPI_Comm comm) {
        if (rc == MPI_SUCCESS || error_is_loss(rc))
                return MPI_SUCCESS;
        return error_raise(comm_find(comm), rc);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
        MPI_Request request;

        if (!ft.on || ft.ended)
                return REAL(Send)(data, count, type, to, tag, comm);
        if (data_bytes(count, type) <= LOCAL_BYTES)
                return skip_lost(mpi.Send(data, count, type, to, tag, comm), comm);
        return finish(mpi.Isend(data, count, type, to, tag, comm, &request), &request, MPI_STATUS_IGNORE, to, tag, comm);
}
FT_WRAPS(Send);

/* Sends that always need the receiver's help. */
#define SENDS(name, begins)                                                                                                        \
        int MPI_##name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {                           \
                MPI_Request request;                                                                                               \
                                                                                                                                   \
                if (!ft.on || ft.ended)                                                                                            \
                        return REAL(name)(data, count, type, to, tag, comm);                                                       \
                return finish(mpi.begins(data, count, type, to, tag, comm, &request), &request, MPI_STATUS_IGNORE, to, tag, comm); \
        }                                                                                                                          \
        FT_WRAPS(name)

SENDS(Rsend, Irsend);
SENDS(Ssend, Issend);

int MPI_Bsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
        if (!ft.on || ft.ended)
                return REAL(Bsend)(data, count, type, to, tag, comm);
        return skip_lost(mpi.Bsend(data, count, type, to, tag, comm), comm);
}
FT_WRAPS(Bsend);

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
        MPI_Request request;

        if (!ft.on || ft.ended)
                return REAL(Recv)(data, count, type, from, tag, comm, status);
        return finish(mpi.Irecv(data, count, type, from, tag, comm, &request), &request, status, from, tag, comm);
}
FT_WRAPS(Recv);

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status) {
        MPI_Request sent, received;
        int rc, started;

        if (!ft.on || ft.ended)
                return REAL(Sendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
        started = mpi.Irecv(in, in_count, in_type, from, in_tag, comm, &received);
        rc = finish(mpi.Isend(out, out_count, out_type, to, out_tag, comm, &sent), &sent, MPI_STATUS_IGNORE, to, out_tag, comm);
        started = finish(started, &received, status, from, in_tag, comm);
        return rc == MPI_SUCCESS ? started : rc;
}
FT_WRAPS(Sendrecv);

int MPI_Sendrecv_replace(void *data, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm,
                         MPI_Status *status) {
        size_t bytes;
        unsigned char *out;
        int rc;

        if (!ft.on || ft.ended)
                return REAL(Sendrecv_replace)(data, count, type, to, out_tag, from, in_tag, comm, status);
        bytes = data_bytes(count, type);
        out = xcalloc(bytes + 1, 1);
        data_pack(data, count, type, out);
        rc = MPI_Sendrecv(out, (int) bytes, mpi.byte, to, out_tag, data, count, type, from, in_tag, comm, status);
        free(out);
        return rc;
}
FT_WRAPS(Sendrecv_replace);

/* A request that could not be begun since its peer is lost counts as done. */
static int begun(int rc, MPI_Comm comm, MPI_Request *request) {
        if (error_is_loss(rc))
                *request = mpi.request_null;
        return skip_lost(rc, comm);
}

#define BEGINS(name)                                                                                                               \
        int MPI_##name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {     \
                int rc = REAL(name)(data, count, type, to, tag, comm, request);                                                    \
                                                                                                                                   \
                return !ft.on || rc == MPI_SUCCESS ? rc : begun(rc, comm, request);                                                \
        }                                                                                                                          \
        FT_WRAPS(name)

BEGINS(Isend);
BEGINS(Issend);
BEGINS(Irsend);
BEGINS(Ibsend);

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
        int rc = REAL(Irecv)(data, count, type, from, tag, comm, request);

        return !ft.on || rc == MPI_SUCCESS ? rc : begun(rc, comm, request);
}
FT_WRAPS(Irecv);
