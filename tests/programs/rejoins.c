/* Steps on communicators that were made at the beginning, by each call that makes one. A rank that
 * begins anew, since a critical one was lost, makes them by the same calls, and is then in all of
 * them as the lost one was: sums over each have its part, and messages on each reach it, and come
 * from it, also where any rank may have sent them.
 *
 * usage: rejoins STEPS USEC [PROCESS PLACE]... [--skip-made] [--other-call]
 * Each step has two places, 2 * STEP and 2 * STEP + 1, before each of which all learn of all where
 * they are. What is to be done is done after the first. PROCESS, counted with spare ones, kills
 * itself at this place. At an odd one no messages are sent: what a rank has just sent may be lost
 * with it. --other-call  a rank that begins anew makes the first communicator by another call than
 * the lost one Says at the end: "rejoins STEPS RANKS TOTAL". */
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

enum { FRESH = -1, TAG = 17, COMMS = 7 };

struct word {
        long there, place, total;
};

enum { NUMBERS = sizeof(struct word) / sizeof(long) };

static int process, rank, size;

/* The communicators of the program: two halves by split and those made of one, a copy, the ranks
 * but the first by create and by create_group. */
static struct {
        const char *name;
        MPI_Comm comm;
        long sum; /* of its members' ranks, each with 1 added */
        int members, own;
} made[COMMS];

static bool has_odd_death;

static void check(bool good, const char *what, long number) {
        if (good)
                return;
        fprintf(stderr, "rank %d: %s (%ld)\n", rank, what, number);
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static void maybe_die(int argc, char **argv, long place) {
        for (int i = 3; i + 1 < argc; i += 2)
                if (atoi(argv[i]) == process && atol(argv[i + 1]) == place)
                        (void) raise(SIGKILL);
}

static MPI_Comm of_group(MPI_Group all, int first, bool group_only) {
        int range[1][3] = { { first, size - 1, 1 } };
        MPI_Comm ret = MPI_COMM_NULL;
        MPI_Group group;

        MPI_Group_range_incl(all, 1, range, &group);
        if (!group_only)
                MPI_Comm_create(MPI_COMM_WORLD, group, &ret);
        else if (rank >= first)
                MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG, &ret);
        MPI_Group_free(&group);
        return ret;
}

static void describe(int at, const char *name, MPI_Comm comm) {
        MPI_Group all, group;

        made[at].name = name;
        made[at].comm = comm;
        if (comm == MPI_COMM_NULL)
                return;
        MPI_Comm_size(comm, &made[at].members);
        MPI_Comm_rank(comm, &made[at].own);
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Comm_group(comm, &group);
        for (int i = 0; i < made[at].members; i++) {
                int there;

                MPI_Group_translate_ranks(group, 1, &i, all, &there);
                check(there >= 0 && (i != made[at].own || there == rank), name, there);
                made[at].sum += there + 1;
        }
        MPI_Group_free(&group);
        MPI_Group_free(&all);
}

static void make_all(bool other_call) {
        MPI_Comm half, copy, part, pair, quarter;
        MPI_Group all;

        MPI_Comm_group(MPI_COMM_WORLD, &all);
        if (other_call)
                MPI_Comm_dup(MPI_COMM_WORLD, &half);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, size - rank, &half);
        describe(0, "a half", half);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        describe(1, "a copy", copy);
        /* A rank that is in none calls it, too. */
        MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? MPI_UNDEFINED : 1, rank, &part);
        describe(2, "a part", part);
        describe(3, "by create", of_group(all, 2, false));
        describe(4, "by create_group", of_group(all, 1, true));
        MPI_Comm_dup(half, &pair);
        describe(5, "a copy of a half", pair);
        MPI_Comm_split(half, rank % 4 < 2, rank, &quarter);
        describe(6, "a half of a half", quarter);
        MPI_Group_free(&all);
}

/* True: all know where they are. False: somebody has begun anew, and now knows as much as the
 * others. */
static bool learn(struct word *mine, struct word *own, struct word *all, int *ret_living) {
        bool fresh = false;
        long latest = FRESH;

        memset(own, 0, (size_t) size * sizeof(*own));
        mine->there = 1;
        own[rank] = *mine;
        MPI_Allreduce(own, all, size * NUMBERS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        *ret_living = 0;
        for (int i = 0; i < size; i++) {
                fresh |= all[i].there && all[i].place == FRESH;
                latest = all[i].there && all[i].place > latest ? all[i].place : latest;
                *ret_living += all[i].there;
        }
        for (int i = 0; i < size; i++)
                if (all[i].there && all[i].place == latest && mine->place == FRESH)
                        *mine = all[i];
        check(mine->place == latest, "the wrong place", mine->place);
        return !fresh;
}

/* To the next one, from the one before. */
static void pass_round(int at, long step) {
        int members = made[at].members, next = (made[at].own + 1) % members, last = (made[at].own + members - 1) % members;
        long got = -1, sent = step * 100 + made[at].own;
        MPI_Status status;

        MPI_Sendrecv(&sent, 1, MPI_LONG, next, TAG, &got, 1, MPI_LONG, last, TAG, made[at].comm, &status);
        check(got == step * 100 + last && status.MPI_SOURCE == last && status.MPI_TAG == TAG, made[at].name, got);
}

static long value_of(int who, long step) {
        return step * 1000 + who;
}

/* From any to the first, by receives that were begun before, by ones that wait, or by what a probe
 * has found. */
static void gather_any(int at, long step) {
        enum { MEMBERS = 64 };
        int members = made[at].members, n = members - 1;
        long got[MEMBERS], seen = 0, value = value_of(made[at].own, step);
        MPI_Request requests[MEMBERS];
        MPI_Status status[MEMBERS];

        if (made[at].own != 0) {
                MPI_Send(&value, 1, MPI_LONG, 0, TAG + 1, made[at].comm);
                return;
        }
        for (int i = 0; i < n && step % 3 == 0; i++)
                MPI_Irecv(&got[i], 1, MPI_LONG, MPI_ANY_SOURCE, TAG + 1, made[at].comm, &requests[i]);
        if (step % 3 == 0)
                MPI_Waitall(n, requests, status);
        for (int i = 0; i < n && step % 3 == 1; i++)
                MPI_Recv(&got[i], 1, MPI_LONG, MPI_ANY_SOURCE, TAG + 1, made[at].comm, &status[i]);
        for (int i = 0; i < n && step % 3 == 2; i++) {
                MPI_Message message;

                MPI_Mprobe(MPI_ANY_SOURCE, TAG + 1, made[at].comm, &message, &status[i]);
                MPI_Mrecv(&got[i], 1, MPI_LONG, &message, &status[i]);
        }
        for (int i = 0; i < n; i++) {
                check(status[i].MPI_SOURCE > 0 && status[i].MPI_SOURCE < members && got[i] == value_of(status[i].MPI_SOURCE, step),
                      made[at].name, got[i]);
                seen |= 1L << status[i].MPI_SOURCE;
        }
        check(seen == (1L << members) - 2, "somebody has sent twice", seen);
}

static void work(struct word *mine, int living) {
        long step = mine->place / 2;

        for (int at = 0; at < COMMS; at++) {
                long one = rank + 1, sum = 0;

                if (made[at].comm == MPI_COMM_NULL)
                        continue;
                MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, made[at].comm);
                check(living < size || sum == made[at].sum, made[at].name, sum);
                if (at == 1)
                        mine->total += sum;
                if (has_odd_death || living < size)
                        continue;
                pass_round(at, step);
                gather_any(at, step);
        }
}

int main(int argc, char **argv) {
        long steps = argc > 1 ? atol(argv[1]) : 100;
        useconds_t usec = argc > 2 ? (useconds_t) atol(argv[2]) : 200;
        const char *number = getenv("OMPI_COMM_WORLD_RANK");
        struct word mine = { 0 }, *own, *all;
        bool other_call = argc > 1 && strcmp(argv[argc - 1], "--other-call") == 0;
        int living = 0;

        process = number ? atoi(number) : 0;
        for (int i = 4; i < argc; i += 2)
                has_odd_death |= atol(argv[i]) % 2 == 1;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        own = calloc((size_t) size, sizeof(*own));
        all = calloc((size_t) size, sizeof(*all));
        make_all(other_call && process != rank);
        if (process != rank) {
                mine.place = FRESH;
                printf("rank %d of %d begins anew\n", rank, size);
                fflush(stdout);
        }
        while (mine.place < 2 * steps) {
                maybe_die(argc, argv, mine.place);
                if (!learn(&mine, own, all, &living))
                        continue;
                if (mine.place % 2 == 0)
                        work(&mine, living);
                mine.place++;
                usleep(usec);
        }
        if (rank == 0)
                printf("rejoins %ld %d %ld\n", steps, living, mine.total);
        MPI_Finalize();
        free(own);
        free(all);
        return 0;
}
