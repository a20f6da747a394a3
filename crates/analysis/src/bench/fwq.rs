//! The fixed work quantum benchmark on all ranks of a job: figures of each rank, their combined cost, and the spikes with
//! their culprits.
//!
//! IBM's vpsum and LANL's PSNAP measure the same ("OS jitter mitigation techniques", IBM developerWorks): they repeat the same work
//! and time it. vpsum has the order of the iterations and no histogram, PSNAP the histogram and no order;
//! quell has both, and the kernel's intervals as well.

mod document;
mod spikes;
#[cfg(test)]
mod tests;

use quell_recording::{Cpu, Intervals, Phase, Recording};
use rayon::prelude::*;

pub use document::{Bin, Fwq, RankQuanta, SCHEMA, Spike, SpikeSource, Taker};

use crate::Warning;
use crate::stats::{Durations, mean, variance};

/// Bin width of the histogram, the same as PSNAP's.
pub const BIN_NS: u64 = 1_000;
/// Maximum distance of the 10th percentile from the quantum, in percent of it, that is not reported.
const MOST_OFF_PERCENT: f64 = 2.0;

/// One rank: its quanta, and the kernel's intervals on its host.
#[derive(Clone, Copy, Debug)]
pub struct RankSide<'a> {
    /// The rank.
    pub rank: u32,
    /// Its host, if it is known.
    pub host: Option<&'a str>,
    /// Its process, whose main thread computes: the runs of that thread are not noise.
    pub pid: u32,
    /// Wall-clock time of the zero of its times, in ns since 1970.
    pub zero_unix_ns: Option<u64>,
    /// Whether the order and the times of its quanta are known, which a histogram does not have.
    pub ordered: bool,
    /// Its quanta by number, each with the CPU that it ended on.
    pub phases: &'a [(Cpu, Phase)],
    /// The kernel's intervals on the host's CPUs; empty if they are not known.
    pub intervals: &'a [Intervals],
}

impl<'a> RankSide<'a> {
    /// The ranks of one host's recording; `phases` are those of [`quell_recording::read_phases`].
    pub fn from_recording(recording: &'a Recording, phases: &'a [(Cpu, Phase)]) -> Vec<Self> {
        let manifest = &recording.manifest;
        let here = manifest.mpi.as_ref().map_or(&[][..], |mpi| &mpi.here);
        let quanta_of_rank = |phases: &'a [(Cpu, Phase)]| {
            let rank = phases[0].1.rank;
            Self {
                rank,
                host: manifest.host_of(rank),
                pid: here.iter().find(|facts| facts.rank == rank).map_or(0, |facts| facts.pid),
                zero_unix_ns: manifest.zero_unix_ns,
                ordered: !manifest.unordered,
                phases,
                intervals: &recording.intervals,
            }
        };
        phases.chunk_by(|a, b| a.1.rank == b.1.rank).map(quanta_of_rank).collect()
    }
}

/// Analyses the quanta of all ranks. `quantum_ns` is the noise-free duration of one; if it is not known, the shortest quantum of
/// any rank replaces it (Hoefler et al. 2010).
pub fn analyse(ranks: &[RankSide<'_>], quantum_ns: Option<u64>) -> Fwq {
    let times = |side: &RankSide<'_>| {
        Durations::new(side.phases.iter().map(|(_, phase)| phase.compute.as_nanos()).collect())
    };
    let times: Vec<Durations> = ranks.par_iter().map(times).collect();
    let shortest = || times.iter().filter_map(|times| times.quantile(0.0)).min();
    let quantum = quantum_ns.filter(|&ns| ns > 0).or_else(shortest).unwrap_or(0);
    let rows: Vec<RankQuanta> =
        ranks.iter().zip(&times).map(|(side, times)| quanta_of_rank(side, times, quantum)).collect();
    let ordered = ranks.iter().all(|side| side.ordered);
    let slowest = if ordered { slowest_of_each(ranks) } else { Vec::new() };
    let found = spikes::find(ranks, &rows, quantum);
    let mut warnings: Vec<Warning> = uncalibrated(&rows, quantum).into_iter().collect();
    warnings.extend(found.warning);
    if !ordered {
        warnings.push(Warning::OrderUnknown);
    }
    Fwq {
        schema: SCHEMA.into(),
        quantum_ns: quantum,
        quantum_is_shortest: quantum_ns.is_none_or(|ns| ns == 0),
        iterations: slowest.len() as u64,
        mean_slowdown_percent: slowdown_percent(&slowest, quantum),
        histogram: histogram(&times),
        spikes_total: found.total,
        spikes_excess_ns: found.excess_ns,
        spikes_explained_ns: found.explained_ns,
        spike_sources: found.sources,
        spikes: found.longest,
        ranks: rows,
        warnings,
    }
}

fn quanta_of_rank(side: &RankSide<'_>, times: &Durations, quantum_ns: u64) -> RankQuanta {
    let summary = times.summary();
    let quantum = quantum_ns as f64;
    let of_mean = |by: f64| if by > 0.0 { 100.0 * (summary.mean_ns - quantum) / by } else { 0.0 };
    RankQuanta {
        rank: side.rank,
        host: side.host.map(str::to_owned),
        quanta: summary.count,
        min_ns: summary.min_ns,
        p10_ns: times.quantile(0.1).unwrap_or(0),
        p50_ns: summary.p50_ns,
        mean_ns: summary.mean_ns,
        p99_ns: summary.p99_ns,
        p99_9_ns: summary.p99_9_ns,
        max_ns: summary.max_ns,
        stddev_ns: variance(times.as_slice().iter().map(|&ns| ns as f64), summary.mean_ns)
            .unwrap_or(0.0)
            .sqrt(),
        overhead_percent: of_mean(summary.mean_ns),
        slowdown_percent: of_mean(quantum),
        spike_above_ns: spikes::limit_ns(times, quantum_ns),
        spikes: 0,
    }
    .counted(times)
}

impl RankQuanta {
    /// Adds the number of spikes.
    fn counted(mut self, times: &Durations) -> Self {
        let below = times.as_slice().partition_point(|&ns| ns <= self.spike_above_ns);
        self.spikes = (times.len() - below) as u64;
        self
    }
}

/// The longest quantum of each iteration that all ranks finished.
fn slowest_of_each(ranks: &[RankSide<'_>]) -> Vec<u64> {
    let Some((first, others)) = ranks.split_first() else { return Vec::new() };
    let of_phase = |(_, phase): &(Cpu, Phase)| (phase.index, phase.compute.as_nanos());
    let mut slowest: Vec<(u64, u64)> = first.phases.iter().map(of_phase).collect();
    for side in others {
        let mut place = 0;
        slowest.retain_mut(|(index, ns)| {
            while side.phases.get(place).is_some_and(|(_, phase)| phase.index < *index) {
                place += 1;
            }
            let same = side.phases.get(place).filter(|(_, phase)| phase.index == *index);
            same.inspect(|row| *ns = (*ns).max(of_phase(row).1)).is_some()
        });
    }
    slowest.into_iter().map(|(_, ns)| ns).collect()
}

/// The mean over the quantum, less one, in percent.
fn slowdown_percent(times: &[u64], quantum_ns: u64) -> Option<f64> {
    let mean = mean(times.iter().map(|&ns| ns as f64)).filter(|_| quantum_ns > 0)?;
    Some(100.0 * (mean / quantum_ns as f64 - 1.0))
}

/// All ranks' quanta in bins of [`BIN_NS`], without empty bins.
fn histogram(times: &[Durations]) -> Vec<Bin> {
    let mut bins = std::collections::BTreeMap::<u64, u64>::new();
    for quanta_of_rank in times {
        for same in quanta_of_rank.as_slice().chunk_by(|a, b| a / BIN_NS == b / BIN_NS) {
            *bins.entry(same[0] / BIN_NS).or_default() += same.len() as u64;
        }
    }
    bins.into_iter().map(|(bin, count)| Bin { from_ns: bin.saturating_mul(BIN_NS), count }).collect()
}

/// A warning on ranks whose undisturbed quanta differ from the quantum: every figure relative to the quantum is off by that.
fn uncalibrated(rows: &[RankQuanta], quantum_ns: u64) -> Option<Warning> {
    let off = |row: &RankQuanta| 100.0 * (row.p10_ns as f64 / quantum_ns as f64 - 1.0);
    let far: Vec<&RankQuanta> =
        rows.iter().filter(|row| row.quanta > 0 && off(row).abs() > MOST_OFF_PERCENT).collect();
    let worst = far.iter().max_by(|a, b| off(a).abs().total_cmp(&off(b).abs()))?;
    Some(Warning::QuantumOff {
        ranks: far.len() as u64,
        of: rows.len() as u64,
        quantum_ns,
        worst_rank: worst.rank,
        worst_p10_ns: worst.p10_ns,
        worst_percent: off(worst),
    })
}
