/* The communicators of the program. Each has a second one for its collective operations: what fails
 * there is given up for all, and rebuilt, without touching messages. */
#ifndef RM_RTLIB_FT_COMM_H
#define RM_RTLIB_FT_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/ft/calls.h"
#include "rtlib/ft/ring.h"

#define COMM_FRESH UINT64_MAX
#define COMM_NO_PARENT UINT64_MAX

struct comm {
        struct comm *next;
        MPI_Comm user, shadow;
        uint64_t id; /* the same at all members, and of no other */
        uint32_t depth; /* 0: MPI_COMM_WORLD */
        uint64_t parent, born; /* made by this operation on that one; COMM_NO_PARENT: by its members alone */
        uint64_t origin; /* of which it was made */
        unsigned way; /* enum way of create.h */
        int tag; /* of MPI_Comm_create_group() */
        bool replaceable; /* a process that replaces a member takes its place here, too: rejoin.h */
        bool *joins; /* by rank: its process joins in the repair in hand */
        uint32_t *joined; /* by rank: so many losses there were when its process joined; 0: it has been there from the beginning */
        struct peer *peers; /* for messages of those: peers.h */
        MPI_Comm next_peer; /* of the repair in hand; NULL: none */
        bool established;
        bool freed; /* others have it no more */
        int size, rank;
        int *world; /* by rank: process, as in MPI_COMM_WORLD of Open MPI */
        int living; /* members of `shadow` */
        int *now; /* by rank: rank in `shadow`, -1: lost */
        int *old; /* by rank in `shadow` */
        uint64_t done; /* operations */
        uint64_t target; /* up to this operation some members were ahead when it was rebuilt: catch_up.c */
        uint64_t *done_by; /* by rank, then */
        /* The operation from which on each rank's process takes part; COMM_FRESH: it was spare, and
         * which one that is is not agreed on yet. */
        uint64_t *since;
        struct ring *ring;
        unsigned ahead; /* of the ring, when so many operations were done */
        struct pending *pending; /* operations that do not block, in their order: nonblocking.c */
        MPI_Errhandler handler; /* the program's own; NULL: as MPI has it */
        bool attributes; /* the program has set some, or it is a copy of one that had them */
};

/* NULL: none of ours. */
struct comm *comm_find(MPI_Comm user);
struct comm *comm_by_id(uint64_t id);
/* `world`: taken over. */
struct comm *comm_add(MPI_Comm user, MPI_Comm shadow, uint64_t id, int size, int rank, int *world, uint32_t depth);
void comm_remove(struct comm *c);
/* The list of all communicators, in an order that is the same at all members: each after the one
 * that it was made from. */
struct comm *comm_first(void);

/* Counts the members of the communicator that live, as ranks of MPI_COMM_WORLD; updates `living`,
 * `now` and `old`. */
void comm_count_living(struct comm *c, uint32_t losses);

static inline bool comm_has_lost(const struct comm *c) {
        return c->living < c->size;
}

/* Does the process that is this rank take part in the operation, now or when it was done? */
static inline bool comm_takes_part(const struct comm *c, int rank, uint64_t number) {
        return c->now[rank] >= 0 && number >= c->since[rank];
}

#endif
