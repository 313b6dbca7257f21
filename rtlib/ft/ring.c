#include "rtlib/ft/ring.h"

#include <stdlib.h>

#include "common/util.h"

struct slot *ring_take(struct ring *ring, uint64_t number, size_t bytes) {
        struct slot *slot = &ring->slots[number % RING_SLOTS];

        if (!slot->data && ring->n_spares > 0) {
                const struct spare *spare = &ring->spares[--ring->n_spares];

                slot->data = spare->data;
                slot->space = spare->space;
        }
        /* A large buffer is not kept indefinitely. */
        if (bytes > slot->space || slot->space > RING_KEPT_BYTES) {
                slot->space = bytes;
                slot->data = xrealloc(slot->data, bytes > 0 ? bytes : 1);
        }
        slot->bytes = bytes;
        slot->block_bytes = 0;
        return slot;
}

void ring_forget(struct ring *ring, uint64_t number) {
        for (; ring->first < number; ring->first++) {
                struct slot *slot = &ring->slots[ring->first % RING_SLOTS];

                if (slot->data && slot->space <= RING_KEPT_BYTES)
                        ring->spares[ring->n_spares++] = (struct spare) { slot->space, slot->data };
                else
                        free(slot->data);
                slot->data = NULL;
                slot->space = 0;
        }
}

const struct slot *ring_at(const struct ring *ring, uint64_t number) {
        return &ring->slots[number % RING_SLOTS];
}

void ring_finish(struct ring *ring) {
        for (int i = 0; i < RING_SLOTS; i++)
                free(ring->slots[i].data);
        while (ring->n_spares > 0)
                free(ring->spares[--ring->n_spares].data);
        *ring = (struct ring) { 0 };
}

bool op_has_one_result(enum op_kind kind) {
        return kind == OP_BARRIER || kind == OP_BCAST || kind == OP_ALLREDUCE || kind == OP_ALLGATHER || kind == OP_ALLGATHERV;
}

bool op_has_root(enum op_kind kind) {
        return kind == OP_BCAST || kind == OP_REDUCE || kind == OP_GATHER || kind == OP_GATHERV || kind == OP_SCATTER ||
               kind == OP_SCATTERV;
}

/* With parts of different sizes, ranks that get nothing from some need not wait for those; without
 * any data, none needs to. */
bool op_waits(enum op_kind kind, size_t bytes) {
        switch (kind) {
        case OP_BARRIER:
                return true;
        case OP_ALLREDUCE:
        case OP_ALLGATHER:
        case OP_ALLTOALL:
        case OP_REDUCE_SCATTER_BLOCK:
                return bytes > 0;
        default:
                return false;
        }
}

/* The sizes of these are known to some ranks only. */
static bool sizes_differ(enum op_kind kind) {
        return kind == OP_GATHERV || kind == OP_SCATTERV || kind == OP_ALLTOALLV || kind == OP_ALLTOALLW || kind == OP_CREATE;
}

bool ring_must_wait(struct ring *ring, enum op_kind kind, size_t bytes) {
        bool wait = bytes > RING_KEPT_BYTES || sizes_differ(kind) || (!op_waits(kind, bytes) && ring->ahead + 1 >= RING_AHEAD);

        ring->ahead = wait || op_waits(kind, bytes) ? 0 : ring->ahead + 1;
        return wait && kind != OP_BARRIER;
}

bool ring_must_wait_nonblocking(struct ring *ring, enum op_kind kind, size_t bytes) {
        bool wait = bytes > RING_KEPT_BYTES || !op_has_one_result(kind) || ring->ahead + 1 >= RING_AHEAD;

        ring->ahead = wait ? 0 : ring->ahead + 1;
        return wait;
}

static bool gets_some(const struct slot *slot, int from, int to, int giver) {
        switch (slot->kind) {
        case OP_REDUCE:
        case OP_GATHER:
                return to == slot->root;
        case OP_SCATTER:
                return from == slot->root;
        case OP_SCAN:
        case OP_EXSCAN:
                return from < to;
        case OP_ALLTOALL:
        case OP_REDUCE_SCATTER:
        case OP_REDUCE_SCATTER_BLOCK:
                return true;
        default:
                return op_has_one_result(slot->kind) && slot->kind != OP_BARRIER && from == giver;
        }
}

bool slot_part(const struct slot *slot, int from, int to, int giver, size_t *ret_offset, size_t *ret_bytes) {
        if (slot->synchronised || from == to || !gets_some(slot, from, to, giver))
                return false;
        *ret_offset = (size_t) to * slot->block_bytes;
        *ret_bytes = slot->block_bytes > 0 ? slot->block_bytes : slot->bytes;
        return true;
}
