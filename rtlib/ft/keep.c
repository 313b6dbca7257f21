/* A rank keeps the data of an operation: for ranks that had not done it when a member was lost, or
 * to do it again itself. Data of reductions is kept as it lies in memory, since all ranks have the
 * same type; that of others is packed, since they may have it otherwise in memory. */
#include <string.h>

#include "rtlib/ft/collective.h"
#include "rtlib/ft/data.h"

static bool reduces(enum op_kind kind) {
        return kind == OP_ALLREDUCE || kind == OP_REDUCE || kind == OP_SCAN || kind == OP_EXSCAN || kind == OP_REDUCE_SCATTER ||
               kind == OP_REDUCE_SCATTER_BLOCK;
}

static int sum(const int *counts, int n) {
        int all = 0;

        for (int i = 0; i < n; i++)
                all += counts[i];
        return all;
}

int op_reduced_count(const struct op *o, const struct comm *c) {
        if (o->kind == OP_REDUCE_SCATTER)
                return sum(o->recv_counts, c->size);
        return o->kind == OP_REDUCE_SCATTER_BLOCK ? o->recv_count * c->size : o->recv_count;
}

static bool in_place(const struct op *o) {
        return o->send == MPI_IN_PLACE;
}

size_t op_bytes(const struct op *o, const struct comm *c) {
        bool root = o->root == c->rank;
        ptrdiff_t first;

        if (reduces(o->kind))
                return data_span(op_reduced_count(o, c), o->recv_type, &first);
        switch (o->kind) {
        case OP_BCAST:
                return data_bytes(o->recv_count, o->recv_type);
        case OP_ALLGATHER:
        case OP_ALLTOALL:
                return data_bytes(o->recv_count, o->recv_type) * (size_t) c->size;
        case OP_ALLGATHERV:
                return data_bytes(sum(o->recv_counts, c->size), o->recv_type);
        case OP_GATHER:
                return root ? data_bytes(o->recv_count, o->recv_type) : data_bytes(o->send_count, o->send_type);
        case OP_SCATTER:
                return (root ? data_bytes(o->send_count, o->send_type) : data_bytes(o->recv_count, o->recv_type)) *
                       (size_t) c->size;
        default:
                return 0;
        }
}

/* The span of the parts of MPI_Alltoallv and MPI_Alltoallw in place. */
static size_t parts_span(const struct op *o, const struct comm *c) {
        size_t span = 0;
        ptrdiff_t first;

        for (int i = 0; i < c->size; i++) {
                MPI_Datatype type = o->recv_types ? o->recv_types[i] : o->recv_type;
                size_t start = (size_t) o->recv_firsts[i] * (o->recv_types ? 1 : data_extent(type));
                size_t end = start + data_span(o->recv_counts[i], type, &first) + (size_t) first;

                if (end > span)
                        span = end;
        }
        return span;
}

size_t op_input_bytes(const struct op *o, const struct comm *c, bool synchronised) {
        bool root = o->root == c->rank;
        ptrdiff_t first;

        if (synchronised && !in_place(o))
                return 0;
        if (reduces(o->kind))
                return o->kind == OP_ALLREDUCE && !in_place(o) ? 0 : data_span(op_reduced_count(o, c), o->recv_type, &first);
        switch (o->kind) {
        case OP_GATHER:
                return root ? 0 : op_bytes(o, c);
        case OP_SCATTER:
                return root ? op_bytes(o, c) : 0;
        case OP_ALLTOALL:
                return op_bytes(o, c);
        case OP_ALLTOALLV:
        case OP_ALLTOALLW:
                return in_place(o) ? parts_span(o, c) : 0;
        default:
                return 0;
        }
}

static const char *input(const struct op *o) {
        return in_place(o) ? o->recv : o->send;
}

void op_keep_input(const struct op *o, const struct comm *c, struct slot *slot) {
        ptrdiff_t first = 0;

        if (slot->bytes == 0)
                return;
        if (reduces(o->kind)) {
                (void) data_span(op_reduced_count(o, c), o->recv_type, &first);
                memcpy(slot->data, input(o) + first, slot->bytes);
                return;
        }
        switch (o->kind) {
        case OP_GATHER:
                data_pack(o->send, o->send_count, o->send_type, slot->data);
                break;
        case OP_SCATTER:
                slot->block_bytes = slot->bytes / (size_t) c->size;
                data_pack(o->send, o->send_count * c->size, o->send_type, slot->data);
                break;
        case OP_ALLTOALL:
                slot->block_bytes = slot->bytes / (size_t) c->size;
                if (in_place(o))
                        data_pack(o->recv, o->recv_count * c->size, o->recv_type, slot->data);
                else
                        data_pack(o->send, o->send_count * c->size, o->send_type, slot->data);
                break;
        default:
                memcpy(slot->data, o->recv, slot->bytes);
        }
}

void op_restore_input(const struct op *o, const struct comm *c, const struct slot *slot) {
        ptrdiff_t first = 0;

        if (!in_place(o) || slot->bytes == 0)
                return;
        if (reduces(o->kind)) {
                (void) data_span(op_reduced_count(o, c), o->recv_type, &first);
                memcpy((char *) o->recv + first, slot->data, slot->bytes);
        } else if (o->kind == OP_ALLTOALL)
                data_unpack(slot->data, slot->bytes, o->recv, o->recv_count * c->size, o->recv_type);
        else if (o->kind == OP_ALLTOALLV || o->kind == OP_ALLTOALLW)
                memcpy(o->recv, slot->data, slot->bytes);
}

/* Ranks that were lost may have no part in the result: the data that was in their place is copied
 * the same way then. */
static void keep_parts(const struct op *o, const struct comm *c, struct slot *slot, bool back) {
        size_t at = 0;

        for (int i = 0; i < c->size; i++) {
                size_t bytes = data_bytes(o->recv_counts[i], o->recv_type);
                char *part = (char *) o->recv + (ptrdiff_t) data_extent(o->recv_type) * o->recv_firsts[i];

                if (back)
                        data_unpack(slot->data + at, bytes, part, o->recv_counts[i], o->recv_type);
                else
                        data_pack(part, o->recv_counts[i], o->recv_type, slot->data + at);
                at += bytes;
        }
}

static void move_result(const struct op *o, const struct comm *c, struct slot *slot, bool back) {
        ptrdiff_t first = 0;
        int count = o->kind == OP_ALLGATHER ? o->recv_count * c->size : o->recv_count;

        if (slot->bytes == 0)
                return;
        if (o->kind == OP_ALLGATHERV)
                keep_parts(o, c, slot, back);
        else if (o->kind == OP_ALLREDUCE) {
                (void) data_span(count, o->recv_type, &first);
                if (back)
                        memcpy((char *) o->recv + first, slot->data, slot->bytes);
                else
                        memcpy(slot->data, (char *) o->recv + first, slot->bytes);
        } else if (back)
                data_unpack(slot->data, slot->bytes, o->recv, count, o->recv_type);
        else
                data_pack(o->recv, count, o->recv_type, slot->data);
}

void op_keep_result(const struct op *o, const struct comm *c, struct slot *slot) {
        move_result(o, c, slot, false);
}

void op_take_result(const struct op *o, const struct comm *c, struct slot *slot) {
        move_result(o, c, slot, true);
}
