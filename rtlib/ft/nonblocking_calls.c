/* The program's collective calls that do not block. */
#include "rtlib/ft/ft.h"
#include "rtlib/ft/nonblocking.h"

static int run(const struct op *o, MPI_Comm comm, MPI_Request *request) {
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

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_BARRIER, .name = "MPI_Ibarrier", .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Ibarrier);

int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request) {
        const struct op o = {
                .kind = OP_BCAST, .name = "MPI_Ibcast", .recv = data, .recv_count = count, .recv_type = type, .root = root
        };

        return run(&o, comm, request);
}
FT_WRAPS(Ibcast);

int MPI_Iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_ALLREDUCE,
                              .name = "MPI_Iallreduce",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Iallreduce);

int MPI_Ireduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request) {
        const struct op o = { .kind = OP_REDUCE,
                              .name = "MPI_Ireduce",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = root };

        return run(&o, comm, request);
}
FT_WRAPS(Ireduce);

int MPI_Iscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_SCAN,
                              .name = "MPI_Iscan",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Iscan);

int MPI_Iexscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_EXSCAN,
                              .name = "MPI_Iexscan",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Iexscan);

int MPI_Ireduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request *request) {
        const struct op o = { .kind = OP_REDUCE_SCATTER,
                              .name = "MPI_Ireduce_scatter",
                              .send = send,
                              .recv = recv,
                              .recv_counts = counts,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Ireduce_scatter);

int MPI_Ireduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request *request) {
        const struct op o = { .kind = OP_REDUCE_SCATTER_BLOCK,
                              .name = "MPI_Ireduce_scatter_block",
                              .send = send,
                              .recv = recv,
                              .recv_count = count,
                              .recv_type = type,
                              .op = op,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Ireduce_scatter_block);

int MPI_Igather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                int root, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_GATHER,
                              .name = "MPI_Igather",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm, request);
}
FT_WRAPS(Igather);

int MPI_Igatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int recv_counts[],
                 const int recv_firsts[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_GATHERV,
                              .name = "MPI_Igatherv",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = recv_firsts,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm, request);
}
FT_WRAPS(Igatherv);

int MPI_Iscatter(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                 int root, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_SCATTER,
                              .name = "MPI_Iscatter",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm, request);
}
FT_WRAPS(Iscatter);

int MPI_Iscatterv(const void *send, const int send_counts[], const int send_firsts[], MPI_Datatype send_type, void *recv,
                  int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_SCATTERV,
                              .name = "MPI_Iscatterv",
                              .send = send,
                              .send_counts = send_counts,
                              .send_firsts = send_firsts,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = root };

        return run(&o, comm, request);
}
FT_WRAPS(Iscatterv);

int MPI_Iallgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                   MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_ALLGATHER,
                              .name = "MPI_Iallgather",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Iallgather);

int MPI_Iallgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int recv_counts[],
                    const int recv_firsts[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_ALLGATHERV,
                              .name = "MPI_Iallgatherv",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = recv_firsts,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Iallgatherv);

int MPI_Ialltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
                  MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_ALLTOALL,
                              .name = "MPI_Ialltoall",
                              .send = send,
                              .send_count = send_count,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_count = recv_count,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Ialltoall);

int MPI_Ialltoallv(const void *send, const int send_counts[], const int send_firsts[], MPI_Datatype send_type, void *recv,
                   const int recv_counts[], const int recv_firsts[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request) {
        const struct op o = { .kind = OP_ALLTOALLV,
                              .name = "MPI_Ialltoallv",
                              .send = send,
                              .send_counts = send_counts,
                              .send_firsts = send_firsts,
                              .send_type = send_type,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = recv_firsts,
                              .recv_type = recv_type,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Ialltoallv);

int MPI_Ialltoallw(const void *send, const int send_counts[], const int send_firsts[], const MPI_Datatype send_types[], void *recv,
                   const int recv_counts[], const int recv_firsts[], const MPI_Datatype recv_types[], MPI_Comm comm,
                   MPI_Request *request) {
        const struct op o = { .kind = OP_ALLTOALLW,
                              .name = "MPI_Ialltoallw",
                              .send = send,
                              .send_counts = send_counts,
                              .send_firsts = send_firsts,
                              .send_types = send_types,
                              .recv = recv,
                              .recv_counts = recv_counts,
                              .recv_firsts = recv_firsts,
                              .recv_types = recv_types,
                              .root = -1 };

        return run(&o, comm, request);
}
FT_WRAPS(Ialltoallw);
