#include "rtlib/ft/rejoin.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/meet.h"
#include "rtlib/ft/members.h"

/* The description of a communicator, in numbers: these, and then the processes. */
struct told {
        uint64_t id, parent, origin, tag, way, born, depth, size;
};

enum { NUMBERS = sizeof(struct told) / sizeof(uint64_t) };

/* The communicators that this process was told of, in no order. */
struct claim {
        struct claim *next;
        struct told told;
        int *world;
        bool claimed; /* this one, or one that was made by the same call */
};

static struct claim *claims;

void rejoin_place(struct comm *c, uint32_t losses) {
        for (int i = 0; c->replaceable && i < c->size; i++) {
                int process =
                        losses_has(&ft.losses, (uint32_t) c->world[i], losses) ? members_process(members_rank(c->world[i])) : -1;

                if (process >= 0)
                        c->world[i] = process;
        }
}

/* ---- telling ---- */

/* The lowest member that knows of it. */
static bool tells_of(const struct comm *c, const bool *joins) {
        for (int i = 0; i < c->living; i++) {
                int place = ft.world->now[members_rank(c->world[c->old[i]])];

                if (!joins[place])
                        return c->old[i] == c->rank;
        }
        return false;
}

static uint64_t *describe_all(const bool *joins, int *ret_n) {
        uint64_t *numbers = NULL;
        size_t n = 0;

        for (struct comm *c = comm_first(); c; c = c->next) {
                const struct told told = { c->id,  c->parent, c->origin, (uint64_t) c->tag,
                                           c->way, c->born,   c->depth,  (uint64_t) c->size };

                if (!c->replaceable || !tells_of(c, joins))
                        continue;
                numbers = xrealloc(numbers, (n + NUMBERS + (size_t) c->size) * sizeof(*numbers));
                memcpy(numbers + n, &told, sizeof(told));
                n += NUMBERS;
                for (int i = 0; i < c->size; i++)
                        numbers[n++] = (uint64_t) c->world[i];
        }
        *ret_n = (int) n;
        return numbers;
}

static bool is_known(uint64_t id) {
        for (const struct claim *claim = claims; claim; claim = claim->next)
                if (claim->told.id == id)
                        return true;
        return false;
}

static void add_member(const struct told *told, const int *world, int rank) {
        int *copy = xcalloc((size_t) told->size, sizeof(*copy));
        struct comm *c;

        memcpy(copy, world, (size_t) told->size * sizeof(*copy));
        c = comm_add(mpi.comm_null, mpi.comm_null, told->id, (int) told->size, rank, copy, (uint32_t) told->depth);
        c->parent = told->parent;
        c->origin = told->origin;
        c->tag = (int) told->tag;
        c->way = (unsigned) told->way;
        c->born = told->born;
        c->replaceable = true;
        c->since[rank] = COMM_FRESH;
        c->handler = ft.world->handler;
}

/* Told again, after a repair that has failed: with what has changed in between. */
static void take(const struct told *told, const uint64_t *numbers) {
        struct comm *c = comm_by_id(told->id);
        int *world = xcalloc((size_t) told->size, sizeof(*world));
        struct claim *claim;

        for (uint64_t i = 0; i < told->size; i++)
                world[i] = (int) numbers[i];
        if (c)
                memcpy(c->world, world, (size_t) told->size * sizeof(*world));
        for (uint64_t i = 0; !c && i < told->size; i++)
                if (world[i] == ft.rank)
                        add_member(told, world, (int) i);
        if (is_known(told->id)) {
                free(world);
                return;
        }
        claim = xcalloc(1, sizeof(*claim));
        *claim = (struct claim) { .next = claims, .told = *told, .world = world };
        claims = claim;
}

static void take_all(const uint64_t *numbers, int n) {
        for (int at = 0; at < n;) {
                struct told told;

                memcpy(&told, numbers + at, sizeof(told));
                take(&told, numbers + at + NUMBERS);
                at += NUMBERS + (int) told.size;
        }
}

bool rejoin_tell(MPI_Comm world, const bool *joins) {
        struct gathered told;
        int n;
        uint64_t *own = describe_all(joins, &n);

        if (meet_gather(world, ft.world->living, own, n, &told) != MPI_SUCCESS || ft_was_hit(world, ft.in_hand))
                return false;
        if (ft.joining)
                take_all(told.numbers, told.all);
        free(own);
        gathered_finish(&told);
        return true;
}

void rejoin_finish(void) {
        struct comm *next;

        for (struct comm *c = ft.joining ? comm_first() : NULL; c; c = next) {
                next = c->next;
                if (c != ft.world && (!c->established || c->freed))
                        comm_remove(c);
        }
        ft.joining = false;
}

/* ---- claiming ---- */

/* Only where its program begins: once it has done an operation on a communicator, it is where the
 * others are. */
static bool may_claim(const struct comm *c) {
        return ft.respawned && claims && c->done == c->since[c->rank];
}

static const char *name_of(unsigned way) {
        static const char *const names[] = {
                [MAKE_DUP] = "MPI_Comm_dup",         [MAKE_DUP_WITH_INFO] = "MPI_Comm_dup_with_info",
                [MAKE_SPLIT] = "MPI_Comm_split",     [MAKE_SPLIT_TYPE] = "MPI_Comm_split_type",
                [MAKE_OF_GROUP] = "MPI_Comm_create",
        };

        return way < ARRAY_SIZE(names) ? names[way] : "another call";
}

/* Finds a communicator made of `c` by the first operation of which none was claimed: that which
 * this process is in, else any. NULL: there is none. */
static struct claim *next_claim(const struct comm *c) {
        struct claim *best = NULL;

        for (struct claim *claim = claims; claim; claim = claim->next) {
                if (claim->claimed || claim->told.parent != c->id)
                        continue;
                if (!best || claim->told.born < best->told.born ||
                    (claim->told.born == best->told.born && comm_by_id(claim->told.id)))
                        best = claim;
        }
        return best;
}

static void claim_all_of(const struct claim *of) {
        for (struct claim *claim = claims; claim; claim = claim->next)
                if (claim->told.parent == of->told.parent && claim->told.born == of->told.born)
                        claim->claimed = true;
}

/* The lost rank was in none of several processes: it had said that it wants none, or was alone. */
static void make_alone(const struct making *m, MPI_Comm *ret) {
        int rank = 0;

        if (m->way == MAKE_OF_GROUP)
                (void) mpi.Group_rank(m->group, &rank);
        else if (m->color == MPI_UNDEFINED)
                rank = MPI_UNDEFINED;
        *ret = mpi.comm_null;
        if (rank != MPI_UNDEFINED && mpi.Comm_dup(mpi.comm_self, ret) != MPI_SUCCESS)
                ft_give_up("MPI makes no communicator");
}

bool rejoin_claim(const struct making *m, const char *name, struct comm *c, MPI_Comm *ret) {
        struct claim *claim = may_claim(c) ? next_claim(c) : NULL;
        struct comm *made = claim ? comm_by_id(claim->told.id) : NULL;

        if (!claim)
                return false;
        if (claim->told.way != m->way)
                ft_give_up("%s: rank %d, which this process replaces, had called %s here", name, ft.world->rank,
                           name_of((unsigned) claim->told.way));
        claim_all_of(claim);
        if (made)
                *ret = made->user;
        else
                make_alone(m, ret);
        return true;
}

static bool has_members(const struct claim *claim, const int *members, int n) {
        return claim->told.size == (uint64_t) n && memcmp(claim->world, members, (size_t) n * sizeof(*members)) == 0;
}

bool rejoin_claim_group(const struct making *m, struct comm *c, int tag, MPI_Comm *ret) {
        int n = 0, *members = may_claim(c) ? group_living_processes(m->group, &n) : NULL;
        struct comm *made = NULL;

        for (struct claim *claim = members ? claims : NULL; claim && !made; claim = claim->next) {
                if (claim->claimed || claim->told.parent != COMM_NO_PARENT || claim->told.origin != c->id ||
                    (int) claim->told.tag != tag || !has_members(claim, members, n))
                        continue;
                made = comm_by_id(claim->told.id);
                claim->claimed = made != NULL;
        }
        free(members);
        if (made)
                *ret = made->user;
        return made != NULL;
}
