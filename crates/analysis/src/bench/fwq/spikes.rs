//! Spikes: quanta far above the median, and what took the CPU during them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use quell_recording::{Cpu, Intervals, Phase};
use rayon::prelude::*;

use super::RankSide;
use super::document::{RankQuanta, Spike, SpikeSource, Taker};
use crate::Warning;
use crate::bench::culprit::{Blamed, Busy};
use crate::stats::Durations;

/// Maximum number of spikes that are listed: the longest.
const MOST_LISTED: usize = 1_000;
/// Maximum number of sources that are listed per spike.
const MOST_TAKERS: usize = 5;
/// Number of standard deviations above the median from which on a quantum is a spike.
const FAR: f64 = 6.0;
/// Distance of a normal distribution's median from its 10th percentile, in standard deviations.
const TENTH: f64 = 1.2816;

/// Quanta above this time are spikes. Noise only lengthens quanta, so the half below the median shows how far undisturbed
/// ones vary; spikes do not move the limit until they are half of all quanta.
pub(super) fn limit_ns(times: &Durations, quantum_ns: u64) -> u64 {
    let at = |p| times.quantile(p).unwrap_or(0);
    let (tenth, median) = (at(0.1), at(0.5));
    let stray = FAR * (median - tenth) as f64 / TENTH;
    // If all quanta are equal, one tick of the clock would make a spike.
    let least = quantum_ns.max(1).div_ceil(100);
    median.saturating_add((stray as u64).max(least))
}

/// All spikes of all ranks.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub total: u64,
    pub excess_ns: u64,
    pub explained_ns: Option<u64>,
    pub sources: Vec<SpikeSource>,
    pub longest: Vec<Spike>,
    pub warning: Option<Warning>,
}

/// Sums over the spikes of some ranks.
#[derive(Default)]
struct Tally {
    total: u64,
    excess_ns: u64,
    /// Excess of the spikes whose sources are known.
    known_ns: u64,
    explained_ns: u64,
    of_source: BTreeMap<String, (u64, u64)>,
    longest: Vec<Spike>,
    /// Number of ranks whose sources are not known.
    unknown: usize,
}

pub(super) fn find(ranks: &[RankSide<'_>], rows: &[RankQuanta], quantum_ns: u64) -> Found {
    let of_rank =
        |(side, row): (&RankSide<'_>, &RankQuanta)| Tally::from_rank(side, row.spike_above_ns, quantum_ns);
    let tallies = ranks.par_iter().zip(rows).map(of_rank);
    let all = tallies.reduce(Tally::default, Tally::with);
    let percent = |ns: u64| 100.0 * ns as f64 / all.known_ns.max(1) as f64;
    let row = |(source, (spikes, net_ns)): (String, (u64, u64))| SpikeSource {
        source,
        spikes,
        net_ns,
        percent: percent(net_ns),
    };
    let mut sources: Vec<SpikeSource> = all.of_source.into_iter().map(row).collect();
    sources.sort_by(|a, b| b.net_ns.cmp(&a.net_ns).then(a.source.cmp(&b.source)));
    let some_known = all.unknown < ranks.len();
    let partly = some_known && all.unknown > 0;
    Found {
        total: all.total,
        excess_ns: all.excess_ns,
        explained_ns: some_known.then_some(all.explained_ns),
        sources,
        longest: all.longest,
        warning: partly
            .then_some(Warning::SpikesWithoutSource { ranks: all.unknown as u64, of: ranks.len() as u64 }),
    }
}

impl Tally {
    fn from_rank(side: &RankSide<'_>, above_ns: u64, quantum_ns: u64) -> Self {
        let known = !side.intervals.is_empty();
        let mut tally = Self { unknown: usize::from(!known), ..Self::default() };
        let mut cpus: BTreeMap<Cpu, Option<Busy<'_>>> = BTreeMap::new();
        for (cpu, phase) in side.phases.iter().filter(|(_, phase)| phase.compute.as_nanos() > above_ns) {
            let busy = cpus.entry(*cpu).or_insert_with(|| busy_of(side, *cpu));
            let excess = phase.compute.as_nanos().saturating_sub(quantum_ns);
            let blamed = busy
                .as_ref()
                .map(|busy| busy.explain(phase.start.as_nanos(), phase.computed().as_nanos(), excess));
            tally.add(excess, blamed.as_ref());
            // Without order there is no iteration and no time to list.
            if side.ordered {
                tally.list(spike(side, *cpu, phase, excess, blamed.as_ref()));
            }
        }
        tally.shorten();
        tally
    }

    fn add(&mut self, excess_ns: u64, blamed: Option<&Blamed>) {
        self.total += 1;
        self.excess_ns = self.excess_ns.saturating_add(excess_ns);
        if let Some(blamed) = blamed {
            self.known_ns = self.known_ns.saturating_add(excess_ns);
            self.explained_ns = self.explained_ns.saturating_add(blamed.explained_ns);
            for (place, share) in blamed.shares.iter().enumerate() {
                let sum = self.of_source.entry(share.source.to_string()).or_default();
                sum.0 += u64::from(place == 0);
                sum.1 = sum.1.saturating_add(share.net_ns);
            }
        }
    }

    fn list(&mut self, spike: Spike) {
        self.longest.push(spike);
        // Twice the limit, so that sorting is rare.
        if self.longest.len() >= 2 * MOST_LISTED {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.longest.sort_by_key(|spike| (Reverse(spike.excess_ns), spike.rank, spike.iteration));
        self.longest.truncate(MOST_LISTED);
    }

    fn with(mut self, other: Self) -> Self {
        self.total += other.total;
        self.excess_ns = self.excess_ns.saturating_add(other.excess_ns);
        self.known_ns = self.known_ns.saturating_add(other.known_ns);
        self.explained_ns = self.explained_ns.saturating_add(other.explained_ns);
        self.unknown += other.unknown;
        for (source, (spikes, ns)) in other.of_source {
            let sum = self.of_source.entry(source).or_default();
            *sum = (sum.0 + spikes, sum.1.saturating_add(ns));
        }
        self.longest.extend(other.longest);
        self.shorten();
        self
    }
}

/// The kernel's intervals of a CPU; `None` if it was not recorded.
fn busy_of<'a>(side: &RankSide<'a>, cpu: Cpu) -> Option<Busy<'a>> {
    let own = |pid: u32| pid == side.pid;
    let of_cpu: Option<&'a Intervals> = side.intervals.iter().find(|of_cpu| of_cpu.cpu == cpu);
    of_cpu.map(|of_cpu| Busy::from_intervals(of_cpu, &own))
}

fn spike(side: &RankSide<'_>, cpu: Cpu, phase: &Phase, excess_ns: u64, blamed: Option<&Blamed>) -> Spike {
    let start_ns = phase.start.as_nanos();
    let shares = blamed.map_or(&[][..], |blamed| &blamed.shares);
    let takers = shares.iter().take(MOST_TAKERS).map(|share| Taker {
        source: share.source.to_string(),
        pid: share.pid,
        net_ns: share.net_ns,
        longest_start_ns: share.longest_start_ns,
    });
    Spike {
        rank: side.rank,
        host: side.host.map(str::to_owned),
        cpu: cpu.0,
        iteration: phase.index,
        start_ns,
        start_unix_ns: side.zero_unix_ns.map(|zero| zero.saturating_add(start_ns)),
        compute_ns: phase.compute.as_nanos(),
        excess_ns,
        explained_ns: blamed.map(|blamed| blamed.explained_ns),
        takers: takers.collect(),
    }
}
