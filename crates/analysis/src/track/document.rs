//! The document of `quell track --json`.

use std::collections::BTreeMap;

use quell_recording::columns::{Columns, describe};
use quell_recording::mpi::{Run, UNKNOWN};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Watch;
use super::eager_limits::EagerLimit;
use super::engine::Engine;
use super::event_reader::{CallKind, Process};
use super::findings::Findings;
use super::paths::{Path, ROOT};
use super::place::LocationState;

/// The effect of noise on a run. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tracked {
    /// `quell.track/2`.
    pub schema: String,
    /// Every rank, in order. The figures of a rank are those of its first thread.
    pub ranks: Vec<TrackedRank>,
    /// The threads other than each rank's first, in order. What they lost is in the figures of ranks only as far as it reached them.
    #[serde(default)]
    pub threads: Vec<TrackedThread>,
    /// Time from the beginning of the run to the end of its last rank.
    pub runtime_ns: i64,
    /// Mean time of a rank in `MPI_Init`, a part of the run time.
    #[serde(default)]
    pub init_ns: i64,
    /// Mean time of a rank in `MPI_Finalize`, a part of the run time.
    #[serde(default)]
    pub finalize_ns: i64,
    /// The run time without the noise.
    pub compensated_runtime_ns: i64,
    /// The run time without one source.
    pub compensated_runtime_by_source_ns: BTreeMap<String, i64>,
    /// For each source, its cost alone as a share of the cost of all sources together (Nataraj et al. 2007, §4.3). Empty if noise cost nothing.
    pub composition: BTreeMap<String, f64>,
    /// The sum of those shares: if it is above 1, sources hide one another.
    pub orthogonal_sum_ratio: Option<f64>,
    /// Time that the kernel counted and that is no noise but the program's own work, by its name (`fault`: page faults), over all threads.
    #[serde(default)]
    pub own_work_ns: BTreeMap<String, u64>,
    /// From which size on sends counted as waiting for their receivers. Empty if the run sent no messages.
    #[serde(default)]
    pub eager_limits: Vec<EagerLimit>,
    /// Calls that may have waited for other ranks in ways that the archive does not show, the longest first: their time counts as work.
    #[serde(default)]
    pub unknown_waits: Vec<UnknownWait>,
    /// The places in the program with noise, the costliest first.
    pub paths: Vec<TrackedPath>,
    /// Number of the program's events that were read: calls, messages, collectives; not noise counters.
    pub events: u64,
    /// Defects of the archive.
    pub findings: Findings,
}

/// Calls of one kind that may have waited for other ranks in ways that the archive does not show. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownWait {
    /// The call, as `MPI_File_write_all`.
    pub call: String,
    /// Number of calls, of all ranks.
    pub calls: u64,
    /// The time in them.
    pub time_ns: i64,
}

/// The effect of noise on a rank. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TrackedRank {
    /// The rank in `MPI_COMM_WORLD`.
    #[column(id)]
    pub rank: u32,
    /// Its host; empty if the archive does not name it.
    #[column(page)]
    pub host: String,
    /// Time from the beginning of the run to its end.
    #[column(title = "took")]
    pub runtime_ns: i64,
    /// The run time without the noise.
    #[column(title = "without noise", minor)]
    pub compensated_ns: i64,
    /// Time that it worked: outside of MPI calls and of waits for its threads, without the noise that struck there.
    #[column(title = "work", zero)]
    #[serde(default)]
    pub work_ns: i64,
    /// Time in MPI calls and in waits for its threads, without `MPI_Init` and `MPI_Finalize`.
    #[column(title = "in calls", zero)]
    #[serde(default)]
    pub in_calls_ns: i64,
    /// Noise that struck it.
    #[column(title = "local", zero)]
    pub local_ns: i64,
    /// The source of most of that noise.
    #[column(title = "mostly")]
    #[serde(default)]
    pub most_local_source: Option<String>,
    /// Its delay at the end relative to a run without noise: local plus amplified less absorbed, less noise without time.
    #[column(zero)]
    pub accumulated_ns: i64,
    /// Time that it lost through the noise of others.
    #[column(zero)]
    pub amplified_ns: i64,
    /// Noise of its own that did not delay anything.
    #[column(zero)]
    pub absorbed_ns: i64,
    /// Noise for which the archive has no time: it is in the local noise, and in nothing else.
    #[column(title = "no time", page, zero)]
    #[serde(default)]
    pub noise_without_time_ns: i64,
    /// Accumulated over local noise.
    #[column(title = "ratio", minor)]
    pub amplification_ratio: Option<f64>,
    /// The same figures if only that source were removed.
    pub by_source: BTreeMap<String, TrackedSource>,
}

/// The effect of noise on a thread of a rank. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TrackedThread {
    /// The rank in `MPI_COMM_WORLD`.
    #[column(id)]
    pub rank: u32,
    /// The rank's thread; its first is 0.
    #[column(id)]
    pub thread: u32,
    /// Noise that struck it.
    #[column(title = "local", zero)]
    pub local_ns: i64,
    /// The source of most of that noise.
    #[column(title = "mostly", minor)]
    pub most_local_source: Option<String>,
    /// Its delay at its end relative to a run without noise: local plus amplified less absorbed, less noise without time.
    #[column(zero)]
    pub accumulated_ns: i64,
    /// Time that it lost through the noise of other threads.
    #[column(zero)]
    pub amplified_ns: i64,
    /// Noise of its own that did not delay anything.
    #[column(zero)]
    pub absorbed_ns: i64,
    /// Noise for which the archive has no time: it is in the local noise, and in nothing else.
    #[column(title = "no time", page, zero)]
    pub noise_without_time_ns: i64,
    /// Noise that struck it, by source.
    pub local_by_source_ns: BTreeMap<String, i64>,
}

/// The effect of one source on a rank. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrackedSource {
    /// Noise of this source that struck the rank.
    pub local_ns: i64,
    /// Its delay at the end relative to a run without this source.
    pub accumulated_ns: i64,
    /// Time that the rank lost through this source's noise on others.
    pub amplified_ns: i64,
    /// Noise of this source that did not delay anything.
    pub absorbed_ns: i64,
    /// Noise of this source for which the archive has no time.
    #[serde(default)]
    pub noise_without_time_ns: i64,
    /// Accumulated over local noise.
    pub amplification_ratio: Option<f64>,
}

fn nested(path: &[String]) -> String {
    path.join(" > ")
}

/// A part of the program, over all ranks. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TrackedPath {
    /// The regions around it, from the outermost, and itself. Empty for the program's own work outside of all recorded regions.
    #[column(title = "place", name, with = nested)]
    pub path: Vec<String>,
    /// The place from which it was called, if the archive has it.
    #[column(title = "called in", page, name)]
    pub site: Option<String>,
    /// Number of times that it was entered.
    #[column(zero)]
    pub calls: u64,
    /// Time from entries to exits; for the program's own work, the rest of the run.
    #[column(zero)]
    pub time_ns: i64,
    /// Noise that struck in it, but not in regions within it.
    #[column(title = "local", zero)]
    pub local_ns: i64,
    /// The source of most of that noise.
    #[column(title = "mostly", minor)]
    #[serde(default)]
    pub most_local_source: Option<String>,
    /// Time that ranks lost there through the noise of others.
    #[column(zero)]
    pub amplified_ns: i64,
    /// Noise of their own that was absorbed there.
    #[column(zero)]
    pub absorbed_ns: i64,
    /// Noise that struck there, by source.
    pub local_by_source_ns: BTreeMap<String, i64>,
    /// Time that was lost there through the noise of others, if there were only that source.
    pub amplified_by_source_ns: BTreeMap<String, i64>,
}

fn ratio(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The document of a finished analysis.
pub(super) fn tracked<R: Run + ?Sized, W: Watch + ?Sized>(engine: &Engine<'_, R, W>) -> Tracked {
    let sources = &engine.definitions.sources;
    let begin = engine.begin();
    let mut ranks: Vec<(u32, &LocationState, &str)> = engine
        .of_rank
        .values()
        .filter_map(|location| {
            let facts = engine.definitions.locations.get(*location as usize)?;
            Some((facts.rank, engine.places.get(*location as usize)?, facts.host.as_str()))
        })
        .collect();
    ranks.sort_by_key(|(rank, ..)| *rank);
    let runtime = |place: &LocationState| if place.first.is_some() { place.now - begin } else { 0 };
    let longest = |account: usize| {
        let quiet = |(_, place, _): &(u32, &LocationState, &str)| {
            runtime(place).saturating_sub(place.ledger.accumulated[account])
        };
        ranks.iter().map(quiet).max().unwrap_or(0)
    };
    let sum = |account: usize| total(ranks.iter().map(|(_, place, _)| place.ledger.accumulated[account]));
    let all = sum(0);
    let each = || sources.iter().enumerate().map(|(source, name)| (source + 1, name.clone()));
    let composition: BTreeMap<String, f64> =
        each().filter_map(|(account, name)| Some((name, ratio(sum(account), all)?))).collect();
    let parts = total(each().map(|(account, _)| sum(account)));
    Tracked {
        schema: "quell.track/2".to_owned(),
        runtime_ns: ranks.iter().map(|(_, place, _)| runtime(place)).max().unwrap_or(0),
        init_ns: mean_time_in(engine, ranks.len(), |kind| kind.initializes),
        finalize_ns: mean_time_in(engine, ranks.len(), |kind| kind.finalizes),
        compensated_runtime_ns: longest(0),
        compensated_runtime_by_source_ns: each().map(|(account, name)| (name, longest(account))).collect(),
        composition,
        orthogonal_sum_ratio: ratio(parts, all),
        ranks: ranks
            .iter()
            .map(|(rank, place, host)| build_rank(*rank, place, host, runtime(place), sources))
            .collect(),
        threads: threads(engine),
        own_work_ns: engine.events.own_work_ns(),
        eager_limits: engine.limits.rows(),
        unknown_waits: unknown_waits(engine),
        paths: paths(engine),
        events: engine.events.read(),
        findings: engine.findings.clone(),
    }
}

/// Mean time of a rank in calls of this kind.
fn mean_time_in<R: Run + ?Sized, W: Watch + ?Sized>(
    engine: &Engine<'_, R, W>,
    ranks: usize,
    is_one: fn(CallKind) -> bool,
) -> i64 {
    let of_kind = engine.paths.all.iter().filter(|path| is_one(engine.events.kind(path.region)));
    mean_of(of_kind.map(|path| path.time), ranks)
}

/// The mean over ranks of times whose sum no 64 bits may hold.
fn mean_of(times: impl Iterator<Item = i64>, ranks: usize) -> i64 {
    let mean = times.map(i128::from).sum::<i128>() / ranks.max(1) as i128;
    i64::try_from(mean).unwrap_or(i64::MAX)
}

fn unknown_waits<R: Run + ?Sized, W: Watch + ?Sized>(engine: &Engine<'_, R, W>) -> Vec<UnknownWait> {
    let mut by_name: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    for (region, (calls, time)) in &engine.unshown {
        let sum = by_name.entry(engine.region(*region)).or_default();
        *sum = (sum.0 + calls, sum.1.saturating_add(*time));
    }
    let mut waits: Vec<UnknownWait> =
        by_name.into_iter().map(|(call, (calls, time_ns))| UnknownWait { call, calls, time_ns }).collect();
    waits.sort_by_key(|wait| -wait.time_ns);
    waits
}

/// The source with most of an account's noise; the first of equals.
fn most(accounts: &[i64], sources: &[String]) -> Option<String> {
    let some = accounts[1..].iter().zip(sources).filter(|(ns, _)| **ns > 0);
    some.rev().max_by_key(|(ns, _)| **ns).map(|(_, name)| name.clone())
}

fn build_rank(rank: u32, place: &LocationState, host: &str, runtime: i64, sources: &[String]) -> TrackedRank {
    let ledger = &place.ledger;
    let source = |account: usize| TrackedSource {
        local_ns: ledger.local[account],
        accumulated_ns: ledger.accumulated[account],
        amplified_ns: ledger.amplified[account],
        absorbed_ns: ledger.absorbed[account],
        noise_without_time_ns: ledger.unplaced(account),
        amplification_ratio: ratio(ledger.accumulated[account], ledger.local[account]),
    };
    let all = source(0);
    TrackedRank {
        rank,
        host: host.to_owned(),
        runtime_ns: runtime,
        compensated_ns: runtime - all.accumulated_ns,
        work_ns: place.work(),
        in_calls_ns: place.in_calls - place.in_begin_and_end,
        local_ns: all.local_ns,
        most_local_source: most(&ledger.local, sources),
        accumulated_ns: all.accumulated_ns,
        amplified_ns: all.amplified_ns,
        absorbed_ns: all.absorbed_ns,
        noise_without_time_ns: all.noise_without_time_ns,
        amplification_ratio: all.amplification_ratio,
        by_source: sources.iter().enumerate().map(|(at, name)| (name.clone(), source(at + 1))).collect(),
    }
}

fn by_source(values: &[i64], sources: &[String]) -> BTreeMap<String, i64> {
    let some = values[1..].iter().zip(sources).filter(|(value, _)| **value != 0);
    some.map(|(value, name)| (name.clone(), *value)).collect()
}

fn threads<'a, R: Run + ?Sized, W: Watch + ?Sized>(engine: &'a Engine<'_, R, W>) -> Vec<TrackedThread> {
    let sources = &engine.definitions.sources;
    let one = |location: &u32| {
        let (facts, place) = (
            engine.definitions.locations.get(*location as usize)?,
            engine.places.get(*location as usize).filter(|place| place.first.is_some())?,
        );
        let ledger = &place.ledger;
        Some(TrackedThread {
            rank: facts.rank,
            thread: facts.thread,
            local_ns: ledger.local[0],
            most_local_source: most(&ledger.local, sources),
            accumulated_ns: ledger.accumulated[0],
            amplified_ns: ledger.amplified[0],
            absorbed_ns: ledger.absorbed[0],
            noise_without_time_ns: ledger.unplaced(0),
            local_by_source_ns: by_source(&ledger.local, sources),
        })
    };
    let others = |process: &'a Process| &process.locations[1..];
    engine.events.processes().iter().flat_map(others).filter_map(one).collect()
}

fn paths<R: Run + ?Sized, W: Watch + ?Sized>(engine: &Engine<'_, R, W>) -> Vec<TrackedPath> {
    let sources = &engine.definitions.sources;
    let one = |place: usize, path: &Path| {
        let region = engine.definitions.regions.get(path.region as usize);
        TrackedPath {
            path: words(engine, place),
            site: region.and_then(|region| region.site.clone()),
            calls: path.calls,
            time_ns: if place == ROOT as usize { own_time(engine) } else { path.time },
            local_ns: path.local[0],
            most_local_source: most(&path.local, sources),
            amplified_ns: path.amplified[0],
            absorbed_ns: path.absorbed[0],
            local_by_source_ns: by_source(&path.local, sources),
            amplified_by_source_ns: by_source(&path.amplified, sources),
        }
    };
    let all = &engine.paths.all;
    let reported = |path: &Path| path.calls > 0 || path.local[0] != 0 || path.amplified[0] != 0;
    let mut paths: Vec<TrackedPath> = all
        .iter()
        .enumerate()
        .filter(|(_, path)| reported(path))
        .map(|(place, path)| one(place, path))
        .collect();
    paths.sort_by(|a, b| {
        let cost = |path: &TrackedPath| path.local_ns.saturating_add(path.amplified_ns);
        cost(b).cmp(&cost(a)).then_with(|| a.path.cmp(&b.path)).then_with(|| a.site.cmp(&b.site))
    });
    paths
}

/// The sum of times, which hostile events can make longer than 64 bits hold: then the longest that they do.
fn total(times: impl Iterator<Item = i64>) -> i64 {
    times.map(i128::from).sum::<i128>().clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The time of all locations outside of all regions.
fn own_time<R: Run + ?Sized, W: Watch + ?Sized>(engine: &Engine<'_, R, W>) -> i64 {
    let times = total(engine.places.iter().map(|place| place.first.map_or(0, |first| place.now - first)));
    let outermost = |(place, path): &(usize, &Path)| *place != ROOT as usize && path.parent == ROOT;
    let within = engine.paths.all.iter().enumerate().filter(outermost).map(|(_, path)| path.time);
    times.saturating_sub(total(within)).saturating_sub(engine.paths.idle).max(0)
}

fn words<R: Run + ?Sized, W: Watch + ?Sized>(engine: &Engine<'_, R, W>, place: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut place = place as u32;
    while let Some(path) = engine.paths.all.get(place as usize).filter(|_| place != ROOT) {
        if path.region != UNKNOWN {
            words.push(engine.region(path.region));
        }
        place = path.parent;
    }
    words.reverse();
    words
}

#[cfg(test)]
mod tests;
