//! Converts a traced run to a GOAL schedule with noise removed from its work, to simulate it under other noise and at other scales.
//!
//! `docs/concepts/goal-from-traces.md` has the rules. `sequence.rs` keeps what a rank did, from the facts that `event_reader` derives from its events, as `steps.rs` packs it;
//! `matching.rs` matches the messages and collectives of ranks, and omits those without their other end; `emit.rs` makes operations of them, with
//! `expand.rs` for collectives. `regular.rs` finds what all ranks do alike: `relative.rs` prepares their operations, `lockstep.rs` merges them on a
//! `grid.rs` in which `way.rs` leads to peers, and `repeats.rs` finds rounds. `extrapolate.rs` applies it to more ranks, with sizes by `scaling.rs`.

mod emit;
mod expand;
mod extrapolate;
mod grid;
mod lockstep;
mod matching;
mod regular;
mod relative;
mod repeats;
mod scaling;
mod sequence;
mod steps;
mod way;

use quell_recording::mpi::Run;
use quell_sim::goal::{BuildError, Schedule, ScheduleBuilder, Severity, check};
use quell_sim::loggops::{self, NamedNetwork, Noise, Rules, RunError};
use quell_sim::pattern::PatternError;

use emit::Emitter;
use matching::Matching;
pub use relative::Irregular;
pub use scaling::Scaling;
use sequence::Sequence;
use steps::Operation;

use super::event_reader::EventReader;

/// Maximum number of omissions that are listed.
const MOST_NAMED: usize = 100;

/// Maximum number of operations of a schedule that is made here: some 4 GiB.
const MOST_OPERATIONS: u64 = 200_000_000;

/// Eager limits, in bytes, that a schedule may need to finish: those of common MPIs, and no limit.
const EAGER_LIMITS: [u64; 3] = [4096, 65_536, 1 << 62];

/// The number of ranks that replace the traced ones, and the seed of their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extrapolation {
    /// Number of ranks.
    pub ranks: u32,
    /// The sides of their grid; `None` if it is as even as possible.
    pub dims: Option<Vec<u32>>,
    /// Whether each rank does as much as the traced ones, or all together do.
    pub scaling: Scaling,
    /// Equal seeds give equal schedules.
    pub seed: u64,
}

/// A schedule that finishes, and what it lacks.
#[derive(Debug)]
pub struct Replayable {
    /// The schedule.
    pub schedule: Schedule,
    /// Its duration without noise, in ns.
    pub quiet_ns: u64,
    /// The network on which it takes that long: the requested one, with a larger eager limit if it does not finish otherwise.
    pub network: NamedNetwork,
    /// Whether it does not finish with the network's own eager limit, because its sends must not wait for their receivers.
    pub needs_buffers: bool,
    /// What was omitted.
    pub skipped: SkippedEvents,
    /// What was assumed for the extrapolation.
    pub grid: Option<String>,
}

/// The parts of a run that are not in its schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedEvents {
    /// Sends without a receive.
    pub sends: u64,
    /// Receives whose message was not sent, or never arrived.
    pub receives: u64,
    /// Parts of collectives in which not all took part, or not in the same operation.
    pub collectives: u64,
    /// Threads other than the first one of each rank.
    pub threads: u64,
    /// Descriptions of the first of these, and of damage.
    pub notes: Vec<String>,
}

impl SkippedEvents {
    fn note(&mut self, words: impl FnOnce() -> String) {
        if self.notes.len() < MOST_NAMED {
            self.notes.push(words());
        }
    }
}

/// Why there is no schedule.
#[derive(Debug, thiserror::Error)]
pub enum GoalError {
    /// The archive has no work and no messages.
    #[error("the archive has no work and no messages: there is nothing to replay")]
    Empty,
    /// The schedule would have too many operations.
    #[error(
        "the schedule would have more than {MOST_OPERATIONS} operations; give fewer ranks, or trace a shorter run"
    )]
    TooLarge,
    /// The ranks do not do the same.
    #[error(transparent)]
    Irregular(Box<Irregular>),
    /// This number of ranks does not make a grid like that of the run.
    #[error("{ranks} ranks make no grid like the run's {grid}; give another number of ranks, or --dims")]
    NoGrid {
        /// Number of ranks.
        ranks: u32,
        /// The grid of the run.
        grid: String,
    },
    /// A collective cannot be expanded.
    #[error("a collective has no schedule: {0}")]
    Collective(#[from] PatternError),
    /// The schedule is invalid.
    #[error("the run makes no schedule: {0}")]
    Build(#[from] BuildError),
    /// The schedule cannot be simulated.
    #[error("the run makes no schedule that can be simulated: {0}")]
    Run(#[from] RunError),
    /// The schedule does not finish.
    #[error("the schedule would not end: {0}")]
    Stuck(String),
}

/// The run as a schedule, of its own ranks or of another number, for a network. `progress` is called now and then with the number of processed
/// events.
///
/// # Errors
/// If the run is empty or too large, if its schedule would not finish, or if it is to be extrapolated and is not regular.
pub fn goal<R: Run + ?Sized>(
    run: &mut R,
    extrapolation: Option<Extrapolation>,
    network: &NamedNetwork,
    progress: &mut dyn FnMut(u64),
) -> Result<Replayable, GoalError> {
    let mut skipped = SkippedEvents::default();
    let mut events = EventReader::new(run);
    let mut sequences = sequence::all(&mut events, &mut skipped, progress);
    let definitions = &*events.definitions;
    let matching = Matching::new(definitions, &mut sequences, &mut skipped);
    let (schedule, grid) = match extrapolation {
        None => (as_it_was(sequences, &matching)?, None),
        Some(to) => {
            let regular = regular::find(definitions, &sequences, &matching)
                .map_err(|why| GoalError::Irregular(Box::new(why)))?;
            let (schedule, grid) = extrapolate::schedule(&regular, &to)?;
            (schedule, Some(grid))
        }
    };
    let (quiet_ns, proved) = prove(&schedule, network)?;
    let needs_buffers = proved.network.eager_limit != network.network.eager_limit;
    Ok(Replayable { schedule, quiet_ns, network: proved, needs_buffers, skipped, grid })
}

/// The schedule of the traced ranks. Each sequence is freed once its operations are in the schedule.
fn as_it_was(sequences: Vec<Sequence>, matching: &Matching) -> Result<Schedule, GoalError> {
    let mut builder = ScheduleBuilder::new(sequences.len() as u32);
    let mut expansions = expand::Expansions::default();
    let mut operations = 0;
    for (rank, sequence) in sequences.into_iter().enumerate() {
        let mut emitter = Emitter::begin(&mut builder);
        for (number, step) in sequence.steps.iter().enumerate() {
            let number = number as u32;
            emitter.work(step.gap_ns);
            match &step.operation {
                Operation::Send(message) => {
                    emitter.send(number, message.peer, matching.tag(message), message.bytes);
                }
                Operation::Receive(message) => {
                    emitter.receive(number, message.peer, matching.tag(message), message.bytes);
                }
                Operation::Wait(on) => emitter.wait(*on),
                Operation::Collective(call) => {
                    if let Some(part) = matching.part(rank as u32, call) {
                        let pattern = expansions.get(&part.what, part.members.len() as u32)?;
                        emitter.collective(number, pattern, part.place, Some(part.members), part.tag);
                        if call.blocking {
                            emitter.wait_alone(number);
                        }
                    }
                }
                Operation::Nothing => {}
            }
        }
        emitter.work(sequence.rest_ns);
        operations += u64::from(emitter.end());
        if operations > MOST_OPERATIONS {
            return Err(GoalError::TooLarge);
        }
    }
    if operations == 0 { Err(GoalError::Empty) } else { Ok(builder.finish()?) }
}

/// Plays the schedule without noise, to prove that it finishes. Returns when, and on which network: with the least eager limit that it needs.
fn prove(schedule: &Schedule, network: &NamedNetwork) -> Result<(u64, NamedNetwork), GoalError> {
    let findings = check(schedule);
    if let Some(finding) = findings.list().iter().find(|finding| finding.severity == Severity::Error) {
        return Err(GoalError::Stuck(finding.to_string()));
    }
    let mut stuck = None;
    let own = network.network.eager_limit;
    let larger = EAGER_LIMITS.into_iter().filter(|limit| *limit > own);
    for limit in std::iter::once(None).chain(larger.map(Some)) {
        let network = limit.map_or_else(|| network.clone(), |limit| network.with_eager_limit(limit));
        let quiet = loggops::Run {
            net: network.network,
            ranges: &network.ranges,
            levels: &network.levels,
            rules: Rules::Physical,
            noise: &Noise::None,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        let outcome = loggops::run(schedule, &quiet)?;
        match outcome.stuck {
            None => return Ok((outcome.last().1, network)),
            Some(why) => stuck = Some(why),
        }
    }
    Err(GoalError::Stuck(stuck.map_or_else(String::new, |stuck| why(&stuck))))
}

/// Why a schedule does not finish, in words.
fn why(stuck: &loggops::Stuck) -> String {
    if !stuck.cycle.is_empty() {
        let ranks: Vec<String> = stuck.cycle.iter().take(8).map(u32::to_string).collect();
        return format!("ranks {} wait for one another", ranks.join(", "));
    }
    let first = stuck.receives.first().map(|one| {
        format!("rank {}, operation {}, waits for rank {} with tag {}", one.rank, one.op, one.peer, one.tag)
    });
    first.unwrap_or_else(|| format!("{} messages find no receive", stuck.messages_total))
}

#[cfg(test)]
mod tests;
