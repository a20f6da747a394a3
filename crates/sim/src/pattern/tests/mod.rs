//! Patterns have the properties that they need: every one finishes, moves what it must, and equals its list of operations.

mod bytes;
mod endings;
mod engine;
mod graph;
mod logp;
mod meaning;
mod play;
mod same;
mod totals;
mod words;

use super::*;

/// Every name and alias on this number of ranks, with parameters that make a difference.
fn every(ranks: u32) -> Vec<(&'static str, Params)> {
    let base = Params {
        ranks,
        bytes: 1000,
        work_ns: 500,
        blocks: 2,
        buckets: 3,
        segment_bytes: 300,
        ..Params::default()
    };
    let reducing =
        Params { reduce_per_byte: crate::loggops::PerByte::from_nanos(2), root: ranks / 3, ..base.clone() };
    let other =
        Params { bytes: 7, nway: 3, root: ranks - 1, node_ranks: 3, periodic: true, ..reducing.clone() };
    let names = LIST.iter().flat_map(|entry| [entry.name].into_iter().chain(entry.aliases.iter().copied()));
    let variants = |name| [(name, base.clone()), (name, reducing.clone()), (name, other.clone())];
    names.flat_map(variants).collect()
}
