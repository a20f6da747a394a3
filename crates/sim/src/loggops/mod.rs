//! LogGOPS: messages between ranks, with noise.
//!
//! [`run`] plays a [`Program`] on a [`Network`] under [`Rules`] and [`Noise`]. The rules are in `docs/reference/loggops.md`.

mod event;
mod few;
mod free;
mod global;
mod levels;
mod matching;
mod network;
mod noise;
mod outcome;
mod play;
mod prefetch;
mod program;
mod rank;
mod rounds;
mod stuck;
mod watch;
mod windows;

use std::ops::ControlFlow;

pub use levels::MOST_LEVELS;
pub use network::{Level, NamedNetwork, Network, PerByte, SizeRange};
pub use noise::{Noise, NoiseError, Place, RankClocks, Start, WindowNoise};
pub use outcome::{Outcome, RunError, Stuck, Waiting};
pub(crate) use prefetch::prefetch;
pub use program::{
    ANY, Kind, Peers, Program, ReadyOp, ReadyTrigger, Shape, Shapes, StepProgram, UniformStep,
};
pub use rounds::{Speed, speed};
pub use watch::{Activity, Culprits, Hit, Slice, Timeline, run_for_timeline};

use free::{IdleTimes, InCall, Several, Single};
use global::Global;

/// The rules for ranks and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Those of LogGOPSim, nanosecond for nanosecond.
    Compatible,
    /// Those of a real machine that handles a message when it arrives, as an MPI with asynchronous progress does.
    #[default]
    Physical,
    /// The physical rules with progress in the call: a message is handled once its receive is posted.
    Call,
}

/// How to run a program.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The network.
    pub net: Network,
    /// Parameters for messages of these sizes; `net` holds for all others. LogGOPSim's rules have none.
    pub ranges: &'a [SizeRange],
    /// The networks among near ranks, the nearest first. LogGOPSim's rules have none.
    pub levels: &'a [Level],
    /// The rules.
    pub rules: Rules,
    /// The noise.
    pub noise: &'a Noise,
    /// Number of threads, at least 1; results do not depend on it.
    pub threads: usize,
    /// Called now and then with the number of events that are done. It may stop the run, which then fails with [`RunError::Stopped`].
    pub progress: Progress<'a>,
}

/// Receives the number of events that are done, and returns whether to continue.
pub type Progress<'a> = &'a (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Ignores the progress and continues.
pub const NO_PROGRESS: Progress<'static> = &|_| ControlFlow::Continue(());

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("net", &self.net).field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Plays a program to its end: in rounds where it has them ([`Rules::Call`]), or else event by event. The result is the same.
///
/// # Errors
/// When the noise does not fit the program or the rules, a peer is out of range, or times overflow.
pub fn run<P: Program>(program: &P, run: &Run<'_>) -> Result<Outcome, RunError> {
    match rounds::run(program, run)? {
        Some(outcome) => Ok(outcome),
        None => run_by_events(program, run),
    }
}

/// Plays a program under the physical rules, with either kind of progress, and returns which detours made it as late as it was: in rounds
/// where it has them, or else event by event on one thread. The result is the same.
///
/// # Errors
/// As for [`run`].
pub fn run_for_culprits<P: Program>(program: &P, run: &Run<'_>) -> Result<(Outcome, Culprits), RunError> {
    match rounds::run_for_culprits(program, run)? {
        Some(found) => Ok(found),
        None => watch::culprits_by_events(program, run),
    }
}

/// Plays a program event by event.
fn run_by_events<P: Program>(program: &P, run: &Run<'_>) -> Result<Outcome, RunError> {
    let context = play::Context::new(program, run)?;
    match (run.rules, context.layout.is_single()) {
        (Rules::Compatible | Rules::Physical, true) => run_on::<P, Single>(context, run),
        (Rules::Compatible | Rules::Physical, false) => run_on::<P, Several>(context, run),
        (Rules::Call, true) => run_on::<P, InCall<Single>>(context, run),
        (Rules::Call, false) => run_on::<P, InCall<Several>>(context, run),
    }
}

fn run_on<P: Program, F: IdleTimes>(
    context: play::Context<'_, P>,
    run: &Run<'_>,
) -> Result<Outcome, RunError> {
    let program = context.program;
    let played = match run.rules {
        Rules::Compatible => {
            let layout = context.layout;
            Global::<P, F, _>::new(program, &play::Compatible(context), layout, true).run(run)?
        }
        Rules::Physical | Rules::Call => {
            let (layout, reach) = (context.layout, reach(&context));
            physically(program, &play::Physical(context), layout, reach, run)?
        }
    };
    Ok(outcome::<P, F>(program, played, run))
}

/// Width of a window: nothing that one rank does at t can affect another rank before t plus this.
fn reach<P: Program>(context: &play::Context<'_, P>) -> u64 {
    let sends = context.costs.iter().filter(|cost| cost.kind == Kind::Send);
    // The answer of a rendezvous leaves without overhead.
    let flight = |cost: &play::Cost| cost.latency + if cost.rendezvous { 0 } else { cost.overhead };
    sends.map(flight).min().unwrap_or(context.net.latency + context.net.overhead)
}

fn physically<P: Program, F: IdleTimes, R: play::Play<P, F>>(
    program: &P,
    rules: &R,
    layout: free::Layout,
    reach: u64,
    run: &Run<'_>,
) -> Result<rank::Played<P::Rank, F>, RunError> {
    match reach {
        0 => Global::<P, F, _>::new(program, rules, layout, false).run(run),
        reach => windows::run(program, rules, layout, reach, run),
    }
}

fn outcome<P: Program, F: IdleTimes>(
    program: &P,
    played: rank::Played<P::Rank, F>,
    run: &Run<'_>,
) -> Outcome {
    Outcome {
        events: played.events,
        finish: played.ranks.iter().map(|rank| rank.free.finish()).collect(),
        stuck: stuck::find(program, &played.ranks, run),
        noise: played.noise,
    }
}

/// Plays under the physical rules, with either kind of progress, and passes each event to `watch`.
fn run_watched<P: Program, W: watch::Watch>(
    program: &P,
    run: &Run<'_>,
    watch: &mut W,
) -> Result<Outcome, RunError> {
    let rules = if run.rules == Rules::Call { Rules::Call } else { Rules::Physical };
    let run = Run { rules, threads: 1, ..*run };
    let context = play::Context::new(program, &run)?;
    match (rules == Rules::Call, context.layout.is_single()) {
        (false, true) => watched_on::<P, Single, W>(context, &run, watch),
        (false, false) => watched_on::<P, Several, W>(context, &run, watch),
        (true, true) => watched_on::<P, InCall<Single>, W>(context, &run, watch),
        (true, false) => watched_on::<P, InCall<Several>, W>(context, &run, watch),
    }
}

fn watched_on<P: Program, F: IdleTimes, W: watch::Watch>(
    context: play::Context<'_, P>,
    run: &Run<'_>,
    watch: &mut W,
) -> Result<Outcome, RunError> {
    let (program, layout, reach) = (context.program, context.layout, reach(&context));
    let rules = watch::Watched::new(play::Physical(context), watch);
    let played = physically::<P, F, _>(program, &rules, layout, reach, run)?;
    Ok(outcome(program, played, run))
}

/// Locks a mutex even if it is poisoned: no data that a lock guards here is ever left half written.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
