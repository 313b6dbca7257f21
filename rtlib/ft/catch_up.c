#include "rtlib/ft/catch_up.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/ft/data.h"
#include "rtlib/ft/ft.h"

#define TAGS 32768 /* what MPI grants */

struct parcel {
        struct parcel *next;
        MPI_Request request;
        unsigned char data[];
};

static struct parcel *parcels;

/* A message to a dead rank, or on a communicator that was given up, ends with an error. */
static bool has_arrived(struct parcel *p) {
        int done = 0;

        return mpi.Test(&p->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}

static void collect(void) {
        struct parcel **at = &parcels;

        while (*at) {
                struct parcel *p = *at;

                if (has_arrived(p)) {
                        *at = p->next;
                        free(p);
                } else
                        at = &p->next;
        }
}

static void give(const struct comm *c, int to, uint64_t number, const unsigned char *data, size_t bytes) {
        struct parcel *p = xcalloc(1, sizeof(*p) + bytes);

        memcpy(p->data, data, bytes);
        if (mpi.Isend(p->data, (int) bytes, mpi.byte, c->now[to], (int) (number % TAGS), c->shadow, &p->request) != MPI_SUCCESS) {
                free(p);
                return;
        }
        p->next = parcels;
        parcels = p;
}

static bool take(const struct comm *c, int from, uint64_t number, unsigned char *ret, size_t bytes) {
        MPI_Request request;
        int done = 0;

        if (mpi.Irecv(ret, (int) bytes, mpi.byte, c->now[from], (int) (number % TAGS), c->shadow, &request) != MPI_SUCCESS)
                return false;
        while (!done) {
                if (mpi.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                        return false;
                if (!done && ft_is_behind()) {
                        (void) mpi.Cancel(&request);
                        (void) mpi.Wait(&request, MPI_STATUS_IGNORE);
                        return false;
                }
        }
        return true;
}

static int giver_of(const struct comm *c, uint64_t number) {
        for (int i = 0; i < c->size; i++)
                if (comm_takes_part(c, i, number) && c->done_by[i] > number)
                        return i;
        return -1;
}

static void give_parts(const struct comm *c, uint64_t number, const struct slot *slot) {
        int giver = giver_of(c, number);

        for (int to = 0; to < c->size; to++) {
                size_t first, bytes;

                if (c->now[to] >= 0 && c->done_by[to] <= number && slot_part(slot, c->rank, to, giver, &first, &bytes))
                        give(c, to, number, slot->data + first, bytes);
        }
}

void catch_up_others(struct comm *c) {
        uint64_t least = c->done;

        for (int i = 0; i < c->size; i++)
                if (c->now[i] >= 0 && c->done_by[i] < least)
                        least = c->done_by[i];
        if (least < c->since[c->rank])
                least = c->since[c->rank];
        for (uint64_t number = least; number < c->done; number++)
                give_parts(c, number, ring_at(c->ring, number));
        collect();
}

static bool comes_from(const struct comm *c, const struct slot *slot, int from, uint64_t number) {
        size_t first, bytes;

        return comm_takes_part(c, from, number) && slot_part(slot, from, c->rank, giver_of(c, number), &first, &bytes);
}

/* The values of the ranks from `first` to `last`, of those that live, in order; this one's own if
 * it is among them. False: none of them lives, or another was lost. */
static bool reduce(const struct comm *c, const struct op *o, const struct slot *slot, int first, int last, unsigned char *ret,
                   bool *ret_any) {
        unsigned char *part = xcalloc(slot->bytes + 1, 1);
        ptrdiff_t lower = 0;
        bool ok = true;
        int count = op_reduced_count(o, c);

        (void) data_span(1, o->recv_type, &lower);
        *ret_any = false;
        for (int i = last; ok && i >= first; i--) {
                if (!comm_takes_part(c, i, c->done))
                        continue;
                if (i == c->rank)
                        memcpy(part, slot->data, slot->bytes);
                else
                        ok = take(c, i, c->done, part, slot->bytes);
                if (ok && *ret_any)
                        (void) mpi.Reduce_local(part - lower, ret - lower, count, o->recv_type, o->op);
                else if (ok)
                        memcpy(ret, part, slot->bytes);
                *ret_any = true;
        }
        free(part);
        return ok;
}

static bool catch_up_reduction(struct comm *c, const struct op *o, const struct slot *slot) {
        bool scatters = o->kind == OP_REDUCE_SCATTER || o->kind == OP_REDUCE_SCATTER_BLOCK, any, ok;
        int last = o->kind == OP_SCAN ? c->rank : o->kind == OP_EXSCAN ? c->rank - 1 : c->size - 1;
        unsigned char *result = xcalloc(slot->bytes + 1, 1), *out = result;
        size_t bytes = slot->bytes;
        ptrdiff_t lower = 0;

        ok = reduce(c, o, slot, 0, last, result, &any);
        if (scatters) {
                int before = 0;

                for (int i = 0; i < c->rank; i++)
                        before += o->recv_counts ? o->recv_counts[i] : o->recv_count;
                out += data_extent(o->recv_type) * (size_t) before;
                bytes = data_span(o->recv_counts ? o->recv_counts[c->rank] : o->recv_count, o->recv_type, &lower);
        } else
                (void) data_span(o->recv_count, o->recv_type, &lower);
        if (ok && any && bytes > 0)
                memcpy((char *) o->recv + lower, out, bytes);
        free(result);
        return ok;
}

/* Blocks from others, each into its place. */
static bool catch_up_blocks(struct comm *c, const struct op *o, const struct slot *slot) {
        size_t bytes = data_bytes(o->recv_count, o->recv_type), extent = data_extent(o->recv_type);
        unsigned char *block = xcalloc(bytes + 1, 1);
        bool ok = true;

        for (int i = 0; ok && i < c->size; i++) {
                char *place = (char *) o->recv + (o->kind == OP_SCATTER ? 0 : extent * (size_t) o->recv_count * (size_t) i);

                if (i == c->rank && o->kind == OP_ALLTOALL)
                        memcpy(block, slot->data + slot->block_bytes * (size_t) i, bytes);
                else if (i == c->rank && o->kind == OP_GATHER && o->send != MPI_IN_PLACE)
                        data_pack(o->send, o->send_count, o->send_type, block);
                else if (!comes_from(c, slot, i, c->done))
                        continue;
                else
                        ok = take(c, i, c->done, block, bytes);
                if (ok)
                        data_unpack(block, bytes, place, o->recv_count, o->recv_type);
        }
        free(block);
        return ok;
}

/* The slot has what this rank put in until it is done. */
static bool catch_up_result(struct comm *c, const struct op *o) {
        size_t bytes = op_bytes(o, c);
        unsigned char *data = xcalloc(bytes + 1, 1);
        bool ok = bytes == 0 || take(c, giver_of(c, c->done), c->done, data, bytes);

        if (ok && bytes > 0) {
                struct slot *slot = ring_take(c->ring, c->done, bytes);

                memcpy(slot->data, data, bytes);
                op_take_result(o, c, slot);
        }
        free(data);
        return ok;
}

bool catch_up(struct comm *c, const struct op *o, struct slot *slot) {
        if (slot->synchronised || o->kind == OP_BARRIER)
                return true;
        give_parts(c, c->done, slot);
        if (op_has_one_result(o->kind))
                return catch_up_result(c, o);
        if (op_has_root(o->kind) && o->kind != OP_SCATTER && o->root != c->rank)
                return true;
        if (o->kind == OP_SCATTER || o->kind == OP_GATHER || o->kind == OP_ALLTOALL)
                return catch_up_blocks(c, o, slot);
        return catch_up_reduction(c, o, slot);
}

void catch_up_finish(void) {
        for (unsigned turns = 0; parcels; wait_pause(&turns)) {
                collect();
                if (ft_is_behind())
                        ft_repair();
        }
}
