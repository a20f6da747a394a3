/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * CALL: an MPI call that is traced. HELPER: one that the tracer itself needs. Included wherever something is made of each. */

#if MPI_VERSION >= 4
#define LARGE(name) CALL(name) CALL(name##_c)
#define COLLECTIVE(name, iname) LARGE(name) LARGE(iname) LARGE(name##_init)
#else
#define LARGE(name) CALL(name)
#define COLLECTIVE(name, iname) CALL(name) CALL(iname)
#endif

CALL(Init) CALL(Init_thread) CALL(Finalize) CALL(Abort) CALL(Pcontrol)

LARGE(Send) LARGE(Bsend) LARGE(Ssend) LARGE(Rsend)
LARGE(Isend) LARGE(Ibsend) LARGE(Issend) LARGE(Irsend)
LARGE(Send_init) LARGE(Bsend_init) LARGE(Ssend_init) LARGE(Rsend_init)
LARGE(Recv) LARGE(Irecv) LARGE(Recv_init) LARGE(Mrecv) LARGE(Imrecv)
LARGE(Sendrecv) LARGE(Sendrecv_replace)
#if MPI_VERSION >= 4
LARGE(Isendrecv) LARGE(Isendrecv_replace)
#endif
CALL(Probe) CALL(Iprobe) CALL(Mprobe) CALL(Improbe)

CALL(Start) CALL(Startall) CALL(Request_free) CALL(Cancel) CALL(Request_get_status)
CALL(Wait) CALL(Waitany) CALL(Waitall) CALL(Waitsome)
CALL(Test) CALL(Testany) CALL(Testall) CALL(Testsome)

CALL(Barrier) CALL(Ibarrier)
#if MPI_VERSION >= 4
CALL(Barrier_init)
#endif
COLLECTIVE(Bcast, Ibcast)
COLLECTIVE(Gather, Igather) COLLECTIVE(Gatherv, Igatherv)
COLLECTIVE(Scatter, Iscatter) COLLECTIVE(Scatterv, Iscatterv)
COLLECTIVE(Allgather, Iallgather) COLLECTIVE(Allgatherv, Iallgatherv)
COLLECTIVE(Alltoall, Ialltoall) COLLECTIVE(Alltoallv, Ialltoallv) COLLECTIVE(Alltoallw, Ialltoallw)
COLLECTIVE(Allreduce, Iallreduce) COLLECTIVE(Reduce, Ireduce)
COLLECTIVE(Reduce_scatter, Ireduce_scatter) COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block)
COLLECTIVE(Scan, Iscan) COLLECTIVE(Exscan, Iexscan)
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather) COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv)
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall) COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv)
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw)

CALL(Comm_dup) CALL(Comm_dup_with_info) CALL(Comm_idup) CALL(Comm_create) CALL(Comm_create_group)
CALL(Comm_split) CALL(Comm_split_type) CALL(Cart_create) CALL(Cart_sub) CALL(Graph_create)
CALL(Dist_graph_create) CALL(Dist_graph_create_adjacent) CALL(Intercomm_create) CALL(Intercomm_merge)
CALL(Comm_free) CALL(Comm_disconnect)
#if MPI_VERSION >= 4
CALL(Comm_idup_with_info)
#endif

LARGE(Win_create) LARGE(Win_allocate) LARGE(Win_allocate_shared) CALL(Win_create_dynamic) CALL(Win_fence) CALL(Win_free)
CALL(File_open) CALL(File_close)
LARGE(Put) LARGE(Get) LARGE(Accumulate) LARGE(Get_accumulate) CALL(Fetch_and_op) CALL(Compare_and_swap)
LARGE(Rput) LARGE(Rget) LARGE(Raccumulate) LARGE(Rget_accumulate)

HELPER(Comm_size) HELPER(Comm_rank) HELPER(Comm_remote_size) HELPER(Comm_test_inter)
HELPER(Comm_group) HELPER(Comm_remote_group) HELPER(Group_free) HELPER(Group_size) HELPER(Group_translate_ranks)
HELPER(Type_size_x) HELPER(Get_elements_x) HELPER(Test_cancelled) HELPER(Error_class) HELPER(Get_library_version)
HELPER(Topo_test) HELPER(Cartdim_get) HELPER(Cart_shift) HELPER(Graph_neighbors_count) HELPER(Graph_neighbors)
HELPER(Dist_graph_neighbors_count) HELPER(Dist_graph_neighbors)

#undef LARGE
#undef COLLECTIVE
