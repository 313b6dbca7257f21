/* Windows without fences: MPI's own, refused once a rank is lost. */
#include "rtlib/ft/ft.h"
#include "rtlib/ft/window.h"

/* `change`: of the accesses that are open. */
#define PASSIVE(name, parameters, arguments, change)                                                                               \
        int MPI_##name parameters {                                                                                                \
                struct window *w = window_find(win);                                                                               \
                int rc;                                                                                                            \
                                                                                                                                   \
                if (w)                                                                                                             \
                        ft_enter_uncovered("MPI_" #name);                                                                          \
                rc = REAL(name) arguments; /* NOLINT(bugprone-macro-parentheses): they have theirs */                              \
                if (w && rc == MPI_SUCCESS)                                                                                        \
                        w->passive += (change);                                                                                    \
                return w ? ft_leave_uncovered("MPI_" #name, rc) : rc;                                                              \
        }                                                                                                                          \
        FT_WRAPS(name)

PASSIVE(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win), 1);
PASSIVE(Win_lock_all, (int assert, MPI_Win win), (assert, win), 1);
PASSIVE(Win_unlock, (int rank, MPI_Win win), (rank, win), -1);
PASSIVE(Win_unlock_all, (MPI_Win win), (win), -1);
PASSIVE(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), 1);
PASSIVE(Win_complete, (MPI_Win win), (win), -1);
PASSIVE(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), 0);
PASSIVE(Win_wait, (MPI_Win win), (win), 0);
PASSIVE(Win_test, (MPI_Win win, int *done), (win, done), 0);
PASSIVE(Win_flush, (int rank, MPI_Win win), (rank, win), 0);
PASSIVE(Win_flush_all, (MPI_Win win), (win), 0);
PASSIVE(Win_flush_local, (int rank, MPI_Win win), (rank, win), 0);
PASSIVE(Win_flush_local_all, (MPI_Win win), (win), 0);

/* Their requests are among others of the program. */
#define PASSIVE_REQUEST(name, parameters, arguments)                                                                               \
        int MPI_##name parameters {                                                                                                \
                const struct window *w = window_find(win);                                                                         \
                                                                                                                                   \
                if (w)                                                                                                             \
                        ft_note_uncovered("MPI_" #name, w->comm->user);                                                            \
                return REAL(name) arguments; /* NOLINT(bugprone-macro-parentheses): they have theirs */                            \
        }                                                                                                                          \
        FT_WRAPS(name)

PASSIVE_REQUEST(Rput,
                (const void *in, int n, MPI_Datatype in_type, int to, MPI_Aint at, int m, MPI_Datatype type, MPI_Win win,
                 MPI_Request *ret),
                (in, n, in_type, to, at, m, type, win, ret));
PASSIVE_REQUEST(Rget,
                (void *out, int n, MPI_Datatype out_type, int from, MPI_Aint at, int m, MPI_Datatype type, MPI_Win win,
                 MPI_Request *ret),
                (out, n, out_type, from, at, m, type, win, ret));
PASSIVE_REQUEST(Raccumulate,
                (const void *in, int n, MPI_Datatype in_type, int to, MPI_Aint at, int m, MPI_Datatype type, MPI_Op op, MPI_Win win,
                 MPI_Request *ret),
                (in, n, in_type, to, at, m, type, op, win, ret));
PASSIVE_REQUEST(Rget_accumulate,
                (const void *in, int n, MPI_Datatype in_type, void *out, int k, MPI_Datatype out_type, int to, MPI_Aint at, int m,
                 MPI_Datatype type, MPI_Op op, MPI_Win win, MPI_Request *ret),
                (in, n, in_type, out, k, out_type, to, at, m, type, op, win, ret));
