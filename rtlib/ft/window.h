/* Windows of the program, for one-sided communication between fences: what is put, got and
 * accumulated is kept until the fence, which exchanges it by collective operations, as these go on
 * without lost ranks. MPI has a window of its own beside it, for what needs no other rank, and for
 * locks as long as none is lost. */
#ifndef RM_RTLIB_FT_WINDOW_H
#define RM_RTLIB_FT_WINDOW_H

#include <pthread.h>

#include "rtlib/ft/comm.h"

enum request_kind {
        REQUEST_END,
        REQUEST_PUT,
        REQUEST_GET,
        REQUEST_ACCUMULATE,
        REQUEST_GET_ACCUMULATE,
        REQUEST_COMPARE_AND_SWAP,
};

/* The requests of a rank to another until the next fence, one after the other. */
struct requests {
        unsigned char *data;
        size_t bytes, space;
        size_t reply_bytes;
        struct result *first, *last; /* where replies go, in their order */
};

struct window {
        struct window *next;
        MPI_Win handle;
        struct comm *comm; /* a copy, for the window alone, of the ranks that live when it is made */
        MPI_Group group; /* of the program's communicator, by whose ranks it asks */
        int ranks;
        int *place; /* by these: rank in `comm`; -1: none, as it was lost before */
        bool whole; /* MPI's window is of all its ranks, and not of this one alone */
        bool dynamic; /* all of the memory that the program names */
        char *base;
        MPI_Aint bytes;
        int unit;
        int passive; /* locks, and accesses of MPI_Win_start, that are open */
        pthread_mutex_t lock;
        struct requests *to; /* by rank in `comm` */
};

/* NULL: calls on it are passed on as they are. */
struct window *window_find(MPI_Win handle);

/* A request to a rank. */
struct request {
        enum request_kind kind;
        const void *in, *compare;
        int in_count;
        MPI_Datatype in_type;
        void *out;
        int out_count;
        MPI_Datatype out_type;
        int to;
        MPI_Aint at;
        int count;
        MPI_Datatype type;
        MPI_Op op;
};

/* All return an error of MPI. */
int window_request(struct window *w, const struct request *r);
int window_exchange(struct window *w, const char *call);
void requests_finish(struct requests *r);

#endif
