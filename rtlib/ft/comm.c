#include "rtlib/ft/comm.h"

#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/peers.h"

/* The communicators in order; most programs have a few only. The last one that was found is mostly
 * the next, too. */
static struct {
        struct comm *_Atomic first;
        struct comm *_Atomic last_found;
} comms;

struct comm *comm_first(void) {
        return comms.first;
}

static struct comm *search(MPI_Comm user) {
        struct comm *c = comms.first;

        while (c && c->user != user)
                c = c->next;
        if (c)
                atomic_store_explicit(&comms.last_found, c, memory_order_relaxed);
        return c;
}

struct comm *comm_find(MPI_Comm user) {
        struct comm *c = atomic_load_explicit(&comms.last_found, memory_order_relaxed);

        return c && c->user == user ? c : search(user);
}

struct comm *comm_by_id(uint64_t id) {
        struct comm *c = comms.first;

        while (c && c->id != id)
                c = c->next;
        return c;
}

static bool is_before(const struct comm *a, const struct comm *b) {
        return a->depth != b->depth ? a->depth < b->depth : a->id < b->id;
}

static void insert(struct comm *c) {
        struct comm *before = NULL, *after = comms.first;

        while (after && is_before(after, c)) {
                before = after;
                after = after->next;
        }
        c->next = after;
        if (before)
                before->next = c;
        else
                comms.first = c;
}

struct comm *comm_add(MPI_Comm user, MPI_Comm shadow, uint64_t id, int size, int rank, int *world, uint32_t depth) {
        struct comm *c = xcalloc(1, sizeof(*c));

        c->user = user;
        c->shadow = shadow;
        c->id = id;
        c->depth = depth;
        c->size = size;
        c->rank = rank;
        c->world = world;
        c->now = xcalloc((size_t) size, sizeof(*c->now));
        c->old = xcalloc((size_t) size, sizeof(*c->old));
        c->done_by = xcalloc((size_t) size, sizeof(*c->done_by));
        c->since = xcalloc((size_t) size, sizeof(*c->since));
        c->joins = xcalloc((size_t) size, sizeof(*c->joins));
        c->joined = xcalloc((size_t) size, sizeof(*c->joined));
        c->ring = xcalloc(1, sizeof(*c->ring));
        comm_count_living(c, ft.repaired);
        insert(c);
        return c;
}

void comm_remove(struct comm *c) {
        struct comm *before = comms.first;

        comms.last_found = NULL;
        if (before == c)
                comms.first = c->next;
        for (; before && before->next; before = before->next)
                if (before->next == c)
                        before->next = c->next;
        ring_finish(c->ring);
        free(c->ring);
        free(c->world);
        free(c->now);
        free(c->old);
        free(c->done_by);
        free(c->since);
        free(c->joins);
        free(c->joined);
        peers_finish(c);
        free(c);
}

void comm_count_living(struct comm *c, uint32_t losses) {
        c->living = 0;
        for (int i = 0; i < c->size; i++) {
                c->now[i] = losses_has(&ft.losses, (uint32_t) c->world[i], losses) ? -1 : c->living;
                if (c->now[i] >= 0)
                        c->old[c->living++] = i;
        }
}
