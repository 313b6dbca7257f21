/* The common functions of programs that lose ranks on the way: which rank dies at which step, and
 * what the living ones then know of each other.
 *
 * Their arguments: ROUNDS SEED [LOST STEP]...
 * LOST and STEP: this rank kills itself before its operation number STEP, or within it if STEP is
 * negative: a thread does it, a little later. */
#ifndef TEST_PROGRAMS_LOSES_H
#define TEST_PROGRAMS_LOSES_H

#include <mpi.h>
#include <pthread.h>
#include <signal.h>

#include "common.h"

static int rank, size = 1, step, arguments;
static char **argument;
static long seed;
static char lives[64];
static bool dying; /* a thread ends this rank any moment */

static inline void wrong(const char *what, int from, long is) {
        fprintf(stderr, "rank %d step %d: %s: %ld from rank %d\n", rank, step, what, is, from);
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static inline void *die(void *arg) {
        pause_usec((int64_t) (uintptr_t) arg);
        (void) raise(SIGKILL);
        return NULL;
}

static inline void next_step(void) {
        step++;
        for (int i = 3; i + 1 < arguments; i += 2) {
                pthread_t thread;

                if (atoi(argument[i]) != rank)
                        continue;
                if (atoi(argument[i + 1]) == step)
                        (void) raise(SIGKILL);
                if (atoi(argument[i + 1]) != -step)
                        continue;
                dying = true;
                (void) pthread_create(&thread, NULL, die, (void *) (uintptr_t) (seed % 200));
        }
}

/* To be called before others make a communicator: a rank that dies meanwhile may take them along
 * (rmrt-ft(7)), so that a rank that is dying comes no further. */
static inline void barrier_without_dying(void) {
        while (dying)
                (void) pause();
        MPI_Barrier(MPI_COMM_WORLD);
}

/* The value of a rank: no other rank has these bits. */
static inline long bit(int from) {
        return 1L << from;
}

/* A sum of bits: mine is in it, those of all others that live are, and nothing that is none. */
static inline void check_sum(const char *what, long is, long factor) {
        for (int i = 0; i < size; i++)
                if ((lives[i] || i == rank) && (is / factor & bit(i)) == 0)
                        wrong(what, i, is);
        if (is % factor || is / factor >= bit(size))
                wrong(what, rank, is);
}

/* A part of `from` for `to`. */
static inline long part(int from, int to) {
        return 1000 + from * 100 + to;
}

/* The value in the place of a message that has not come: only of a rank that may be dead. */
static inline long hole(void) {
        return -100 - rank;
}

/* The hole may be that of another rank, which had the result when one was lost; zeros, if it was
 * lost in the operation. */
static inline bool is_hole(long is) {
        return is == 0 || (is <= -100 && is > -100 - size);
}

static inline void check_part(const char *what, int from, long is, long requested) {
        if (is != requested && (!is_hole(is) || lives[from]))
                wrong(what, from, is);
}

static inline void fill(long *data, int n, long value) {
        for (int i = 0; i < n; i++)
                data[i] = value;
}

/* Finds the living ranks, which all see alike; those that are to die may be dead at any time. */
static inline void scan_living(bool forgive) {
        long mine = bit(rank), all = 0;

        next_step();
        MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        check_sum("who lives", all, 1);
        for (int i = 0; i < size; i++)
                lives[i] = (all & bit(i)) != 0;
        for (int i = 3; forgive && i + 1 < arguments; i += 2)
                lives[atoi(argument[i])] = 0;
}

static inline void begin(int argc, char **argv) {
        arguments = argc;
        argument = argv;
        seed = argc > 2 ? atol(argv[2]) : 0;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (size < 1 || size > 60)
                MPI_Abort(MPI_COMM_WORLD, 2);
        scan_living(true);
}

/* The lowest rank that lives says how many there are. One that is to die does not come through. */
static inline int end(const char *name) {
        int lowest, n = 0;

        for (int i = 3; i + 1 < arguments; i += 2)
                while (atoi(argument[i]) == rank)
                        (void) pause();
        scan_living(false);
        for (lowest = 0; !lives[lowest]; lowest++)
                ;
        for (int i = 0; i < size; i++)
                n += lives[i];
        if (rank == lowest)
                printf("%s: %d ranks\n", name, n);
        MPI_Finalize();
        return 0;
}

#endif
