/* The program's collective calls, those that block and those that do not. */
#include "rtlib/ft/collective.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/nonblocking.h"

/* Refuses an operation on a communicator that was made by a call which is not covered. */
static void refuse_unknown(const struct op *o, MPI_Comm comm) {
        int n = 1;

        if (mpi.Comm_size(comm, &n) == MPI_SUCCESS && n > 1)
                ft_give_up("%s does not go on without rank %d, which was lost, on this communicator", o->name,
                           (int) ft.losses.order[0]);
}

static int run(const struct op *o, MPI_Comm comm) {
        struct comm *c = ft_comm(comm);
        int rc;

        if (!c && ft.on && ft.losses.count > 0)
                refuse_unknown(o, comm);
        if (!c) {
                if (!mpi.ready)
                        mpi_resolve();
                return op_call(o, comm);
        }
        rc = collective(c, o);
        return rc == MPI_SUCCESS ? rc : error_raise(c, rc);
}

static int start(const struct op *o, MPI_Comm comm, MPI_Request *request) {
        struct comm *c = ft_comm(comm);
        int rc;

        if (!c || !mpi.progress_register) {
                if (!mpi.ready)
                        mpi_resolve();
                ft_note_uncovered(o->name, comm);
                return op_start(o, comm, request);
        }
        rc = nonblocking_begin(c, o, request);
        return rc == MPI_SUCCESS ? rc : error_raise(c, rc);
}

/* The list in parentheses, before more parameters. */
#define LISTED(...) __VA_ARGS__ __VA_OPT__(, )

/* COLLECTIVE(NAME, NAME of the one that does not block, (PARAMETERS before the communicator),
 * FIELDS of `struct op`...) */
#define COLLECTIVE(blocks, begins, parameters, ...)                                                                                \
        int MPI_##blocks(LISTED parameters MPI_Comm comm) {                                                                        \
                const struct op o = { .name = "MPI_" #blocks, __VA_ARGS__ };                                                       \
                                                                                                                                   \
                return run(&o, comm);                                                                                              \
        }                                                                                                                          \
        FT_WRAPS(blocks);                                                                                                          \
        int MPI_##begins(LISTED parameters MPI_Comm comm, MPI_Request *request) {                                                  \
                const struct op o = { .name = "MPI_" #begins, __VA_ARGS__ };                                                       \
                                                                                                                                   \
                return start(&o, comm, request);                                                                                   \
        }                                                                                                                          \
        FT_WRAPS(begins)

#define REDUCED const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op
#define REDUCTION(of) .kind = (of), .send = send, .recv = recv, .recv_count = count, .recv_type = type, .op = op

#define FROM const void *send, int send_count, MPI_Datatype send_type
#define OF_FROM .send = send, .send_count = send_count, .send_type = send_type
#define TO void *recv, int recv_count, MPI_Datatype recv_type
#define OF_TO .recv = recv, .recv_count = recv_count, .recv_type = recv_type

/* Parts of different sizes. */
#define FROM_PARTS const void *send, const int send_counts[], const int send_firsts[]
#define OF_FROM_PARTS .send = send, .send_counts = send_counts, .send_firsts = send_firsts
#define TO_PARTS void *recv, const int recv_counts[], const int recv_firsts[]
#define OF_TO_PARTS .recv = recv, .recv_counts = recv_counts, .recv_firsts = recv_firsts

COLLECTIVE(Barrier, Ibarrier, (), .kind = OP_BARRIER, .root = -1);
COLLECTIVE(Bcast, Ibcast, (void *data, int count, MPI_Datatype type, int root), .kind = OP_BCAST, .recv = data, .recv_count = count,
           .recv_type = type, .root = root);

COLLECTIVE(Allreduce, Iallreduce, (REDUCED), REDUCTION(OP_ALLREDUCE), .root = -1);
COLLECTIVE(Reduce, Ireduce, (REDUCED, int root), REDUCTION(OP_REDUCE), .root = root);
COLLECTIVE(Scan, Iscan, (REDUCED), REDUCTION(OP_SCAN), .root = -1);
COLLECTIVE(Exscan, Iexscan, (REDUCED), REDUCTION(OP_EXSCAN), .root = -1);
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (REDUCED), REDUCTION(OP_REDUCE_SCATTER_BLOCK), .root = -1);
COLLECTIVE(Reduce_scatter, Ireduce_scatter, (const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op),
           .kind = OP_REDUCE_SCATTER, .send = send, .recv = recv, .recv_counts = counts, .recv_type = type, .op = op, .root = -1);

COLLECTIVE(Gather, Igather, (FROM, TO, int root), .kind = OP_GATHER, OF_FROM, OF_TO, .root = root);
COLLECTIVE(Gatherv, Igatherv, (FROM, TO_PARTS, MPI_Datatype recv_type, int root), .kind = OP_GATHERV, OF_FROM, OF_TO_PARTS,
           .recv_type = recv_type, .root = root);
COLLECTIVE(Scatter, Iscatter, (FROM, TO, int root), .kind = OP_SCATTER, OF_FROM, OF_TO, .root = root);
COLLECTIVE(Scatterv, Iscatterv, (FROM_PARTS, MPI_Datatype send_type, TO, int root), .kind = OP_SCATTERV, OF_FROM_PARTS,
           .send_type = send_type, OF_TO, .root = root);
COLLECTIVE(Allgather, Iallgather, (FROM, TO), .kind = OP_ALLGATHER, OF_FROM, OF_TO, .root = -1);
COLLECTIVE(Allgatherv, Iallgatherv, (FROM, TO_PARTS, MPI_Datatype recv_type), .kind = OP_ALLGATHERV, OF_FROM, OF_TO_PARTS,
           .recv_type = recv_type, .root = -1);
COLLECTIVE(Alltoall, Ialltoall, (FROM, TO), .kind = OP_ALLTOALL, OF_FROM, OF_TO, .root = -1);
COLLECTIVE(Alltoallv, Ialltoallv, (FROM_PARTS, MPI_Datatype send_type, TO_PARTS, MPI_Datatype recv_type), .kind = OP_ALLTOALLV,
           OF_FROM_PARTS, .send_type = send_type, OF_TO_PARTS, .recv_type = recv_type, .root = -1);
COLLECTIVE(Alltoallw, Ialltoallw, (FROM_PARTS, const MPI_Datatype send_types[], TO_PARTS, const MPI_Datatype recv_types[]),
           .kind = OP_ALLTOALLW, OF_FROM_PARTS, .send_types = send_types, OF_TO_PARTS, .recv_types = recv_types, .root = -1);
