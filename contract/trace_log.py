"""The files that programs under MPI write: the tracer's logs, and the files of the benchmarks' ranks."""

from __future__ import annotations

from contract.kernel import TRACE_LOG_VERSION
from contract.rows import Field, Number, Operation, Struct

MAGIC = "QUELLMPI"
VERSION = TRACE_LOG_VERSION
# Bytes of the head, and of the stage behind it, where records wait until they are appended to the file.
HEAD_BYTES = 4096
STAGE_BYTES = 64 << 10
# Variables: the folder of the logs, how many bytes each may have, the program that records a host's kernel.
FOLDER = "QUELL_TRACE"
LIMIT = "QUELL_TRACE_LIMIT"
NODE = "QUELL_TRACE_NODE"

STATES = (
    Number("running"),
    Number("finalized"),
    Number("wrong_mpi", note="the tracer was compiled for an MPI other than the program's: nothing was traced"),
)

CLOCK = Struct(
    "quell_trace_clock",
    (Field("at_ns", "u64"), Field("offset_ns", "i64"), Field("error_ns", "u64")),
    doc="At at_ns on this thread's clock, rank 0's was offset_ns ahead, give or take error_ns.",
)

HEAD = Struct(
    "quell_trace_head",
    (
        Field("magic", "char", 8),
        Field("version", "u32"),
        Field("state", "u32"),
        Field("bytes", "u64", note="of whole records"),
        Field("lost", "u64", note="records that found no room"),
        Field("rank", "u32"),
        Field("ranks", "u32"),
        Field("pid", "u32"),
        Field("tid", "u32"),
        Field("thread", "u32", note="of this rank, from 0"),
        Field("sources", "u32", note="a bit for each noise source that there is"),
        Field("begin_ns", "u64"),
        Field("end_ns", "u64", note="0 until it ended"),
        Field("calls", "u64", note="seen, in addition to MPI_Init, MPI_Init_thread and MPI_Finalize"),
        Field("one_sided", "u64", note="calls that put or get: seen, not tracked"),
        Field(
            "clocks",
            "u32",
            note="how many of these were measured; 0 on followers: see the rank with the same boot id that did",
        ),
        Field("clock_zero", "u32", note="not 0: this is the clock of rank 0 itself"),
        Field("clock", "quell_trace_clock", 2),
        Field("host", "char", 256),
        Field("boot", "char", 64),
        Field("library", "char", 256, note="the MPI's version, its first line"),
        Field("program", "char", 256),
        Field("reason", "char", 256, note="why there are no kernel's noise counters; empty if there are"),
        Field("appended", "u64", note="bytes of records that were appended; later ones are in the stage"),
        Field("job", "u64", note="the same in all logs of an MPI_COMM_WORLD and in no others; 0 if it is not known"),
    ),
    doc="The used part of the head; zeros follow. Texts end with a zero. Times are on CLOCK_MONOTONIC.",
    parts=(CLOCK,),
)

RECORD = Struct(
    "quell_trace_record",
    (
        Field("kind", "u8"),
        Field("words", "u8", note="of 8 bytes, that follow"),
        Field("mask", "u16"),
        Field("value", "u32"),
        Field("time_ns", "u64"),
    ),
)

RECORDS = (
    Number(
        "region",
        1,
        "value: its number; mask: 1 if it is an MPI call. Text: name, zero, site, zero, `0xaddress path` of the site, zero",
    ),
    Number(
        "comm",
        note="value: its number; mask: 1 if it joins two groups. IDENTITY, SIZE|RANK, REMOTE SIZE|FIRST, text: maker, zero",
    ),
    Number(
        "members", note="value: the communicator's number. IDENTITY, FIRST PLACE|COUNT, then world ranks, two a word"
    ),
    Number("enter", note="value: region; mask: the noise sources that changed. Their totals in ns"),
    Number("leave", note="the same"),
    Number("send", note="value: tag. COMM|PEER, bytes, [REQUEST]"),
    Number("send_done", note="REQUEST"),
    Number("posted", note="a receive. value: tag. COMM|PEER, REQUEST"),
    Number("recv", note="value: tag. COMM|PEER, bytes, [REQUEST]"),
    Number("probed", note="value: tag. COMM|PEER"),
    Number("pending", note="REQUEST"),
    Number("cancelled", note="REQUEST"),
    Number("collective_begin"),
    Number("collective_posted", note="value: communicator. REQUEST"),
    Number(
        "collective",
        note="value: communicator; mask: operation. COMM|ROOT, bytes sent, bytes received, [REQUEST]",
    ),
    Number("fork", note="as enter, but value: the threads that the program asks for, or 0. A team of threads begins"),
    Number("team_begin", note="as enter, without a value. The thread's share in its process's team begins"),
    Number("team_end", note="the same. The share ends: the thread has come to the join"),
    Number("join", note="the same. In the thread that forked: all threads of the team have come"),
)
RECORDS_DOC = """What happened. `value`, `mask` and the words that follow the record are given for each. COMM|PEER is a word with the number
of the communicator in its lower half and a rank of it in the upper. A [REQUEST] is only present if the call does not block.
Numbers of regions hold within a log, those of communicators and requests within a process. 0xffffffff: not known, a wildcard."""

# Logs number them by their places here.
OPERATIONS = (
    Operation("Barrier", {"BARRIER": 0}),
    Operation("Bcast", {"BCAST": 1}),
    Operation("Gather", {"GATHER": 2}),
    Operation("Gatherv", {"GATHERV": 3}),
    Operation("Scatter", {"SCATTER": 4}),
    Operation("Scatterv", {"SCATTERV": 5}),
    Operation("Allgather", {"ALLGATHER": 6}),
    Operation("Allgatherv", {"ALLGATHERV": 7}),
    Operation("Alltoall", {"ALLTOALL": 8}),
    Operation("Alltoallv", {"ALLTOALLV": 9}),
    Operation("Alltoallw", {"ALLTOALLW": 10}),
    Operation("Allreduce", {"ALLREDUCE": 11}),
    Operation("Reduce", {"REDUCE": 12}),
    Operation("Reduce_scatter", {"REDUCE_SCATTER": 13}),
    Operation("Reduce_scatter_block", {"REDUCE_SCATTER_BLOCK": 16}),
    Operation("Scan", {"SCAN": 14}),
    Operation("Exscan", {"EXSCAN": 15}),
    Operation(
        "Create",
        {"CREATE_HANDLE": 17, "ALLOCATE": 19, "CREATE_HANDLE_AND_ALLOCATE": 21},
        "Makes a communicator, a window or a file.",
    ),
    Operation("Destroy", {"DESTROY_HANDLE": 18, "DEALLOCATE": 20, "DESTROY_HANDLE_AND_DEALLOCATE": 22}, "Frees one."),
)

# MPI_COMM_WORLD and MPI_COMM_SELF have these numbers and need no definition.
WORLD, SELF = 0, 1
UNKNOWN = 0xFFFFFFFF
# Tags of messages within neighbour collectives begin here; users' are below.
NEIGHBOR_TAG = 0x80000000

RANK_FILE_VERSION = 1
# What the first line of a rank's file says before the version.
RANK_FILE_FIRST = "quell-rank"
BLOCK_FACT, BLOCK_ROWS = "FACT", "ROWS"
BLOCK = Struct("quell_block", (Field("kind", "char", 4), Field("zero", "u32"), Field("bytes", "u64")))
# The columns of a benchmark's phases.
PHASE_COLUMNS = ("start_ns", "work", "qt_ns", "bt_ns", "cpu")
