/* Files of the program (MPI-IO). Each rank has the file open for itself alone, so that nothing that
 * it does there waits for another rank; calls of which all are to have the same, or to be through,
 * go together by collective operations of ours. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/util.h"
#include "rtlib/ft/collective.h"
#include "rtlib/ft/create.h"
#include "rtlib/ft/data.h"
#include "rtlib/ft/ft.h"

struct file {
        struct file *next;
        MPI_File handle;
        struct comm *comm; /* a copy, for the file alone */
        char *name;
        int mode;
        MPI_Offset shared; /* where all of them are together, in etypes */
        MPI_Status ordered; /* of a call that has begun */
};

static struct {
        pthread_mutex_t lock;
        struct file *first;
} files = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct file *find(MPI_File handle) {
        struct file *f;

        if (!ft.on || ft.ended)
                return NULL;
        (void) pthread_mutex_lock(&files.lock);
        LL_SEARCH_SCALAR(files.first, f, handle, handle);
        (void) pthread_mutex_unlock(&files.lock);
        return f;
}

static void add(struct file *f) {
        (void) pthread_mutex_lock(&files.lock);
        LL_PREPEND(files.first, f);
        (void) pthread_mutex_unlock(&files.lock);
}

static void take_out(struct file *f) {
        (void) pthread_mutex_lock(&files.lock);
        LL_DELETE(files.first, f);
        (void) pthread_mutex_unlock(&files.lock);
}

static int raise_on(MPI_File handle, int rc) {
        if (rc != MPI_SUCCESS)
                (void) mpi.File_call_errhandler(handle, rc);
        return rc;
}

static int together(struct file *f, const char *call) {
        const struct op o = { .kind = OP_BARRIER, .name = call, .root = -1 };

        return collective(f->comm, &o);
}

/* The largest of what the ranks have. */
static int agree(struct file *f, const char *call, int own[2]) {
        int all[2] = { own[0], own[1] };
        const struct op o = { .kind = OP_ALLREDUCE,
                              .name = call,
                              .send = own,
                              .recv = all,
                              .recv_count = 2,
                              .recv_type = mpi.int_type,
                              .op = mpi.op_max,
                              .root = -1 };
        int rc = collective(f->comm, &o);

        own[0] = all[0];
        own[1] = all[1];
        return rc;
}

typedef int by_one_fn(struct file *f, void *arg);

/* Does an operation that may be done once only: the lowest rank does it, and the others hear how
 * that ended. If it is lost meanwhile, the next one does it. Open MPI has no error of class 0, and
 * none below. */
static int by_one(struct file *f, const char *call, by_one_fn *act, void *arg) {
        int said[2], rc;

        do {
                said[0] = -f->comm->rank;
                said[1] = 0;
                rc = agree(f, call, said);
                if (rc == MPI_SUCCESS && said[0] == -f->comm->rank) {
                        said[0] = 1;
                        said[1] = act(f, arg);
                } else {
                        said[0] = 0;
                        said[1] = rc;
                }
                rc = agree(f, call, said);
        } while (rc == MPI_SUCCESS && said[0] == 0 && said[1] == MPI_SUCCESS);
        return rc == MPI_SUCCESS ? said[1] : rc;
}

static int open_alone(struct file *f, int mode, MPI_Info info) {
        return mpi.File_open(mpi.comm_self, f->name, mode, info, &f->handle);
}

struct opening {
        MPI_Info info;
        bool opened;
};

static int open_first(struct file *f, void *arg) {
        struct opening *o = arg;
        int rc = open_alone(f, f->mode & ~MPI_MODE_DELETE_ON_CLOSE, o->info);

        o->opened = rc == MPI_SUCCESS;
        return rc;
}

/* A single rank makes the file if it is to be made, as it may be that only one can; the others find
 * it then. */
static int open_together(struct file *f, MPI_Info info) {
        struct opening o = { .info = info };
        int said[2], rc = by_one(f, "MPI_File_open", open_first, &o);

        if (rc == MPI_SUCCESS && !o.opened) {
                rc = open_alone(f, f->mode & ~(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE), info);
                o.opened = rc == MPI_SUCCESS;
        }
        said[0] = 0;
        said[1] = rc;
        rc = agree(f, "MPI_File_open", said);
        if (rc == MPI_SUCCESS)
                rc = said[1];
        if (rc != MPI_SUCCESS && o.opened)
                (void) mpi.File_close(&f->handle);
        return rc;
}

static void file_free(struct file *f) {
        MPI_Comm comm = f->comm->user;

        (void) MPI_Comm_free(&comm);
        free(f->name);
        free(f);
}

int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *ret) {
        struct comm *c = ft_comm(comm);
        struct file *f;
        int rc;

        if (!c)
                return REAL(File_open)(comm, name, mode, info, ret);
        f = xcalloc(1, sizeof(*f));
        rc = comm_copy(c, "MPI_File_open", &f->comm);
        if (rc != MPI_SUCCESS || !f->comm) {
                free(f);
                return rc == MPI_SUCCESS ? mpi.File_open(mpi.comm_self, name, mode, info, ret) : error_raise(c, rc);
        }
        f->name = xstrdup(name);
        f->mode = mode;
        rc = open_together(f, info);
        if (rc != MPI_SUCCESS) {
                file_free(f);
                return raise_on(mpi.file_null, rc);
        }
        add(f);
        *ret = f->handle;
        return MPI_SUCCESS;
}
FT_WRAPS(File_open);

int MPI_File_close(MPI_File *handle) {
        struct file *f = find(*handle);
        int rc;

        if (!f)
                return REAL(File_close)(handle);
        (void) together(f, "MPI_File_close");
        take_out(f);
        rc = mpi.File_close(handle);
        /* The first rank to come here deletes the file. */
        if (f->mode & MPI_MODE_DELETE_ON_CLOSE) {
                (void) together(f, "MPI_File_close");
                (void) mpi.File_delete(f->name, mpi.info_null);
        }
        file_free(f);
        return rc;
}
FT_WRAPS(File_close);

int MPI_File_get_amode(MPI_File handle, int *ret) {
        const struct file *f = find(handle);

        if (!f)
                return REAL(File_get_amode)(handle, ret);
        *ret = f->mode;
        return MPI_SUCCESS;
}
FT_WRAPS(File_get_amode);

int MPI_File_get_group(MPI_File handle, MPI_Group *ret) {
        const struct file *f = find(handle);

        return f ? mpi.Comm_group(f->comm->user, ret) : REAL(File_get_group)(handle, ret);
}
FT_WRAPS(File_get_group);

/* All ranks do it, to the same end: what they have written before is not cut off, nor is what they
 * write then. */
int MPI_File_set_size(MPI_File handle, MPI_Offset size) {
        struct file *f = find(handle);
        int rc;

        if (!f)
                return REAL(File_set_size)(handle, size);
        (void) together(f, "MPI_File_set_size");
        rc = mpi.File_set_size(handle, size);
        (void) together(f, "MPI_File_set_size");
        return rc;
}
FT_WRAPS(File_set_size);

struct allocation {
        MPI_Offset bytes;
        bool tried;
};

/* Open MPI 5.0 appends what is there to a file that has the size already, so that a second rank
 * that did it would make the file longer. */
static int allocate(struct file *f, void *arg) {
        struct allocation *a = arg;
        MPI_Offset is;
        int rc = mpi.File_get_size(f->handle, &is);

        a->tried = true;
        return rc == MPI_SUCCESS && is < a->bytes ? mpi.File_preallocate(f->handle, a->bytes) : rc;
}

int MPI_File_preallocate(MPI_File handle, MPI_Offset bytes) {
        struct allocation a = { .bytes = bytes };
        struct file *f = find(handle);
        int rc;

        if (!f)
                return REAL(File_preallocate)(handle, bytes);
        rc = by_one(f, "MPI_File_preallocate", allocate, &a);
        /* MPI has called the handler of the one that tried. */
        return a.tried ? rc : raise_on(handle, rc);
}
FT_WRAPS(File_preallocate);

int MPI_File_sync(MPI_File handle) {
        struct file *f = find(handle);
        int rc = REAL(File_sync)(handle);

        if (f)
                (void) together(f, "MPI_File_sync");
        return rc;
}
FT_WRAPS(File_sync);

int MPI_File_set_view(MPI_File handle, MPI_Offset at, MPI_Datatype etype, MPI_Datatype type, const char *form, MPI_Info info) {
        struct file *f = find(handle);
        int rc = REAL(File_set_view)(handle, at, etype, type, form, info);

        if (f)
                f->shared = 0;
        return rc;
}
FT_WRAPS(File_set_view);

/* ---- one after the other, in the order of ranks ---- */

/* Computes where this rank's part begins; all ranks move on behind the part of the last. In
 * etypes. */
static int take_turn(struct file *f, const char *call, int count, MPI_Datatype type, MPI_Offset *ret) {
        MPI_Datatype etype, file_type;
        MPI_Offset at;
        char form[MPI_MAX_DATAREP_STRING];
        uint64_t own, *all = xcalloc((size_t) f->comm->size, sizeof(*all)), before = 0, sum = 0;
        struct op o = {
                .kind = OP_ALLGATHER, .name = call, .send = &own, .send_count = 1, .recv = all, .recv_count = 1, .root = -1
        };
        int rc = mpi.File_get_view(f->handle, &at, &etype, &file_type, form);

        if (rc == MPI_SUCCESS) {
                size_t unit = data_bytes(1, etype);

                own = unit > 0 ? data_bytes(count, type) / unit : 0;
                o.send_type = o.recv_type = mpi.uint64;
                rc = collective(f->comm, &o);
        }
        for (int i = 0; i < f->comm->size; i++) {
                before += i < f->comm->rank ? all[i] : 0;
                sum += all[i];
        }
        *ret = f->shared + (MPI_Offset) before;
        if (rc == MPI_SUCCESS)
                f->shared += (MPI_Offset) sum;
        free(all);
        return rc;
}

static int read_ordered(struct file *f, const char *call, void *data, int count, MPI_Datatype type, MPI_Status *status) {
        MPI_Offset at;
        int rc = take_turn(f, call, count, type, &at);

        return rc == MPI_SUCCESS ? mpi.File_read_at(f->handle, at, data, count, type, status) : raise_on(f->handle, rc);
}

static int write_ordered(struct file *f, const char *call, const void *data, int count, MPI_Datatype type, MPI_Status *status) {
        MPI_Offset at;
        int rc = take_turn(f, call, count, type, &at);

        return rc == MPI_SUCCESS ? mpi.File_write_at(f->handle, at, data, count, type, status) : raise_on(f->handle, rc);
}

int MPI_File_read_ordered(MPI_File handle, void *data, int count, MPI_Datatype type, MPI_Status *status) {
        struct file *f = find(handle);

        return f ? read_ordered(f, "MPI_File_read_ordered", data, count, type, status)
                 : REAL(File_read_ordered)(handle, data, count, type, status);
}
FT_WRAPS(File_read_ordered);

int MPI_File_write_ordered(MPI_File handle, const void *data, int count, MPI_Datatype type, MPI_Status *status) {
        struct file *f = find(handle);

        return f ? write_ordered(f, "MPI_File_write_ordered", data, count, type, status)
                 : REAL(File_write_ordered)(handle, data, count, type, status);
}
FT_WRAPS(File_write_ordered);

int MPI_File_read_ordered_begin(MPI_File handle, void *data, int count, MPI_Datatype type) {
        struct file *f = find(handle);

        return f ? read_ordered(f, "MPI_File_read_ordered_begin", data, count, type, &f->ordered)
                 : REAL(File_read_ordered_begin)(handle, data, count, type);
}
FT_WRAPS(File_read_ordered_begin);

int MPI_File_write_ordered_begin(MPI_File handle, const void *data, int count, MPI_Datatype type) {
        struct file *f = find(handle);

        return f ? write_ordered(f, "MPI_File_write_ordered_begin", data, count, type, &f->ordered)
                 : REAL(File_write_ordered_begin)(handle, data, count, type);
}
FT_WRAPS(File_write_ordered_begin);

static int end_ordered(const struct file *f, MPI_Status *status) {
        if (status != MPI_STATUS_IGNORE)
                *status = f->ordered;
        return MPI_SUCCESS;
}

int MPI_File_read_ordered_end(MPI_File handle, void *data, MPI_Status *status) {
        const struct file *f = find(handle);

        return f ? end_ordered(f, status) : REAL(File_read_ordered_end)(handle, data, status);
}
FT_WRAPS(File_read_ordered_end);

int MPI_File_write_ordered_end(MPI_File handle, const void *data, MPI_Status *status) {
        const struct file *f = find(handle);

        return f ? end_ordered(f, status) : REAL(File_write_ordered_end)(handle, data, status);
}
FT_WRAPS(File_write_ordered_end);

static int end_of_file(struct file *f, MPI_Offset *ret) {
        MPI_Offset own;
        int rc = mpi.File_get_position(f->handle, &own);

        if (rc == MPI_SUCCESS)
                rc = mpi.File_seek(f->handle, 0, MPI_SEEK_END);
        if (rc == MPI_SUCCESS)
                rc = mpi.File_get_position(f->handle, ret);
        return rc == MPI_SUCCESS ? mpi.File_seek(f->handle, own, MPI_SEEK_SET) : rc;
}

int MPI_File_seek_shared(MPI_File handle, MPI_Offset at, int whence) {
        struct file *f = find(handle);
        MPI_Offset start = 0;
        int rc;

        if (!f)
                return REAL(File_seek_shared)(handle, at, whence);
        rc = together(f, "MPI_File_seek_shared");
        if (rc == MPI_SUCCESS && whence == MPI_SEEK_END)
                rc = end_of_file(f, &start);
        if (rc == MPI_SUCCESS)
                f->shared = at + (whence == MPI_SEEK_CUR ? f->shared : start);
        return raise_on(handle, rc);
}
FT_WRAPS(File_seek_shared);

int MPI_File_get_position_shared(MPI_File handle, MPI_Offset *ret) {
        const struct file *f = find(handle);

        if (!f)
                return REAL(File_get_position_shared)(handle, ret);
        *ret = f->shared;
        return MPI_SUCCESS;
}
FT_WRAPS(File_get_position_shared);

/* ---- wherever another one has come to: there is no such place that all of them know at any time
 * ---- */

static int refuse_shared(const struct file *f, const char *call) {
        ft_give_up("%s: %s: no shared file pointer in a job that goes on without lost ranks, but for calls in the order of ranks",
                   call, f->name);
}

int MPI_File_read_shared(MPI_File handle, void *data, int count, MPI_Datatype type, MPI_Status *status) {
        const struct file *f = find(handle);

        return f ? refuse_shared(f, "MPI_File_read_shared") : REAL(File_read_shared)(handle, data, count, type, status);
}
FT_WRAPS(File_read_shared);

int MPI_File_write_shared(MPI_File handle, const void *data, int count, MPI_Datatype type, MPI_Status *status) {
        const struct file *f = find(handle);

        return f ? refuse_shared(f, "MPI_File_write_shared") : REAL(File_write_shared)(handle, data, count, type, status);
}
FT_WRAPS(File_write_shared);

int MPI_File_iread_shared(MPI_File handle, void *data, int count, MPI_Datatype type, MPI_Request *request) {
        const struct file *f = find(handle);

        return f ? refuse_shared(f, "MPI_File_iread_shared") : REAL(File_iread_shared)(handle, data, count, type, request);
}
FT_WRAPS(File_iread_shared);

int MPI_File_iwrite_shared(MPI_File handle, const void *data, int count, MPI_Datatype type, MPI_Request *request) {
        const struct file *f = find(handle);

        return f ? refuse_shared(f, "MPI_File_iwrite_shared") : REAL(File_iwrite_shared)(handle, data, count, type, request);
}
FT_WRAPS(File_iwrite_shared);
