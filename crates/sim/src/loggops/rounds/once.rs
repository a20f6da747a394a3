//! Plays a program that has one iteration while its order is found, so that no list is kept.

use std::ops::ControlFlow;

use super::cost::{MAX_TIME, longest};
use super::ordered::{Action, Op, Sink};
use super::play::{REPORT, Ranks};
use crate::loggops::play::Cost;

/// Plays each operation as soon as it is found.
pub(super) struct Once<'a, 'r> {
    ranks: Ranks<'a>,
    /// For each shape an upper bound of the time of an operation with the noise that can strike it, in nanoseconds.
    bounds: Vec<u128>,
    /// The sum of the bounds so far.
    time: u128,
    played: usize,
    /// Called with the number of operations since it was last called.
    report: &'r mut dyn FnMut(u64) -> ControlFlow<()>,
    pub(super) is_stopped: bool,
}

impl<'a, 'r> Once<'a, 'r> {
    /// Ranks at time 0. Noise makes work as long as `delay` says: this factor, and as much in addition.
    pub(super) fn new(
        ranks: Ranks<'a>,
        costs: &[Cost],
        (factor, rest): (u128, u128),
        report: &'r mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Self {
        // An operation is two pieces of work at most.
        let bound = |cost| longest(cost).saturating_mul(factor).saturating_add(rest.saturating_mul(2));
        let bounds = costs.iter().map(bound).collect();
        Self { ranks, bounds, time: 0, played: 0, report, is_stopped: false }
    }

    pub(super) fn into_ranks(self) -> Ranks<'a> {
        self.ranks
    }
}

impl Sink for Once<'_, '_> {
    #[inline]
    fn op(&mut self, op: Op) -> Option<()> {
        if op.action != Action::Post {
            self.time = self.time.saturating_add(self.bounds[op.shape as usize]);
            if self.time >= MAX_TIME {
                return None;
            }
        }
        self.ranks.make_room(&op);
        self.ranks.op(self.played, &op, &mut ());
        self.played += 1;
        if self.played.is_multiple_of(REPORT) && (self.report)(REPORT as u64).is_break() {
            self.is_stopped = true;
            return None;
        }
        Some(())
    }

    #[inline]
    fn prepare(&self, rank: u32) {
        self.ranks.prepare(rank);
    }
}
