//! Rounds: patterns without a queue of events.
//!
//! Under progress in the call (`Rules::Call`) what a rank does in a step depends only on its own state and on when the messages
//! of that step left its partners. So any order of the operations will do in which each message is sent before it is handled.
//! Where all ranks do the same, a round is a pass over arrays: handle the message, work, send the next one, each a max-plus
//! step through the rank's progress clock. Other patterns are played from a list. Results equal those of the engine for any
//! program, which plays what has neither.

mod arrays;
mod cost;
mod culprits;
mod kernel;
mod once;
mod ordered;
mod passes;
mod plan;
mod play;
mod walk;

use std::ops::ControlFlow;

use super::levels::OnLevels;
use super::play::{Context, Cost};
use super::program::StepProgram;
use super::watch::Struck;
use super::{Culprits, Noise, Outcome, Program, Rules, Run, RunError};
use arrays::Arrays;
use cost::MAX_TIME;
use culprits::{InList, InPasses, Section, Sections as _};
use kernel::Isa;
use once::Once;
use ordered::Order;
use passes::{Player, share};
use plan::Plan;
use play::Ranks;
use walk::Walks;

/// Events between two calls of the progress callback.
const REPORT: u64 = 1 << 16;

/// Plays a program in rounds; `None` if it has none, or if the rules or the noise do not allow it.
///
/// # Errors
/// As for [`run`](super::run).
pub(super) fn run<P: Program>(program: &P, run: &Run<'_>) -> Result<Option<Outcome>, RunError> {
    Ok(run_with(program, run, Isa::best(), None)?.map(|(outcome, _)| outcome))
}

/// The same, with the noise on the critical path.
///
/// # Errors
/// As for [`run`](super::run).
pub(super) fn run_for_culprits<P: Program>(
    program: &P,
    run: &Run<'_>,
) -> Result<Option<(Outcome, Culprits)>, RunError> {
    let Some((outcome, struck)) = run_with(program, run, Isa::best(), Some(culprits::section))? else {
        return Ok(None);
    };
    Ok(Some((outcome, Culprits::new(struck.into_iter(), program.ranks(), run.noise.clocks()))))
}

/// How a program is played.
enum Rounds {
    Passes(Box<Plan>),
    Ordered(Order),
    /// In an order that is found while it is played, for the only iteration.
    Once,
}

/// With more threads than this, events are played sooner than a list, which is played by one.
const MOST_THREADS_OF_LIST: usize = 8;

impl Rounds {
    fn new(
        program: &dyn StepProgram,
        ranks: u32,
        run: &Run<'_>,
        costs: &[Cost],
        is_watched: bool,
    ) -> Option<Self> {
        let plan = Plan::new(program, costs).map(|plan| Self::Passes(Box::new(plan)));
        // Events that are watched are played by one thread, too.
        let is_listed = is_watched || run.threads <= MOST_THREADS_OF_LIST;
        let is_once = !is_watched && is_played_once(program, costs);
        let order = || match (is_listed, is_once) {
            (true, true) => Some(Self::Once),
            (true, false) => Order::new(program, ranks, costs).map(Self::Ordered),
            (false, _) => None,
        };
        let rounds = plan.or_else(order)?;
        let longest = match &rounds {
            Self::Passes(plan) => plan.all().map(|pass| (pass.longest(), 3)).fold((0, 0), sum),
            Self::Ordered(order) => order.ops.iter().map(|op| (op.longest(costs), 2)).fold((0, 0), sum),
            // It adds up its time itself.
            Self::Once => (0, 0),
        };
        let (factor, rest) = run.noise.clocks().map_or((1, 0), walk::longest_delay);
        let time = longest.0.saturating_mul(factor).saturating_add(longest.1.saturating_mul(rest));
        (time.saturating_mul(program.iterations().max(1).into()) < MAX_TIME).then_some(rounds)
    }
}

/// Whether a program that is no sequence of passes is played while its order is found.
fn is_played_once(program: &dyn StepProgram, costs: &[Cost]) -> bool {
    program.iterations() == 1 && program.iteration_totals().is_some() && ordered::has_one_latency(costs)
}

/// Adds lengths and numbers of pieces of work.
fn sum(a: (u128, u128), b: (u128, u128)) -> (u128, u128) {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

/// How a program is played, and so at what speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// In passes over all ranks.
    Passes,
    /// From a list of operations.
    Listed,
    /// Event by event.
    Events,
}

impl Speed {
    /// Approximate CPU time of an event, in picoseconds.
    pub fn event_ps(self) -> u64 {
        match self {
            Self::Passes => 700,
            Self::Listed => 6_000,
            Self::Events => 50_000,
        }
    }
}

/// How [`run`](super::run) would play a program, found without playing it.
///
/// # Errors
/// As for [`run`](super::run).
pub fn speed<P: Program>(program: &P, run: &Run<'_>) -> Result<Speed, RunError> {
    let Some(steps) = program.in_steps().filter(|_| is_allowed(run)) else { return Ok(Speed::Events) };
    let Context { costs, levels, .. } = Context::new(program, run)?;
    let steps = &OnLevels { steps, levels };
    let operations = steps.iteration_totals().map(|(operations, _)| operations);
    // One iteration can stand for many, so it has to fit a list although it is played without.
    let is_listed = operations.is_some_and(Order::may_hold)
        && ordered::has_one_latency(&costs)
        && costs.iter().all(cost::is_playable);
    // Some of the steps stand for all, because a list takes long to make.
    let ranks = [0, program.ranks() / 2, program.ranks().saturating_sub(1)];
    let orders =
        |rank| (0..steps.rank_steps(rank).min(MOST_STEPS)).all(|step| has_order(steps, rank, step, &costs));
    Ok(match Plan::new(steps, &costs) {
        Some(_) => Speed::Passes,
        None if is_listed && ranks.into_iter().all(orders) => Speed::Listed,
        None => Speed::Events,
    })
}

/// Number of steps of a rank that are looked at to estimate the speed.
const MOST_STEPS: u32 = 64;

/// Whether a step of a rank has a rendezvous only where a list allows it.
fn has_order(program: &dyn StepProgram, rank: u32, step: u32, costs: &[Cost]) -> bool {
    let mut ops = Vec::new();
    program.step(rank, step, &mut ops);
    let is_met = || program.meets_in_steps() && ordered::has_order(&ops, costs);
    ops.iter().all(|op| !costs[op.shape as usize].rendezvous) || is_met()
}

/// Whether the rules and the noise are those that rounds have.
fn is_allowed(run: &Run<'_>) -> bool {
    run.rules == Rules::Call && !matches!(run.noise, Noise::Window(_))
}

/// Plays a program in rounds with an instruction set; with the noise on the critical path if there is a rule for its sections.
fn run_with<P: Program>(
    program: &P,
    run: &Run<'_>,
    isa: Isa,
    section: Option<Section>,
) -> Result<Option<(Outcome, Vec<Struck>)>, RunError> {
    let Some(steps) = program.in_steps().filter(|_| is_allowed(run)) else { return Ok(None) };
    let context = Context::new(program, run)?;
    // Where a message takes no CPU time, several paths can be critical, and the order of events decides which of them is found.
    let takes_none = |cost: &Cost| cost.kind != super::Kind::Calc && cost.overhead == 0;
    if section.is_some() && context.costs.iter().any(takes_none) {
        return Ok(None);
    }
    let (costs, steps) = (context.costs, &OnLevels { steps, levels: context.levels });
    let Some(rounds) = Rounds::new(steps, program.ranks(), run, &costs, section.is_some()) else {
        return Ok(None);
    };
    let (ranks, iterations) = (program.ranks() as usize, steps.iterations());
    let clocks = run.noise.clocks();
    let (walks, silence) = (clocks.map(Walks::new), Walks::NONE);
    let events = program.totals().map_or(0, |(operations, sends)| operations.saturating_add(sends));
    let with_data = |data: u64| events.saturating_add(data.saturating_mul(iterations.into()));
    let (operations, _) = program.totals().unwrap_or_default();
    let mut data = if let Rounds::Ordered(order) = &rounds { order.rendezvous } else { 0 };
    let events = with_data(data);
    let mut report = Report { run, events, reported: 0 };
    let mut done = 0;
    let all_ranks = |slots| Ranks::new(walks.as_ref().unwrap_or(&silence), clocks, &costs, slots, ranks);
    let mut report_at = |parts: u64, more: u64| {
        done += more;
        report.at(done, parts)
    };
    let (struck, (finish, noise)) = match &rounds {
        Rounds::Passes(plan) => {
            let arrays = Arrays::new(ranks, walks.as_ref().zip(clocks), plan.has_gaps);
            // Without threads of its own the run takes longer, and ends the same.
            let threads = run.threads.max(1).min(ranks.div_ceil(share(ranks, run.threads.max(1))));
            let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
            let pool = if threads > 1 { pool() } else { None };
            let share = share(ranks, if pool.is_some() { threads } else { 1 });
            let player = Player { plan, iterations, walks: walks.as_ref(), isa, pool: pool.as_ref(), share };
            let mut passes = InPasses::new(&player, arrays, clocks);
            let parts = section.map_or(passes.parts(), |section| culprits::parts_played(&passes, section));
            let struck = play(&mut passes, section, &mut |more| report_at(parts, more));
            (struck, passes.into_arrays().into_results())
        }
        Rounds::Ordered(order) => {
            let all = all_ranks(order.slots);
            let mut list = InList::new(order, all, iterations, clocks);
            let parts = section.map_or(list.parts(), |section| culprits::parts_played(&list, section));
            let parts = parts * order.ops.len() as u64;
            let struck = play(&mut list, section, &mut |more| report_at(parts, more));
            (struck, list.into_ranks().into_results())
        }
        Rounds::Once => {
            let delay = clocks.map_or((1, 0), walk::longest_delay);
            let mut report = |more| report_at(operations, more);
            let mut once = Once::new(all_ranks(0), &costs, delay, &mut report);
            match ordered::find(steps, program.ranks(), &costs, &mut once) {
                Some(found) => data = found.rendezvous,
                None if once.is_stopped => return Err(RunError::Stopped),
                None => return Ok(None),
            }
            (ControlFlow::Continue(Vec::new()), once.into_ranks().into_results())
        }
    };
    let ControlFlow::Continue(struck) = struck else { return Err(RunError::Stopped) };
    Ok(Some((Outcome { events: with_data(data), finish, noise, stuck: None }, struck)))
}

/// Plays all of a run, and follows its critical path if there is a rule for its sections.
fn play<R: culprits::Sections>(
    rounds: &mut R,
    section: Option<Section>,
    played: culprits::Played<'_>,
) -> ControlFlow<(), Vec<Struck>> {
    match section {
        Some(section) => culprits::play(rounds, section, played),
        None => rounds.play(0..rounds.parts(), played).map_continue(|()| Vec::new()),
    }
}

/// Reports the progress of a run.
struct Report<'a> {
    run: &'a Run<'a>,
    events: u64,
    /// Number of events that were reported.
    reported: u64,
}

impl Report<'_> {
    /// `done` of `parts` equal parts of the run are over.
    fn at(&mut self, done: u64, parts: u64) -> ControlFlow<()> {
        let parts = parts.max(1);
        let events = (u128::from(self.events) * u128::from(done.min(parts)) / u128::from(parts)) as u64;
        if events - self.reported < REPORT {
            return ControlFlow::Continue(());
        }
        self.reported = events;
        (self.run.progress)(events)
    }
}

#[cfg(test)]
mod tests;
