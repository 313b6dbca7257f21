#include "rtlib/ft/collective.h"

#include "rtlib/ft/catch_up.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/nonblocking.h"
#include "rtlib/ft/watch.h"

static struct slot *begin(struct comm *c, const struct op *o, bool synchronised) {
        struct slot *slot = ring_take(c->ring, c->done, op_input_bytes(o, c, synchronised));

        slot->kind = o->kind;
        slot->root = o->root;
        slot->synchronised = synchronised;
        op_keep_input(o, c, slot);
        return slot;
}

bool op_is_in_vain(const struct op *o, const struct comm *c) {
        if (!op_has_root(o->kind) || o->root < 0 || o->root >= c->size || c->now[o->root] >= 0)
                return false;
        if (o->kind == OP_BCAST || o->kind == OP_SCATTER || o->kind == OP_SCATTERV)
                ft_give_up("%s: its root, rank %d, was lost", o->name, o->root);
        return true;
}

static int attempt(struct comm *c, const struct op *o, const struct slot *slot) {
        int rc;

        if (op_is_in_vain(o, c))
                return MPI_SUCCESS;
        blocked_enter(c->shadow);
        rc = op_call_among_living(o, c);
        if (rc == MPI_SUCCESS && slot->synchronised)
                rc = mpi.Barrier(c->shadow);
        blocked_leave();
        return rc == MPI_SUCCESS && ft_was_hit(c->shadow, ft.repaired) ? MPI_ERR_PROC_FAILED : rc;
}

/* A member of the communicator is dead: all others are to leave the operation, too. */
static void fail(struct comm *c) {
        if (c->shadow != mpi.comm_self)
                (void) mpi.Comm_revoke(c->shadow);
        if (!ft_is_behind())
                ft_await_loss();
        ft_repair();
}

static void keep_result(struct comm *c, const struct op *o, const struct slot *slot, size_t bytes) {
        bool synchronised = slot->synchronised;
        struct slot *result;

        if (synchronised || !op_has_one_result(o->kind))
                return;
        result = ring_take(c->ring, c->done, bytes);
        op_keep_result(o, c, result);
}

/* A rank that has done the operation knows that all others have done those before it. */
static void forget(struct comm *c, const struct op *o, bool synchronised, size_t bytes) {
        if (synchronised || op_waits(o->kind, bytes))
                ring_forget(c->ring, c->done);
}

static int run(struct comm *c, const struct op *o) {
        size_t bytes = op_bytes(o, c);
        struct slot *slot;
        bool synchronised;
        uint32_t losses;
        int rc = MPI_SUCCESS;

        if (UNLIKELY(c->pending))
                nonblocking_drain(c);
        synchronised = ring_must_wait(c->ring, o->kind, bytes);
        slot = begin(c, o, synchronised);
        for (;;) {
                if (ft_is_behind())
                        ft_repair();
                if (c->freed)
                        break;
                if (c->done < c->target) {
                        if (catch_up(c, o, slot))
                                break;
                } else {
                        rc = attempt(c, o, slot);
                        if (rc == MPI_SUCCESS)
                                keep_result(c, o, slot, bytes);
                        if (rc == MPI_SUCCESS || !error_is_loss(rc))
                                break;
                }
                rc = MPI_SUCCESS;
                losses = ft.repaired;
                fail(c);
                op_restore_input(o, c, slot);
                op_clear_lost(o, c, losses);
        }
        if (rc == MPI_SUCCESS)
                forget(c, o, synchronised, bytes);
        c->done++;
        c->ahead = c->ring->ahead;
        return rc;
}

int collective(struct comm *c, const struct op *o) {
        int rc;

        watch_enter(c);
        rc = run(c, o);
        watch_leave();
        return rc;
}
