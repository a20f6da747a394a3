//! What noise did to an MPI run, rank by rank and source by source (Nataraj et al., "The Ghost in the Machine", SC 2007, §3).
//!
//! Each event of a run carries how much noise had struck its thread. From that [`track`] builds the time line that the run would have had
//! without noise, or without one source of it: work is shorter by the noise that struck it, messages and collectives begin when those who
//! take part come to them, and so noise goes from rank to rank (it is amplified), or ends where somebody had to wait anyway (it is absorbed).
//! `docs/concepts/tracking.md` has the rules.

mod collective_events;
mod collectives;
mod document;
mod engine;
mod event_reader;
mod findings;
mod goal;
mod ledger;
mod messages;
mod paths;
mod place;
mod point_to_point;
mod rules;
mod stuck;
#[cfg(test)]
mod tests;
mod waiting;

use quell_recording::mpi::Run;
use quell_sim::loggops::Net;

pub use document::{Tracked, TrackedPath, TrackedRank, TrackedSource};
pub use findings::{Count, Findings};
pub use goal::{Extrapolation, GoalError, Irregular, LeftOut, Replayable, goal};

/// Times are below 36 years, so that sums of a few fit.
const LONGEST: i64 = i64::MAX / 8;

/// What is known of the network: the least that a message takes. Without it a receive may end as soon as its message is sent, as in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// A call that receives takes so long at least, in ns.
    pub overhead_ns: i64,
    net: Net,
}

impl Network {
    /// From the parameters of LogGOPS.
    pub fn of(net: Net) -> Self {
        Self { overhead_ns: i64::try_from(net.overhead).unwrap_or(LONGEST).min(LONGEST), net }
    }

    /// From the beginning of a send of so many bytes to the end of a receive that waits for it, in ns.
    fn transfer_ns(self, bytes: u64) -> i64 {
        let net = self.net;
        let further = bytes.saturating_sub(1);
        let overhead = net.overhead.saturating_add(net.overhead_per_byte.of(further));
        let wire = net.latency.saturating_add(net.gap_per_byte.of(further));
        let all = overhead.saturating_mul(2).saturating_add(wire);
        i64::try_from(all).unwrap_or(LONGEST).min(LONGEST)
    }
}

/// A call that ended, as it was and as it would have been. Times in ns on the archive's clock.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Where: a place in the definitions' locations.
    pub location: u32,
    /// What: a place in their regions, or [`quell_recording::mpi::UNKNOWN`].
    pub region: u32,
    /// When it began.
    pub entered_ns: i64,
    /// When it ended.
    pub left_ns: i64,
    /// What noise had accumulated when it began: of all sources, then of each.
    pub before_ns: &'a [i64],
    /// And when it ended.
    pub after_ns: &'a [i64],
    /// What others' noise added to it meanwhile.
    pub amplified_ns: &'a [i64],
    /// And what of its own made nothing later.
    pub absorbed_ns: &'a [i64],
    /// For whom it waited: the location, and when that did what was waited for.
    pub cause: Option<(u32, i64)>,
}

/// A part of the program that is no call of the MPI, and that was left. Times in ns on the archive's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stayed {
    /// Where: a place in the definitions' locations.
    pub location: u32,
    /// What: a place in their regions.
    pub region: u32,
    /// When it was entered.
    pub entered_ns: i64,
    /// When it was left.
    pub left_ns: i64,
}

/// Looks on while a run is gone through.
pub trait Watch {
    /// Whether [`Watch::ended`] and [`Watch::stayed`] are to be called at all.
    fn wanted(&self) -> bool {
        false
    }

    /// A call ended. Those of one location come in order.
    fn ended(&mut self, _call: &Ended<'_>) {}

    /// A region around calls was left: inner ones come first.
    fn stayed(&mut self, _region: &Stayed) {}

    /// So many events have been gone through.
    fn progress(&mut self, _events: u64) {}
}

/// Looks on at nothing.
impl Watch for () {}

/// Goes through a run and says what noise did to it.
pub fn track<R: Run + ?Sized, W: Watch + ?Sized>(
    run: &mut R,
    network: Option<Network>,
    watch: &mut W,
) -> Tracked {
    let mut engine = engine::Engine::new(run, watch, network);
    engine.play();
    engine.conclude();
    document::tracked(&engine)
}
