#include "rtlib/ft/nonblocking.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/util.h"
#include "rtlib/ft/catch_up.h"
#include "rtlib/ft/deferred.h"
#include "rtlib/ft/ft.h"

#define ABANDON_LOOKS 100

struct pending {
        struct pending *next;
        struct op op;
        bool synchronised; /* as in `struct slot` */
        unsigned ahead; /* of the ring, with it */
        struct slot input; /* what the operation overwrites of it */
        enum { NOT_BEGUN, UNDER_WAY, SYNCHRONISING, FAILED } stage;
        struct call call;
        uint32_t losses; /* that there were when it began */
        MPI_Request inner, outer; /* MPI's own, and the program's */
        int rc;
};

static struct {
        atomic_int count; /* of all communicators */
        atomic_flag busy;
} here = { .busy = ATOMIC_FLAG_INIT };

static int query(void *state, MPI_Status *status) {
        const struct pending *p = state;

        status_set_empty(status, MPI_ANY_SOURCE, MPI_ANY_TAG);
        return p->rc;
}

static int release(void *state) {
        struct pending *p = state;

        free(p->input.data);
        free(p);
        return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
        return MPI_SUCCESS;
}

/* The operation takes its place in the ring: others may need its result. */
static void leave_result(struct comm *c, const struct pending *p) {
        bool kept = p->rc == MPI_SUCCESS && !p->synchronised;
        struct slot *slot = ring_take(c->ring, c->done, kept ? op_bytes(&p->op, c) : 0);

        slot->kind = p->op.kind;
        slot->root = p->op.root;
        slot->synchronised = p->synchronised;
        if (kept)
                op_keep_result(&p->op, c, slot);
}

static void complete(struct comm *c, int rc) {
        struct pending *p = c->pending;

        p->rc = rc;
        leave_result(c, p);
        if (p->synchronised && rc == MPI_SUCCESS)
                ring_forget(c->ring, c->done);
        c->done++;
        c->ahead = p->ahead;
        c->pending = p->next;
        here.count--;
        deferred_release();
        /* The request is the program's to free from here on. */
        (void) mpi.Grequest_complete(p->outer);
}

static void begin(struct comm *c, struct pending *p) {
        int rc;

        if (op_is_in_vain(&p->op, c)) {
                complete(c, MPI_SUCCESS);
                return;
        }
        p->losses = ft.repaired;
        call_prepare(&p->call, &p->op, c);
        rc = op_start(&p->call.op, c->shadow, &p->inner);
        p->stage = UNDER_WAY;
        if (rc != MPI_SUCCESS)
                p->inner = mpi.request_null;
        if (rc != MPI_SUCCESS && error_is_loss(rc))
                p->stage = FAILED;
        else if (rc != MPI_SUCCESS)
                complete(c, rc);
}

static void synchronise(struct comm *c, struct pending *p) {
        p->stage = SYNCHRONISING;
        if (mpi.Ibarrier(c->shadow, &p->inner) != MPI_SUCCESS) {
                p->inner = mpi.request_null;
                p->stage = FAILED;
        }
}

/* MPI's own request is done. */
static void advance(struct comm *c, struct pending *p, int rc) {
        if (p->stage == UNDER_WAY && rc == MPI_SUCCESS)
                call_finish(&p->call, &p->op, c, rc);
        if (rc == MPI_SUCCESS && ft_was_hit(c->shadow, ft.repaired))
                rc = MPI_ERR_PROC_FAILED;
        if (rc != MPI_SUCCESS && error_is_loss(rc))
                p->stage = FAILED;
        else if (rc == MPI_SUCCESS && p->stage == UNDER_WAY && p->synchronised)
                synchronise(c, p);
        else
                complete(c, rc);
}

/* True: there may be more to do. */
static bool step(struct comm *c) {
        struct pending *p = c->pending;
        int done = 0, rc;

        if (!p || p->stage == FAILED || ft_is_behind() || c->done < c->target)
                return false;
        if (p->stage == NOT_BEGUN) {
                begin(c, p);
                return c->pending != p || p->stage == UNDER_WAY;
        }
        rc = mpi.Test(&p->inner, &done, MPI_STATUS_IGNORE);
        if (rc == MPI_SUCCESS && !done)
                return false;
        advance(c, p, rc);
        return true;
}

static void fail(struct comm *c) {
        ft.hit = true;
        if (c->shadow != mpi.comm_self)
                (void) mpi.Comm_revoke(c->shadow);
}

void nonblocking_scan(void) {
        if (here.count == 0 || atomic_flag_test_and_set(&here.busy))
                return;
        for (struct comm *c = comm_first(); c; c = c->next) {
                while (c->pending && step(c))
                        ;
                if (c->pending && c->pending->stage == FAILED && !ft.hit)
                        fail(c);
        }
        atomic_flag_clear(&here.busy);
}

/* Does the operations that others have done while this rank had not yet: false if another was lost
 * meanwhile. */
static bool catch_up_pending(struct comm *c) {
        while (c->pending && (c->done < c->target || c->freed)) {
                struct pending *p = c->pending;

                if (!c->freed && !catch_up(c, &p->op, &p->input))
                        return false;
                complete(c, MPI_SUCCESS);
        }
        return true;
}

/* MPI may still write for it until it knows that it is given up, which its communicator is. */
static void abandon(struct comm *c, struct pending *p) {
        int done = p->inner == mpi.request_null;

        for (int i = 0; !done && i < ABANDON_LOOKS; i++)
                if (mpi.Test(&p->inner, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                        done = 1;
        p->inner = mpi.request_null;
        p->stage = NOT_BEGUN;
        op_restore_input(&p->op, c, &p->input);
        op_clear_lost(&p->op, c, p->losses);
}

void nonblocking_resume(void) {
        ft.hit = false;
        if (here.count == 0)
                return;
        while (atomic_flag_test_and_set(&here.busy))
                ;
        for (struct comm *c = comm_first(); c; c = c->next) {
                if (c->pending && c->pending->stage != NOT_BEGUN)
                        abandon(c, c->pending);
                if (!catch_up_pending(c))
                        break;
        }
        atomic_flag_clear(&here.busy);
        nonblocking_scan();
}

static struct pending *pending_create(struct comm *c, const struct op *o) {
        struct pending *p = xcalloc(1, sizeof(*p));

        p->op = *o;
        p->inner = mpi.request_null;
        p->synchronised = ring_must_wait_nonblocking(c->ring, o->kind, op_bytes(o, c));
        p->ahead = c->ring->ahead;
        p->input = (struct slot) { .kind = o->kind, .root = o->root, .synchronised = p->synchronised };
        p->input.bytes = op_input_bytes(o, c, p->synchronised);
        p->input.data = xcalloc(p->input.bytes + 1, 1);
        op_keep_input(o, c, &p->input);
        return p;
}

static void append(struct comm *c, struct pending *p) {
        LL_APPEND(c->pending, p);
        here.count++;
        deferred_hold();
}

int nonblocking_begin(struct comm *c, const struct op *o, MPI_Request *ret) {
        struct pending *p = pending_create(c, o);
        int rc = mpi.Grequest_start(query, release, cancel, p, &p->outer);

        if (rc != MPI_SUCCESS) {
                (void) release(p);
                return rc;
        }
        *ret = p->outer;
        if (ft_is_behind())
                ft_repair();
        while (atomic_flag_test_and_set(&here.busy))
                ;
        append(c, p);
        (void) catch_up_pending(c);
        atomic_flag_clear(&here.busy);
        nonblocking_scan();
        return MPI_SUCCESS;
}

void nonblocking_drain(struct comm *c) {
        while (c->pending) {
                int flag;

                (void) mpi.Iprobe(ft.rank, 0, ft.meeting, &flag, MPI_STATUS_IGNORE);
                nonblocking_scan();
                ft_keep_up();
        }
}
