"""The MPI calls that quell knows: which the tracer sees, and at which replayed noise is burned."""

from __future__ import annotations

from typing import NamedTuple


class Calls(NamedTuple):
    """Calls with the same treatment."""

    names: str
    """Without `MPI_`, separated by spaces."""
    traced: bool = True
    """Whether the tracer sees them. Each needs a function in mpi/trace."""
    burned: bool = True
    """Whether a rank's noise is burned at them: those that exchange messages, wait, or belong to all."""
    large: bool = False
    """Whether MPI 4 has one more of that name and `_c`, for large counts, with as many arguments."""
    since: int = 0
    """The first version of MPI that has them, if the tracer may be compiled with an MPI that does not."""
    ends: str = ""
    """The phase that a call ends: `barrier`; `collective`, blocking, which no rank leaves before all have entered; `pcontrol`."""


CALLS = (
    Calls("Init Init_thread Finalize"),
    Calls("Abort", burned=False),
    Calls("Session_init Session_finalize", traced=False),
    Calls("Pcontrol", ends="pcontrol"),
    # Collectives.
    Calls("Barrier", ends="barrier"),
    Calls(
        "Allreduce Allgather Allgatherv Alltoall Alltoallv Alltoallw Reduce_scatter Reduce_scatter_block",
        large=True,
        ends="collective",
    ),
    Calls("Bcast Gather Gatherv Scatter Scatterv Reduce Scan Exscan", large=True),
    Calls("Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw", large=True),
    Calls("Ibarrier"),
    Calls(
        "Iallreduce Iallgather Iallgatherv Ialltoall Ialltoallv Ialltoallw Ireduce_scatter Ireduce_scatter_block "
        "Ibcast Igather Igatherv Iscatter Iscatterv Ireduce Iscan Iexscan",
        large=True,
    ),
    Calls(
        "Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw",
        large=True,
    ),
    Calls("Barrier_init", burned=False, since=4),
    Calls(
        "Allreduce_init Allgather_init Allgatherv_init Alltoall_init Alltoallv_init Alltoallw_init "
        "Reduce_scatter_init Reduce_scatter_block_init Bcast_init Gather_init Gatherv_init Scatter_init Scatterv_init "
        "Reduce_init Scan_init Exscan_init Neighbor_allgather_init Neighbor_allgatherv_init Neighbor_alltoall_init "
        "Neighbor_alltoallv_init Neighbor_alltoallw_init",
        burned=False,
        large=True,
        since=4,
    ),
    # Messages.
    Calls("Send Bsend Ssend Rsend Isend Ibsend Issend Irsend", large=True),
    Calls("Send_init Bsend_init Ssend_init Rsend_init Recv_init", burned=False, large=True),
    Calls("Recv Irecv Mrecv Imrecv", large=True),
    Calls("Probe Iprobe Mprobe Improbe"),
    Calls("Sendrecv Sendrecv_replace", large=True),
    Calls("Isendrecv Isendrecv_replace", large=True, since=4),
    # Requests.
    Calls("Start Startall"),
    Calls("Parrived Pready Pready_range Pready_list", since=4),
    Calls("Wait Waitall Waitany Waitsome Test Testall Testany Testsome"),
    Calls("Request_free Cancel Request_get_status", burned=False),
    # Communicators.
    Calls("Comm_dup Comm_dup_with_info Comm_idup Comm_split Comm_split_type Comm_create Comm_create_group"),
    Calls("Comm_idup_with_info", since=4),
    Calls("Comm_create_from_group", traced=False),
    Calls("Comm_spawn Comm_spawn_multiple Comm_accept Comm_connect"),
    Calls("Comm_free Comm_disconnect"),
    Calls("Cart_create Cart_sub Graph_create Dist_graph_create Dist_graph_create_adjacent"),
    Calls("Intercomm_create Intercomm_merge"),
    Calls("Intercomm_create_from_groups", traced=False),
    # Windows and files.
    Calls("Put Get Accumulate Get_accumulate Rput Rget Raccumulate Rget_accumulate", large=True),
    Calls("Fetch_and_op Compare_and_swap"),
    Calls("Win_create Win_allocate Win_allocate_shared", large=True),
    Calls("Win_create_dynamic", burned=False),
    Calls("Win_free Win_fence"),
    Calls(
        "Win_start Win_complete Win_post Win_wait Win_test Win_lock Win_lock_all Win_unlock Win_unlock_all "
        "Win_flush Win_flush_all Win_flush_local Win_flush_local_all Win_sync",
    ),
    Calls("File_open File_close File_sync"),
    Calls("File_set_size File_preallocate File_set_view", burned=False),
    Calls(
        "File_read_all File_read_at_all File_read_ordered File_write_all File_write_at_all File_write_ordered",
        large=True,
    ),
    Calls(
        "File_read File_read_at File_read_shared File_write File_write_at File_write_shared "
        "File_iread File_iread_at File_iread_all File_iread_at_all File_iread_shared "
        "File_iwrite File_iwrite_at File_iwrite_all File_iwrite_at_all File_iwrite_shared "
        "File_read_all_begin File_read_at_all_begin File_read_ordered_begin "
        "File_write_all_begin File_write_at_all_begin File_write_ordered_begin",
        burned=False,
        large=True,
    ),
    Calls(
        "File_read_all_end File_read_at_all_end File_read_ordered_end "
        "File_write_all_end File_write_at_all_end File_write_ordered_end",
        burned=False,
    ),
)

# What the tracer itself calls.
HELPERS = (
    "Comm_size Comm_rank Comm_remote_size Comm_test_inter Comm_group Comm_remote_group Group_free Group_size "
    "Group_translate_ranks Type_size_x Get_elements_x Test_cancelled Error_class Get_library_version Topo_test Cartdim_get "
    "Cart_shift Graph_neighbors_count Graph_neighbors Dist_graph_neighbors_count Dist_graph_neighbors"
)
