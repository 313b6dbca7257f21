/* The calls of MPI that the library makes. */
#ifndef RM_RTLIB_FT_NAMES_H
#define RM_RTLIB_FT_NAMES_H

#define FT_CALLS(X)                                                                                                                \
        X(Abort)                                                                                                                   \
        X(Allgather)                                                                                                               \
        X(Allgatherv)                                                                                                              \
        X(Allreduce) X(Alltoall) X(Alltoallv) X(Alltoallw) X(Barrier) X(Bcast) X(Bsend) X(Cancel) X(Cart_create) X(Cart_sub) X(    \
                Comm_call_errhandler) X(Comm_create) X(Comm_create_from_group) X(Comm_create_group) X(Comm_dup)                    \
                X(Comm_dup_with_info) X(Comm_free) X(Comm_get_errhandler) X(Comm_group) X(Comm_rank) X(Comm_set_errhandler) X(     \
                        Comm_size) X(Comm_split) X(Comm_split_type) X(Comm_test_inter) X(Errhandler_free) X(Error_class)           \
                        X(Error_string) X(Exscan) X(Finalize) X(Finalized) X(Gather) X(Gatherv) X(Get_count) X(Group_free) X(      \
                                Group_incl) X(Group_rank) X(Group_size) X(Group_translate_ranks) X(Improbe) X(Init) X(Init_thread) \
                                X(Initialized) X(Iprobe) X(Irecv) X(Irsend) X(Isend) X(Issend) X(Mprobe) X(Mrecv) X(Imrecv) X(     \
                                        Pack) X(Probe) X(Query_thread) X(Recv) X(Reduce) X(Reduce_local) X(Reduce_scatter)         \
                                        X(Reduce_scatter_block) X(Request_free) X(Rsend) X(Scan) X(Scatter) X(Scatterv) X(Send) X( \
                                                Sendrecv) X(Sendrecv_replace) X(Ssend) X(Status_set_elements) X(Test) X(Testall)   \
                                                X(Testany) X(Testsome) X(Topo_test) X(Type_get_envelope) X(Type_get_extent) X(     \
                                                        Type_get_true_extent) X(Type_size) X(Unpack) X(Wait) X(Waitall) X(Waitany) \
                                                        X(Waitsome) X(Start) X(Startall) X(Ibsend) X(Ibarrier) X(Ibcast) X(        \
                                                                Iallreduce) X(Ireduce) X(Iscan) X(Iexscan) X(Igather) X(Iscatter)  \
                                                                X(Iallgather) X(Ialltoall) X(Iallgatherv) X(Ialltoallv) X(         \
                                                                        Comm_idup) X(Intercomm_create) X(Intercomm_merge)          \
                                                                        X(Graph_create) X(Dist_graph_create_adjacent) X(           \
                                                                                Win_create) X(Win_allocate) X(Win_allocate_shared) \
                                                                                X(Win_fence) X(Win_lock) X(Win_lock_all)           \
                                                                                        X(Win_free) X(File_open) X(File_close)     \
                                                                                                X(File_read_all) X(File_write_all) \
                                                                                                        X(File_read_at_all) X(     \
                                                                                                                File_write_at_all) \
                                                                                                                X(Comm_spawn)

#endif
