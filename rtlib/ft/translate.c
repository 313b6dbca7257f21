#include "rtlib/ft/translate.h"

#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/members.h"
#include "rtlib/ft/peers.h"

static struct mpi real;
/* The same with what is above, for receives on communicators with replaced ranks. */
static struct mpi below;

/* MPI_ANY_SOURCE and MPI_PROC_NULL are negative; what is no rank is not to become one of the spare
 * processes. */
static int process_of(int rank, MPI_Comm comm) {
        if (comm != mpi.comm_world || rank < 0)
                return rank;
        return rank < ft.ranks ? ft.world->world[rank] : ft.size;
}

/* Translates the address of a message to this rank: both values as Open MPI knows them. False: the
 * rank was lost before this process began. */
static bool way_to(int *rank, MPI_Comm *comm) {
        const struct comm *c = peers_find(*comm);

        if (c)
                return peers_way(c, rank, comm);
        *rank = process_of(*rank, *comm);
        return true;
}

/* No communicator of the program has as many ranks: such a number is of MPI_COMM_WORLD. */
static void name_source(MPI_Status *status) {
        if (status != MPI_STATUS_IGNORE && status->MPI_SOURCE >= ft.ranks && members_rank(status->MPI_SOURCE) >= 0)
                status->MPI_SOURCE = members_rank(status->MPI_SOURCE);
}

#define SENDS(name)                                                                                                                \
        static int name##_translated(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {                 \
                return way_to(&to, &comm) ? real.name(data, n, type, to, tag, comm) : MPI_ERR_PROC_FAILED;                         \
        }
#define BEGINS(name)                                                                                                               \
        static int name##_translated(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,                   \
                                     MPI_Request *request) {                                                                       \
                return way_to(&to, &comm) ? real.name(data, n, type, to, tag, comm, request) : MPI_ERR_PROC_FAILED;                \
        }
#define RECEIVES(name)                                                                                                             \
        static int name##_translated(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,                       \
                                     MPI_Request *request) {                                                                       \
                return real.name(data, n, type, process_of(from, comm), tag, comm, request);                                       \
        }

SENDS(Send)
SENDS(Bsend)
BEGINS(Isend)
BEGINS(Issend)
BEGINS(Irsend)
BEGINS(Ibsend)
BEGINS(Send_init)
BEGINS(Ssend_init)
BEGINS(Rsend_init)
BEGINS(Bsend_init)
RECEIVES(Irecv)
RECEIVES(Recv_init)

static int iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
        int rc = real.Iprobe(process_of(from, comm), tag, comm, there, status);

        if (rc == MPI_SUCCESS && *there)
                name_source(status);
        return rc;
}

static int improbe(int from, int tag, MPI_Comm comm, int *there, MPI_Message *message, MPI_Status *status) {
        int rc = real.Improbe(process_of(from, comm), tag, comm, there, message, status);

        if (rc == MPI_SUCCESS && *there)
                name_source(status);
        return rc;
}

/* A request that has ended with an error has a status, too. */
static int test(MPI_Request *request, int *done, MPI_Status *status) {
        int rc = real.Test(request, done, status);

        if (rc != MPI_SUCCESS || *done)
                name_source(status);
        return rc;
}

static int test_any(int n, MPI_Request requests[], int *index, int *done, MPI_Status *status) {
        int rc = real.Testany(n, requests, index, done, status);

        if (rc != MPI_SUCCESS || *done)
                name_source(status);
        return rc;
}

static int test_some(int n, MPI_Request requests[], int *ret_n, int *indices, MPI_Status *statuses) {
        int rc = real.Testsome(n, requests, ret_n, indices, statuses);

        for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < *ret_n; i++)
                name_source(&statuses[i]);
        return rc;
}

static int test_all(int n, MPI_Request requests[], int *done, MPI_Status *statuses) {
        int rc = real.Testall(n, requests, done, statuses);

        for (int i = 0; statuses != MPI_STATUSES_IGNORE && (rc != MPI_SUCCESS || *done) && i < n; i++)
                name_source(&statuses[i]);
        return rc;
}

/* Returns a communicator whose members are not those that Open MPI knows; NULL: it knows them. */
static const struct comm *translated(MPI_Comm comm) {
        return comm == mpi.comm_world ? ft.world : peers_find(comm);
}

static int size(MPI_Comm comm, int *ret) {
        const struct comm *c = translated(comm);

        if (!c)
                return real.Comm_size(comm, ret);
        *ret = c->size;
        return MPI_SUCCESS;
}

static int rank(MPI_Comm comm, int *ret) {
        const struct comm *c = translated(comm);

        if (!c)
                return real.Comm_rank(comm, ret);
        *ret = c->rank;
        return MPI_SUCCESS;
}

static int group(MPI_Comm comm, MPI_Group *ret) {
        const struct comm *c = translated(comm);
        MPI_Group all;
        int rc = real.Comm_group(c ? ft.meeting : comm, c ? &all : ret);

        if (rc != MPI_SUCCESS || !c)
                return rc;
        rc = real.Group_incl(all, c->size, c->world, ret);
        (void) real.Group_free(&all);
        return rc;
}

/* The shadow of a communicator has the same ranks, and stands for it. */
static MPI_Comm compared(MPI_Comm comm) {
        const struct comm *c = translated(comm);

        return c ? c->shadow : comm;
}

static int compare(MPI_Comm a, MPI_Comm b, int *ret) {
        return a == b ? real.Comm_compare(a, b, ret) : real.Comm_compare(compared(a), compared(b), ret);
}

void translate_start(void) {
        real = mpi;
        mpi.Send = Send_translated;
        mpi.Bsend = Bsend_translated;
        mpi.Isend = Isend_translated;
        mpi.Issend = Issend_translated;
        mpi.Irsend = Irsend_translated;
        mpi.Ibsend = Ibsend_translated;
        mpi.Send_init = Send_init_translated;
        mpi.Ssend_init = Ssend_init_translated;
        mpi.Rsend_init = Rsend_init_translated;
        mpi.Bsend_init = Bsend_init_translated;
        mpi.Irecv = Irecv_translated;
        mpi.Recv_init = Recv_init_translated;
        mpi.Iprobe = iprobe;
        mpi.Improbe = improbe;
        mpi.Test = test;
        mpi.Testany = test_any;
        mpi.Testsome = test_some;
        mpi.Testall = test_all;
        mpi.Comm_size = size;
        mpi.Comm_rank = rank;
        mpi.Comm_group = group;
        mpi.Comm_compare = compare;
        below = mpi;
        peers_start(&below);
}

int MPI_Comm_size(MPI_Comm comm, int *ret) {
        return REAL(Comm_size)(comm, ret);
}
FT_WRAPS(Comm_size);

int MPI_Comm_rank(MPI_Comm comm, int *ret) {
        return REAL(Comm_rank)(comm, ret);
}
FT_WRAPS(Comm_rank);

int MPI_Comm_group(MPI_Comm comm, MPI_Group *ret) {
        return REAL(Comm_group)(comm, ret);
}
FT_WRAPS(Comm_group);

int MPI_Comm_compare(MPI_Comm a, MPI_Comm b, int *ret) {
        return REAL(Comm_compare)(a, b, ret);
}
FT_WRAPS(Comm_compare);

#define PASSES_ON(name)                                                                                                            \
        int MPI_##name(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {         \
                return REAL(name)(data, n, type, to, tag, comm, request);                                                          \
        }                                                                                                                          \
        FT_WRAPS(name)

PASSES_ON(Send_init);
PASSES_ON(Ssend_init);
PASSES_ON(Rsend_init);
PASSES_ON(Bsend_init);

int MPI_Recv_init(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
        return REAL(Recv_init)(data, n, type, from, tag, comm, request);
}
FT_WRAPS(Recv_init);
