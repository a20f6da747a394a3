//! The names of patterns, for help and for errors.

/// A pattern that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// What it is, on one line.
    pub help: &'static str,
    /// The parameters that it uses, by their names in [`Params`](super::Params), besides `ranks` and `iterations`.
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
    entry("dissemination", &["barrier"], "dissemination barrier: ⌈log2 P⌉ rounds", &["bytes"]),
    entry(
        "nway-dissemination",
        &[],
        "dissemination barrier with n messages in a round: ⌈log(n+1) P⌉ rounds",
        &["bytes", "nway"],
    ),
    entry("linear-scatter", &[], "the root sends a block to each rank, one by one", &["bytes", "root"]),
    entry("linear-gather", &[], "each rank sends a block to the root", &["bytes", "root"]),
    entry(
        "allreduce-recursive-doubling",
        &["allreduce"],
        "allreduce of short vectors: ⌈log2 P⌉ exchanges of all bytes",
        &["bytes", "reduce_per_byte"],
    ),
    entry(
        "allreduce-ring",
        &[],
        "allreduce of long vectors: 2(P-1) chunks round a ring",
        &["bytes", "reduce_per_byte"],
    ),
    entry("reduce-scatter", &[], "reduce-scatter: P-1 chunks round a ring", &["bytes", "reduce_per_byte"]),
    entry("allgather-ring", &["allgather"], "allgather: P-1 blocks round a ring", &["bytes"]),
    entry(
        "halo",
        &["halo1d", "halo2d", "halo3d", "halo4d"],
        "exchange with all neighbours in a grid of 1 to 4 dimensions (3 unless dims say otherwise)",
        &["bytes", "dims", "periodic"],
    ),
    entry(
        "bsp",
        &[],
        "work on every rank, then another pattern (a barrier unless inner says otherwise)",
        &["work_ns", "inner", "and what inner uses"],
    ),
];

/// All names, for an error.
pub(super) fn names() -> String {
    LIST.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
