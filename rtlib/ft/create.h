/* One communicator that is being made. */
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
};

struct making {
        enum way way;
        int color, key; /* of MAKE_CART: reorder, dimensions; of MAKE_SPLIT_TYPE: the type */
        MPI_Group group;
        MPI_Info info;
        const int *dims, *periods;
        MPI_Comm made;     /* by the last try */
        struct comm *comm; /* what we have of it; NULL: this rank is alone in it, or not in it */
};

/* One try, by all that live. What the one before made is forgotten. */
int making_run(struct making *m, struct comm *c);

/* After one that has failed, before the next. */
void making_clear(void);

#endif
