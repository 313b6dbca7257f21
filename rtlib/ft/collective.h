/* A collective operation of the program. */
#ifndef RM_RTLIB_FT_COLLECTIVE_H
#define RM_RTLIB_FT_COLLECTIVE_H

#include "rtlib/ft/comm.h"

struct making;

struct op {
        enum op_kind kind;
        const char *name; /* of the call */
        const void *send; /* MPI_IN_PLACE: in `recv`; of MPI_Bcast all is in `recv` */
        void *recv;
        int send_count, recv_count;
        const int *send_counts, *send_firsts, *recv_counts, *recv_firsts;
        MPI_Datatype send_type, recv_type;
        const MPI_Datatype *send_types, *recv_types;
        MPI_Op op;
        int root; /* -1: none */
        struct making *making; /* of OP_CREATE */
};

/* Does it on all members that live, and again if one is lost meanwhile. */
int collective(struct comm *c, const struct op *op);

/* The call itself, on a communicator in which all ranks are as in the program's. */
int op_call(const struct op *op, MPI_Comm on);
/* Starts the operation as a call that does not block. */
int op_start(const struct op *op, MPI_Comm on, MPI_Request *ret);
/* The same as the first on the members of `c` that live. */
int op_call_among_living(const struct op *op, struct comm *c);

/* An operation among the living ranks, until it has ended there. */
struct call {
        struct op op; /* in ranks of `shadow` */
        int *arrays[4]; /* that `op` points to */
        MPI_Datatype *types[2];
        char *all; /* of a reduction of which each rank gets a part: its whole result */
};

void call_prepare(struct call *call, const struct op *op, const struct comm *c);
/* `rc`: how it ended. */
void call_finish(struct call *call, const struct op *op, const struct comm *c, int rc);

/* The root was lost: true for a rank that only gives to it, and has nothing to do; gives up for one
 * that would get from it. */
bool op_is_in_vain(const struct op *op, const struct comm *c);

/* The number of values that each rank has put into a reduction. */
int op_reduced_count(const struct op *op, const struct comm *c);
/* How much a rank is to keep of it; the same at all. */
size_t op_bytes(const struct op *op, const struct comm *c);
/* Keeps data in the ring's slot: the input of this rank, or the result. */
void op_keep_input(const struct op *op, const struct comm *c, struct slot *slot);
void op_keep_result(const struct op *op, const struct comm *c, struct slot *slot);
void op_take_result(const struct op *op, const struct comm *c, struct slot *slot);
/* Restores the input, where the call may have overwritten it. */
void op_restore_input(const struct op *op, const struct comm *c, const struct slot *slot);
/* Zeros for parts that are of ranks lost since there were so many losses: algorithms of Open MPI
 * (Bruck's, for one) have put there what is of others. */
void op_clear_lost(const struct op *op, const struct comm *c, uint32_t losses);
/* Bytes of kept input, 0: none. */
size_t op_input_bytes(const struct op *op, const struct comm *c, bool synchronised);

#endif
