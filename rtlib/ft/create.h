/* A communicator that is being made. */
#ifndef RM_RTLIB_FT_CREATE_H
#define RM_RTLIB_FT_CREATE_H

#include "rtlib/ft/comm.h"

enum way {
        MAKE_DUP,
        MAKE_DUP_WITH_INFO,
        MAKE_SPLIT,
        MAKE_SPLIT_TYPE,
        MAKE_OF_GROUP,
        MAKE_CART,
        MAKE_CART_SUB,
        MAKE_GRAPH,
        MAKE_DIST_GRAPH,
        MAKE_DIST_GRAPH_ADJACENT,
};

/* The edges of graphs, as in the arguments of the calls. */
struct edges {
        int n, m;
        const int *from, *degrees, *to, *weights, *to_weights;
        int reorder;
};

struct making {
        enum way way;
        int color, key; /* of MAKE_CART: reorder, dimensions; of MAKE_SPLIT_TYPE: the type */
        MPI_Group group;
        MPI_Info info;
        const int *dims, *periods;
        const struct edges *edges;
        int tag; /* of MPI_Comm_create_group() */
        bool own; /* the library's */
        MPI_Comm made;     /* by the last try */
        struct comm *comm; /* what we have of it; NULL: this rank is alone in it, or not in it */
};

/* The ranks that live try once. What the one before made is forgotten. */
int making_run(struct making *m, struct comm *c);

/* After one that has failed, before the next. */
void making_clear(void);

/* The processes of a group by rank there, as in MPI_COMM_WORLD of Open MPI; malloc'ed. */
int *group_processes(MPI_Group group, int *ret_n);
/* The same without those that were lost. */
int *group_living_processes(MPI_Group group, int *ret_n);

/* A copy for the library itself, in the program's name `call`. NULL: this rank is alone in it. */
int comm_copy(struct comm *c, const char *call, struct comm **ret);

#endif
