/* librmrt: what a program may tell rmd, the resource manager that it runs under. No program must.
 *
 * Outside of rmd every call succeeds and does nothing, so that one binary runs everywhere. All
 * calls may be made by any thread, and none makes a thread. None waits, or keeps a descriptor open,
 * but those that say so. Link with -lrmrt (pkg-config rmrt).
 *
 * Errors are negative errno values. The library prints nothing. */
#ifndef RM_RMRT_H
#define RM_RMRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Finds out whether this process is a rank of a job of rmd; before or after MPI_Init(). Again: does
 * nothing. Always 0. */
int rmrt_init(void);

/* Is it? False before rmrt_init(). */
bool rmrt_is_managed(void);

/* In a job with critical ranks (rm-mpirun --on-rank-loss continue:critical=RANKS): has this process
 * replaced a rank that was lost? From the return of MPI_Init() on, which the process has waited in,
 * and for as long as it lives; false before, and of all others. It begins at the program's
 * beginning, with the number of that rank; what it needs to go on is for the program to bring
 * (rmrt-ft(7)). Needs no rmrt_init(). */
bool rmrt_is_respawned(void);

/* `done` of `total` steps of equal work are done, as of this rank; `total` 0: not known. The job is
 * as far as the rank that has done the fewest. To be called after each step: costs some tens of
 * nanoseconds, and rmd is told once a second at most. -EINVAL: more are done than there are. */
int rmrt_step(uint64_t done, uint64_t total);

/* How many steps per second are wanted, at least and at most; 0: no such limit. -EINVAL: negative,
 * not a number, or more at least than at most. */
int rmrt_goal(double steps_min, double steps_max);

/* The events of which rmd tells the program while it runs. */
enum rmrt_event {
        RMRT_BEFORE_MOVE = 1, /* this rank is about to be moved to another node */
        RMRT_BEFORE_CHECKPOINT, /* or to be saved, with all of its job */
        RMRT_AFTER_MOVE, /* it goes on: there, or, if the move was given up, here */
        RMRT_AFTER_CHECKPOINT, /* it goes on; the checkpoint may have been given up */
        RMRT_AFTER_RESTART, /* it goes on from a checkpoint */
};
typedef void (*rmrt_event_fn)(enum rmrt_event event, void *data);
enum { RMRT_CALLBACKS_MAX = 64 };

/* Calls `fn` at each such event, in the thread whose rmrt_step() or rmrt_checkpoint_here() comes
 * next, those of one event in the order in which they were given. Before: rmd waits for that, while
 * the program runs, as long as its administrator allows (1 s by default); then it goes on without,
 * and what is to be done before may be left out. After: in any case. May be called before
 * rmrt_init(). Keeps one descriptor open, which a move or checkpoint carries; if the program closes
 * it, another is made. -EINVAL: no such event, or no function; -ENOSPC: more than
 * RMRT_CALLBACKS_MAX. */
int rmrt_at(enum rmrt_event event, rmrt_event_fn fn, void *data);

/* A change of the number of active ranks (rm/rmrt_resize.h, which is what programs use; these calls
 * are what it is made of). By one thread at a time. They keep one descriptor open, as rmrt_at()
 * does. */
struct rmrt_change {
        uint64_t epoch; /* greater than that of any before; 0: none */
        uint32_t before, now; /* active ranks */
};

/* Was the job started with --max-ranks? */
bool rmrt_is_resizable(void);
/* At the beginning, and of a rank that is no longer active. 1: it is one of `ret->now` active ranks
 * (0: of all there are); a parked rank waits for that. 0: the program has ended. -EINVAL: it is
 * active; -EADDRINUSE, -EMFILE and others: it cannot listen. */
int rmrt_resize_wait(struct rmrt_change *ret);
/* Called by a rank that rmrt_resize_wait() has woken, until rank 0 calls for it: false when the
 * program has ended instead, as rank 0 may have had its last step before it heard that the others
 * were woken. Waits a millisecond at most. */
bool rmrt_resize_is_on(void);
/* Called by rank 0; does not wait. True: all active ranks are to make this change now. */
bool rmrt_resize_poll(struct rmrt_change *ret);
/* All active ranks have made the change; to be called on each of them, and on those that are no
 * longer active. */
void rmrt_resize_made(const struct rmrt_change *change);

/* This memory need not be carried: it is scratch, of no value at the begin of a step. rmrt_step()
 * sets it to zero when a move or checkpoint is near, and nothing of it is then sent or stored but
 * what the program has written since; when that is, the program does not know, so it must take it
 * for undefined after each rmrt_step() and rmrt_resize_point(), and after a restart. Keeps a
 * descriptor open. Where the rank does not come by in time, its contents are carried. Only whole
 * pages of it are meant, of private memory that is of no file (malloc(), anonymous mmap()); it must
 * be included again before it is freed. -EINVAL: no memory; -EOPNOTSUPP: of another kind; -EEXIST:
 * some of it is excluded; -ENOSPC: there are RMRT_REGIONS_MAX. */
enum { RMRT_REGIONS_MAX = 64 };
int rmrt_exclude(void *memory, size_t bytes);
/* The memory is carried again: just the range that was excluded by one call. -ENOENT: it was not
 * excluded. */
int rmrt_include(const void *memory, size_t bytes);

/* The program calls this at a good place to be saved at: no message of this rank is on its way to
 * others, or from them. When a checkpoint is near, and the rank has called this before, rmd has it
 * wait in the call until it is captured, and makes the checkpoint when all such ranks of the job
 * wait, or have had their time. So all ranks are to call it as often as each other, between the
 * same steps. Also does what rmrt_step() does at events. Otherwise costs some tens of nanoseconds.
 * Keeps a descriptor open. */
void rmrt_checkpoint_here(void);

/* The program keeps its own state: it saves it by itself, and goes on from there when it begins
 * again (rm/rmrt_mpi.h is one way). Then rmd makes no checkpoints of the job, and after the loss of
 * a node it is begun again at once, if it was started with --on-node-loss restart. False: it does
 * not, or not any more, as from the beginning. Rank 0's word counts. */
void rmrt_own_state(bool own);

/* Tells rmd what was said last. The other calls do nothing after it. Of rank 0, in a job with
 * --max-ranks: waits until rmd has heard that parked ranks are to end, 10 s at most. */
void rmrt_finalize(void);

#ifdef __cplusplus
}
#endif

#endif
