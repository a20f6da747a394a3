//! The names of patterns, for help and for errors.

/// A pattern that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// What it is, in one line.
    pub help: &'static str,
    /// The parameters that it uses, by their names in [`Params`](super::Params), in addition to `ranks` and `iterations`.
    pub uses: &'static [&'static str],
}

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
    uses: &'static [&'static str],
) -> Entry {
    Entry { name, aliases, help, uses }
}

/// All patterns that [`by_name`](super::by_name) makes.
pub const LIST: &[Entry] = &[
    entry("dissemination", &["barrier"], "barrier in ⌈log2 P⌉ rounds", &["bytes"]),
    entry("nway-dissemination", &[], "barrier in ⌈log(n+1) P⌉ rounds of n messages", &["bytes", "nway"]),
    entry(
        "linear-scatter",
        &[],
        "the root sends a block to each rank, one after the other",
        &["bytes", "root"],
    ),
    entry(
        "linear-gather",
        &[],
        "the root receives a block from each rank, one after the other",
        &["bytes", "root"],
    ),
    entry("binomial-bcast", &["bcast"], "broadcast along a binomial tree", &["bytes", "root"]),
    entry(
        "binomial-reduce",
        &["reduce"],
        "reduction along a binomial tree",
        &["bytes", "root", "reduce_per_byte"],
    ),
    entry(
        "binomial-scatter",
        &["scatter"],
        "scatter of a block for each rank along a binomial tree",
        &["bytes", "root"],
    ),
    entry(
        "binomial-gather",
        &["gather"],
        "gather of a block of each rank along a binomial tree",
        &["bytes", "root"],
    ),
    entry("pipelined-ring", &[], "broadcast round a ring, in segments", &["bytes", "root", "segment_bytes"]),
    entry(
        "allreduce-recursive-doubling",
        &["allreduce"],
        "allreduce of short vectors: ⌊log2 P⌋ exchanges of all bytes",
        &["bytes", "reduce_per_byte"],
    ),
    entry(
        "allreduce-rabenseifner",
        &[],
        "allreduce of long vectors: recursive halving, then doubling",
        &["bytes", "reduce_per_byte"],
    ),
    entry(
        "allreduce-ring",
        &[],
        "allreduce of long vectors: 2(P-1) chunks round a ring",
        &["bytes", "reduce_per_byte"],
    ),
    entry(
        "allreduce-hierarchical",
        &[],
        "allreduce within nodes, among their first ranks (as inner says), and back",
        &["bytes", "node_ranks", "inner", "reduce_per_byte"],
    ),
    entry(
        "reduce-scatter",
        &[],
        "reduction of a vector that leaves each rank a chunk, round a ring",
        &["bytes", "reduce_per_byte"],
    ),
    entry("allgather-ring", &["allgather"], "allgather of a block of each rank, round a ring", &["bytes"]),
    entry("allgather-bruck", &[], "allgather of a block of each rank in ⌈log2 P⌉ rounds", &["bytes"]),
    entry(
        "alltoall-pairwise",
        &["alltoall"],
        "alltoall of a block for each rank, in P-1 exchanges",
        &["bytes"],
    ),
    entry("alltoall-bruck", &[], "alltoall of a block for each rank, in ⌈log2 P⌉ rounds", &["bytes"]),
    entry("scan", &[], "prefix reduction in ⌈log2 P⌉ rounds", &["bytes", "reduce_per_byte"]),
    entry(
        "halo",
        &["halo1d", "halo2d", "halo3d", "halo4d"],
        "exchange with all neighbours in a grid of 1 to 4 dimensions, usually 3",
        &["bytes", "dims", "periodic"],
    ),
    entry(
        "sweep",
        &[],
        "wavefronts over a 2-D grid from its corners: 8 octants of blocks",
        &["bytes", "dims", "work_ns", "blocks"],
    ),
    entry(
        "bsp",
        &[],
        "work, then the inner pattern (usually a barrier), which uses more",
        &["work_ns", "inner"],
    ),
    entry(
        "training-step",
        &[],
        "forward, backward with allreduce of buckets at the same time, optimizer",
        &["bytes", "work_ns", "optimizer_ns", "buckets", "reduce_per_byte"],
    ),
];

/// All names, for an error message.
pub(super) fn names() -> String {
    LIST.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
