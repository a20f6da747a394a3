//! Rounds: patterns in which all ranks do the same, over arrays and without a queue of events.
//!
//! Under progress in the call ([`Rules::Call`]) what a rank does in a round depends only on its own state and on when the message
//! of that round left its partner. So a round is a pass over arrays: handle the message, work, send the next one, each a max-plus
//! step through the rank's progress clock. Results equal those of the engine for any program, [`loggops::run`](crate::loggops::run),
//! which plays what has no rounds.

mod arrays;
mod cost;
mod kernel;
mod passes;
mod plan;
mod walk;

use std::ops::ControlFlow;

use crate::loggops::{self, Noise, Outcome, Program, Rules, Run, RunError};
use crate::pattern::{Pattern, Steps};
use arrays::Arrays;
use kernel::Isa;
use passes::{Player, share};
use plan::{Pass, Plan};
use walk::Walks;

/// Times stay below this, in nanoseconds, so that no sum in a pass overflows.
const MAX_TIME: u128 = 1 << 61;
/// Events between two calls of the progress callback.
const REPORT: u64 = 1 << 16;

/// Plays a pattern to its end: in rounds if its ranks all do the same and the rules allow it, or else event by event. The result is the
/// same.
///
/// # Errors
/// As for [`loggops::run`](crate::loggops::run).
pub fn run<P: Pattern>(program: &Steps<P>, run: &Run<'_>) -> Result<Outcome, RunError> {
    match in_rounds(program, run, Isa::best())? {
        Some(outcome) => Ok(outcome),
        None => loggops::run(program, run),
    }
}

/// Whether a pattern is played in rounds.
///
/// # Errors
/// As for [`run`].
pub fn has_rounds<P: Pattern>(program: &Steps<P>, run: &Run<'_>) -> Result<bool, RunError> {
    Ok(planned(program, run)?.is_some())
}

/// The plan of a pattern, if it has one that is exact.
fn planned<P: Pattern>(program: &Steps<P>, run: &Run<'_>) -> Result<Option<Plan>, RunError> {
    if run.rules != Rules::Call || matches!(run.noise, Noise::Window(_)) {
        return Ok(None);
    }
    let costs = loggops::costs(program, run)?;
    let fits = |plan: &Plan| longest(plan, program.iterations(), run.noise) < MAX_TIME;
    Ok(Plan::new(program.pattern(), &costs).filter(fits))
}

/// Plays a pattern in rounds; `None` if it has none.
fn in_rounds<P: Pattern>(program: &Steps<P>, run: &Run<'_>, isa: Isa) -> Result<Option<Outcome>, RunError> {
    let Some(plan) = planned(program, run)? else { return Ok(None) };
    let ranks = program.ranks() as usize;
    let clocks = match run.noise {
        Noise::Clocks(clocks) => Some(clocks),
        Noise::None | Noise::Window(_) => None,
    };
    let walks = clocks.map(Walks::new);
    let mut arrays = Arrays::new(ranks, walks.as_ref().zip(clocks), plan.has_gaps);
    let events = program.totals().map_or(0, |(operations, sends)| operations.saturating_add(sends));
    let passes = (plan.passes.len().max(1) as u64) * u64::from(program.iterations());
    let threads = run.threads.max(1).min(ranks.div_ceil(share(ranks, run.threads.max(1))));
    // Without threads of its own the run takes longer, and ends the same.
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
    let pool = if threads > 1 { pool() } else { None };
    let threads = if pool.is_some() { threads } else { 1 };
    let player =
        Player { plan: &plan, walks: walks.as_ref(), isa, pool: pool.as_ref(), share: share(ranks, threads) };
    let mut reported = 0;
    let played = player.play(&mut arrays, program.iterations(), |done| {
        let events = (u128::from(events) * u128::from(done.min(passes)) / u128::from(passes)) as u64;
        if events - reported < REPORT {
            return ControlFlow::Continue(());
        }
        reported = events;
        (run.progress)(events)
    });
    if played.is_break() {
        return Err(RunError::Stopped);
    }
    let (finish, noise) = arrays.into_results();
    Ok(Some(Outcome { events, finish, noise, stuck: None }))
}

/// An upper bound of the time of a run, in nanoseconds.
fn longest(plan: &Plan, iterations: u32, noise: &Noise) -> u128 {
    let passes = [&plan.first, &plan.last].into_iter().chain(&plan.passes);
    let work = |pass: &Pass| {
        let costs = pass.handling.map(|handling| handling.cost).into_iter().chain(pass.send);
        let message = |cost: cost::MessageCost| {
            let parts = [cost.latency, cost.overhead, cost.gap, cost.wire];
            parts.map(|part| part as u128).iter().sum::<u128>()
        };
        pass.work as u128 + costs.map(message).sum::<u128>()
    };
    let (factor, rest) = match noise {
        Noise::Clocks(clocks) => Walks::new(clocks).stretch(),
        Noise::None | Noise::Window(_) => (1, 0),
    };
    let pass = |pass: &Pass| work(pass).saturating_mul(factor.into()).saturating_add(3 * u128::from(rest));
    passes.map(pass).fold(0, u128::saturating_add).saturating_mul(iterations.max(1).into())
}

#[cfg(test)]
mod tests;
