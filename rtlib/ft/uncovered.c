/* Calls that do not go on without lost ranks. They are MPI's own as long as none is lost; one that is made later, or still under way then, ends the job, rather than to hang or to
 * return what is nothing. */
#include "rtlib/ft/ft.h"
#include "rtlib/ft/watch.h"

void ft_refuse_uncovered(void) {
        const char *call = ft.uncovered;

        if (call && ft.losses.count > 0)
                ft_give_up("%s does not go on without rank %d, which was lost", call, (int) ft.losses.order[0]);
}

static void refuse(const char *call) {
        if (ft.ranks < ft.size)
                ft_give_up("%s cannot be used in a job with spare ranks", call);
        if (ft.losses.count > 0)
                ft_give_up("%s does not go on without rank %d, which was lost", call, (int) ft.losses.order[0]);
}

void ft_note_uncovered(const char *call, MPI_Comm comm) {
        int n = 1;

        if (!ft.on || ft.ended || (mpi.Comm_size(comm, &n) == MPI_SUCCESS && n == 1))
                return;
        ft.uncovered = call;
        refuse(call);
}

void ft_enter_uncovered(const char *call) {
        if (!ft.on || ft.ended)
                return;
        refuse(call);
        watch_call(call);
}

int ft_leave_uncovered(const char *call, int rc) {
        if (!ft.on || ft.ended)
                return rc;
        watch_call(NULL);
        if (rc != MPI_SUCCESS && error_is_loss(rc)) {
                if (ft.losses.count == 0)
                        ft_await_loss();
                refuse(call);
        }
        return rc;
}

/* What is passed to it may wait for others. */
#define UNCOVERED(name, parameters, arguments)                                                                                     \
        int MPI_##name parameters {                                                                                                \
                ft_enter_uncovered("MPI_" #name);                                                                                  \
                return ft_leave_uncovered("MPI_" #name,                                                                            \
                                          REAL(name) arguments); /* NOLINT(bugprone-macro-parentheses): they have theirs */        \
        }                                                                                                                          \
        FT_WRAPS(name)

UNCOVERED(Comm_idup, (MPI_Comm comm, MPI_Comm *ret, MPI_Request *request), (comm, ret, request));
UNCOVERED(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *ret),
          (comm, leader, peer, remote, tag, ret));
UNCOVERED(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *ret), (comm, high, ret));
UNCOVERED(Comm_spawn,
          (const char *command, char *argv[], int n, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *ret, int codes[]),
          (command, argv, n, info, root, comm, ret, codes));
