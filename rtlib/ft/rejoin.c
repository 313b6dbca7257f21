#include "rtlib/ft/rejoin.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/meet.h"
#include "rtlib/ft/members.h"

/* The description of a communicator, in numbers: these, and then the processes. */
struct reported {
        uint64_t id, parent, origin, tag, way, born, depth, size;
};

enum { NUMBERS = sizeof(struct reported) / sizeof(uint64_t) };

/* The communicators that this process was told of, in no order. */
struct claim {
        struct claim *next;
        struct reported reported;
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
static bool reports_of(const struct comm *c, const bool *joins) {
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
                const struct reported reported = { c->id,  c->parent, c->origin, (uint64_t) c->tag,
                                                   c->way, c->born,   c->depth,  (uint64_t) c->size };

                if (!c->replaceable || !reports_of(c, joins))
                        continue;
                numbers = xrealloc(numbers, (n + NUMBERS + (size_t) c->size) * sizeof(*numbers));
                memcpy(numbers + n, &reported, sizeof(reported));
                n += NUMBERS;
                for (int i = 0; i < c->size; i++)
                        numbers[n++] = (uint64_t) c->world[i];
        }
        *ret_n = (int) n;
        return numbers;
}

static bool is_known(uint64_t id) {
        for (const struct claim *claim = claims; claim; claim = claim->next)
                if (claim->reported.id == id)
                        return true;
        return false;
}

static void add_member(const struct reported *reported, const int *world, int rank) {
        int *copy = xcalloc((size_t) reported->size, sizeof(*copy));
        struct comm *c;

        memcpy(copy, world, (size_t) reported->size * sizeof(*copy));
        c = comm_add(mpi.comm_null, mpi.comm_null, reported->id, (int) reported->size, rank, copy, (uint32_t) reported->depth);
        c->parent = reported->parent;
        c->origin = reported->origin;
        c->tag = (int) reported->tag;
        c->way = (unsigned) reported->way;
        c->born = reported->born;
        c->replaceable = true;
        c->since[rank] = COMM_FRESH;
        c->handler = ft.world->handler;
}

/* Told again, after a repair that has failed: with what has changed in between. */
static void take(const struct reported *reported, const uint64_t *numbers) {
        struct comm *c = comm_by_id(reported->id);
        int *world = xcalloc((size_t) reported->size, sizeof(*world));
        struct claim *claim;

        for (uint64_t i = 0; i < reported->size; i++)
                world[i] = (int) numbers[i];
        if (c)
                memcpy(c->world, world, (size_t) reported->size * sizeof(*world));
        for (uint64_t i = 0; !c && i < reported->size; i++)
                if (world[i] == ft.rank)
                        add_member(reported, world, (int) i);
        if (is_known(reported->id)) {
                free(world);
                return;
        }
        claim = xcalloc(1, sizeof(*claim));
        *claim = (struct claim) { .next = claims, .reported = *reported, .world = world };
        claims = claim;
}

static void take_all(const uint64_t *numbers, int n) {
        for (int at = 0; at < n;) {
                struct reported reported;

                memcpy(&reported, numbers + at, sizeof(reported));
                take(&reported, numbers + at + NUMBERS);
                at += NUMBERS + (int) reported.size;
        }
}

bool rejoin_report(MPI_Comm world, const bool *joins) {
        struct gathered reported;
        int n;
        uint64_t *own = describe_all(joins, &n);

        if (meet_gather(world, ft.world->living, own, n, &reported) != MPI_SUCCESS || ft_was_hit(world, ft.in_hand))
                return false;
        if (ft.joining)
                take_all(reported.numbers, reported.all);
        free(own);
        gathered_finish(&reported);
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
                if (claim->claimed || claim->reported.parent != c->id)
                        continue;
                if (!best || claim->reported.born < best->reported.born ||
                    (claim->reported.born == best->reported.born && comm_by_id(claim->reported.id)))
                        best = claim;
        }
        return best;
}

static void claim_all_of(const struct claim *of) {
        for (struct claim *claim = claims; claim; claim = claim->next)
                if (claim->reported.parent == of->reported.parent && claim->reported.born == of->reported.born)
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
        struct comm *made = claim ? comm_by_id(claim->reported.id) : NULL;

        if (!claim)
                return false;
        if (claim->reported.way != m->way)
                ft_give_up("%s: rank %d, which this process replaces, had called %s here", name, ft.world->rank,
                           name_of((unsigned) claim->reported.way));
        claim_all_of(claim);
        if (made)
                *ret = made->user;
        else
                make_alone(m, ret);
        return true;
}

static bool has_members(const struct claim *claim, const int *members, int n) {
        return claim->reported.size == (uint64_t) n && memcmp(claim->world, members, (size_t) n * sizeof(*members)) == 0;
}

bool rejoin_claim_group(const struct making *m, struct comm *c, int tag, MPI_Comm *ret) {
        int n = 0, *members = may_claim(c) ? group_living_processes(m->group, &n) : NULL;
        struct comm *made = NULL;

        for (struct claim *claim = members ? claims : NULL; claim && !made; claim = claim->next) {
                if (claim->claimed || claim->reported.parent != COMM_NO_PARENT || claim->reported.origin != c->id ||
                    (int) claim->reported.tag != tag || !has_members(claim, members, n))
                        continue;
                made = comm_by_id(claim->reported.id);
                claim->claimed = made != NULL;
        }
        free(members);
        if (made)
                *ret = made->user;
        return made != NULL;
}
