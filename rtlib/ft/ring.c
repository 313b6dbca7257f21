#include "rtlib/ft/ring.h"

#include <stdlib.h>

#include "common/util.h"

struct slot *ring_take(struct ring *ring, uint64_t number, size_t bytes) {
        struct slot *slot = &ring->slots[number % RING_SLOTS];

        /* What was large is not kept for ever. */
        if (bytes > slot->room || slot->room > RING_KEPT_BYTES) {
                slot->room = bytes;
                slot->data = xrealloc(slot->data, bytes > 0 ? bytes : 1);
        }
        slot->bytes = bytes;
        slot->block_bytes = 0;
        return slot;
}

const struct slot *ring_at(const struct ring *ring, uint64_t number) {
        return &ring->slots[number % RING_SLOTS];
}

void ring_finish(struct ring *ring) {
        for (int i = 0; i < RING_SLOTS; i++)
                free(ring->slots[i].data);
        *ring = (struct ring) { 0 };
}

bool op_has_one_result(enum op_kind kind) {
        return kind == OP_BARRIER || kind == OP_BCAST || kind == OP_ALLREDUCE || kind == OP_ALLGATHER || kind == OP_ALLGATHERV;
}

bool op_has_root(enum op_kind kind) {
        return kind == OP_BCAST || kind == OP_REDUCE || kind == OP_GATHER || kind == OP_GATHERV || kind == OP_SCATTER ||
               kind == OP_SCATTERV;
}

bool op_waits(enum op_kind kind) {
        return !op_has_root(kind) && kind != OP_SCAN && kind != OP_EXSCAN;
}

/* The sizes of these are known to some ranks only. */
static bool sizes_differ(enum op_kind kind) {
        return kind == OP_GATHERV || kind == OP_SCATTERV || kind == OP_ALLTOALLV || kind == OP_ALLTOALLW || kind == OP_CREATE;
}

bool ring_must_wait(struct ring *ring, enum op_kind kind, size_t bytes) {
        bool wait = bytes > RING_KEPT_BYTES || sizes_differ(kind) || (!op_waits(kind) && ring->ahead + 1 >= RING_AHEAD);

        ring->ahead = wait || op_waits(kind) ? 0 : ring->ahead + 1;
        return wait && kind != OP_BARRIER;
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
