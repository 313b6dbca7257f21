#include "rtlib/ft/window.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/util.h"
#include "rtlib/ft/collective.h"
#include "rtlib/ft/create.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/watch.h"

static struct {
        pthread_mutex_t lock;
        struct window *first;
} windows = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct window *window_find(MPI_Win handle) {
        struct window *w;

        if (!ft.on || ft.ended)
                return NULL;
        (void) pthread_mutex_lock(&windows.lock);
        LL_SEARCH_SCALAR(windows.first, w, handle, handle);
        (void) pthread_mutex_unlock(&windows.lock);
        return w;
}

static void add(struct window *w) {
        (void) pthread_mutex_lock(&windows.lock);
        LL_PREPEND(windows.first, w);
        (void) pthread_mutex_unlock(&windows.lock);
}

static void take_out(struct window *w) {
        (void) pthread_mutex_lock(&windows.lock);
        LL_DELETE(windows.first, w);
        (void) pthread_mutex_unlock(&windows.lock);
}

static int raise_on(MPI_Win handle, int rc) {
        if (rc != MPI_SUCCESS)
                (void) mpi.Win_call_errhandler(handle, rc);
        return rc;
}

/* ---- making and freeing ---- */

struct request_for_window {
        const char *call;
        enum { CREATE, ALLOCATE, ALLOCATE_SHARED, DYNAMIC } way;
        void *base; /* of ALLOCATE and ALLOCATE_SHARED: where the address is wanted */
        MPI_Aint bytes;
        int unit;
        MPI_Info info;
};

static int call(const struct request_for_window *r, MPI_Comm on, MPI_Win *ret) {
        switch (r->way) {
        case CREATE:
                return mpi.Win_create(r->base, r->bytes, r->unit, r->info, on, ret);
        case ALLOCATE:
                return mpi.Win_allocate(r->bytes, r->unit, r->info, on, r->base, ret);
        case ALLOCATE_SHARED:
                return mpi.Win_allocate_shared(r->bytes, r->unit, r->info, on, r->base, ret);
        case DYNAMIC:
                return mpi.Win_create_dynamic(r->info, on, ret);
        }
        return MPI_ERR_INTERN;
}

/* The most losses that any rank has heard of: the same at all. All ranks have come here then. */
static int agree_on_losses(struct window *w, const char *name, uint64_t *ret) {
        uint64_t own = ft.losses.count;
        const struct op o = { .kind = OP_ALLREDUCE,
                              .name = name,
                              .send = &own,
                              .recv = ret,
                              .recv_count = 1,
                              .recv_type = mpi.uint64,
                              .op = mpi.op_max,
                              .root = -1 };

        *ret = own;
        return collective(w->comm, &o);
}

/* MPI's own: of all ranks as long as none is lost. */
static int make_native(struct window *w, const struct request_for_window *r) {
        uint64_t losses;
        int rc = agree_on_losses(w, r->call, &losses);

        if (rc != MPI_SUCCESS)
                return rc;
        w->whole = losses == 0;
        if (w->whole) {
                watch_call(r->call);
                rc = call(r, w->comm->user, &w->handle);
                watch_call(NULL);
                if (rc == MPI_SUCCESS || !error_is_loss(rc))
                        return rc;
                w->whole = false;
        }
        if (r->way == ALLOCATE_SHARED)
                ft_give_up("%s does not go on without a rank that was lost", r->call);
        return call(r, mpi.comm_self, &w->handle);
}

static void find_places(struct window *w, const struct comm *c) {
        w->ranks = c->size;
        w->place = xcalloc((size_t) c->size, sizeof(*w->place));
        for (int i = 0; i < c->size; i++) {
                w->place[i] = -1;
                for (int j = 0; j < w->comm->size; j++)
                        if (w->comm->world[j] == c->world[i])
                                w->place[i] = j;
        }
        (void) mpi.Comm_group(c->user, &w->group);
}

static int create(MPI_Comm comm, const struct request_for_window *r, MPI_Win *ret) {
        struct comm *c = ft_comm(comm);
        struct window *w;
        int rc;

        if (!c) {
                if (!mpi.ready)
                        mpi_resolve();
                return call(r, comm, ret);
        }
        w = xcalloc(1, sizeof(*w));
        rc = comm_copy(c, r->call, &w->comm);
        if (rc == MPI_SUCCESS && w->comm)
                rc = make_native(w, r);
        else if (rc == MPI_SUCCESS)
                rc = call(r, mpi.comm_self, ret);
        if (rc != MPI_SUCCESS || !w->comm) {
                free(w);
                return rc == MPI_SUCCESS ? rc : error_raise(c, rc);
        }
        w->dynamic = r->way == DYNAMIC;
        w->base = w->dynamic ? NULL : r->way == CREATE ? r->base : *(char **) r->base;
        w->bytes = r->bytes;
        w->unit = w->dynamic ? 1 : r->unit;
        find_places(w, c);
        w->to = xcalloc((size_t) w->comm->size, sizeof(*w->to));
        (void) pthread_mutex_init(&w->lock, NULL);
        add(w);
        *ret = w->handle;
        return MPI_SUCCESS;
}

int MPI_Win_create(void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *ret) {
        const struct request_for_window r = { "MPI_Win_create", CREATE, base, bytes, unit, info };

        return create(comm, &r, ret);
}
FT_WRAPS(Win_create);

int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *ret) {
        const struct request_for_window r = { "MPI_Win_allocate", ALLOCATE, base, bytes, unit, info };

        return create(comm, &r, ret);
}
FT_WRAPS(Win_allocate);

int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *ret) {
        const struct request_for_window r = { "MPI_Win_allocate_shared", ALLOCATE_SHARED, base, bytes, unit, info };

        return create(comm, &r, ret);
}
FT_WRAPS(Win_allocate_shared);

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *ret) {
        const struct request_for_window r = { .call = "MPI_Win_create_dynamic", .way = DYNAMIC, .info = info };

        return create(comm, &r, ret);
}
FT_WRAPS(Win_create_dynamic);

/* A window of all ranks cannot be freed without those that were lost. */
static int free_native(struct window *w, uint64_t losses) {
        int rc;

        if (w->whole && losses > 0)
                return MPI_SUCCESS;
        watch_call("MPI_Win_free");
        rc = mpi.Win_free(&w->handle);
        watch_call(NULL);
        return error_is_loss(rc) ? MPI_SUCCESS : rc;
}

int MPI_Win_free(MPI_Win *handle) {
        struct window *w = window_find(*handle);
        MPI_Comm comm;
        uint64_t losses;
        int rc;

        if (!w)
                return REAL(Win_free)(handle);
        rc = agree_on_losses(w, "MPI_Win_free", &losses);
        if (rc == MPI_SUCCESS)
                rc = free_native(w, losses);
        if (rc != MPI_SUCCESS)
                return raise_on(*handle, rc);
        take_out(w);
        for (int i = 0; i < w->comm->size; i++)
                requests_finish(&w->to[i]);
        comm = w->comm->user;
        (void) pthread_mutex_destroy(&w->lock);
        (void) mpi.Group_free(&w->group);
        free(w->to);
        free(w->place);
        free(w);
        *handle = mpi.win_null;
        return MPI_Comm_free(&comm);
}
FT_WRAPS(Win_free);

int MPI_Win_get_group(MPI_Win handle, MPI_Group *ret) {
        const struct window *w = window_find(handle);

        return w ? mpi.Group_excl(w->group, 0, NULL, ret) : REAL(Win_get_group)(handle, ret);
}
FT_WRAPS(Win_get_group);

/* ---- between fences ---- */

int MPI_Win_fence(int assert, MPI_Win handle) {
        struct window *w = window_find(handle);

        return w ? raise_on(handle, window_exchange(w, "MPI_Win_fence")) : REAL(Win_fence)(assert, handle);
}
FT_WRAPS(Win_fence);

/* NULL: MPI does it. */
static struct window *between_fences(MPI_Win handle) {
        struct window *w = window_find(handle);

        return w && w->passive == 0 ? w : NULL;
}

/* The arguments of these calls have the same names. */
#define ORIGIN .in = in, .in_count = in_count, .in_type = in_type
#define RESULT .out = out, .out_count = out_count, .out_type = out_type
#define TARGET .to = to, .at = at, .count = count, .type = type

int MPI_Put(const void *in, int in_count, MPI_Datatype in_type, int to, MPI_Aint at, int count, MPI_Datatype type, MPI_Win handle) {
        struct window *w = between_fences(handle);
        const struct request r = { .kind = REQUEST_PUT, ORIGIN, TARGET };

        if (!w)
                return REAL(Put)(in, in_count, in_type, to, at, count, type, handle);
        return raise_on(handle, window_request(w, &r));
}
FT_WRAPS(Put);

int MPI_Get(void *out, int out_count, MPI_Datatype out_type, int to, MPI_Aint at, int count, MPI_Datatype type, MPI_Win handle) {
        struct window *w = between_fences(handle);
        const struct request r = { .kind = REQUEST_GET, RESULT, TARGET };

        if (!w)
                return REAL(Get)(out, out_count, out_type, to, at, count, type, handle);
        return raise_on(handle, window_request(w, &r));
}
FT_WRAPS(Get);

int MPI_Accumulate(const void *in, int in_count, MPI_Datatype in_type, int to, MPI_Aint at, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Win handle) {
        struct window *w = between_fences(handle);
        const struct request r = { .kind = REQUEST_ACCUMULATE, ORIGIN, TARGET, .op = op };

        if (!w)
                return REAL(Accumulate)(in, in_count, in_type, to, at, count, type, op, handle);
        return raise_on(handle, window_request(w, &r));
}
FT_WRAPS(Accumulate);

int MPI_Get_accumulate(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type, int to,
                       MPI_Aint at, int count, MPI_Datatype type, MPI_Op op, MPI_Win handle) {
        struct window *w = between_fences(handle);
        struct request r = { .kind = REQUEST_GET_ACCUMULATE, ORIGIN, RESULT, TARGET, .op = op };

        if (!w)
                return REAL(Get_accumulate)(in, in_count, in_type, out, out_count, out_type, to, at, count, type, op, handle);
        if (op == mpi.op_no_op)
                r.kind = REQUEST_GET;
        return raise_on(handle, window_request(w, &r));
}
FT_WRAPS(Get_accumulate);

int MPI_Fetch_and_op(const void *in, void *out, MPI_Datatype type, int to, MPI_Aint at, MPI_Op op, MPI_Win handle) {
        if (!between_fences(handle))
                return REAL(Fetch_and_op)(in, out, type, to, at, op, handle);
        return MPI_Get_accumulate(in, 1, type, out, 1, type, to, at, 1, type, op, handle);
}
FT_WRAPS(Fetch_and_op);

int MPI_Compare_and_swap(const void *in, const void *compare, void *out, MPI_Datatype type, int to, MPI_Aint at, MPI_Win handle) {
        struct window *w = between_fences(handle);
        const struct request r = { .kind = REQUEST_COMPARE_AND_SWAP,
                                   .in = in,
                                   .compare = compare,
                                   .in_count = 1,
                                   .in_type = type,
                                   .out = out,
                                   .out_count = 1,
                                   .out_type = type,
                                   .to = to,
                                   .at = at,
                                   .count = 1,
                                   .type = type };

        if (!w)
                return REAL(Compare_and_swap)(in, compare, out, type, to, at, handle);
        return raise_on(handle, window_request(w, &r));
}
FT_WRAPS(Compare_and_swap);
