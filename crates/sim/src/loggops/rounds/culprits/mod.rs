//! The noise on the critical path of a run in rounds.
//!
//! The path is a walk back from the rank that ends last: to what it waited for last, to what that waited for last, and so on. Which rank
//! that will be is known only at the end, so a run records for all of them what they waited for. A long run records only its last
//! section; it keeps the state of all ranks before each of the others, and plays a section again when the walk comes to it. The part of
//! the path in a section is then played forward, on its ranks alone, which shows what struck it.

mod listed;
mod passes;

use std::ops::{ControlFlow, Range};

use crate::loggops::RankClocks;
use crate::loggops::watch::Struck;

pub(super) use listed::InList;
pub(super) use passes::InPasses;

/// Minimum length of a section, in bytes that are recorded, …
const LEAST_BYTES: u64 = 1 << 27;
/// … and maximum length: it has no more operations of a list than there are numbers for them.
const MOST_BYTES: u64 = 1 << 31;
/// Approximate bytes of the state of a rank.
const STATE_BYTES: u64 = 64;

/// A run in equal parts: its passes, or its iterations.
pub(super) trait Sections {
    /// The state of all ranks.
    type State;
    /// Where the critical path leaves a section.
    type Place: Copy;

    /// Number of parts.
    fn parts(&self) -> u64;
    /// Bytes that are recorded of a part.
    fn recorded(&self) -> u64;
    fn ranks(&self) -> usize;
    fn state(&self) -> Self::State;
    fn set(&mut self, state: Self::State);

    /// Plays some parts.
    fn play(&mut self, parts: Range<u64>, played: Played<'_>) -> ControlFlow<()>;
    /// Plays some parts, and records what everything waited for.
    fn record(&mut self, parts: Range<u64>, played: Played<'_>) -> ControlFlow<()>;
    /// The end of the run on the rank that ends last.
    fn end(&self) -> Self::Place;
    /// Follows the path from `place` back through the parts that were recorded last, and from the state `before` them forward. Adds the noise
    /// that struck it to `struck`, in order of time, and returns where it was before.
    fn follow(
        &self,
        parts: Range<u64>,
        place: Self::Place,
        before: &Self::State,
        struck: &mut Vec<Struck>,
    ) -> Self::Place;
}

/// Receives the number of parts, or operations, since the last call. It may stop the run.
pub(super) type Played<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// A length of sections, in parts.
pub(super) type Section = fn(&Size) -> u64;

/// What the length of sections depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) parts: u64,
    pub(super) ranks: u64,
    /// Bytes that are recorded of a part.
    pub(super) recorded: u64,
}

/// So long that what is recorded takes as much memory as the states before all sections, or a little that is always allowed.
pub(super) fn section(size: &Size) -> u64 {
    let recorded = size.recorded.max(1);
    let balanced = (size.parts.saturating_mul(STATE_BYTES).saturating_mul(size.ranks) / recorded).isqrt();
    balanced.max(LEAST_BYTES / recorded).min(MOST_BYTES / recorded).max(1)
}

/// Number of parts that are played, some of them twice.
pub(super) fn parts_played(run: &impl Sections, section: Section) -> u64 {
    let (parts, section) = (run.parts(), length(run, section));
    parts + parts.saturating_sub(1) / section * section
}

fn length(run: &impl Sections, section: Section) -> u64 {
    section(&Size { parts: run.parts(), ranks: run.ranks() as u64, recorded: run.recorded() }).max(1)
}

/// Plays a run, and returns the noise on its critical path, in order of time.
pub(super) fn play<R: Sections>(
    run: &mut R,
    section: Section,
    played: Played<'_>,
) -> ControlFlow<(), Vec<Struck>> {
    let (parts, length) = (run.parts(), length(run, section));
    let mut begins = Vec::new();
    for start in (0..parts).step_by(length as usize) {
        begins.push((start..parts.min(start.saturating_add(length)), run.state()));
        if parts - start > length {
            run.play(start..start + length, played)?;
        }
    }
    let Some((last, before)) = begins.pop() else { return ControlFlow::Continue(Vec::new()) };
    run.record(last.clone(), played)?;
    let result = run.state();
    let mut of_section = Vec::new();
    let mut place = run.follow(last, run.end(), &before, &mut of_section);
    let mut struck: Vec<_> = of_section.drain(..).rev().collect();
    while let Some((section, before)) = begins.pop() {
        run.set(before);
        let before = run.state();
        run.record(section.clone(), played)?;
        place = run.follow(section, place, &before, &mut of_section);
        struck.extend(of_section.drain(..).rev());
    }
    run.set(result);
    struck.reverse();
    ControlFlow::Continue(struck)
}

/// The lowest of the ranks that finished last.
fn last(times: impl Iterator<Item = i64>) -> u32 {
    let later =
        |best: (u32, i64), (rank, at): (usize, i64)| if at > best.1 { (rank as u32, at) } else { best };
    times.enumerate().fold((0, 0), later).0
}

/// The delay of `work` of a rank from `start` on.
fn delay(clocks: Option<&RankClocks>, rank: u32, start: i64, work: i64) -> i64 {
    clocks.map_or(0, |clocks| clocks.delay(rank, start as u64, work as u64).0) as i64
}

/// Adds work if noise prolonged it.
fn add(struck: &mut Vec<Struck>, rank: u32, iteration: u32, [start, end]: [i64; 2], delay: i64) {
    if delay > 0 {
        let [start, end, delay] = [start, end, delay].map(|time| time as u64);
        struck.push(Struck { rank, iteration, start, end, delay });
    }
}
