/* A ring of the data of the last collective operations of a rank on a communicator, so that it can
 * be given to ranks which had not done them when a member was lost. */
#ifndef RM_RTLIB_FT_RING_H
#define RM_RTLIB_FT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        RING_SLOTS = 256,
        RING_AHEAD = RING_SLOTS /
                     2, /* so many operations, in which ranks need not wait for each other, may follow upon one in which they do */
        RING_KEPT_BYTES = 4096, /* of one operation; with more, ranks wait for each other, and nothing is kept */
};

enum op_kind {
        OP_BARRIER,
        OP_BCAST,
        OP_ALLREDUCE,
        OP_ALLGATHER,
        OP_ALLGATHERV,
        OP_REDUCE,
        OP_GATHER,
        OP_GATHERV,
        OP_SCATTER,
        OP_SCATTERV,
        OP_ALLTOALL,
        OP_ALLTOALLV,
        OP_ALLTOALLW,
        OP_SCAN,
        OP_EXSCAN,
        OP_REDUCE_SCATTER,
        OP_REDUCE_SCATTER_BLOCK,
        OP_CREATE, /* of a communicator */
};

/* Ranks are those of the communicator as it was made. */
struct slot {
        enum op_kind kind;
        bool synchronised; /* a rank that has done it knows that all others have at least come to its end */
        int root;
        size_t bytes, block_bytes; /* of `data`; what one rank gets of it, where each gets its own part */
        size_t space;
        unsigned char *data; /* what came out, if that is the same everywhere, else what this rank put in */
};

/* Memory of operations that are not needed any more is used for the next: it is still in the
 * processor's cache. */
struct ring {
        struct slot slots[RING_SLOTS];
        unsigned ahead; /* operations since the last in which all waited for each other */
        uint64_t first; /* nothing is kept of those before */
        struct spare {
                size_t space;
                unsigned char *data;
        } spares[RING_SLOTS];
        unsigned n_spares;
};

/* The place of an operation, for `bytes` of data. What was there is gone. */
struct slot *ring_take(struct ring *ring, uint64_t number, size_t bytes);
/* Entries before this one are not needed any more. */
void ring_forget(struct ring *ring, uint64_t number);
const struct slot *ring_at(const struct ring *ring, uint64_t number);
void ring_finish(struct ring *ring);

/* Is what comes out the same everywhere? Is there a rank that is not like the others? Does none get
 * to its end before all have come to it? */
bool op_has_one_result(enum op_kind kind);
bool op_has_root(enum op_kind kind);
bool op_waits(enum op_kind kind, size_t bytes);

/* Must ranks wait for each other after an operation? All ranks ask with the same values, and so get
 * the same answer. */
bool ring_must_wait(struct ring *ring, enum op_kind kind, size_t bytes);
/* The same of operations that do not block: ranks may have begun many before they do the first, and
 * are to keep nothing of what they have put in. */
bool ring_must_wait_nonblocking(struct ring *ring, enum op_kind kind, size_t bytes);

/* The part of what `from` has kept that `to`, which has not done the operation, needs of it;
 * `giver`: the one that gives results that are the same everywhere. False: none. */
bool slot_part(const struct slot *slot, int from, int to, int giver, size_t *ret_offset, size_t *ret_bytes);

#endif
