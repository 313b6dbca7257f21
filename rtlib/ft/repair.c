/* Communicators rebuilt, without ranks that were lost. MPIX_Comm_shrink and MPIX_Comm_agree of
 * Open MPI 5.0 hang over several hosts; the living ranks are known from rmd, and so they are not
 * needed. A communicator of MPI_Comm_create_from_group() has another index at each rank, by which a
 * revoked one would not be found: so a copy of it is used. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/util.h"
#include "rtlib/ft/catch_up.h"
#include "rtlib/ft/create.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/meet.h"
#include "rtlib/ft/members.h"
#include "rtlib/ft/nonblocking.h"
#include "rtlib/ft/peers.h"
#include "rtlib/ft/rejoin.h"
#include "rtlib/ft/watch.h"

#define TRIES_MAX 5
#define DETECTION_SEC 2

/* The message of ranks to each other about each of their communicators. */
struct entry {
        uint64_t id, done, since, ahead; /* as of struct comm; `since` of its own rank */
        uint64_t established;
        uint64_t ending, joining; /* as of struct ft */
};

enum { NUMBERS = sizeof(struct entry) / sizeof(uint64_t) };

struct table {
        struct gathered entries; /* by rank in the new world */
        bool *joins; /* by the same: has none of the communicators yet but MPI_COMM_WORLD */
};

static MPI_Group group_of(const struct comm *c, uint32_t losses) {
        MPI_Group world, group;
        int *ranks = xcalloc((size_t) c->size, sizeof(*ranks)), n = 0;

        for (int i = 0; i < c->size; i++)
                if (!losses_has(&ft.losses, (uint32_t) c->world[i], losses))
                        ranks[n++] = c->world[i];
        if (mpi.Comm_group(ft.meeting, &world) != MPI_SUCCESS || mpi.Group_incl(world, n, ranks, &group) != MPI_SUCCESS)
                ft_give_up("MPI makes no group of %d ranks", n);
        (void) mpi.Group_free(&world);
        free(ranks);
        return group;
}

static MPI_Comm make_world(uint32_t losses, uint32_t try_number) {
        MPI_Group group = group_of(ft.world, losses);
        MPI_Comm first = mpi.comm_null, world = mpi.comm_null;
        char tag[64];
        int rc;

        (void) snprintf(tag, sizeof(tag), "rm-ft-%u-%u", losses, try_number);
        watch_call("the making of a world without lost ranks");
        blocked_enter_unnamed();
        rc = mpi.Comm_create_from_group(group, tag, mpi.info_null, mpi.errors_return, &first);
        blocked_leave_unnamed();
        watch_call(NULL);
        (void) mpi.Group_free(&group);
        if (rc != MPI_SUCCESS)
                return mpi.comm_null;
        blocked_enter(first);
        rc = mpi.Comm_dup(first, &world);
        blocked_leave();
        if (rc != MPI_SUCCESS) {
                (void) mpi.Comm_revoke(first);
                return mpi.comm_null;
        }
        (void) mpi.Comm_set_errhandler(world, mpi.errors_return);
        return world;
}

static int fill_own(struct entry **ret) {
        struct entry *own;
        int n = 0;

        for (struct comm *c = comm_first(); c; c = c->next)
                n++;
        own = xcalloc((size_t) n, sizeof(*own));
        n = 0;
        for (struct comm *c = comm_first(); c; c = c->next)
                own[n++] = (struct entry) { c->id, c->done, c->since[c->rank], c->ahead, c->established, ft.ending, ft.joining };
        *ret = own;
        return n;
}

static void table_finish(struct table *t) {
        gathered_finish(&t->entries);
        free(t->joins);
}

static bool exchange(MPI_Comm world, int ranks, struct table *ret) {
        struct entry *own;
        int n = fill_own(&own) * NUMBERS;

        ret->joins = xcalloc((size_t) ranks, sizeof(bool));
        if (meet_gather(world, ranks, (const uint64_t *) own, n, &ret->entries) != MPI_SUCCESS)
                return false;
        free(own);
        return true;
}

/* The entry of this rank of the new world about a communicator; NULL: it does not have it (not yet,
 * or not any more). */
static const struct entry *find(const struct table *t, int rank, uint64_t id) {
        const struct entry *e = (const struct entry *) (t->entries.numbers + t->entries.firsts[rank]);

        for (int i = 0; i < t->entries.counts[rank] / NUMBERS; i++)
                if (e[i].id == id)
                        return &e[i];
        return NULL;
}

/* The rank of a process in the new world. */
static int place_of(int process) {
        int rank = members_rank(process);

        return rank >= 0 && ft.world->world[rank] == process ? ft.world->now[rank] : -1;
}

static bool born_by_all(const struct table *t, const struct comm *c) {
        for (int i = 0; i < ft.world->living; i++) {
                const struct entry *e = find(t, i, c->parent);

                if (e && e->done > c->born)
                        return true;
        }
        return false;
}

/* Once any member is through with making it, all have it; once any is through with freeing it, no
 * other needs anything of it. */
static bool is_to_be_made(const struct table *t, struct comm *c) {
        bool established = born_by_all(t, c), all = true;

        for (int i = 0; i < c->living; i++) {
                const struct entry *e = find(t, place_of(c->world[c->old[i]]), c->id);

                if (!e && !c->joins[c->old[i]])
                        all = false;
                else if (!e)
                        continue; /* it is to have it */
                else if (e->established)
                        established = true;
        }
        if (established)
                c->established = true;
        c->freed = established && !all;
        return established && all;
}

static bool make_shadow(struct comm *c, MPI_Comm world, uint32_t losses) {
        MPI_Group group;
        MPI_Comm first, shadow;
        int rc;

        c->next_peer = NULL;
        if (c == ft.world || c->living == 1) {
                c->shadow = c == ft.world ? world : mpi.comm_self;
                return true;
        }
        group = group_of(c, losses);
        blocked_enter(world);
        rc = mpi.Comm_create_group(world, group, (int) (c->id & 0x7fff), &first);
        if (rc == MPI_SUCCESS) {
                blocked_enter(first);
                rc = mpi.Comm_dup(first, &shadow);
        }
        blocked_leave();
        (void) mpi.Group_free(&group);
        if (rc != MPI_SUCCESS)
                return false;
        (void) mpi.Comm_set_errhandler(first, mpi.errors_return);
        c->shadow = shadow;
        c->next_peer = first;
        return true;
}

/* All operations so far were done without the rank that was spare: its first operation is the
 * others' next one. */
static void let_in(struct comm *c, int rank, unsigned ahead) {
        c->since[rank] = c->done_by[rank] = c->target;
        if (rank != c->rank)
                return;
        c->done = c->target;
        c->ahead = c->ring->ahead = ahead;
        c->ring->first = c->target;
}

static void note_done(const struct table *t, struct comm *c) {
        unsigned ahead = 0;

        c->target = 0;
        for (int i = 0; i < c->size; i++) {
                int place = place_of(c->world[i]);
                const struct entry *e = place >= 0 ? find(t, place, c->id) : NULL;

                c->done_by[i] = e ? e->done : 0;
                c->since[i] = e ? e->since : c->joins[i] ? COMM_FRESH : 0;
                if (c->done_by[i] >= c->target && e && e->since != COMM_FRESH) {
                        c->target = c->done_by[i];
                        ahead = (unsigned) e->ahead;
                }
        }
        for (int i = 0; i < c->size; i++)
                if (c->since[i] == COMM_FRESH)
                        let_in(c, i, ahead);
}

/* A rank that begins again would find no other to compute with. */
static void refuse_late(const struct table *t) {
        for (int i = 0; ft.world->since[ft.world->rank] == COMM_FRESH && i < ft.world->living; i++)
                if (find(t, i, ft.world->id)->ending)
                        ft_give_up("rank %d was lost when others had come to MPI_Finalize: it cannot be replaced any more",
                                   ft.world->rank);
}

/* A new member has MPI_COMM_WORLD only, and is told of the others. */
static bool report_who_joins(struct table *t, MPI_Comm world, uint32_t losses) {
        bool any = false;

        for (int i = 0; i < ft.world->living; i++) {
                t->joins[i] = find(t, i, ft.world->id)->joining;
                any |= t->joins[i];
        }
        for (struct comm *c = comm_first(); any && c; c = c->next) {
                rejoin_place(c, losses);
                comm_count_living(c, losses);
        }
        return !any || rejoin_report(world, t->joins);
}

static void note_joins(const struct table *t, struct comm *c) {
        for (int i = 0; i < c->size; i++) {
                int place = c->now[i] >= 0 ? place_of(c->world[i]) : -1;

                c->joins[i] = c->replaceable && place >= 0 && t->joins[place];
        }
}

static bool make_all(struct table *t, MPI_Comm world, uint32_t losses) {
        refuse_late(t);
        if (!report_who_joins(t, world, losses))
                return false;
        for (struct comm *c = comm_first(); c; c = c->next) {
                comm_count_living(c, losses);
                note_joins(t, c);
                if (!is_to_be_made(t, c))
                        continue;
                if (!make_shadow(c, world, losses))
                        return false;
                note_done(t, c);
        }
        return true;
}

/* Processes that replace others take their places. */
static void place_members(uint32_t losses) {
        members_update(losses);
        for (int i = 0; i < ft.ranks; i++) {
                int process = members_process(i);

                if (process >= 0)
                        ft.world->world[i] = process;
        }
        comm_count_living(ft.world, losses);
}

static bool try_to_repair(uint32_t losses, uint32_t try_number) {
        struct table table;
        MPI_Comm world;
        bool ok;

        place_members(losses);
        world = make_world(losses, try_number);
        if (world == mpi.comm_null)
                return false;
        ok = exchange(world, ft.world->living, &table) && !ft_was_hit(world, losses) && make_all(&table, world, losses);
        /* After an error Open MPI may still write into it. */
        if (ok)
                table_finish(&table);
        if (ok) {
                blocked_enter(world);
                ok = mpi.Barrier(world) == MPI_SUCCESS && !ft_was_hit(world, losses);
                blocked_leave();
        }
        if (!ok)
                (void) mpi.Comm_revoke(world);
        return ok;
}

/* Word of others that give up the same may still be under way, and must find it given up: it would
 * wake this rank in the middle of what it does on the new ones, as below. */
static void give_up_old(void) {
        for (struct comm *c = comm_first(); c; c = c->next)
                if (c->shadow != mpi.comm_self && c->shadow != mpi.comm_null)
                        (void) mpi.Comm_revoke(c->shadow);
}

/* rmd ends the job, too. */
static void refuse_missing(uint32_t losses) {
        int rank;

        members_update(losses);
        rank = members_missing();
        if (rank >= 0)
                ft_give_up("critical rank %d was lost, and no spare rank is left", rank);
}

/* When Open MPI itself comes to know that a rank is dead, it wakes all that waits. So nothing is
 * begun before it knows; it is told by its own launcher, or by a connection that is closed. */
static void await_detection(uint32_t losses) {
        struct timespec start, now;
        int there;

        (void) clock_gettime(CLOCK_MONOTONIC, &start);
        for (unsigned turns = 0; ft_count_detected() < losses; wait_pause(&turns)) {
                (void) mpi.Iprobe(ft.rank, 0, ft.meeting, &there, MPI_STATUS_IGNORE);
                (void) clock_gettime(CLOCK_MONOTONIC, &now);
                if (now.tv_sec - start.tv_sec > DETECTION_SEC)
                        break;
        }
}

/* Messages to and from new members. */
static void open_ways(struct comm *c, uint32_t losses) {
        bool any = false;

        for (int i = 0; c->replaceable && i < c->size; i++)
                any |= c->joins[i];
        if (!any || !c->next_peer)
                return;
        /* The program of a new member has never had another one. */
        if (c->user == mpi.comm_null)
                c->user = c->next_peer;
        peers_add(c, c->next_peer, losses);
}

static void repair(void) {
        uint32_t try_number = 0, losses, last = 0;

        for (int tries = 0;; tries++) {
                refuse_missing(ft.losses.count);
                give_up_old();
                making_clear();
                await_detection(ft.losses.count);
                watch_repair(false);
                losses = meet(&try_number);
                watch_repair(true);
                if (losses != last)
                        tries = 0;
                ft.in_hand = last = losses;
                if (try_to_repair(losses, try_number))
                        break;
                if (tries >= TRIES_MAX)
                        ft_give_up("the ranks that are left cannot be joined anew after %d tries", tries);
                try_number++;
        }
        watch_repair(false);
        for (struct comm *c = comm_first(); c; c = c->next)
                if (c->established && !c->freed)
                        open_ways(c, losses);
        rejoin_finish();
        ft.repaired = losses;
        for (struct comm *c = comm_first(); c; c = c->next)
                if (c->established && !c->freed)
                        catch_up_others(c);
        nonblocking_resume();
}

void ft_repair(void) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

        if (pthread_mutex_trylock(&lock) != 0)
                return;
        watch_enter(NULL);
        while (ft_is_behind())
                repair();
        watch_leave();
        (void) pthread_mutex_unlock(&lock);
}
