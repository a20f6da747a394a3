//! Noise on the ranks of a message simulation.

use std::sync::Arc;

use crate::bsp::Node;
use crate::clock::ProgressClock;
use crate::draws::Draws;
use crate::sorted::Sorted;

/// The noise of all ranks.
#[derive(Clone, Debug)]
pub enum Noise {
    /// No noise.
    None,
    /// One trace for all ranks, under LogGOPSim's rule.
    Window(WindowNoise),
    /// A progress clock for each rank.
    Clocks(RankClocks),
}

impl Noise {
    /// The progress clocks of the ranks, if they have any.
    pub(super) fn clocks(&self) -> Option<&RankClocks> {
        match self {
            Self::Clocks(clocks) => Some(clocks),
            Self::None | Self::Window(_) => None,
        }
    }
}

/// One trace for all ranks under LogGOPSim's rule: an operation of length l that starts at t is delayed by the rest of
/// the detour that it starts in, and by every detour that starts within l. Time lost does not lengthen the window.
///
/// The place in the trace is `(t + offset) mod (B − l)`, where B is the start of the last detour, which therefore never
/// strikes. Kept to compare with LogGOPSim; predictions use [`RankClocks`].
#[derive(Clone, Debug)]
pub struct WindowNoise {
    starts: Sorted,
    ends: Vec<u64>,
    /// Sum of the durations of the detours before the n-th.
    before: Vec<u64>,
    offsets: Vec<u64>,
}

impl WindowNoise {
    /// A trace of (start, duration) in nanoseconds, ordered by start, and the place in it at which each rank begins.
    ///
    /// # Errors
    /// For no detours, for starts out of order, and for a trace longer than 146 years.
    pub fn new(detours: &[(u64, u64)], offsets: Vec<u64>) -> Result<Self, NoiseError> {
        let last = detours.last().ok_or(NoiseError::Empty)?.0;
        if let Some(at) = detours.windows(2).position(|pair| pair[0].0 > pair[1].0) {
            return Err(NoiseError::Unordered(at + 1));
        }
        let total = detours.iter().try_fold(0u64, |sum, detour| sum.checked_add(detour.1));
        if total.is_none_or(|total| total.max(last) > MAX_TRACE) || detours.len() > u32::MAX as usize {
            return Err(NoiseError::Long);
        }
        let mut before = vec![0];
        before.extend(detours.iter().scan(0, |sum, detour| {
            *sum += detour.1;
            Some(*sum)
        }));
        let ends = detours.iter().map(|detour| detour.0 + detour.1).collect();
        let starts = Sorted::new(detours.iter().map(|detour| detour.0).collect());
        Ok(Self { starts, ends, before, offsets })
    }

    /// The place in the trace at which each rank begins, drawn uniformly: the same for all if `together`.
    pub fn draw_offsets(detours: &[(u64, u64)], ranks: u32, together: bool, seed: u64) -> Vec<u64> {
        let length = detours.last().map_or(0, |detour| detour.0);
        let draws = Draws::new(seed, &[OFFSETS]);
        (0..u64::from(ranks)).map(|rank| draws.below(if together { 0 } else { rank }, length)).collect()
    }

    /// B: operations must be shorter than this, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.starts.keys().last().copied().unwrap_or(0)
    }

    /// The delay of an operation of `length`, which is less than [`Self::length`].
    pub(super) fn delay(&self, rank: u32, t: u64, length: u64) -> u64 {
        let span = self.length() - length;
        let y = t.wrapping_add(self.offsets[rank as usize]);
        let x = if y < span { y } else { y % span };
        let begun = self.starts.below(x + 1);
        // LogGOPSim searches the detours after the one that has begun, and treats the first one as begun in any case.
        let (begun, rest) = match begun {
            _ if x <= self.starts.keys()[0] => (1, 0),
            _ => (begun, self.ends[begun - 1].saturating_sub(x)),
        };
        let reached = self.starts.below(x + length).max(begun);
        rest + self.before[reached] - self.before[begun]
    }

    /// Number of ranks that have an offset.
    pub(super) fn ranks(&self) -> usize {
        self.offsets.len()
    }
}

/// How the nodes' noise lines up when a job begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Each node at its own place, drawn uniformly from its trace.
    Independent,
    /// All nodes at one place, drawn once; each later by a uniform draw from `0..=skew` nanoseconds.
    Together {
        /// Maximum difference between two nodes, in nanoseconds.
        skew: u64,
    },
}

/// The physical rule: each rank's work goes through its CPU's progress clock, from the rank's own place in it.
#[derive(Clone, Debug)]
pub struct RankClocks {
    clocks: Vec<Arc<ProgressClock>>,
    places: Vec<Place>,
}

/// Where in a clock's trace a rank begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of its clock.
    pub clock: u32,
    /// Where in that clock's trace the rank's time 0 is, in nanoseconds.
    pub offset: u64,
}

impl RankClocks {
    /// Ranks at the given places.
    ///
    /// # Errors
    /// For a place on a clock that does not exist.
    pub fn new(clocks: Vec<Arc<ProgressClock>>, mut places: Vec<Place>) -> Result<Self, NoiseError> {
        for place in &mut places {
            let clock = clocks.get(place.clock as usize).ok_or(NoiseError::NoClock(place.clock))?;
            // So that no sum with a time of the run overflows.
            if place.offset >= clock.period() {
                place.offset %= clock.period();
            }
        }
        Ok(Self { clocks, places })
    }

    /// Ranks that fill node after node, one per CPU; the nodes take the given nodes' noise round-robin.
    ///
    /// # Errors
    /// For no nodes.
    pub fn on_nodes(nodes: &[Node], ranks: u32, start: Start, seed: u64) -> Result<Self, NoiseError> {
        if nodes.is_empty() {
            return Err(NoiseError::Empty);
        }
        let clocks = nodes.iter().flat_map(Node::clocks).cloned().map(Arc::new).collect();
        let first_clock: Vec<u32> = nodes
            .iter()
            .scan(0, |first, node| Some(std::mem::replace(first, *first + node.clocks().len() as u32)))
            .collect();
        let (offsets, skews) = (Draws::new(seed, &[OFFSETS]), Draws::new(seed, &[SKEWS]));
        let mut places = Vec::with_capacity(ranks as usize);
        // In turn, because a division takes as long as all else here.
        for (number, kind) in (0u64..).zip((0..nodes.len()).cycle()) {
            let left = ranks as usize - places.len();
            if left == 0 {
                break;
            }
            let period = nodes[kind].clocks()[0].period();
            let offset = match start {
                Start::Independent => offsets.below(number, period),
                Start::Together { skew } => offsets
                    .below(0, period)
                    .wrapping_add(period)
                    .wrapping_sub(skews.below(number, skew.saturating_add(1)) % period),
            };
            let first = first_clock[kind];
            let cpus = nodes[kind].clocks().len().min(left) as u32;
            places.extend((0..cpus).map(|cpu| Place { clock: first + cpu, offset }));
        }
        Self::new(clocks, places)
    }

    /// The clocks, by index.
    pub fn clocks(&self) -> &[Arc<ProgressClock>] {
        &self.clocks
    }

    /// The place at which each rank begins.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The delay of `work` that starts at `t`, and the time up to which no detour would strike.
    pub(super) fn delay(&self, rank: u32, t: u64, work: u64) -> (u64, u64) {
        let place = self.places[rank as usize];
        let clock = &self.clocks[place.clock as usize];
        let at = t.saturating_add(place.offset);
        let quiet = clock.quiet(at);
        let delay = if work <= quiet { 0 } else { clock.delay(at, work) };
        (delay, t.saturating_add(quiet))
    }
}

/// Why noise cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// There is no detour.
    #[error("there is no detour to simulate noise from: record for longer, or with a lower --threshold")]
    Empty,
    /// The trace is not sorted by start.
    #[error("detour {} of the noise trace starts before the one ahead of it: sort the trace by start", .0 + 1)]
    Unordered(usize),
    /// Times would overflow.
    #[error("the noise trace is longer than 146 years or holds more than 4,294,967,295 detours: cut it")]
    Long,
    /// A place names a clock that does not exist.
    #[error("there is no clock {0} among those given")]
    NoClock(u32),
    /// Fewer offsets than ranks.
    #[error("there are {offsets} start offsets for {ranks} ranks: give one for each")]
    Offsets {
        /// Number of offsets.
        offsets: usize,
        /// Number of ranks.
        ranks: u32,
    },
    /// LogGOPSim's rule does not define the delay of an operation as long as its trace.
    #[error(
        "an operation of {longest} ns is as long as the noise trace ({trace} ns), for which LogGOPSim's rule has no answer: \
         give a longer trace, or leave out --compat"
    )]
    Short {
        /// The longest operation, in nanoseconds.
        longest: u64,
        /// The trace, in nanoseconds.
        trace: u64,
    },
}

/// Maximum length of a trace, in nanoseconds: sums of two such times do not overflow.
const MAX_TRACE: u64 = 1 << 62;
/// Names of random streams.
const OFFSETS: u64 = 0x6f66;
const SKEWS: u64 = 0x736b;

#[cfg(test)]
mod tests;
