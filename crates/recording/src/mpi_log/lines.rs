//! Converts each rank's times to the clock of rank 0.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::head::{Head, Pair};

/// Maps a thread's own clock to rank 0's: up to two instants at which both are known, and the line through them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pairs: Vec<Pair>,
}

/// Maximum relative drift between clocks: if it is larger, one of them was set, or a head is wrong.
const STEEPEST: f64 = 1e-2;

impl Clock {
    /// The time on rank 0's clock.
    pub(super) fn common(&self, own_ns: u64) -> u64 {
        let offset = match *self.pairs.as_slice() {
            [] => 0,
            [only] => only.offset_ns,
            [first, last, ..] => {
                let between = last.at_ns.saturating_sub(first.at_ns);
                let grown = last.offset_ns.saturating_sub(first.offset_ns) as f64;
                let slope = if between == 0 { 0.0 } else { grown / between as f64 };
                let since = i128::from(own_ns) - i128::from(first.at_ns);
                first.offset_ns.saturating_add((since as f64 * slope.clamp(-STEEPEST, STEEPEST)) as i64)
            }
        };
        own_ns.saturating_add_signed(offset)
    }
}

/// The clock of each log. For each kernel one rank measured for all; hosts without a measurement are recorded in `unaligned`.
pub(super) fn clocks(heads: &[(PathBuf, Head)], unaligned: &mut Vec<String>) -> Vec<Clock> {
    let heads = || heads.iter().map(|(_, head)| head);
    let mut known: BTreeMap<&str, Clock> = BTreeMap::new();
    // A rank's first thread states that its clock is that of rank 0; the other threads get the clock of their kernel.
    for head in heads().filter(|head| head.clock_zero) {
        known.insert(&head.boot, Clock::default());
    }
    for head in heads().filter(|head| !head.pairs.is_empty()) {
        known.entry(&head.boot).or_insert_with(|| Clock { pairs: head.pairs.clone() });
    }
    let mut clock = |head: &Head| {
        let found = known.get(head.boot.as_str()).cloned();
        if found.is_none() && !unaligned.contains(&head.host) {
            unaligned.push(head.host.clone());
        }
        found.unwrap_or_default()
    };
    heads().map(&mut clock).collect()
}
