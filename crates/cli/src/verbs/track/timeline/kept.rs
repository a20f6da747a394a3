//! What is drawn, kept while the archive is gone through: so many slices and no more.

use std::cmp::Reverse;
use std::ops::Range;

use quell_analysis::track::{Ended, Stayed, Watch};
use quell_recording::mpi::Definitions;

use crate::progress::Step;

/// So many figures by source are kept for each slice that may be, on average.
const MOST_SHARES: usize = 4;

/// So many slices before a time are looked at for the call that was then: regions without calls may stand between.
const MOST_LOOKED_AT: usize = 64;

/// A call, or a region around calls. Times in ns on the archive's clock.
#[derive(Clone, Debug)]
pub struct Slice {
    pub location: u32,
    pub region: u32,
    pub entered: i64,
    pub left: i64,
    /// `None` for a region.
    pub call: Option<Call>,
}

/// What noise did to a call, in ns.
#[derive(Clone, Debug)]
pub struct Call {
    pub before: i64,
    pub after: i64,
    pub amplified: i64,
    pub absorbed: i64,
    pub cause: Option<(u32, i64)>,
    /// Places in [`Kept::shares`].
    pub shares: Range<u32>,
}

/// What a source alone would have done to a call, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub source: u32,
    pub amplified: i64,
    pub absorbed: i64,
}

/// The slices of some locations.
pub struct Kept {
    /// By location, whether it is drawn.
    drawn: Vec<bool>,
    most: usize,
    pub slices: Vec<Slice>,
    pub shares: Vec<Share>,
    /// Slices for which there was no room.
    pub dropped: u64,
    /// Calls whose figures by source had none.
    pub bare: u64,
}

impl Kept {
    /// Of all threads of these ranks, in order; at most so many slices.
    pub fn of(definitions: &Definitions, ranks: &[u32], most: usize) -> Self {
        let drawn = definitions.locations.iter().map(|place| ranks.binary_search(&place.rank).is_ok());
        let (slices, shares) = (Vec::new(), Vec::new());
        Self { drawn: drawn.collect(), most, slices, shares, dropped: 0, bare: 0 }
    }

    /// By location, and by time within: what is around comes first.
    fn sort(&mut self) {
        self.slices
            .sort_by_key(|slice| (slice.location, slice.entered, Reverse(slice.left), slice.call.is_some()));
    }

    /// The slices of a location, once they are sorted.
    pub fn at(&self, location: u32) -> Range<usize> {
        let from = self.slices.partition_point(|slice| slice.location < location);
        from..self.slices.partition_point(|slice| slice.location <= location)
    }

    /// The call in which a location was at a time, once all are sorted.
    pub fn call_at(&self, location: u32, time: i64) -> Option<usize> {
        let Range { start, end } = self.at(location);
        let later = start + self.slices[start..end].partition_point(|slice| slice.entered <= time);
        let calls =
            (start..later).rev().take(MOST_LOOKED_AT).filter(|place| self.slices[*place].call.is_some());
        // Calls do not overlap: only the last that had begun can be the one.
        calls.take(2).find(|place| self.slices[*place].left >= time)
    }

    fn has_room(&mut self, location: u32) -> bool {
        if !self.drawn.get(location as usize).is_some_and(|drawn| *drawn) {
            return false;
        }
        let room = self.slices.len() < self.most;
        self.dropped += u64::from(!room);
        room
    }

    fn shares_of(&mut self, call: &Ended<'_>) -> Range<u32> {
        let from = self.shares.len();
        let changes = call.amplified_ns.iter().zip(call.absorbed_ns).skip(1);
        let shares = (0..).zip(changes).map(|(source, (amplified, absorbed))| Share {
            source,
            amplified: *amplified,
            absorbed: *absorbed,
        });
        let some = shares.filter(|share| share.amplified != 0 || share.absorbed != 0);
        if from < self.most.saturating_mul(MOST_SHARES) {
            self.shares.extend(some);
        } else if some.count() > 0 {
            self.bare += 1;
        }
        from as u32..self.shares.len() as u32
    }
}

/// Looks on and keeps.
pub struct Keeper {
    pub kept: Kept,
    pub step: Step,
}

impl Keeper {
    /// What was kept, in order. The progress bar is gone with it.
    pub fn finish(self) -> Kept {
        let mut kept = self.kept;
        kept.sort();
        kept
    }
}

impl Watch for Keeper {
    fn wanted(&self) -> bool {
        true
    }

    fn ended(&mut self, call: &Ended<'_>) {
        if !self.kept.has_room(call.location) {
            return;
        }
        let shares = self.kept.shares_of(call);
        let first = |lanes: &[i64]| lanes.first().copied().unwrap_or(0);
        let noise = Call {
            before: first(call.before_ns),
            after: first(call.after_ns),
            amplified: first(call.amplified_ns),
            absorbed: first(call.absorbed_ns),
            cause: call.cause,
            shares,
        };
        self.kept.slices.push(Slice {
            location: call.location,
            region: call.region,
            entered: call.entered_ns,
            left: call.left_ns,
            call: Some(noise),
        });
    }

    fn stayed(&mut self, region: &Stayed) {
        if self.kept.has_room(region.location) {
            let Stayed { location, region, entered_ns: entered, left_ns: left } = *region;
            self.kept.slices.push(Slice { location, region, entered, left, call: None });
        }
    }

    fn progress(&mut self, events: u64) {
        self.step.reach(events);
    }
}
