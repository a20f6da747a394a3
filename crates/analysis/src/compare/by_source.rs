//! Which source of noise changed: new, gone, more or less often, longer or shorter, or on another CPU.
//!
//! Each source is a process of detours. How often those above a length come is compared by an exact test of rates, whose counts are divided by
//! their dispersion over blocks of time: bursts count less than as many single detours, and a strict period counts more. All tests of a
//! comparison together err in at most [`ERROR`] of the comparisons of equal nodes, if the noise of a node does not drift.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quell_recording::Recording;
use quell_recording::columns::{AsValue, Columns, Value, ValueKind, describe};
use schemars::JsonSchema;
use serde::Serialize;

use super::document::in_line;
use crate::stats::equal_rates_p;
use events::{Events, Observed};

/// Probability of a false change in a comparison of two equal nodes.
const ERROR: f64 = 0.005;
/// A rate that differs by less than this factor is not reported, however sure it is: two equal nodes are never quite equal.
const LEAST_RATIO: f64 = 1.5;
/// A source matters if its share of the CPU changed by this many points, ...
const LEAST_POINTS: f64 = 0.002;
/// ... and by this part of all noise of the quieter side.
const LEAST_PART: f64 = 0.002;
/// A loop that takes this many times as long is not due to the clock's grain or to a turbo step.
const SLOW: f64 = 1.15;
/// Lengths above which detours are counted, in addition to those that the source itself suggests.
const LENGTHS_NS: [u64; 4] = [0, 100_000, 1_000_000, 10_000_000];
/// A difference that is more likely than this by chance is not mentioned.
const MOST_UNSURE: f64 = 0.3;
/// The job for which a change's cost is given: number of ranks and length of a phase.
pub const RANKS: u64 = 4096;
const QUANTUM_NS: f64 = 1e6;

/// How a source changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceVerdict {
    /// Only b has it.
    New,
    /// Only a has it.
    Gone,
    /// It comes more often.
    More,
    /// It comes less often.
    Fewer,
    /// Its detours are longer.
    Longer,
    /// Its detours are shorter.
    Shorter,
    /// It comes as often, on other CPUs.
    Moved,
}

impl SourceVerdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::More => "more",
            Self::Fewer => "fewer",
            Self::Longer => "longer",
            Self::Shorter => "shorter",
            Self::Moved => "moved",
        }
    }

    /// Whether b is the noisier side in it.
    pub fn is_worse(self) -> bool {
        matches!(self, Self::New | Self::More | Self::Longer)
    }
}

impl AsValue for SourceVerdict {
    const KIND: ValueKind = ValueKind::Text;

    fn value(&self) -> Value {
        Value::Text(self.word().to_owned())
    }
}

/// A source that changed by more than chance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SourceChange {
    /// The source, with the workers of all CPUs together; `unattributed` is time without one, `all` all detours if a side has no sources.
    #[column(name)]
    pub source: String,
    /// How it changed.
    #[column(title = "is", words)]
    pub verdict: SourceVerdict,
    /// The CPUs on which it changed, if those are not all. For [`SourceVerdict::Moved`] the CPUs on which it is new or more frequent.
    #[column(title = "CPUs", words, with = in_line)]
    pub cpus: Vec<u32>,
    /// For [`SourceVerdict::Moved`], the CPUs that it left.
    pub from_cpus: Vec<u32>,
    /// The rates are of detours that this source made longer than this, in ns.
    #[column(title = "longer than")]
    pub longer_than_ns: u64,
    /// Such detours per second of one CPU, before.
    #[column(title = "a, per s", number)]
    pub a_per_s: f64,
    /// Such detours per second of one CPU, after.
    #[column(title = "b, per s", number)]
    pub b_per_s: f64,
    /// The probability of such a difference by chance, before the number of tests is taken into account.
    pub p: f64,
    /// Its share of the CPUs' time before, in percent.
    #[column(title = "a, % of CPU", precision = 4)]
    pub a_percent: f64,
    /// Its share of the CPUs' time after, in percent.
    #[column(title = "b, % of CPU", precision = 4)]
    pub b_percent: f64,
    /// What it alone costs phases of 1 ms on 4,096 ranks before, in percent, if its detours come independently.
    #[column(title = "a, cost %", number)]
    pub a_cost_percent: f64,
    /// What it alone costs them after, in percent.
    #[column(title = "b, cost %", number)]
    pub b_cost_percent: f64,
}

/// A CPU whose loop takes longer after than before: a lower frequency, or a busy sibling.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlowCpu {
    /// The CPU.
    pub cpu: u32,
    /// The median turn of the probe's loop before, in ns.
    pub a_loop_ns: f64,
    /// The median turn after, in ns.
    pub b_loop_ns: f64,
}

/// What changed, by source.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BySource {
    /// Whether both recordings know their sources. If not, all detours are one source, `all`.
    pub sources_known: bool,
    /// Sources that changed by more than chance, the one with the greatest change of cost first.
    pub changes: Vec<SourceChange>,
    /// If none changed for sure: the source that makes most of the difference in noise, and comes too seldom to tell it from chance.
    pub unsure: Option<SourceChange>,
    /// CPUs that run slower.
    pub slow_cpus: Vec<SlowCpu>,
    /// Number of sources that were compared.
    pub compared: usize,
    /// Number of ranks of the job that the costs are of.
    pub ranks: u64,
}

/// Compares the sources of two recordings of detours.
pub fn by_source(a: &Recording, b: &Recording) -> BySource {
    let sources_known = [a, b].iter().all(|side| events::knows_sources(side));
    let (from, to) = (Observed::new(a, sources_known), Observed::new(b, sources_known));
    let none = Events::default();
    let names: BTreeSet<&Arc<str>> = from.sources.keys().chain(to.sources.keys()).collect();
    let pairs: Vec<_> = names
        .iter()
        .map(|&name| (name, from.sources.get(name).unwrap_or(&none), to.sources.get(name).unwrap_or(&none)))
        .collect();
    let lengths: Vec<Vec<u64>> = pairs.iter().map(|(_, a, b)| lengths_ns(a, b)).collect();
    let cpus: BTreeSet<u32> = from.cpu_ns.keys().filter(|cpu| to.cpu_ns.contains_key(cpu)).copied().collect();
    // Bonferroni's bound, over the lengths of all sources and over their CPUs.
    let tests = lengths.iter().map(Vec::len).sum::<usize>() + pairs.len() * cpus.len();
    let most_p = ERROR / tests.max(1) as f64;
    let least_points = LEAST_POINTS.max(LEAST_PART * from.percent().min(to.percent()));
    let test = Test { from: &from, to: &to, most_p, least_points, cpus: &cpus };
    let compared = pairs.len();
    let (mut changes, mut unsure) = (Vec::new(), Vec::new());
    for ((name, a, b), lengths) in pairs.into_iter().zip(&lengths) {
        match test.change(name, a, b, lengths) {
            Some(change) if change.p <= most_p => changes.push(change),
            change => match test.moved(name, a, b) {
                Some(moved) => changes.push(moved),
                None => unsure.extend(change),
            },
        }
    }
    let weight = |change: &SourceChange| (change.b_cost_percent - change.a_cost_percent).abs();
    changes.sort_by(|x, y| weight(y).total_cmp(&weight(x)));
    // What makes most of the difference, and comes too seldom to be sure of.
    let difference = to.percent() - from.percent();
    unsure.retain(|one: &SourceChange| (one.b_percent - one.a_percent) / difference > 0.5);
    let unsure = unsure.pop().filter(|one| changes.is_empty() && one.p <= MOST_UNSURE);
    BySource { sources_known, changes, unsure, slow_cpus: slow_cpus(a, b), compared, ranks: RANKS }
}

/// The lengths above which a source's detours are counted: fixed ones, and the median and the 90th percentile of both sides together.
fn lengths_ns(a: &Events, b: &Events) -> Vec<u64> {
    let mut all: Vec<u64> = a.lengths().chain(b.lengths()).collect();
    all.sort_unstable();
    let (Some(&longest), n) = (all.last(), all.len()) else { return Vec::new() };
    let mut lengths: Vec<u64> = LENGTHS_NS.into_iter().chain([all[n / 2], all[n * 9 / 10]]).collect();
    lengths.retain(|&length| length < longest);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// The greater one of both sides; a side without such detours shows none.
fn dispersion(a: &Events, b: &Events, length: u64) -> f64 {
    let shown = [a, b].into_iter().filter_map(|side| side.dispersion(length));
    shown.reduce(f64::max).unwrap_or(1.0)
}

struct Test<'a> {
    from: &'a Observed,
    to: &'a Observed,
    most_p: f64,
    least_points: f64,
    /// The CPUs of both sides.
    cpus: &'a BTreeSet<u32>,
}

impl Test<'_> {
    /// The change of a source over all CPUs, if it matters; it is more than chance if its `p` is small enough.
    fn change(&self, name: &Arc<str>, a: &Events, b: &Events, lengths: &[u64]) -> Option<SourceChange> {
        let (a_percent, b_percent) = (self.from.share(a), self.to.share(b));
        if (b_percent - a_percent).abs() < self.least_points {
            return None;
        }
        let (time_a, time_b) = (self.from.cpu_s(), self.to.cpu_s());
        let tested = lengths.iter().map(|&length| {
            let (count_a, count_b) = (a.longer_than(length), b.longer_than(length));
            let dispersion = dispersion(a, b, length);
            let p =
                equal_rates_p((count_a as f64 / dispersion, time_a), (count_b as f64 / dispersion, time_b));
            (p, length, count_a as f64 / time_a, count_b as f64 / time_b)
        });
        // The share and the rate must have changed in one direction.
        let agree = |&(_, _, a, b): &(f64, u64, f64, f64)| (b > a) == (b_percent > a_percent);
        let differs = |&(_, _, a, b): &(f64, u64, f64, f64)| a.max(b) >= LEAST_RATIO * a.min(b);
        let tested: Vec<_> = tested.collect();
        let (p, longer_than_ns, a_per_s, b_per_s) =
            tested.iter().copied().filter(agree).filter(differs).min_by(|x, y| x.0.total_cmp(&y.0))?;
        let up = b_percent > a_percent;
        let often = tested.first().is_some_and(|all| all.0 <= self.most_p && agree(all) && differs(all));
        let verdict = match (a.is_empty(), b.is_empty()) {
            (true, _) => SourceVerdict::New,
            (_, true) => SourceVerdict::Gone,
            _ if often && up => SourceVerdict::More,
            _ if often => SourceVerdict::Fewer,
            _ if up => SourceVerdict::Longer,
            _ => SourceVerdict::Shorter,
        };
        // A source that is new, or comes more often, is best described by all its detours.
        let of_all = tested.first().filter(|_| often || a.is_empty() || b.is_empty());
        let (longer_than_ns, a_per_s, b_per_s) =
            of_all.map_or((longer_than_ns, a_per_s, b_per_s), |&(_, length, a, b)| (length, a, b));
        let changed = self.changed_cpus(a, b, longer_than_ns, up);
        let cpus = if changed.len() < self.cpus.len() { changed } else { Vec::new() };
        Some(self.row(name, verdict, (a, b), (longer_than_ns, a_per_s, b_per_s), p, (cpus, Vec::new())))
    }

    /// The CPUs on which the rate of detours longer than this changed in one direction.
    fn changed_cpus(&self, a: &Events, b: &Events, length: u64, up: bool) -> Vec<u32> {
        let changed = self.on_cpus(a, b, length).filter(|(_, is_up)| *is_up == up);
        changed.map(|(cpu, _)| cpu).collect()
    }

    /// The CPUs on which the rate is higher (`true`) or lower after, by more than chance.
    fn on_cpus(&self, a: &Events, b: &Events, length: u64) -> impl Iterator<Item = (u32, bool)> {
        let of_all = dispersion(a, b, length);
        let (of_a, of_b, none) = (a.by_cpu(), b.by_cpu(), Events::default());
        self.cpus.iter().filter_map(move |cpu| {
            let sides = [&of_a, &of_b].map(|side| side.get(cpu).unwrap_or(&none));
            Some((*cpu, self.on_cpu(*cpu, sides, length, of_all)?))
        })
    }

    fn on_cpu(&self, cpu: u32, [a, b]: [&Events; 2], length: u64, of_all: f64) -> Option<bool> {
        // A period of the machine is none of its CPUs: a daemon that comes each second may run on any of them.
        let of_cpu = dispersion(a, b, length);
        let dispersion = if of_cpu < 1.0 { of_cpu } else { of_cpu.max(of_all) };
        let (time_a, time_b) = (self.from.cpu_ns[&cpu] / 1e9, self.to.cpu_ns[&cpu] / 1e9);
        let (count_a, count_b) = (a.longer_than(length) as f64, b.longer_than(length) as f64);
        let p = equal_rates_p((count_a / dispersion, time_a), (count_b / dispersion, time_b));
        let (rate_a, rate_b) = (count_a / time_a, count_b / time_b);
        let differs = rate_a.max(rate_b) >= LEAST_RATIO * rate_a.min(rate_b);
        (p <= self.most_p && differs).then_some(rate_b > rate_a)
    }

    /// A source that left some CPUs for others.
    fn moved(&self, name: &Arc<str>, a: &Events, b: &Events) -> Option<SourceChange> {
        let mut by_direction = BTreeMap::from([(false, Vec::new()), (true, Vec::new())]);
        for (cpu, up) in self.on_cpus(a, b, 0) {
            by_direction.get_mut(&up)?.push(cpu);
        }
        let (down, up) = (by_direction.remove(&false)?, by_direction.remove(&true)?);
        let took = |side: &Observed, events: &Events, cpus: &[u32]| -> f64 {
            100.0 * cpus.iter().map(|&cpu| events.ns_on(cpu)).sum::<f64>() / side.observed_ns()
        };
        let left = took(self.from, a, &down) - took(self.to, b, &down);
        if down.is_empty() || up.is_empty() || left < self.least_points {
            return None;
        }
        let rates =
            (0, a.longer_than(0) as f64 / self.from.cpu_s(), b.longer_than(0) as f64 / self.to.cpu_s());
        Some(self.row(name, SourceVerdict::Moved, (a, b), rates, self.most_p, (up, down)))
    }

    fn row(
        &self,
        name: &Arc<str>,
        verdict: SourceVerdict,
        (a, b): (&Events, &Events),
        (longer_than_ns, a_per_s, b_per_s): (u64, f64, f64),
        p: f64,
        (cpus, from_cpus): (Vec<u32>, Vec<u32>),
    ) -> SourceChange {
        SourceChange {
            source: name.to_string(),
            verdict,
            cpus,
            from_cpus,
            longer_than_ns,
            a_per_s,
            b_per_s,
            p,
            a_percent: self.from.share(a),
            b_percent: self.to.share(b),
            a_cost_percent: cost_percent(a, self.from.observed_ns()),
            b_cost_percent: cost_percent(b, self.to.observed_ns()),
        }
    }
}

/// What detours that come independently at their rates cost phases of [`QUANTUM_NS`] on [`RANKS`] ranks: the mean longest delay of a phase, in
/// percent of it. The longest of all ranks' delays is below x with probability exp(−N q λ(x)), λ(x) the rate of detours longer than x.
fn cost_percent(events: &Events, observed_ns: f64) -> f64 {
    let mut lengths: Vec<u64> = events.lengths().collect();
    lengths.sort_unstable_by(|x, y| y.cmp(x));
    let next = lengths.iter().skip(1).copied().chain([0]);
    let per_detour = RANKS as f64 * QUANTUM_NS / observed_ns;
    let longest: f64 = lengths
        .iter()
        .zip(next)
        .zip(1u32..)
        .map(|((&length, next), count)| (length - next) as f64 * -(-f64::from(count) * per_detour).exp_m1())
        .sum();
    100.0 * longest / QUANTUM_NS
}

/// CPUs whose loop slowed down. If all did by about the same, the machine's frequency changed, and all are named.
fn slow_cpus(a: &Recording, b: &Recording) -> Vec<SlowCpu> {
    let turn = |side: &Recording| -> BTreeMap<u32, f64> {
        let facts = side.manifest.cpus.iter();
        facts.filter_map(|facts| Some((facts.cpu.0, facts.probe_loop.as_ref()?.p50_ns))).collect()
    };
    let (before, after) = (turn(a), turn(b));
    let both = before.into_iter().filter_map(|(cpu, a_loop_ns)| Some((cpu, a_loop_ns, *after.get(&cpu)?)));
    let slow = both.filter(|(_, before, after)| *before > 0.0 && after / before >= SLOW);
    slow.map(|(cpu, a_loop_ns, b_loop_ns)| SlowCpu { cpu, a_loop_ns, b_loop_ns }).collect()
}

#[cfg(test)]
mod tests;
