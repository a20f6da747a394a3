//! Keeps what is drawn while the archive is read, up to a maximum number of slices.

use std::cmp::Reverse;
use std::ops::Range;

use quell_analysis::track::{Ended, RegionExit, Watch};
use quell_recording::mpi::Definitions;

use crate::progress::Step;

/// Maximum number of figures by source per slice, on average.
const MOST_SHARES: usize = 4;

/// Maximum number of earlier slices to search for the call at a given time: regions without calls may lie between.
const MOST_LOOKED_AT: usize = 64;

/// A call, or a region around calls. Times are in ns on the archive's clock.
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
    /// Range of indices in [`Collector::shares`].
    pub shares: Range<u32>,
}

/// The effect of one source alone on a call, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub source: u32,
    pub amplified: i64,
    pub absorbed: i64,
}

/// The slices of some locations.
pub struct Collector {
    /// Whether each location is drawn.
    drawn: Vec<bool>,
    most: usize,
    pub slices: Vec<Slice>,
    pub shares: Vec<Share>,
    /// Number of slices for which there was no room.
    pub dropped: u64,
    /// Number of calls for whose figures by source there was no room.
    pub bare: u64,
}

impl Collector {
    /// For all threads of these ranks (in ascending order), at most `most` slices.
    pub fn new(definitions: &Definitions, ranks: &[u32], most: usize) -> Self {
        let drawn = definitions.locations.iter().map(|place| ranks.binary_search(&place.rank).is_ok());
        let (slices, shares) = (Vec::new(), Vec::new());
        Self { drawn: drawn.collect(), most, slices, shares, dropped: 0, bare: 0 }
    }

    /// Sorts by location and time; an enclosing slice comes first.
    fn sort(&mut self) {
        self.slices
            .sort_by_key(|slice| (slice.location, slice.entered, Reverse(slice.left), slice.call.is_some()));
    }

    /// The range of slices of a location; requires sorted slices.
    pub fn at(&self, location: u32) -> Range<usize> {
        let from = self.slices.partition_point(|slice| slice.location < location);
        from..self.slices.partition_point(|slice| slice.location <= location)
    }

    /// The index of the call of a location at a time; requires sorted slices.
    pub fn call_at(&self, location: u32, time: i64) -> Option<usize> {
        let Range { start, end } = self.at(location);
        let later = start + self.slices[start..end].partition_point(|slice| slice.entered <= time);
        let calls =
            (start..later).rev().take(MOST_LOOKED_AT).filter(|place| self.slices[*place].call.is_some());
        // Calls do not overlap: only the last one that has started can be the call.
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

/// Observes the analysis and keeps slices.
pub struct Keeper {
    pub kept: Collector,
    pub step: Step,
}

impl Keeper {
    /// The kept slices, sorted. This also ends the progress bar.
    pub fn finish(self) -> Collector {
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

    fn stayed(&mut self, region: &RegionExit) {
        if self.kept.has_room(region.location) {
            let RegionExit { location, region, entered_ns: entered, left_ns: left } = *region;
            self.kept.slices.push(Slice { location, region, entered, left, call: None });
        }
    }

    fn progress(&mut self, events: u64) {
        self.step.reach(events);
    }
}
