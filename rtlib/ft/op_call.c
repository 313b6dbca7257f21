/* Collective calls, as they are and among those that live. Ranks keep their places in the program's
 * buffers; the parts of those that are lost stay as they are. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/ft/collective.h"
#include "rtlib/ft/create.h"
#include "rtlib/ft/data.h"
#include "rtlib/ft/ft.h"

/* Each operation with its call, the one that does not block, and their arguments before the
 * communicator. */
#define OPERATIONS(X)                                                                                                              \
        X(OP_BARRIER, Barrier, Ibarrier)                                                                                           \
        X(OP_BCAST, Bcast, Ibcast, o->recv, o->recv_count, o->recv_type, o->root)                                                  \
        X(OP_ALLREDUCE, Allreduce, Iallreduce, o->send, REDUCED, o->op)                                                            \
        X(OP_ALLGATHER, Allgather, Iallgather, FROM, TO)                                                                           \
        X(OP_ALLGATHERV, Allgatherv, Iallgatherv, FROM, TO_PARTS, o->recv_type)                                                    \
        X(OP_REDUCE, Reduce, Ireduce, o->send, REDUCED, o->op, o->root)                                                            \
        X(OP_GATHER, Gather, Igather, FROM, TO, o->root)                                                                           \
        X(OP_GATHERV, Gatherv, Igatherv, FROM, TO_PARTS, o->recv_type, o->root)                                                    \
        X(OP_SCATTER, Scatter, Iscatter, FROM, TO, o->root)                                                                        \
        X(OP_SCATTERV, Scatterv, Iscatterv, FROM_PARTS, o->send_type, TO, o->root)                                                 \
        X(OP_ALLTOALL, Alltoall, Ialltoall, FROM, TO)                                                                              \
        X(OP_ALLTOALLV, Alltoallv, Ialltoallv, FROM_PARTS, o->send_type, TO_PARTS, o->recv_type)                                   \
        X(OP_ALLTOALLW, Alltoallw, Ialltoallw, FROM_PARTS, o->send_types, TO_PARTS, o->recv_types)                                 \
        X(OP_SCAN, Scan, Iscan, o->send, REDUCED, o->op)                                                                           \
        X(OP_EXSCAN, Exscan, Iexscan, o->send, REDUCED, o->op)                                                                     \
        X(OP_REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter, o->send, o->recv, o->recv_counts, o->recv_type, o->op)               \
        X(OP_REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block, o->send, REDUCED, o->op)

#define FROM o->send, o->send_count, o->send_type
#define FROM_PARTS o->send, o->send_counts, o->send_firsts
#define TO o->recv, o->recv_count, o->recv_type
#define TO_PARTS o->recv, o->recv_counts, o->recv_firsts
#define REDUCED TO

#define CALL(kind, blocks, begins, ...)                                                                                            \
        case kind:                                                                                                                 \
                return mpi.blocks(__VA_ARGS__ __VA_OPT__(, ) on);
#define START(kind, blocks, begins, ...)                                                                                           \
        case kind:                                                                                                                 \
                return mpi.begins(__VA_ARGS__ __VA_OPT__(, ) on, ret);

int op_call(const struct op *o, MPI_Comm on) {
        switch (o->kind) {
                OPERATIONS(CALL)
        case OP_CREATE:
                break;
        }
        return MPI_ERR_INTERN;
}

int op_start(const struct op *o, MPI_Comm on, MPI_Request *ret) {
        switch (o->kind) {
                OPERATIONS(START)
        case OP_CREATE:
                break;
        }
        return MPI_ERR_INTERN;
}

/* The values of those that live; without values, that of each is `same`, or its rank times
 * `same`. */
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

static void clear_part(const struct op *o, const struct comm *c, int i) {
        int count = o->recv_counts ? o->recv_counts[i] : o->recv_count;
        MPI_Datatype type = o->recv_types ? o->recv_types[i] : o->recv_type;
        ptrdiff_t extent = o->recv_types ? 1 : (ptrdiff_t) data_extent(type);
        ptrdiff_t first = extent * (o->recv_firsts ? o->recv_firsts[i] : i * (ptrdiff_t) o->recv_count);
        size_t bytes = data_bytes(count, type);
        unsigned char *zeros = xcalloc(bytes + 1, 1);

        data_unpack(zeros, bytes, (char *) o->recv + first, count, type);
        free(zeros);
}

void op_clear_lost(const struct op *o, const struct comm *c, uint32_t losses) {
        /* Data that was exchanged in place has been put back already. */
        if (!receives_parts(o->kind) || (o->root >= 0 && o->root != c->rank) || (sends_parts(o->kind) && o->send == MPI_IN_PLACE))
                return;
        for (int i = 0; i < c->size; i++)
                if (c->now[i] < 0 && !losses_has(&ft.losses, (uint32_t) c->world[i], losses))
                        clear_part(o, c, i);
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

/* Takes from all arrays that the program has given the parts of the living ranks. */
static void take_parts(struct call *call, const struct op *op, const struct comm *c) {
        struct op *o = &call->op;
        bool here = !op_has_root(op->kind) || op->root == c->rank; /* elsewhere these arguments mean nothing */

        if (sends_parts(op->kind) && here && op->send != MPI_IN_PLACE) {
                o->send_counts = call->arrays[0] = of_living(c, op->send_counts, op->send_count, false);
                o->send_firsts = call->arrays[1] = of_living(c, op->send_firsts, op->send_count, true);
                if (op->kind == OP_ALLTOALLW)
                        o->send_types = call->types[0] = types_of_living(c, op->send_types);
        }
        if (receives_parts(op->kind) && here) {
                o->recv_counts = call->arrays[2] = of_living(c, op->recv_counts, op->recv_count, false);
                o->recv_firsts = call->arrays[3] = of_living(c, op->recv_firsts, op->recv_count, true);
                if (op->kind == OP_ALLTOALLW)
                        o->recv_types = call->types[1] = types_of_living(c, op->recv_types);
        }
        o->kind = by_parts(op->kind);
}

/* The blocks of those that are lost lie between the others: all is reduced everywhere, and each
 * takes its own. */
static void reduce_all(struct call *call, const struct op *op, const struct comm *c) {
        struct op *o = &call->op;
        int count = op_reduced_count(op, c);
        ptrdiff_t lower;
        size_t bytes = data_span(count, op->recv_type, &lower);

        call->all = xcalloc(bytes + 1, 1);
        o->kind = OP_ALLREDUCE;
        o->send = op->send == MPI_IN_PLACE ? op->recv : op->send;
        o->recv = call->all - lower;
        o->recv_count = count;
        o->recv_counts = NULL;
}

static void take_own(const struct call *call, const struct op *op, const struct comm *c) {
        int first = 0, own = op->recv_counts ? op->recv_counts[c->rank] : op->recv_count;
        ptrdiff_t lower;
        size_t bytes = data_span(own, op->recv_type, &lower);

        for (int i = 0; i < c->rank; i++)
                first += op->recv_counts ? op->recv_counts[i] : op->recv_count;
        if (bytes > 0)
                memcpy((char *) op->recv + lower, call->all + (size_t) first * data_extent(op->recv_type), bytes);
}

void call_prepare(struct call *call, const struct op *op, const struct comm *c) {
        *call = (struct call) { .op = *op };
        if (!comm_has_lost(c))
                return;
        if (op->kind == OP_REDUCE_SCATTER || op->kind == OP_REDUCE_SCATTER_BLOCK)
                reduce_all(call, op, c);
        else if (sends_parts(op->kind) || receives_parts(op->kind))
                take_parts(call, op, c);
        call->op.root = op_has_root(op->kind) ? c->now[op->root] : -1;
}

void call_finish(struct call *call, const struct op *op, const struct comm *c, int rc) {
        if (call->all && rc == MPI_SUCCESS)
                take_own(call, op, c);
        /* After an error Open MPI may still use them. */
        if (rc == MPI_SUCCESS) {
                free(call->all);
                for (int i = 0; i < 4; i++)
                        free(call->arrays[i]);
                free(call->types[0]);
                free(call->types[1]);
        }
        *call = (struct call) { .op = *op };
}

int op_call_among_living(const struct op *o, struct comm *c) {
        struct call call;
        int rc;

        if (o->kind == OP_CREATE)
                return making_run(o->making, c);
        if (!comm_has_lost(c))
                return op_call(o, c->shadow);
        call_prepare(&call, o, c);
        rc = op_call(&call.op, c->shadow);
        call_finish(&call, o, c, rc);
        return rc;
}
