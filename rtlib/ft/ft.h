/* The library as a whole: what it knows of losses, the communicators of the program, and how they
 * go on. */
#ifndef RM_RTLIB_FT_FT_H
#define RM_RTLIB_FT_FT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rtlib/ft/calls.h"
#include "rtlib/ft/comm.h"
#include "rtlib/ft/losses.h"

struct ft {
        bool on; /* the job wants it, and MPI is initialized */
        bool ended;
        bool threads; /* several at once may make calls of MPI */
        int rank, size; /* of this process in MPI_COMM_WORLD of Open MPI */
        int ranks;      /* of the program; the other processes are spare (members.h) */
        bool respawned; /* this one was spare, and has replaced a rank, or is to */
        bool joining;   /* and the others have not made their communicators with it yet */
        bool ending;    /* it has come to MPI_Finalize */
        MPI_Comm meeting; /* of all processes, for the library's own messages; never revoked */
        struct losses losses;
        _Atomic uint32_t repaired; /* so many losses all communicators have been rebuilt for */
        _Atomic uint32_t in_hand;  /* the same, or what they are being rebuilt for */
        struct comm *world;
        const char *_Atomic uncovered; /* the last call that the program has made whose request does not go on without lost ranks */
        atomic_bool hit; /* an operation that does not block has met a dead rank, and rmd is to say which */
};

extern struct ft ft;

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Has a loss been heard of for which there is something to do? Cheap: for loops that wait. */
static inline bool ft_is_behind(void) {
        return UNLIKELY(atomic_load_explicit(&ft.losses.count, memory_order_relaxed) !=
                        atomic_load_explicit(&ft.repaired, memory_order_relaxed));
}

/* The program's communicator as we know it; NULL: calls on it are passed on as they are. */
static inline struct comm *ft_comm(MPI_Comm comm) {
        return ft.on && !ft.ended ? comm_find(comm) : NULL;
}

/* ---- errors.c ---- */

/* A rank is dead, or a communicator was given up because one is. For errors that do not tell, waits
 * until rmd has named the lost rank, or has had time to. */
bool error_is_loss(int rc);
bool error_is_pending(int rc); /* MPI_ANY_SOURCE, and a rank is dead that might have sent it */
/* Passes MPI's error to the program as it wants it: by its own error handler. `c` NULL ok. */
int error_raise(struct comm *c, int rc);
/* A line on standard error, with the rank before it, in one write(2): other ranks say theirs at the
 * same time. At most 1,024 bytes, the rest is cut. A signal handler may call it. */
void ft_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says why, and ends the job: a rank asks mpirun for it a second after the one before it. */
void ft_give_up(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* MPI has met a dead rank: waits until rmd has named it, gives up if it does not. */
void ft_await_loss(void);
void ft_acknowledge(void);
/* Ranks that MPI itself knows to be dead. */
uint32_t ft_count_detected(void);
/* To be asked after a collective call that was successful: MPI_Allgatherv of Open MPI 5.0, for one,
 * is, without the data that was still to come when its communicator was revoked, or a rank found
 * dead beside those that were known. */
bool ft_was_hit(MPI_Comm comm, uint32_t losses);

/* ---- uncovered.c ---- */

/* To be asked when a request has ended with a dead rank. */
void ft_refuse_uncovered(void);
/* A call that is passed on as it is, and makes a request of MPI's. Gives up if a rank was lost, and
 * others have part in it. */
void ft_note_uncovered(const char *call, MPI_Comm comm);
/* Around a call that may wait for others, and does not go on without lost ones. Gives up if a rank
 * is lost before, or in it. */
void ft_enter_uncovered(const char *call);
int ft_leave_uncovered(const char *call, int rc);

/* ---- repair.c ---- */

/* Rebuilds all communicators without those that were lost, together with all ranks that live.
 * Returns when it is done. */
void ft_repair(void);

/* To be called in loops that wait: makes up for a loss if there is one. */
static inline void ft_keep_up(void) {
        if (UNLIKELY(atomic_load_explicit(&ft.hit, memory_order_relaxed)) && !ft_is_behind())
                ft_await_loss();
        if (ft_is_behind())
                ft_repair();
}

/* ---- blocked.c ---- */

/* A call that waits for others on this communicator: once a loss is heard of, it is revoked under
 * it, so that it ends. */
void blocked_init(void);
void blocked_enter(MPI_Comm comm);
void blocked_leave(void);
/* The same for MPI_Comm_create_from_group(), which has a communicator of its own, and none yet that
 * it is known by. */
void blocked_enter_unnamed(void);
void blocked_leave_unnamed(void);
bool blocked_is_unnamed(void); /* this thread is in it */

/* ---- wait.c ---- */

/* As MPI_Test until it is done; repairs meanwhile. A dead peer counts as done: `*ret_lost`. */
int wait_request(MPI_Request *request, MPI_Status *status, bool *ret_lost);
void status_set_empty(MPI_Status *status, int source, int tag);
/* Between two looks, longer each time. */
void wait_pause(unsigned *turns);

#endif
