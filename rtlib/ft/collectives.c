/* The program's collective calls. */
#include "rtlib/ft/collective.h"
#include "rtlib/ft/ft.h"

/* Of a communicator that was made by a call which is not covered. */
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

int MPI_Barrier(MPI_Comm comm) {
        const struct op o = { .kind = OP_BARRIER, .name = "MPI_Barrier", .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Barrier);

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
        const struct op o = {
                .kind = OP_BCAST, .name = "MPI_Bcast", .recv = data, .recv_count = count, .recv_type = type, .root = root
        };

        return run(&o, comm);
}
FT_WRAPS(Bcast);

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
        const struct op o = { .kind = OP_ALLREDUCE,
                              .name = "MPI_Allreduce",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Allreduce);

int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
        const struct op o = { .kind = OP_REDUCE,
                              .name = "MPI_Reduce",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = root };

        return run(&o, comm);
}
FT_WRAPS(Reduce);

int MPI_Scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
        const struct op o = { .kind = OP_SCAN,
                              .name = "MPI_Scan",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Scan);

int MPI_Exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
        const struct op o = { .kind = OP_EXSCAN,
                              .name = "MPI_Exscan",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Exscan);

int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
        const struct op o = { .kind = OP_REDUCE_SCATTER_BLOCK,
                              .name = "MPI_Reduce_scatter_block",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Reduce_scatter_block);

int MPI_Reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
        const struct op o = { .kind = OP_REDUCE_SCATTER,
                              .name = "MPI_Reduce_scatter",
                              .send = send,
                              .recv = recv,
                              .recv_counts = counts,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Reduce_scatter);

int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
               int root, MPI_Comm comm) {
        const struct op o = { .kind = OP_GATHER,
                              .name = "MPI_Gather",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm);
}
FT_WRAPS(Gather);

int MPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int recv_counts[], const int firsts[],
                MPI_Datatype recv_type, int root, MPI_Comm comm) {
        const struct op o = { .kind = OP_GATHERV,
                              .name = "MPI_Gatherv",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = firsts,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm);
}
FT_WRAPS(Gatherv);

int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                int root, MPI_Comm comm) {
        const struct op o = { .kind = OP_SCATTER,
                              .name = "MPI_Scatter",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm);
}
FT_WRAPS(Scatter);

int MPI_Scatterv(const void *send, const int send_counts[], const int firsts[], MPI_Datatype send_type, void *recv, int recv_count,
                 MPI_Datatype recv_type, int root, MPI_Comm comm) {
        const struct op o = { .kind = OP_SCATTERV,
                              .name = "MPI_Scatterv",
                              .send = send,
                              .send_counts = send_counts,
                              .send_firsts = firsts,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm);
}
FT_WRAPS(Scatterv);

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                  MPI_Comm comm) {
        const struct op o = { .kind = OP_ALLGATHER,
                              .name = "MPI_Allgather",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Allgather);

int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int recv_counts[],
                   const int firsts[], MPI_Datatype recv_type, MPI_Comm comm) {
        const struct op o = { .kind = OP_ALLGATHERV,
                              .name = "MPI_Allgatherv",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = firsts,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Allgatherv);

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                 MPI_Comm comm) {
        const struct op o = { .kind = OP_ALLTOALL,
                              .name = "MPI_Alltoall",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Alltoall);

int MPI_Alltoallv(const void *send, const int send_counts[], const int send_firsts[], MPI_Datatype send_type, void *recv,
                  const int recv_counts[], const int recv_firsts[], MPI_Datatype recv_type, MPI_Comm comm) {
        const struct op o = { .kind = OP_ALLTOALLV,
                              .name = "MPI_Alltoallv",
                              .send = send,
                              .send_counts = send_counts,
                              .send_firsts = send_firsts,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = recv_firsts,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Alltoallv);

int MPI_Alltoallw(const void *send, const int send_counts[], const int send_firsts[], const MPI_Datatype send_types[], void *recv,
                  const int recv_counts[], const int recv_firsts[], const MPI_Datatype recv_types[], MPI_Comm comm) {
        const struct op o = { .kind = OP_ALLTOALLW,
                              .name = "MPI_Alltoallw",
                              .send = send,
                              .send_counts = send_counts,
                              .send_firsts = send_firsts,
                              .send_types = send_types,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = recv_firsts,
                              .recv_types = recv_types,
                              .root = -1 };

        return run(&o, comm);
}
FT_WRAPS(Alltoallw);
