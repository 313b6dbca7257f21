/* Calls that do not go on without lost ranks. They are MPI's own as long as none is lost; one that
 * is made later, or still under way then, ends the job, rather than to hang or to return what is
 * nothing. */
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

/* A call that is not covered may wait for other ranks. */
#define UNCOVERED(name, parameters, arguments)                                                                                     \
        int MPI_##name parameters {                                                                                                \
                ft_enter_uncovered("MPI_" #name);                                                                                  \
                return ft_leave_uncovered("MPI_" #name,                                                                            \
                                          REAL(name) arguments); /* NOLINT(bugprone-macro-parentheses): they have theirs */        \
        }                                                                                                                          \
        FT_WRAPS(name)

UNCOVERED(Neighbor_allgather,
          (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm),
          (in, count, type, out, out_count, out_type, comm));
UNCOVERED(Neighbor_allgatherv,
          (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_firsts[],
           MPI_Datatype out_type, MPI_Comm comm),
          (in, count, type, out, out_counts, out_firsts, out_type, comm));
UNCOVERED(Neighbor_alltoall,
          (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm),
          (in, count, type, out, out_count, out_type, comm));
UNCOVERED(Neighbor_alltoallv,
          (const void *in, const int counts[], const int firsts[], MPI_Datatype type, void *out, const int out_counts[],
           const int out_firsts[], MPI_Datatype out_type, MPI_Comm comm),
          (in, counts, firsts, type, out, out_counts, out_firsts, out_type, comm));
UNCOVERED(Neighbor_alltoallw,
          (const void *in, const int counts[], const MPI_Aint firsts[], const MPI_Datatype types[], void *out,
           const int out_counts[], const MPI_Aint out_firsts[], const MPI_Datatype out_types[], MPI_Comm comm),
          (in, counts, firsts, types, out, out_counts, out_firsts, out_types, comm));
UNCOVERED(Intercomm_create,
          (MPI_Comm local_comm, int local_leader, MPI_Comm bridge_comm, int remote_leader, int tag, MPI_Comm *ret),
          (local_comm, local_leader, bridge_comm, remote_leader, tag, ret));
UNCOVERED(Intercomm_create_from_groups,
          (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader, const char *tag, MPI_Info info,
           MPI_Errhandler errhandler, MPI_Comm *ret),
          (local_group, local_leader, remote_group, remote_leader, tag, info, errhandler, ret));
UNCOVERED(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *ret), (comm, high, ret));
UNCOVERED(Comm_create_from_group, (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *ret),
          (group, tag, info, errhandler, ret));
UNCOVERED(Comm_accept, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *ret),
          (port_name, info, root, comm, ret));
UNCOVERED(Comm_connect, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *ret),
          (port_name, info, root, comm, ret));
UNCOVERED(Comm_join, (int fd, MPI_Comm *ret), (fd, ret));
UNCOVERED(Comm_spawn,
          (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *ret, int errcodes[]),
          (command, argv, maxprocs, info, root, comm, ret, errcodes));
UNCOVERED(Comm_spawn_multiple,
          (int count, char *commands[], char **argv[], const int maxprocs[], const MPI_Info info[], int root, MPI_Comm comm,
           MPI_Comm *ret, int errcodes[]),
          (count, commands, argv, maxprocs, info, root, comm, ret, errcodes));

/* Their requests are among others of the program, and may be under way for long. */
#define UNCOVERED_REQUEST(name, parameters, arguments)                                                                             \
        int MPI_##name parameters {                                                                                                \
                ft_note_uncovered("MPI_" #name, comm);                                                                             \
                return REAL(name) arguments; /* NOLINT(bugprone-macro-parentheses): they have theirs */                            \
        }                                                                                                                          \
        FT_WRAPS(name)

UNCOVERED_REQUEST(Comm_idup, (MPI_Comm comm, MPI_Comm *ret, MPI_Request *request), (comm, ret, request));
UNCOVERED_REQUEST(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *ret, MPI_Request *request),
                  (comm, info, ret, request));
UNCOVERED_REQUEST(Isendrecv,
                  (const void *in, int count, MPI_Datatype type, int dest, int sendtag, void *out, int out_count,
                   MPI_Datatype out_type, int source, int recvtag, MPI_Comm comm, MPI_Request *request),
                  (in, count, type, dest, sendtag, out, out_count, out_type, source, recvtag, comm, request));
UNCOVERED_REQUEST(Isendrecv_replace,
                  (void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
                   MPI_Request *request),
                  (buf, count, type, dest, sendtag, source, recvtag, comm, request));
UNCOVERED_REQUEST(Ineighbor_allgather,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm,
                   MPI_Request *request),
                  (in, count, type, out, out_count, out_type, comm, request));
UNCOVERED_REQUEST(Ineighbor_allgatherv,
                  (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_firsts[],
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request),
                  (in, count, type, out, out_counts, out_firsts, out_type, comm, request));
UNCOVERED_REQUEST(Ineighbor_alltoall,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm,
                   MPI_Request *request),
                  (in, count, type, out, out_count, out_type, comm, request));
UNCOVERED_REQUEST(Ineighbor_alltoallv,
                  (const void *in, const int counts[], const int firsts[], MPI_Datatype type, void *out, const int out_counts[],
                   const int out_firsts[], MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request),
                  (in, counts, firsts, type, out, out_counts, out_firsts, out_type, comm, request));
UNCOVERED_REQUEST(Ineighbor_alltoallw,
                  (const void *in, const int counts[], const MPI_Aint firsts[], const MPI_Datatype types[], void *out,
                   const int out_counts[], const MPI_Aint out_firsts[], const MPI_Datatype out_types[], MPI_Comm comm,
                   MPI_Request *request),
                  (in, counts, firsts, types, out, out_counts, out_firsts, out_types, comm, request));
UNCOVERED_REQUEST(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request));
UNCOVERED_REQUEST(Bcast_init,
                  (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (buffer, count, type, root, comm, info, request));
UNCOVERED_REQUEST(Allreduce_init,
                  (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, out, count, type, op, comm, info, request));
UNCOVERED_REQUEST(Reduce_init,
                  (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, out, count, type, op, root, comm, info, request));
UNCOVERED_REQUEST(Scan_init,
                  (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, out, count, type, op, comm, info, request));
UNCOVERED_REQUEST(Exscan_init,
                  (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, out, count, type, op, comm, info, request));
UNCOVERED_REQUEST(Reduce_scatter_init,
                  (const void *in, void *out, const int out_counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, out, out_counts, type, op, comm, info, request));
UNCOVERED_REQUEST(Reduce_scatter_block_init,
                  (const void *in, void *out, int out_count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, out, out_count, type, op, comm, info, request));
UNCOVERED_REQUEST(Gather_init,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, int root,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_count, out_type, root, comm, info, request));
UNCOVERED_REQUEST(Gatherv_init,
                  (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_firsts[],
                   MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_counts, out_firsts, out_type, root, comm, info, request));
UNCOVERED_REQUEST(Scatter_init,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, int root,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_count, out_type, root, comm, info, request));
UNCOVERED_REQUEST(Scatterv_init,
                  (const void *in, const int counts[], const int out_firsts[], MPI_Datatype type, void *out, int out_count,
                   MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, counts, out_firsts, type, out, out_count, out_type, root, comm, info, request));
UNCOVERED_REQUEST(Allgather_init,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_count, out_type, comm, info, request));
UNCOVERED_REQUEST(Allgatherv_init,
                  (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_firsts[],
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_counts, out_firsts, out_type, comm, info, request));
UNCOVERED_REQUEST(Alltoall_init,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_count, out_type, comm, info, request));
UNCOVERED_REQUEST(Alltoallv_init,
                  (const void *in, const int counts[], const int firsts[], MPI_Datatype type, void *out, const int out_counts[],
                   const int out_firsts[], MPI_Datatype out_type, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, counts, firsts, type, out, out_counts, out_firsts, out_type, comm, info, request));
UNCOVERED_REQUEST(Alltoallw_init,
                  (const void *in, const int counts[], const int firsts[], const MPI_Datatype types[], void *out,
                   const int out_counts[], const int out_firsts[], const MPI_Datatype out_types[], MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (in, counts, firsts, types, out, out_counts, out_firsts, out_types, comm, info, request));
UNCOVERED_REQUEST(Neighbor_allgather_init,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_count, out_type, comm, info, request));
UNCOVERED_REQUEST(Neighbor_allgatherv_init,
                  (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_firsts[],
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_counts, out_firsts, out_type, comm, info, request));
UNCOVERED_REQUEST(Neighbor_alltoall_init,
                  (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request),
                  (in, count, type, out, out_count, out_type, comm, info, request));
UNCOVERED_REQUEST(Neighbor_alltoallv_init,
                  (const void *in, const int counts[], const int firsts[], MPI_Datatype type, void *out, const int out_counts[],
                   const int out_firsts[], MPI_Datatype out_type, MPI_Comm comm, MPI_Info info, MPI_Request *request),
                  (in, counts, firsts, type, out, out_counts, out_firsts, out_type, comm, info, request));
UNCOVERED_REQUEST(Neighbor_alltoallw_init,
                  (const void *in, const int counts[], const MPI_Aint firsts[], const MPI_Datatype types[], void *out,
                   const int out_counts[], const MPI_Aint out_firsts[], const MPI_Datatype out_types[], MPI_Comm comm,
                   MPI_Info info, MPI_Request *request),
                  (in, counts, firsts, types, out, out_counts, out_firsts, out_types, comm, info, request));
UNCOVERED_REQUEST(Psend_init,
                  (const void *buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request),
                  (buf, partitions, count, type, dest, tag, comm, info, request));
UNCOVERED_REQUEST(Precv_init,
                  (void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request),
                  (buf, partitions, count, type, source, tag, comm, info, request));
