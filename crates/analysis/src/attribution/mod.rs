//! Attribution: the join of what a program suffered (detours) with what the kernel did (intervals).
//!
//! Each detour is divided among the sources whose intervals lie in it, net of nesting ([`join`]); stolen time
//! is distributed by a stated rule ([`steal`]); the rest is a class of its own ([`unattributed`]). The offset between the two
//! clocks is measured in the recording itself ([`tolerance`]), and so is the share that would match by chance.
//! Attribution depends only on the tables, so it can be repeated when the rule improves.

pub(crate) mod activity;
mod blame;
mod class;
mod command;
mod document;
mod figures;
#[cfg(test)]
pub(crate) mod fixture;
mod groups;
mod join;
mod kind;
mod left_over;
mod proximity;
mod rows;
mod segments;
mod split;
pub(crate) mod steal;
#[cfg(test)]
mod tests;
mod tolerance;
mod unattributed;

use quell_recording::{Cpu, Interval, Method, Recording, Span, Trace};
use rayon::prelude::*;

pub use blame::{Blame, Part};
pub use class::Class;
pub use command::{CommandRow, Share, ThreadRow, ThreadSource};
pub use document::{Attribution, ClassRow, CpuSource, CpuSources, Explained, SourceRow, TaskRow};
pub use figures::Figures;
pub use groups::Named;
pub use kind::{Kind, UNATTRIBUTED, family};
pub use left_over::{LeftOver, LeftOverRow};
pub use split::{AloneClass, AlonePart};
pub use unattributed::{Hypothesis, Suspect, Unattributed};

pub(crate) use kind::Kinds;
pub(crate) use rows::{is_own, own_pid};
pub(crate) use segments::AttributedSegment;

use crate::chance::{Chance, shifted, shifts};
use crate::time_range::TimeRange;
use join::Joined;
use tolerance::Tolerance;

use crate::Warning;

/// One CPU as seen by the probe and by the kernel.
#[derive(Debug)]
struct Side<'a> {
    cpu: Cpu,
    span: Span,
    intervals: &'a [Interval],
    joined: Joined,
}

impl Side<'_> {
    /// The detour time that is attributed to each interval's source; the hypervisor's share with one of its windows.
    fn blamed(&self) -> impl Iterator<Item = (&Interval, u64)> {
        let parts = self.joined.blames.iter().flat_map(|blame| &blame.parts);
        let steal = self.intervals.iter().find(|one| one.source == quell_recording::Source::Steal);
        let stolen = self.joined.blames.iter().map(|blame| blame.stolen_ns).fold(0, u64::saturating_add);
        parts.map(|part| (&self.intervals[part.interval], part.ns)).chain(steal.map(|one| (one, stolen)))
    }
}

/// A recording's detours joined with its intervals, by the measured tolerance: the expensive part of attribution. One join
/// gives the [`Attribution`] first, and then either the [`JoinedRecording::blames`] or the noise that what-ifs start from
/// ([`AttributedNoise::from_joined`](crate::whatif::AttributedNoise::from_joined)).
#[derive(Debug)]
pub struct JoinedRecording<'a> {
    recording: &'a Recording,
    tolerance: Tolerance,
    sides: Vec<Side<'a>>,
}

impl<'a> JoinedRecording<'a> {
    /// Joins all CPUs of a recording, in the order of its traces.
    pub fn new(recording: &'a Recording) -> Self {
        #[cfg(test)]
        tests::JOINS.with(|joins| joins.set(joins.get() + 1));
        let tolerance = measure_tolerance(recording);
        Self { recording, tolerance, sides: join_all(recording, tolerance) }
    }

    /// The recording.
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// What took the CPUs.
    pub fn attribution(&self) -> Attribution {
        let Self { recording, tolerance, ref sides } = *self;
        if let Some(unknown) = unknown(recording) {
            return unknown;
        }
        let detours = recording.manifest.method == Method::Detour;
        let explained = if detours { explained(recording, sides, tolerance) } else { None };
        let sources = rows::sources(recording, sides);
        let (command, threads) = command::command(recording).unzip();
        Attribution {
            sources_unknown_because: None,
            sources_warnings: warnings(recording, sides, tolerance),
            classes: Some(rows::classes(&sources, explained.as_ref(), sides)),
            tasks: Some(rows::tasks(recording, sides)),
            per_cpu: Some(rows::per_cpu(recording, sides)),
            sources: Some(sources),
            explained,
            recorder_effect: recording.manifest.sources.as_ref().and_then(|facts| facts.effect.clone()),
            recorder_cost: recording.manifest.sources.as_ref().and_then(|facts| facts.cost.clone()),
            command,
            threads,
        }
    }

    /// The blame of each detour of each CPU.
    pub fn blames(self) -> Vec<(Cpu, Vec<Blame>)> {
        self.sides.into_iter().map(|side| (side.cpu, side.joined.blames)).collect()
    }
}

/// What took the CPUs of a recording.
pub fn attribution(recording: &Recording) -> Attribution {
    // If sources are not known, there is nothing to join.
    unknown(recording).unwrap_or_else(|| JoinedRecording::new(recording).attribution())
}

/// The blame of each detour of each CPU, in the order of the recording's traces, by the measured tolerance.
pub fn blames(recording: &Recording) -> Vec<(Cpu, Vec<Blame>)> {
    JoinedRecording::new(recording).blames()
}

/// The attribution of a recording whose sources are not known.
fn unknown(recording: &Recording) -> Option<Attribution> {
    let why = unknown_because(recording)?;
    Some(Attribution { sources_unknown_because: Some(why), ..Attribution::default() })
}

/// Why sources are not known, and the next step; `None` if they are known.
fn unknown_because(recording: &Recording) -> Option<String> {
    const NEXT: &str = "`quell doctor` says what this machine lets quell see";
    match &recording.manifest.sources {
        Some(facts) => facts.unknown_because.as_ref().map(|why| format!("{why}; {NEXT}")),
        None => Some(format!(
            "the recording holds nothing of what the kernel did: record with `--sources on`; {NEXT}"
        )),
    }
}

fn intervals_of(recording: &Recording, cpu: Cpu) -> &[Interval] {
    recording.intervals.iter().find(|side| side.cpu == cpu).map_or(&[], |side| &side.intervals)
}

fn measure_tolerance(recording: &Recording) -> Tolerance {
    let per_trace = |trace: &Trace| {
        let busy = activity::busy(&activity::innermost(intervals_of(recording, trace.cpu)));
        tolerance::overhangs(&trace.detours, &busy)
    };
    let found: Vec<Vec<u64>> = recording.traces.par_iter().map(per_trace).collect();
    let granularity = recording.manifest.clock.as_ref().map_or(1.0, |clock| clock.granularity_ns);
    Tolerance::from_overhangs(found.concat(), granularity)
}

fn join_all(recording: &Recording, tolerance: Tolerance) -> Vec<Side<'_>> {
    let per_trace = |trace: &Trace| {
        let intervals = intervals_of(recording, trace.cpu);
        let joined = join::join(trace, intervals, tolerance.ns);
        Side { cpu: trace.cpu, span: trace.span, intervals, joined }
    };
    // The reader makes a trace for each CPU, an empty one for a CPU without a probe.
    recording.traces.par_iter().map(per_trace).collect()
}

fn explained(recording: &Recording, sides: &[Side], tolerance: Tolerance) -> Option<Explained> {
    let figures = figures::figures(sides.iter().flat_map(|side| &side.joined.blames))?;
    let stolen = sides.iter().flat_map(|side| &side.joined.blames).map(|blame| blame.stolen_ns);
    Some(Explained {
        figures,
        tolerance_ns: tolerance.ns,
        overhang_p99_ns: tolerance.overhang_p99_ns,
        overhang_pairs: tolerance.pairs,
        chance_percent: chance_percent(sides),
        steal_attributed_ns: stolen.sum(),
        unattributed: unattributed::unattributed(recording, sides),
    })
}

/// The share of the detours' time that intervals cover if they are shifted in time: the mean over the shifts.
fn chance_percent(sides: &[Side]) -> f64 {
    let of_shift = |n: u64| -> f64 {
        let per_side = |side: &Side| {
            let moved: Vec<TimeRange> = shifted(&side.joined.busy, side.span, n);
            tolerance::covered_ns(&side.joined.windows, &moved)
        };
        sides.iter().map(per_side).sum::<u64>() as f64
    };
    let ranges = sides.iter().map(|side| (side.joined.busy.len() + side.joined.windows.len()) as u64).sum();
    let covered: Vec<f64> = (0..shifts(ranges)).into_par_iter().map(of_shift).collect();
    let of_side = |side: &Side| side.joined.windows.iter().map(|window| window.length()).sum::<u64>();
    let all: u64 = sides.iter().map(of_side).sum();
    100.0 * Chance::from_shifts(covered).mean() / all.max(1) as f64
}

/// What limits the figures of sources.
fn warnings(recording: &Recording, sides: &[Side], tolerance: Tolerance) -> Vec<Warning> {
    let mut all = Vec::new();
    if let Some(facts) = &recording.manifest.sources {
        if facts.lost > 0 {
            all.push(Warning::SourcesIncomplete { intervals: facts.lost });
        }
        if facts.lost_threads > 0 {
            all.push(Warning::CommandIncomplete { threads: facts.lost_threads });
        }
        all.extend(facts.missing.iter().cloned().map(|what| Warning::KindMissing { what }));
    }
    let allowed_ns = tolerance::MOST_NS;
    if let Some(overhang_p99_ns) = tolerance.overhang_p99_ns.filter(|&p99| p99 > allowed_ns) {
        all.push(Warning::ClocksDisagree { overhang_p99_ns, allowed_ns });
    }
    let (nested_ns, net_ns) = sides.iter().fold((0u64, 0u64), |(flat, net), side| {
        let steal = quell_recording::SourceKind::Steal;
        let per_side = side.intervals.iter().filter(|one| one.source.kind() != steal);
        let net = per_side.fold(net, |sum, one| sum.saturating_add(one.net.as_nanos()));
        (side.joined.segments.iter().fold(flat, |sum, one| sum.saturating_add(one.time_range.length())), net)
    });
    // The waits of a command's threads overlap by design.
    let command = recording.manifest.sources.as_ref().is_some_and(|facts| facts.command_pid.is_some());
    if !command && nested_ns.abs_diff(net_ns) > net_ns / 50 {
        all.push(Warning::NestingDisagrees { net_ns, nested_ns });
    }
    all
}
