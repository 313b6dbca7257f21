/* Steps in each of which all ranks learn what all of them have, and pass a number round. A rank that begins anew, since a critical one was lost, takes from the others how far they are, and
 * they do the step again. So the result is that of a run without losses, unless a rank is lost that is not replaced.
 *
 * usage: replaced STEPS USEC [PROCESS STEP]...
 * Each step takes USEC at least. PROCESS, counted with spare ones, kills itself in this step; -1: before it knows how far the others are.
 * Says at the end: "replaced STEPS RANKS TOTAL". */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include "common.h"

enum { FRESH = -1 };

struct word {
        long there; /* 0: nobody is */
        long step, value, total;
};

enum { NUMBERS = sizeof(struct word) / sizeof(long) };

static int process, rank, size;
static bool respawned;

static void maybe_die(int argc, char **argv, long step) {
        for (int i = 3; i + 1 < argc; i += 2)
                if (atoi(argv[i]) == process && atol(argv[i + 1]) == step)
                        (void) raise(SIGKILL);
}

static void check(bool good, const char *what, long step) {
        if (good)
                return;
        fprintf(stderr, "rank %d, step %ld: %s\n", rank, step, what);
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static long value_of(int who, long step) {
        return (who + 1) * 1000 + step % 7;
}

/* True: the step is done. False: somebody has begun anew, and now knows as much as the others. */
static bool learn(struct word *mine, struct word *own, struct word *all, int *ret_living) {
        long sum = 0, latest = FRESH;
        bool fresh = false;

        /* Each in its place, so that those who are lost have zeros. */
        memset(own, 0, (size_t) size * sizeof(*own));
        mine->there = 1;
        mine->value = value_of(rank, mine->step);
        own[rank] = *mine;
        MPI_Allreduce(own, all, size * NUMBERS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        *ret_living = 0;
        for (int i = 0; i < size; i++) {
                fresh |= all[i].there && all[i].step == FRESH;
                latest = all[i].there && all[i].step > latest ? all[i].step : latest;
                *ret_living += all[i].there;
        }
        for (int i = 0; i < size; i++) {
                if (all[i].there && all[i].step == latest && mine->step == FRESH)
                        *mine = all[i];
                if (all[i].there && !fresh) {
                        check(all[i].step == mine->step && all[i].value == value_of(i, mine->step), "the wrong word", mine->step);
                        sum += all[i].value;
                }
        }
        mine->total += sum;
        return !fresh;
}

/* What of it is lost with a rank is not missed. */
static void pass_round(long step) {
        int left = (rank + size - 1) % size, count;
        long got = 0;
        MPI_Status status;

        MPI_Sendrecv(&step, 1, MPI_LONG, (rank + 1) % size, (int) (step % 30000), &got, 1, MPI_LONG, left, (int) (step % 30000),
                     MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_LONG, &count);
        check(status.MPI_SOURCE == left && (count == 0 || got == step), "the wrong number from the left", step);
}

/* A message that may come from any rank, on MPI_COMM_WORLD and on a communicator that is made for it. */
static void exchange(long step, int living) {
        int one = 1, sum = 0, members, result;
        MPI_Comm copy;
        MPI_Group group;

        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_size(copy, &members);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
        check(members == living && sum == living, "the wrong copy of MPI_COMM_WORLD", step);
        if (living == size) {
                MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
                check(result == MPI_CONGRUENT, "a copy that is none", step);
        }
        MPI_Comm_free(&copy);
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        MPI_Group_size(group, &members);
        MPI_Group_rank(group, &result);
        check(members == size && result == rank, "the wrong group", step);
        MPI_Group_free(&group);
        for (int i = 1; rank == 0 && living == size && i < size; i++) {
                long got = 0;
                MPI_Status status;

                MPI_Recv(&got, 1, MPI_LONG, MPI_ANY_SOURCE, 31000, MPI_COMM_WORLD, &status);
                check(status.MPI_SOURCE < size && got == value_of(status.MPI_SOURCE, step), "the wrong number from any rank", step);
        }
        if (rank != 0 && living == size) {
                long value = value_of(rank, step);

                MPI_Send(&value, 1, MPI_LONG, 0, 31000, MPI_COMM_WORLD);
        }
}

int main(int argc, char **argv) {
        long steps = argc > 1 ? atol(argv[1]) : 100;
        useconds_t usec = argc > 2 ? (useconds_t) atol(argv[2]) : 200;
        const char *number = getenv("OMPI_COMM_WORLD_RANK");
        struct word mine = { 0 }, *own, *all;
        int living = 0;

        process = number ? atoi(number) : 0;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        respawned = process != rank;
        mine.step = respawned ? FRESH : 0;
        own = calloc((size_t) size, sizeof(*own));
        all = calloc((size_t) size, sizeof(*all));
        if (respawned)
                printf("rank %d of %d begins anew\n", rank, size);
        fflush(stdout);
        while (mine.step < steps) {
                maybe_die(argc, argv, mine.step);
                if (!learn(&mine, own, all, &living))
                        continue;
                pass_round(mine.step);
                mine.step++;
                if (mine.step % 20 == 10)
                        exchange(mine.step, living);
                if (rank == 0 && mine.step == 1) {
                        puts("running");
                        fflush(stdout);
                }
                usleep(usec);
        }
        for (int i = 0; i < size; i++)
                if (all[i].there) {
                        if (i == rank)
                                printf("replaced %ld %d %ld\n", steps, living, mine.total);
                        break;
                }
        MPI_Finalize();
        free(own);
        free(all);
        return 0;
}
