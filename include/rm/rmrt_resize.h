/* Growing and shrinking, for programs of MPI. A job of `rm-mpirun -n 4 --max-ranks 16` has 16
 * ranks: 4 are active and compute, the others are parked. rmd asks for more active ones, or fewer,
 * and the program changes at a place of its own. All of this is compiled into the program, by its
 * own MPI; link with -lrmrt (pkg-config rmrt). Errors are negative errno values: after one the
 * ranks have no communicator in common, and the program ends. */
#ifndef RM_RMRT_RESIZE_H
#define RM_RMRT_RESIZE_H

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include <rm/rmrt.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rmrt_resize_kind {
        RMRT_UNCHANGED,
        RMRT_RESIZED, /* there is a new communicator; the first is new as well */
        RMRT_ENDED, /* of a parked rank: the others have called rmrt_finalize() */
};

struct rmrt_resize {
        enum rmrt_resize_kind kind;
        int before, now; /* active ranks; `before` is 0 at the beginning */
        /* RMRT_RESIZED: the old communicator or the new one, whichever has more ranks. It must not
         * be freed by this name. */
        MPI_Comm both;
};

/* The tag of messages from rank 0 to ranks that were woken, on MPI_COMM_WORLD. The program must not
 * use it. */
#define RMRT_MPI_TAG 32767

/* Rank 0 calls for those that were woken: it makes the change now. -EIO: a call of MPI failed. */
static inline int rmrt_mpi_call(const struct rmrt_change *change) {
        for (int i = (int) change->before; i < (int) change->now; i++)
                if (MPI_Send(&change->epoch, 1, MPI_UINT64_T, i, RMRT_MPI_TAG, MPI_COMM_WORLD) != MPI_SUCCESS)
                        return -EIO;
        return 0;
}

/* Waits for that call. 1: rank 0 has called. 0: the program has ended. -EIO: a call of MPI
 * failed. */
static inline int rmrt_mpi_called(const struct rmrt_change *change) {
        uint64_t epoch = 0;
        int there;

        while (epoch != change->epoch) {
                if (MPI_Iprobe(0, RMRT_MPI_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                        return -EIO;
                if (there && MPI_Recv(&epoch, 1, MPI_UINT64_T, 0, RMRT_MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                        return -EIO;
                if (!there && !rmrt_resize_is_on())
                        return 0;
        }
        return 1;
}

/* Makes a communicator of ranks 0 .. `ranks` - 1, which alone call this. -EIO: a call of MPI
 * failed. */
static inline int rmrt_mpi_first(int ranks, uint64_t epoch, MPI_Comm *ret) {
        int range[1][3] = { { 0, ranks - 1, 1 } };
        MPI_Group world, group;
        int r;

        if (MPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
                return -EIO;
        r = MPI_Group_range_incl(world, 1, range, &group);
        (void) MPI_Group_free(&world);
        if (r != MPI_SUCCESS)
                return -EIO;
        r = MPI_Comm_create_group(MPI_COMM_WORLD, group, (int) (epoch % 32768), ret);
        (void) MPI_Group_free(&group);
        return r == MPI_SUCCESS ? 0 : -EIO;
}

/* Called by a rank that has no communicator: at the beginning, and after it was parked. Errors as
 * of rmrt_resize_wait(); -EIO: a call of MPI failed. */
static inline int rmrt_mpi_join(MPI_Comm *newcomm, struct rmrt_resize *event) {
        struct rmrt_change change;
        int r = rmrt_resize_wait(&change);

        if (r > 0 && change.epoch > 0)
                r = rmrt_mpi_called(&change);
        if (r <= 0) {
                event->kind = RMRT_ENDED;
                return r;
        }
        if (change.now == 0) /* a job of a fixed number */
                r = MPI_Comm_dup(MPI_COMM_WORLD, newcomm) == MPI_SUCCESS ? 0 : -EIO;
        else
                r = rmrt_mpi_first((int) change.now, change.epoch, newcomm);
        if (r < 0)
                return r;
        event->kind = RMRT_RESIZED;
        event->both = *newcomm;
        event->before = 0;
        (void) MPI_Comm_size(*newcomm, &event->now);
        if (change.epoch > 0 && MPI_Bcast(&event->before, 1, MPI_INT, 0, *newcomm) != MPI_SUCCESS)
                return -EIO;
        rmrt_resize_made(&change);
        return 0;
}

/* Makes the change on an active rank. -EIO: a call of MPI failed. */
static inline int rmrt_mpi_change(MPI_Comm comm, const struct rmrt_change *change, MPI_Comm *newcomm, struct rmrt_resize *event) {
        int rank, r;

        event->kind = RMRT_RESIZED;
        event->before = (int) change->before;
        event->now = (int) change->now;
        *newcomm = MPI_COMM_NULL;
        (void) MPI_Comm_rank(comm, &rank);
        r = rank == 0 ? rmrt_mpi_call(change) : 0;
        if (r < 0)
                return r;
        if (rank < event->now) {
                r = rmrt_mpi_first(event->now, change->epoch, newcomm);
                if (r < 0)
                        return r;
        }
        event->both = event->now > event->before ? *newcomm : comm;
        /* Ranks that were parked do not know it. */
        if (event->now > event->before && MPI_Bcast(&event->before, 1, MPI_INT, 0, *newcomm) != MPI_SUCCESS)
                return -EIO;
        rmrt_resize_made(change);
        return 0;
}

/* A place where the program can change to another number of ranks: collective over `comm`, which is
 * MPI_COMM_NULL on all ranks at the beginning, and on one that is no longer active; parked ranks
 * return when they are needed, or when the program ends. When it answers RMRT_RESIZED the program
 *  - brings its data to where it belongs now, on `both`: arrays by rmrt_redistribute(), what all
 *    ranks have alike by MPI_Bcast() from rank 0;
 *  - frees `comm`, unless it is MPI_COMM_NULL, and goes on with `newcomm`. A rank whose `newcomm`
 *    is MPI_COMM_NULL calls this again, with that.
 * Outside of rmd, and in jobs without --max-ranks, `newcomm` is a copy of MPI_COMM_WORLD at the
 * beginning, and nothing changes. -EIO: a call of MPI failed. */
static inline int rmrt_resize_point(MPI_Comm comm, MPI_Comm *newcomm, struct rmrt_resize *event) {
        struct rmrt_change change = { 0, 0, 0 };
        uint64_t words[3];
        int rank;

        event->kind = RMRT_UNCHANGED;
        event->both = MPI_COMM_NULL;
        *newcomm = comm;
        if (comm == MPI_COMM_NULL)
                return rmrt_mpi_join(newcomm, event);
        if (!rmrt_is_resizable()) /* on all ranks alike */
                return 0;
        if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS)
                return -EIO;
        if (rank == 0)
                (void) rmrt_resize_poll(&change);
        words[0] = change.epoch;
        words[1] = change.before;
        words[2] = change.now;
        if (MPI_Bcast(words, 3, MPI_UINT64_T, 0, comm) != MPI_SUCCESS)
                return -EIO;
        if (words[0] == 0)
                return 0;
        change.epoch = words[0];
        change.before = (uint32_t) words[1];
        change.now = (uint32_t) words[2];
        return rmrt_mpi_change(comm, &change, newcomm, event);
}

/* How many of the elements `begin` .. `end` - 1 lie in `from` .. `to` - 1; *at: the first of
 * them. */
static inline int rmrt_mpi_overlap(uint64_t begin, uint64_t end, uint64_t from, uint64_t to, uint64_t *at) {
        *at = begin > from ? begin : from;
        if (end > to)
                end = to;
        return end > *at ? (int) (end - *at) : 0;
}

/* `all` has of each rank how many elements it had, and how many it gets. `counts` gets, for `rank`:
 * sent, where, received, where; of each rank. -EFBIG: more than INT_MAX of one rank; -EINVAL: the
 * sums differ. */
static inline int rmrt_mpi_shares(const uint64_t *all, int rank, int size, int *counts) {
        uint64_t had = 0, gets = 0, mine[2] = { 0, 0 }, at;

        for (int i = 0; i < size; i++) {
                if (i == rank) {
                        mine[0] = had;
                        mine[1] = gets;
                }
                if (all[2 * i] > INT_MAX || all[2 * i + 1] > INT_MAX)
                        return -EFBIG;
                had += all[2 * i];
                gets += all[2 * i + 1];
        }
        if (had != gets)
                return -EINVAL;
        had = gets = 0;
        for (int i = 0; i < size; i++) {
                counts[i] = rmrt_mpi_overlap(mine[0], mine[0] + all[2 * rank], gets, gets + all[2 * i + 1], &at);
                counts[size + i] = counts[i] > 0 ? (int) (at - mine[0]) : 0;
                counts[2 * size + i] = rmrt_mpi_overlap(mine[1], mine[1] + all[2 * rank + 1], had, had + all[2 * i], &at);
                counts[3 * size + i] = counts[2 * size + i] > 0 ? (int) (at - mine[1]) : 0;
                had += all[2 * i];
                gets += all[2 * i + 1];
        }
        return 0;
}

/* An array that is distributed over the ranks in their order: this rank had `old_count` elements of
 * it at `from`, and gets `new_count` at `to`, which is other memory. Collective over `event->both`;
 * a rank that was not active had 0, one that is no longer active gets 0. -EINVAL: it is not the
 * same number in all; -EFBIG: more than INT_MAX on one rank (MPI_Type_contiguous() makes fewer);
 * -ENOMEM; -EIO: a call of MPI failed. */
static inline int rmrt_redistribute(const struct rmrt_resize *event, const void *from, size_t old_count, void *to, size_t new_count,
                                    MPI_Datatype type) {
        uint64_t mine[2] = { old_count, new_count }, *all;
        int rank, size, *counts, r = -ENOMEM;

        if (event->kind != RMRT_RESIZED || MPI_Comm_rank(event->both, &rank) != MPI_SUCCESS ||
            MPI_Comm_size(event->both, &size) != MPI_SUCCESS)
                return -EINVAL;
        all = (uint64_t *) calloc((size_t) size, 2 * sizeof(*all));
        counts = (int *) calloc((size_t) size, 4 * sizeof(*counts));
        if (all && counts)
                r = MPI_Allgather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, event->both) == MPI_SUCCESS ? 0 : -EIO;
        if (r == 0)
                r = rmrt_mpi_shares(all, rank, size, counts);
        if (r == 0 && MPI_Alltoallv((void *) from, counts, counts + size, type, to, counts + 2 * size, counts + 3 * size, type,
                                    event->both) != MPI_SUCCESS)
                r = -EIO;
        free(all);
        free(counts);
        return r;
}

#ifdef __cplusplus
}
#endif

#endif
