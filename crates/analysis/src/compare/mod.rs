//! Compares two recordings: whether the noise changed, in which figures, and by more than chance.

mod bootstrap;
mod by_source;
mod distance;
mod document;
mod limit;

use std::collections::BTreeMap;

use quell_recording::{Cpu, Trace};

use crate::density::{Density, Grid, silverman};
use crate::stats::Durations;
use bootstrap::Blocks;

pub use by_source::{BySource, RANKS, SlowCpu, SourceChange, SourceVerdict, by_source};
pub use distance::{FLOOR, kolmogorov_smirnov, kullback_leibler, wasserstein};
pub use document::{Change, Changes, Comparison, CpuComparison, Densities, SCHEMA, SideDocument, Verdict};
pub use limit::{Limit, LimitError, Violation};

/// One side of a comparison: its name and its traces.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its display name, such as the name of its file.
    pub name: &'a str,
    /// Its traces, of any CPUs.
    pub traces: &'a [Trace],
}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The seed of the bootstrap; equal seeds give equal results on any number of threads.
    pub seed: u64,
    /// Number of times that the recordings are resampled for the confidence intervals; limited to at least 40 and
    /// at most 100,000.
    pub replicates: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, replicates: 400 }
    }
}

/// Why two recordings cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A side has no trace with any observed time, so neither overhead nor rate is defined.
    #[error("`{0}` cannot be compared: no CPU was observed for any time (record it again, for 10s or more)")]
    NothingObserved(String),
}

/// Compares `b` (after) with `a` (before). A side without any detours is a result, not an error: figures that it does not
/// define are `None`.
///
/// # Errors
/// When one side has no observed time.
pub fn compare(a: &Side<'_>, b: &Side<'_>, options: &Options) -> Result<Comparison, CompareError> {
    let [from, to] = [a, b].map(|side| {
        let traces: Vec<&Trace> = side.traces.iter().collect();
        Sample::from_traces(&traces).ok_or_else(|| CompareError::NothingObserved(side.name.to_owned()))
    });
    let (from, to) = (from?, to?);
    let densities = densities(&from.durations, &to.durations);
    Ok(Comparison {
        schema: SCHEMA,
        a: from.document(a),
        b: to.document(b),
        kl_nats: densities.as_ref().map(|d| d.divergence(&d.b, &d.a)),
        kl_reverse_nats: densities.as_ref().map(|d| d.divergence(&d.a, &d.b)),
        wasserstein_ns: wasserstein(from.durations.as_slice(), to.durations.as_slice()),
        by_source: None,
        changes: changes(&from, &to, options, 0),
        cpus: per_cpu(a, b, options),
        warnings: Vec::new(),
        densities,
        seed: options.seed,
        replicates: bootstrap::replicates(options),
    })
}

/// D(b‖a) of the densities of two sides' durations, in nats, as in [`Comparison::kl_nats`]; `None` if one has no detours.
pub fn divergence(a: &[Trace], b: &[Trace]) -> Option<f64> {
    let densities = densities(&Durations::from_noise(a), &Durations::from_noise(b))?;
    Some(densities.divergence(&densities.b, &densities.a))
}

impl Densities {
    fn divergence(&self, of: &[f64], from: &[f64]) -> f64 {
        kullback_leibler(of, from, self.log10_ns[1] - self.log10_ns[0])
    }
}

/// The data for the figures of one side, or of one CPU of it.
struct Sample {
    durations: Durations,
    blocks: Blocks,
}

impl Sample {
    /// `None` without observed time.
    fn from_traces(traces: &[&Trace]) -> Option<Self> {
        let blocks = Blocks::from_traces(traces);
        let durations = Durations::from_noise(traces.iter().copied());
        (blocks.observed_ns() > 0.0).then_some(Self { durations, blocks })
    }

    /// Time lost over time observed, in percent.
    fn overhead_percent(&self) -> f64 {
        100.0 * self.durations.as_slice().iter().map(|&ns| ns as f64).sum::<f64>() / self.blocks.observed_ns()
    }

    /// Detours per second of one CPU.
    fn rate_per_s(&self) -> f64 {
        self.durations.len() as f64 / (self.blocks.observed_ns() / 1e9)
    }

    fn document(&self, side: &Side<'_>) -> SideDocument {
        let mut cpus: Vec<u32> = side.traces.iter().map(|trace| trace.cpu.0).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let span_ns = side.traces.iter().map(|trace| trace.span.length().as_nanos()).max().unwrap_or(0);
        SideDocument {
            name: side.name.to_owned(),
            cpus,
            span_ns,
            overhead_percent: self.overhead_percent(),
            rate_per_s: self.rate_per_s(),
            detours: self.durations.summary(),
        }
    }
}

/// The changes of all figures; `stream` separates the random numbers of the CPUs.
fn changes(a: &Sample, b: &Sample, options: &Options, stream: u64) -> Changes {
    let intervals = bootstrap::intervals(&a.blocks, &b.blocks, options, stream);
    let change = |figure: usize, a: f64, b: f64| Change::new(a, b, intervals.error(figure));
    let quantile = |figure: usize, p: f64| {
        a.durations.quantile(p).zip(b.durations.quantile(p)).map(|(a, b)| change(figure, a as f64, b as f64))
    };
    Changes {
        overhead_percent: change(0, a.overhead_percent(), b.overhead_percent()),
        rate_per_s: change(1, a.rate_per_s(), b.rate_per_s()),
        p50_ns: quantile(2, 0.5),
        p90_ns: quantile(3, 0.9),
        p99_ns: quantile(4, 0.99),
        p99_9_ns: quantile(5, 0.999),
        max_ns: quantile(6, 1.0),
    }
}

/// Compares each CPU that both sides observed.
fn per_cpu(a: &Side<'_>, b: &Side<'_>, options: &Options) -> Vec<CpuComparison> {
    fn by_cpu<'a>(side: &Side<'a>) -> BTreeMap<Cpu, Vec<&'a Trace>> {
        let mut cpus: BTreeMap<Cpu, Vec<&Trace>> = BTreeMap::new();
        side.traces.iter().for_each(|trace| cpus.entry(trace.cpu).or_default().push(trace));
        cpus
    }
    let after = by_cpu(b);
    let both = by_cpu(a).into_iter().filter_map(|(cpu, from)| Some((cpu, from, after.get(&cpu)?)));
    both.filter_map(|(cpu, from, to)| {
        let (from, to) = (Sample::from_traces(&from)?, Sample::from_traces(to)?);
        let changes = changes(&from, &to, options, 1 + u64::from(cpu.0));
        let wasserstein_ns = wasserstein(from.durations.as_slice(), to.durations.as_slice());
        Some(CpuComparison { cpu: cpu.0, wasserstein_ns, changes })
    })
    .collect()
}

/// Both densities on one grid and with one window, the wider of the two: otherwise equal noise in samples of different
/// sizes would seem to differ.
fn densities(a: &Durations, b: &Durations) -> Option<Densities> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let bandwidth_decades = silverman(a).max(silverman(b));
    let grid = Grid::covering(&[a, b], bandwidth_decades);
    let (from, to) = (Density::on(grid, a, bandwidth_decades), Density::on(grid, b, bandwidth_decades));
    Some(Densities { log10_ns: from.log10_ns, a: from.density, b: to.density, bandwidth_decades })
}

#[cfg(test)]
mod tests;
