/* Collective calls, as they are and among those that live. Ranks keep their places in the program's buffers; the parts of those who are lost stay as they are. */
#include <string.h>

#include "common/util.h"
#include "rtlib/ft/collective.h"
#include "rtlib/ft/create.h"
#include "rtlib/ft/data.h"
#include "rtlib/ft/ft.h"

int op_call(const struct op *o, MPI_Comm on) {
        switch (o->kind) {
        case OP_BARRIER:
                return mpi.Barrier(on);
        case OP_BCAST:
                return mpi.Bcast(o->recv, o->recv_count, o->recv_type, o->root, on);
        case OP_ALLREDUCE:
                return mpi.Allreduce(o->send, o->recv, o->recv_count, o->recv_type, o->op, on);
        case OP_ALLGATHER:
                return mpi.Allgather(o->send, o->send_count, o->send_type, o->recv, o->recv_count, o->recv_type, on);
        case OP_ALLGATHERV:
                return mpi.Allgatherv(o->send, o->send_count, o->send_type, o->recv, o->recv_counts, o->recv_firsts, o->recv_type,
                                      on);
        case OP_REDUCE:
                return mpi.Reduce(o->send, o->recv, o->recv_count, o->recv_type, o->op, o->root, on);
        case OP_GATHER:
                return mpi.Gather(o->send, o->send_count, o->send_type, o->recv, o->recv_count, o->recv_type, o->root, on);
        case OP_GATHERV:
                return mpi.Gatherv(o->send, o->send_count, o->send_type, o->recv, o->recv_counts, o->recv_firsts, o->recv_type,
                                   o->root, on);
        case OP_SCATTER:
                return mpi.Scatter(o->send, o->send_count, o->send_type, o->recv, o->recv_count, o->recv_type, o->root, on);
        case OP_SCATTERV:
                return mpi.Scatterv(o->send, o->send_counts, o->send_firsts, o->send_type, o->recv, o->recv_count, o->recv_type,
                                    o->root, on);
        case OP_ALLTOALL:
                return mpi.Alltoall(o->send, o->send_count, o->send_type, o->recv, o->recv_count, o->recv_type, on);
        case OP_ALLTOALLV:
                return mpi.Alltoallv(o->send, o->send_counts, o->send_firsts, o->send_type, o->recv, o->recv_counts, o->recv_firsts,
                                     o->recv_type, on);
        case OP_ALLTOALLW:
                return mpi.Alltoallw(o->send, o->send_counts, o->send_firsts, o->send_types, o->recv, o->recv_counts,
                                     o->recv_firsts, o->recv_types, on);
        case OP_SCAN:
                return mpi.Scan(o->send, o->recv, o->recv_count, o->recv_type, o->op, on);
        case OP_EXSCAN:
                return mpi.Exscan(o->send, o->recv, o->recv_count, o->recv_type, o->op, on);
        case OP_REDUCE_SCATTER:
                return mpi.Reduce_scatter(o->send, o->recv, o->recv_counts, o->recv_type, o->op, on);
        case OP_REDUCE_SCATTER_BLOCK:
                return mpi.Reduce_scatter_block(o->send, o->recv, o->recv_count, o->recv_type, o->op, on);
        case OP_CREATE:
                break;
        }
        return MPI_ERR_INTERN;
}

/* The values of those who live; without values, that of each is `same`, or its rank times `same`. */
static int *of_living(const struct comm *c, const int *values, int same, bool times_rank) {
        int *ret = xcalloc((size_t) c->living + 1, sizeof(*ret));

        for (int i = 0; i < c->living; i++)
                ret[i] = values ? values[c->old[i]] : times_rank ? same * c->old[i] : same;
        return ret;
}

static MPI_Datatype *types_of_living(const struct comm *c, const MPI_Datatype *types) {
        MPI_Datatype *ret = xcalloc((size_t) c->living + 1, sizeof(MPI_Datatype));

        for (int i = 0; i < c->living; i++)
                ret[i] = types[c->old[i]];
        return ret;
}

static bool sends_parts(enum op_kind kind) {
        return kind == OP_SCATTER || kind == OP_SCATTERV || kind == OP_ALLTOALL || kind == OP_ALLTOALLV || kind == OP_ALLTOALLW;
}

static bool receives_parts(enum op_kind kind) {
        return kind == OP_GATHER || kind == OP_GATHERV || kind == OP_ALLGATHER || kind == OP_ALLGATHERV || kind == OP_ALLTOALL ||
               kind == OP_ALLTOALLV || kind == OP_ALLTOALLW;
}

static enum op_kind by_parts(enum op_kind kind) {
        switch (kind) {
        case OP_GATHER:
                return OP_GATHERV;
        case OP_ALLGATHER:
                return OP_ALLGATHERV;
        case OP_SCATTER:
                return OP_SCATTERV;
        case OP_ALLTOALL:
                return OP_ALLTOALLV;
        default:
                return kind;
        }
}

static int call_by_parts(const struct op *op, struct comm *c) {
        struct op o = *op;
        bool here = !op_has_root(op->kind) || op->root == c->rank; /* elsewhere these arguments mean nothing */
        bool sends = sends_parts(op->kind) && here && op->send != MPI_IN_PLACE, receives = receives_parts(op->kind) && here;
        int *arrays[4] = { NULL }, rc;
        MPI_Datatype *types[2] = { NULL };

        if (sends) {
                o.send_counts = arrays[0] = of_living(c, op->send_counts, op->send_count, false);
                o.send_firsts = arrays[1] = of_living(c, op->send_firsts, op->send_count, true);
                if (op->kind == OP_ALLTOALLW)
                        o.send_types = types[0] = types_of_living(c, op->send_types);
        }
        if (receives) {
                o.recv_counts = arrays[2] = of_living(c, op->recv_counts, op->recv_count, false);
                o.recv_firsts = arrays[3] = of_living(c, op->recv_firsts, op->recv_count, true);
                if (op->kind == OP_ALLTOALLW)
                        o.recv_types = types[1] = types_of_living(c, op->recv_types);
        }
        o.kind = by_parts(op->kind);
        o.root = op_has_root(op->kind) ? c->now[op->root] : -1;
        rc = op_call(&o, c->shadow);
        for (int i = 0; i < 4; i++)
                free(arrays[i]);
        free(types[0]);
        free(types[1]);
        return rc;
}

/* The blocks of those who are lost lie between the others: all is reduced everywhere, and each takes its own. */
static int reduce_and_take(const struct op *o, struct comm *c) {
        int count = op_reduced_count(o, c), first = 0, own = o->recv_counts ? o->recv_counts[c->rank] : o->recv_count, rc;
        size_t extent = data_extent(o->recv_type), bytes;
        ptrdiff_t lower;
        char *all;

        for (int i = 0; i < c->rank; i++)
                first += o->recv_counts ? o->recv_counts[i] : o->recv_count;
        bytes = data_span(count, o->recv_type, &lower);
        all = xcalloc(bytes + 1, 1);
        rc = mpi.Allreduce(o->send == MPI_IN_PLACE ? o->recv : o->send, all - lower, count, o->recv_type, o->op, c->shadow);
        bytes = data_span(own, o->recv_type, &lower);
        if (rc == MPI_SUCCESS && bytes > 0)
                memcpy((char *) o->recv + lower, all + (size_t) first * extent, bytes);
        /* After an error Open MPI may still write into it. */
        if (rc == MPI_SUCCESS)
                free(all);
        return rc;
}

int op_call_among_living(const struct op *o, struct comm *c) {
        struct op moved;

        if (o->kind == OP_CREATE)
                return making_run(o->making, c);
        if (!comm_has_lost(c))
                return op_call(o, c->shadow);
        if (o->kind == OP_REDUCE_SCATTER || o->kind == OP_REDUCE_SCATTER_BLOCK)
                return reduce_and_take(o, c);
        if (sends_parts(o->kind) || receives_parts(o->kind))
                return call_by_parts(o, c);
        moved = *o;
        moved.root = op_has_root(o->kind) ? c->now[o->root] : -1;
        return op_call(&moved, c->shadow);
}
