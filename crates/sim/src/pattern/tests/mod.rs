//! Patterns against what they are for: every one ends, moves what it must, and is the same as a list of operations.

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

/// Every name and alias, and what else makes a difference, of so many ranks.
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
    let of_name = |name| [(name, base.clone()), (name, reducing.clone()), (name, other.clone())];
    names.flat_map(of_name).collect()
}
