#include "rtlib/ft/deferred.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"

struct freed {
        struct freed *next;
        MPI_Datatype type; /* or */
        MPI_Op op;
};

static struct {
        pthread_mutex_t lock;
        unsigned holders;
        struct freed *freed;
} here = { .lock = PTHREAD_MUTEX_INITIALIZER };

void deferred_hold(void) {
        (void) pthread_mutex_lock(&here.lock);
        here.holders++;
        (void) pthread_mutex_unlock(&here.lock);
}

void deferred_release(void) {
        struct freed *freed = NULL, *next;

        (void) pthread_mutex_lock(&here.lock);
        if (--here.holders == 0) {
                freed = here.freed;
                here.freed = NULL;
        }
        (void) pthread_mutex_unlock(&here.lock);
        for (; freed; freed = next) {
                next = freed->next;
                if (freed->type)
                        (void) mpi.Type_free(&freed->type);
                else
                        (void) mpi.Op_free(&freed->op);
                free(freed);
        }
}

/* False: no one needs it. */
static bool defer(MPI_Datatype type, MPI_Op op) {
        struct freed *f = NULL;

        (void) pthread_mutex_lock(&here.lock);
        if (here.holders > 0) {
                f = xcalloc(1, sizeof(*f));
                *f = (struct freed) { here.freed, type, op };
                here.freed = f;
        }
        (void) pthread_mutex_unlock(&here.lock);
        return f;
}

int MPI_Type_free(MPI_Datatype *type) {
        int rc = MPI_SUCCESS;

        if (!ft.on || *type == mpi.datatype_null || !defer(*type, NULL))
                rc = REAL(Type_free)(type);
        else
                *type = mpi.datatype_null;
        return rc;
}
FT_WRAPS(Type_free);

int MPI_Op_free(MPI_Op *op) {
        int rc = MPI_SUCCESS;

        if (!ft.on || *op == mpi.op_null || !defer(NULL, *op))
                rc = REAL(Op_free)(op);
        else
                *op = mpi.op_null;
        return rc;
}
FT_WRAPS(Op_free);
