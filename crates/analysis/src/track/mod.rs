//! The effect of noise on an MPI run, by rank and by source (Nataraj et al., "The Ghost in the Machine", SC 2007, §3).
//!
//! Each event of a run carries its thread's cumulative noise. From that [`track`] builds the timeline that the run would have had
//! without noise, or without one source of it: work is shorter by the noise that struck it, and messages and collectives begin when their
//! ranks reach them. So noise propagates from rank to rank (it is amplified), or ends where a rank had to wait anyway (it is absorbed).
//! `docs/concepts/tracking.md` has the rules.

mod collective_events;
mod collectives;
mod document;
mod eager_limits;
mod engine;
mod event_reader;
mod findings;
mod goal;
mod ledger;
mod messages;
mod own_work;
mod paths;
mod place;
mod point_to_point;
mod rules;
mod run_source;
mod shortest;
mod stuck;
mod team_events;
mod teams;
#[cfg(test)]
mod tests;
mod waiting;

use quell_recording::mpi::Run;
use quell_sim::loggops::NamedNetwork;

pub use document::{Tracked, TrackedPath, TrackedRank, TrackedSource, TrackedThread, UnknownWait};
use eager_limits::Evidence;
pub use eager_limits::{EagerLimit, EagerLimits, GivenLimit, MeasuredLimits};
pub use findings::{Count, Findings};
pub use goal::{Extrapolation, GoalError, Irregular, Replayable, Scaling, SkippedEvents, goal};
pub use own_work::NoiseOnly;
pub use run_source::RunSource;
use shortest::ShortestWaits;

/// Maximum time, in ns: times are below 36 years, so that sums of a few do not overflow.
const LONGEST: i64 = i64::MAX / 8;

/// A call that ended, with its actual and its noise-free times. Times in ns on the archive's clock.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Index of the location in the definitions.
    pub location: u32,
    /// Index of the region in the definitions, or [`quell_recording::mpi::UNKNOWN`].
    pub region: u32,
    /// When it began.
    pub entered_ns: i64,
    /// When it ended.
    pub left_ns: i64,
    /// Accumulated noise at its beginning: of all sources, then of each.
    pub before_ns: &'a [i64],
    /// Accumulated noise at its end.
    pub after_ns: &'a [i64],
    /// Delay that the noise of others added during the call.
    pub amplified_ns: &'a [i64],
    /// Noise of its own that did not delay anything.
    pub absorbed_ns: &'a [i64],
    /// What it waited for: the location, and when that reached the awaited point.
    pub cause: Option<(u32, i64)>,
}

/// A region that was left and is not an MPI call. Times in ns on the archive's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionExit {
    /// Index of the location in the definitions.
    pub location: u32,
    /// Index of the region in the definitions.
    pub region: u32,
    /// When it was entered.
    pub entered_ns: i64,
    /// When it was left.
    pub left_ns: i64,
}

/// Observes a run while it is processed.
pub trait Watch {
    /// Whether [`Watch::ended`] and [`Watch::stayed`] are to be called at all.
    fn wanted(&self) -> bool {
        false
    }

    /// Called when a call ends. The calls of one location come in order.
    fn ended(&mut self, _call: &Ended<'_>) {}

    /// Called when a region around calls is left; inner regions come first.
    fn stayed(&mut self, _region: &RegionExit) {}

    /// Called with the number of events that were processed.
    fn progress(&mut self, _events: u64) {}
}

/// Observes nothing.
impl Watch for () {}

/// What is known of a run from outside of its archive.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Its network: no message takes less time than its parameters give. Without one, a receive may end as soon as its message is sent, as
    /// in the paper.
    pub network: Option<NamedNetwork>,
    /// Its eager limit. Without one, the run's own sends show it.
    pub eager_limit: Option<GivenLimit>,
    /// Eager limits that hold where the run's own sends show none.
    pub measured_limits: MeasuredLimits,
}

/// What one reading of a run learns for the next.
#[derive(Clone, Debug)]
pub struct Learned {
    /// Its shortest waits.
    shortest: ShortestWaits,
    /// Its eager limits.
    limits: EagerLimits,
}

/// What a reading of a run gives.
#[derive(Debug)]
pub struct Reading {
    /// The effect of noise.
    pub tracked: Tracked,
    /// For another reading.
    pub learned: Learned,
}

/// Processes a run and returns the effect of noise on it. What is noise in one wait depends on the shortest of its kind, and which sends wait on
/// the eager limit; both may show later: then the run is opened and read again. `watch` sees only the progress.
///
/// # Errors
/// Those of `open`.
pub fn track<R: Run, E, W: Watch + ?Sized>(
    mut open: impl FnMut() -> Result<R, E>,
    given: &Given,
    watch: &mut W,
) -> Result<Reading, E> {
    let watch = &mut OnlyProgress(watch);
    let network = given.network.as_ref();
    let assumed = EagerLimits::new(given.eager_limit, given.measured_limits);
    let unread = |limits| Learned { shortest: ShortestWaits::default(), limits };
    let evidence = given.eager_limit.is_none().then(Evidence::default);
    let (mut reading, evidence) = read(&mut open()?, network, unread(assumed.clone()), evidence, watch);
    if let Some(evidence) = evidence {
        let limits = evidence.limits(given.measured_limits);
        if evidence.distinguishes(&assumed, &limits) {
            (reading, _) = read(&mut open()?, network, unread(limits), None, watch);
        } else {
            reading.tracked.eager_limits = limits.rows();
            reading.learned.limits = limits;
        }
    }
    if !reading.learned.shortest.are_final {
        (reading, _) = read(&mut open()?, network, reading.learned, None, watch);
    }
    Ok(reading)
}

/// Processes a run once more, with what earlier readings learned.
pub fn track_again<R: Run + ?Sized, W: Watch + ?Sized>(
    run: &mut R,
    given: &Given,
    learned: Learned,
    watch: &mut W,
) -> Tracked {
    read(run, given.network.as_ref(), learned, None, watch).0.tracked
}

fn read<R: Run + ?Sized, W: Watch + ?Sized>(
    run: &mut R,
    network: Option<&NamedNetwork>,
    learned: Learned,
    evidence: Option<Evidence>,
    watch: &mut W,
) -> (Reading, Option<Evidence>) {
    let mut engine = engine::Engine::new(run, watch, network.cloned(), learned, evidence);
    engine.play();
    engine.conclude();
    let tracked = document::tracked(&engine);
    let learned = Learned { shortest: engine.shortest, limits: engine.limits };
    (Reading { tracked, learned }, engine.evidence)
}

/// Hides calls and regions from a watch.
struct OnlyProgress<'w, W: ?Sized>(&'w mut W);

impl<W: Watch + ?Sized> Watch for OnlyProgress<'_, W> {
    fn progress(&mut self, events: u64) {
        self.0.progress(events);
    }
}
