/* Steps in each of which all ranks learn what all of them have, and pass a number round. A rank
 * that begins anew, since a critical one was lost, takes from the others how far they are, and they
 * do the step again. So the result is that of a run without losses, unless a rank is lost that is
 * not replaced.
 *
 * usage: replaced STEPS USEC [PROCESS STEP]... [--last-file=FILE]
 * Each step takes USEC at least; with less than EXCHANGE_USEC they also exchange messages and make
 * communicators before some steps, which are no places for a rank that is killed: who replaces it
 * would find the others there. PROCESS, counted with spare ones, kills itself at the beginning of
 * this step; -1: before it knows how far the others are. That is refused for a step that follows
 * such an exchange: the first rank to leave the exchange does not know yet whether the others have.
 * Rank 0 does not begin the last step before FILE is there.
 * Says at the end: "replaced STEPS RANKS TOTAL". */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include "common.h"

enum { FRESH = -1, EXCHANGE_USEC = 5000 };

struct word {
        long there; /* 0: nobody is */
        long step, value, total;
};

enum { NUMBERS = sizeof(struct word) / sizeof(long) };

/* The ranks exchange before the step with this number, of each EXCHANGE_STEPS. */
enum { EXCHANGE_STEPS = 20, EXCHANGE_STEP = 3 };

static int process, rank, size;
static bool respawned;

static void maybe_die(int argc, char **argv, long step) {
        for (int i = 3; i + 1 < argc; i += 2)
                if (atoi(argv[i]) == process && atol(argv[i + 1]) == step)
                        (void) raise(SIGKILL);
}

static bool follows_exchange(long step, useconds_t usec) {
        return usec < EXCHANGE_USEC && step % EXCHANGE_STEPS == EXCHANGE_STEP;
}

static void check_steps(int argc, char **argv, useconds_t usec) {
        for (int i = 4; i < argc; i += 2)
                if (follows_exchange(atol(argv[i]), usec)) {
                        fprintf(stderr, "replaced: step %s follows an exchange: nobody can die in it\n", argv[i]);
                        exit(2);
                }
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

/* The number from the left in one step. A rank begins to receive it before the ranks learn of each
 * other in that step: if the left one dies after that, the receive is from him, and ends with him.
 * Begun later it could be from the one who replaces him, who does not send what was for this
 * step. */
struct round {
        bool begun;
        MPI_Request request;
        long got;
};

static int left_one(void) {
        return (rank + size - 1) % size;
}

static int tag_of(long step) {
        return (int) (step % 30000);
}

static void begin_round(struct round *r, long step) {
        if (r->begun || step == FRESH)
                return;
        r->begun = true;
        r->got = 0;
        MPI_Irecv(&r->got, 1, MPI_LONG, left_one(), tag_of(step), MPI_COMM_WORLD, &r->request);
}

/* A number that is lost with a rank is not missed. Nobody waits for the other to receive: the one
 * who replaces him does not. */
static void pass_round(struct round *r, long step) {
        MPI_Status status;
        int count;

        MPI_Send(&step, 1, MPI_LONG, (rank + 1) % size, tag_of(step), MPI_COMM_WORLD);
        MPI_Wait(&r->request, &status);
        MPI_Get_count(&status, MPI_LONG, &count);
        check(status.MPI_SOURCE == left_one() && (count == 0 || r->got == step), "the wrong number from the left", step);
        r->begun = false;
}

/* A message that may come from any rank, on MPI_COMM_WORLD and on a communicator that is made for
 * it. */
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
        /* A rank that died now could take with it what it has just sent. */
        if (living == size)
                MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
        long steps = argc > 1 ? atol(argv[1]) : 100;
        useconds_t usec = argc > 2 ? (useconds_t) atol(argv[2]) : 200;
        const char *number = getenv("OMPI_COMM_WORLD_RANK"), *last_file = option_text(argc, argv, "last-file", NULL);
        struct word mine = { 0 }, *own, *all;
        struct round round = { 0 };
        int living = 0;

        check_steps(argc, argv, usec);
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
                while (rank == 0 && mine.step == steps - 1 && last_file && access(last_file, F_OK) < 0)
                        usleep(10000);
                begin_round(&round, mine.step);
                if (!learn(&mine, own, all, &living))
                        continue;
                pass_round(&round, mine.step);
                mine.step++;
                if (follows_exchange(mine.step, usec))
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
