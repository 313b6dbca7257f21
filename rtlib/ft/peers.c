#include "rtlib/ft/peers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/util.h"
#include "rtlib/ft/deferred.h"
#include "rtlib/ft/ft.h"

struct peer {
        struct peer *next;
        MPI_Comm comm;
        uint32_t losses; /* when it was made */
        int *to;         /* by rank of the program's: rank here; -1: it was lost before */
        int *from;       /* the other way round */
};

/* A receive of the program that is not one of MPI's alone. */
struct receive {
        struct receive *next;
        struct comm *c;
        void *data;
        int count, from, tag;
        MPI_Datatype type;
        MPI_Request inner, outer; /* MPI's own, once it is known where the message comes from, and the program's */
        const int *names;         /* the program's rank by that of `inner`; NULL: the same */
        MPI_Status status;
};

/* A message that was found, and is to be received. */
struct found {
        struct found *next;
        MPI_Message message;
        struct comm *c;
        const int *names;
};

static struct {
        const struct mpi *real;
        atomic_int comms; /* that have any */
        atomic_int count;
        atomic_flag busy;
        struct receive *first;
        struct found *found;
} here = { .busy = ATOMIC_FLAG_INIT };

/* ---- ways ---- */

void peers_add(struct comm *c, MPI_Comm comm, uint32_t losses) {
        size_t bytes = (size_t) c->size * sizeof(int);
        struct peer *peer = xcalloc(1, sizeof(*peer));

        *peer = (struct peer) { .next = c->peers, .comm = comm, .losses = losses };
        peer->to = memcpy(xcalloc(1, bytes), c->now, bytes);
        peer->from = memcpy(xcalloc(1, bytes), c->old, bytes);
        for (int i = 0; i < c->size; i++)
                if (c->joins[i])
                        c->joined[i] = losses;
        if (!c->peers)
                here.comms++;
        c->peers = peer;
}

void peers_finish(struct comm *c) {
        struct peer *next;

        if (c->peers)
                here.comms--;
        for (struct peer *peer = c->peers; peer; peer = next) {
                next = peer->next;
                free(peer->to);
                free(peer->from);
                free(peer);
        }
        c->peers = NULL;
}

struct comm *peers_find(MPI_Comm user) {
        struct comm *c = here.comms > 0 && ft.on ? comm_find(user) : NULL;

        return c && c->peers ? c : NULL;
}

static const struct peer *peer_for(const struct comm *c, int rank) {
        uint32_t losses = rank < c->size && c->joined[rank] > c->joined[c->rank] ? c->joined[rank] : c->joined[c->rank];
        const struct peer *peer = c->peers;

        while (peer && peer->losses != losses)
                peer = peer->next;
        return losses > 0 ? peer : NULL;
}

bool peers_way(const struct comm *c, int *rank, MPI_Comm *ret) {
        const struct peer *peer = *rank >= 0 ? peer_for(c, *rank) : NULL;

        *ret = peer ? peer->comm : c->user;
        if (peer && *rank < c->size)
                *rank = peer->to[*rank];
        return !peer || *rank >= 0;
}

/* ---- finding messages ---- */

static int probe_at(MPI_Comm comm, int from, const int *names, int tag, int *there, MPI_Message *message, MPI_Status *status) {
        int rc = message ? here.real->Improbe(from, tag, comm, there, message, status)
                         : here.real->Iprobe(from, tag, comm, there, status);

        if (rc == MPI_SUCCESS && *there && names && status != MPI_STATUS_IGNORE && status->MPI_SOURCE >= 0)
                status->MPI_SOURCE = names[status->MPI_SOURCE];
        return rc;
}

/* `message` NULL: it is only looked for. */
static int probe_all(const struct comm *c, int from, int tag, int *there, MPI_Message *message, MPI_Status *status,
                     const int **names) {
        const struct peer *way = from >= 0 ? peer_for(c, from) : NULL;
        int rc = MPI_SUCCESS;

        *there = 0;
        *names = NULL;
        if (from != MPI_ANY_SOURCE) {
                MPI_Comm comm;

                if (!peers_way(c, &from, &comm))
                        return MPI_ERR_PROC_FAILED;
                *names = way ? way->from : NULL;
                return probe_at(comm, from, *names, tag, there, message, status);
        }
        /* A process that has joined has no other one than these. */
        if (c->joined[c->rank] == 0)
                rc = probe_at(c->user, from, NULL, tag, there, message, status);
        for (const struct peer *peer = c->peers; peer && rc == MPI_SUCCESS && !*there; peer = peer->next) {
                *names = peer->from;
                rc = probe_at(peer->comm, from, peer->from, tag, there, message, status);
        }
        return rc;
}

static int iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
        struct comm *c = peers_find(comm);
        const int *names;

        return c ? probe_all(c, from, tag, there, NULL, status, &names) : here.real->Iprobe(from, tag, comm, there, status);
}

static int improbe(int from, int tag, MPI_Comm comm, int *there, MPI_Message *message, MPI_Status *status) {
        struct comm *c = peers_find(comm);
        const int *names = NULL;
        int rc = c ? probe_all(c, from, tag, there, message, status, &names)
                   : here.real->Improbe(from, tag, comm, there, message, status);

        if (rc == MPI_SUCCESS && *there && names) {
                struct found *found = xcalloc(1, sizeof(*found));

                *found = (struct found) { here.found, *message, c, names };
                here.found = found;
        }
        return rc;
}

/* ---- receiving ---- */

static int query(void *state, MPI_Status *status) {
        struct receive *r = state;

        if (status != MPI_STATUS_IGNORE)
                *status = r->status;
        return MPI_SUCCESS;
}

static int release(void *state) {
        free(state);
        return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
        return MPI_SUCCESS;
}

static void complete(struct receive *r) {
        LL_DELETE(here.first, r);
        here.count--;
        deferred_release();
        /* The request is the program's to free from here on. */
        (void) mpi.Grequest_complete(r->outer);
}

/* Completes the receive of a rank that was lost: with an empty message. */
static void complete_empty(struct receive *r) {
        status_set_empty(&r->status, r->from, r->tag);
        complete(r);
}

static void find_source(struct receive *r) {
        MPI_Message message;
        MPI_Status status;
        int there = 0, rc = probe_all(r->c, r->from, r->tag, &there, &message, &status, &r->names);

        if (rc == MPI_SUCCESS && there)
                rc = here.real->Imrecv(r->data, r->count, r->type, &message, &r->inner);
        if (rc == MPI_SUCCESS)
                return;
        r->inner = mpi.request_null;
        if (r->from == MPI_ANY_SOURCE)
                peers_acknowledge(r->c);
        else
                complete_empty(r);
}

static void step(struct receive *r) {
        int done = 0, rc;

        if (r->inner == mpi.request_null)
                find_source(r);
        else {
                rc = here.real->Test(&r->inner, &done, &r->status);
                if (rc != MPI_SUCCESS && (error_is_pending(rc) || r->from == MPI_ANY_SOURCE))
                        peers_acknowledge(r->c);
                else if (rc != MPI_SUCCESS)
                        complete_empty(r);
                else if (done) {
                        if (r->names && r->status.MPI_SOURCE >= 0)
                                r->status.MPI_SOURCE = r->names[r->status.MPI_SOURCE];
                        complete(r);
                }
        }
}

void peers_scan(void) {
        struct receive *next;

        if (here.count == 0 || atomic_flag_test_and_set(&here.busy))
                return;
        for (struct receive *r = here.first; r; r = next) {
                next = r->next;
                step(r);
        }
        atomic_flag_clear(&here.busy);
}

static bool any_before(const struct comm *c) {
        for (const struct receive *r = here.first; r; r = r->next)
                if (r->c == c && r->inner == mpi.request_null)
                        return true;
        return false;
}

static int begin(struct receive *r, MPI_Request *ret) {
        int rc = mpi.Grequest_start(query, release, cancel, r, &r->outer);

        if (rc != MPI_SUCCESS) {
                free(r);
                return rc;
        }
        *ret = r->outer;
        LL_APPEND(here.first, r);
        here.count++;
        deferred_hold();
        return MPI_SUCCESS;
}

/* Requests receive in the order in which they were begun: once one waits for a message from any
 * source, those after it must not take that. */
static int receive(struct comm *c, void *data, int n, MPI_Datatype type, int from, int tag, MPI_Request *ret) {
        const struct peer *way = from >= 0 ? peer_for(c, from) : NULL;
        struct receive *r = xcalloc(1, sizeof(*r));
        int rc = MPI_SUCCESS;

        *r = (struct receive) {
                .c = c, .data = data, .count = n, .from = from, .tag = tag, .type = type, .inner = mpi.request_null
        };
        while (atomic_flag_test_and_set(&here.busy))
                ;
        if (from != MPI_ANY_SOURCE && !any_before(c)) {
                MPI_Comm comm;

                r->names = way ? way->from : NULL;
                rc = peers_way(c, &from, &comm) ? here.real->Irecv(data, n, type, from, tag, comm, &r->inner) : MPI_ERR_PROC_FAILED;
        }
        if (rc == MPI_SUCCESS)
                rc = begin(r, ret);
        else
                free(r);
        atomic_flag_clear(&here.busy);
        return rc;
}

static int irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
        struct comm *c = peers_find(comm);

        if (!c || from == MPI_PROC_NULL)
                return here.real->Irecv(data, n, type, from, tag, comm, request);
        return receive(c, data, n, type, from, tag, request);
}

static int imrecv(void *data, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {
        struct found *found;
        struct receive *r;
        int rc;

        LL_SEARCH_SCALAR(here.found, found, message, *message);
        if (!found)
                return here.real->Imrecv(data, n, type, message, request);
        r = xcalloc(1, sizeof(*r));
        *r = (struct receive) { .c = found->c, .from = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG, .names = found->names };
        LL_DELETE(here.found, found);
        free(found);
        rc = here.real->Imrecv(data, n, type, message, &r->inner);
        if (rc != MPI_SUCCESS) {
                free(r);
                return rc;
        }
        while (atomic_flag_test_and_set(&here.busy))
                ;
        rc = begin(r, request);
        atomic_flag_clear(&here.busy);
        return rc;
}

/* A persistent receive would have to find out each time from where its message comes. */
static int recv_init(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
        struct comm *c = peers_find(comm);

        if (c && (from == MPI_ANY_SOURCE || peer_for(c, from)))
                ft_give_up("MPI_Recv_init: a rank of the communicator was replaced");
        return here.real->Recv_init(data, n, type, from, tag, comm, request);
}

void peers_acknowledge(const struct comm *c) {
        if (c->user != mpi.comm_null)
                (void) mpi.Comm_failure_ack(c->user);
        for (const struct peer *peer = c->peers; peer; peer = peer->next)
                (void) mpi.Comm_failure_ack(peer->comm);
}

void peers_start(const struct mpi *real) {
        here.real = real;
        mpi.Iprobe = iprobe;
        mpi.Improbe = improbe;
        mpi.Irecv = irecv;
        mpi.Imrecv = imrecv;
        mpi.Recv_init = recv_init;
}
