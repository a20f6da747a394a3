//! Time that is not attributed: its statistics, and hypotheses about its cause.

use std::collections::BTreeSet;

use quell_recording::{Cpu, CpuFacts, Nanos, Recording, Throttling, Trace, Warning};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::Side;
use super::figures::percent;
use super::left_over::LeftOver;
use super::split::{self, AlonePart, Evidence, Near, is_alone, split};
use super::{proximity, steal};
use crate::periods::periods;
use crate::simultaneous::Simultaneous;
use crate::stats::Durations;
use crate::time_range::TimeRange;

/// Unattributed time. There are two kinds, with different causes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unattributed {
    /// All unattributed time.
    pub total_ns: u64,
    /// Unattributed time in detours that hold an interval: it lies before the kernel's first clock reading and after its
    /// last.
    pub around_known_ns: u64,
    /// Unattributed time in detours that hold no interval.
    pub alone_ns: u64,
    /// The unattributed time of each detour that holds an interval.
    pub around_known: LeftOver,
    /// The unattributed time of each detour that holds none.
    pub alone: LeftOver,
    /// What is known of the detours that hold none, by class; empty if nothing is.
    pub parts: Vec<AlonePart>,
    /// Possible causes, each with the figure that supports it. None is proved.
    pub hypotheses: Vec<Hypothesis>,
}

/// A possible cause of unattributed time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hypothesis {
    /// The suspected cause.
    pub kind: Suspect,
    /// The hypothesis in words, with its figure.
    pub says: String,
    /// The share of the detours in question (or, for `steal`, of their time), in percent.
    pub share_percent: f64,
    /// The share that chance would give; absent if chance does not apply.
    pub chance_percent: Option<f64>,
    /// The period, for `periodic`.
    pub period_ns: Option<f64>,
}

/// A suspected cause of unattributed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suspect {
    /// Intervals that the recorder lost.
    Lost,
    /// Kinds of event that this kernel cannot trace.
    NotTraced,
    /// Entry into the kernel and exit from it.
    EntryAndExit,
    /// The hypervisor, which counted stolen time in the same windows.
    Steal,
    /// Something that follows or precedes known work of the kernel.
    NearKnown,
    /// Something that stops all CPUs at the same time.
    WholeMachine,
    /// Something on a timer.
    Periodic,
    /// A CPU that the processor slowed because of heat.
    Throttling,
    /// The memory system, or the probe's own loop, near the probe's resolution.
    NearResolution,
    /// By elimination, on a virtual machine: exits to the hypervisor.
    HypervisorExits,
    /// By elimination, on bare metal: firmware, or the core's other hardware thread.
    FirmwareOrSibling,
}

/// Sums up the unattributed time on all CPUs.
pub(super) fn unattributed(recording: &Recording, sides: &[Side]) -> Unattributed {
    let of = |met: bool| {
        let blames = sides.iter().flat_map(|side| &side.joined.blames);
        let left = blames.filter(|blame| blame.met == met).map(|blame| blame.left_ns);
        Durations::new(left.filter(|&ns| ns > 0).collect())
    };
    let (around, alone) = (of(true), of(false));
    let evidence = Evidence::from_sides(sides);
    Unattributed {
        total_ns: around.total().saturating_add(alone.total()),
        around_known_ns: around.total(),
        alone_ns: alone.total(),
        around_known: LeftOver::from_summary(around.summary()),
        alone: LeftOver::from_summary(alone.summary()),
        parts: split(&recording.manifest, sides, &evidence),
        hypotheses: hypotheses(recording, sides, &around, &alone, &evidence),
    }
}

fn hypotheses(
    recording: &Recording,
    sides: &[Side],
    around: &Durations,
    alone: &Durations,
    evidence: &Evidence,
) -> Vec<Hypothesis> {
    if around.is_empty() && alone.is_empty() {
        return Vec::new();
    }
    let mut all = not_seen(recording, around.len() + alone.len());
    all.extend(entry_and_exit(around, alone));
    if !alone.is_empty() {
        all.extend(stolen(sides));
        all.extend(evidence.near.iter().filter_map(|near| near_known(sides, near, alone)));
        all.extend(evidence.strikes.as_ref().map(|strikes| whole_machine(recording, &strikes.found, alone)));
        all.extend(periodic(sides));
        all.extend(throttled(recording, sides, alone));
        all.extend(near_resolution(recording, sides, alone));
        all.push(by_elimination(recording, alone));
    }
    all
}

fn hypothesis(kind: Suspect, share_percent: f64, says: String) -> Hypothesis {
    Hypothesis { kind, says, share_percent, chance_percent: None, period_ns: None }
}

/// What the recorder reports that it did not see.
fn not_seen(recording: &Recording, detours: usize) -> Vec<Hypothesis> {
    let Some(facts) = &recording.manifest.sources else { return Vec::new() };
    let mut all = Vec::new();
    if facts.lost > 0 {
        let share = percent(facts.lost, detours as u64).unwrap_or(100.0);
        let says = format!("some may be among the {} intervals that were lost for want of room", facts.lost);
        all.push(hypothesis(Suspect::Lost, share, says));
    }
    if !facts.missing.is_empty() {
        let says =
            format!("some may be of kinds that this kernel does not tell ({})", facts.missing.join("; "));
        all.push(hypothesis(Suspect::NotTraced, 100.0, says));
    }
    all
}

fn entry_and_exit(around: &Durations, alone: &Durations) -> Option<Hypothesis> {
    let median = around.quantile(0.5)?;
    let share = percent(around.len() as u64, (around.len() + alone.len()) as u64)?;
    let says = format!(
        "{} of {} detours that are not fully explained contain known kernel work: their remaining time (median {}) \
         may be kernel entry and exit, outside of the kernel's own time stamps",
        around.len(),
        around.len() + alone.len(),
        Nanos::from_nanos(median),
    );
    Some(hypothesis(Suspect::EntryAndExit, share, says))
}

/// Unattributed time that is denser in the windows in which the hypervisor took time.
fn stolen(sides: &[Side]) -> Option<Hypothesis> {
    let (mut inside, mut all, mut by_chance) = (0u64, 0u64, 0.0);
    for side in sides {
        let windows = steal::windows(side.intervals);
        let covered = windows.iter().map(|(window, _)| window.length()).sum::<u64>();
        let share = covered as f64 / side.span.length().as_nanos().max(1) as f64;
        let windows: Vec<TimeRange> = windows.into_iter().map(|(window, _)| window).collect();
        for blame in side.joined.blames.iter().filter(|blame| is_alone(blame)) {
            let within = steal::holds(&windows, blame.detour.start.as_nanos());
            all = all.saturating_add(blame.left_ns);
            inside = inside.saturating_add(if within { blame.left_ns } else { 0 });
            by_chance += share * blame.left_ns as f64;
        }
    }
    let (share, chance) = (percent(inside, all)?, 100.0 * by_chance / all as f64);
    let says = format!(
        "{share:.0} % of this time lies in windows in which the hypervisor took time, {chance:.0} % would by chance: more \
         of it may be stolen than was counted"
    );
    let found = hypothesis(Suspect::Steal, share, says);
    (by_chance > 0.0 && share >= 1.5 * chance).then_some(Hypothesis { chance_percent: Some(chance), ..found })
}

/// Detours that come just after, or just before, known work more often than by chance.
fn near_known(sides: &[Side], near: &Near, alone: &Durations) -> Option<Hypothesis> {
    let (hits, all) = (near.count(), alone.len() as u64);
    let mut whose = std::collections::BTreeMap::new();
    for side in sides {
        for segment in proximity::neighbours(&split::alone(side).detours, &side.joined.segments, near.which) {
            *whose.entry(&side.intervals[segment].source).or_insert(0u64) += 1;
        }
    }
    let share = percent(hits, all)?;
    let chance = 100.0 * near.chance().mean() / all as f64;
    let beyond = near.chance().seldom_gives(hits);
    let (source, most) = whose.into_iter().max_by_key(|(_, count)| *count)?;
    let says = format!(
        "{share:.0} % of these detours come within {} {} known work of the kernel, {chance:.0} % would by chance; most \
         often it is `{source}` ({most} times): they may belong to it",
        Nanos::from_nanos(proximity::REACH_NS),
        near.which.word(),
    );
    let found = hypothesis(Suspect::NearKnown, share, says);
    (hits >= proximity::FEWEST && beyond && share >= 1.5 * chance)
        .then_some(Hypothesis { chance_percent: Some(chance), ..found })
}

/// Detours without an interval that strike all CPUs at the same time, more often than by chance.
fn whole_machine(recording: &Recording, found: &Simultaneous, alone: &Durations) -> Hypothesis {
    let of_all = |strikes: f64| 100.0 * strikes * f64::from(found.cpus) / alone.len() as f64;
    let says = format!(
        "{} times all {} CPUs have such a detour at the same time, for {} in all and up to {} ({:.1} times by chance): the whole machine may have \
         stood still, as under the hypervisor, a system management interrupt or a bus that waits{}",
        found.strikes,
        found.cpus,
        Nanos::from_nanos(found.total_ns),
        Nanos::from_nanos(found.longest_ns),
        found.by_chance,
        smis(recording)
            .map_or_else(String::new, |smis| format!(" (the processor counted {smis} such interrupts)")),
    );
    let chance = Some(of_all(found.by_chance));
    let hypothesis = hypothesis(Suspect::WholeMachine, of_all(found.strikes as f64), says);
    Hypothesis { chance_percent: chance, ..hypothesis }
}

/// Trains among the detours without an interval: the strongest of each CPU, at most three.
fn periodic(sides: &[Side]) -> Vec<Hypothesis> {
    let of_cpu = |side: &Side| {
        let alone: Vec<_> =
            side.joined.blames.iter().filter(|blame| is_alone(blame)).map(|blame| blame.detour).collect();
        let count = alone.len() as u64;
        let trace = Trace { cpu: side.cpu, span: side.span, detours: alone };
        let period = periods(&trace).into_iter().next()?;
        let share = percent(period.events, count)?;
        let says = format!(
            "{} of the {count} on CPU {} come every {} (median {}, {} in all): something on a timer",
            period.events,
            side.cpu,
            Nanos::from_nanos_f64(period.period_ns).unwrap_or_default(),
            Nanos::from_nanos(period.median_duration_ns),
            Nanos::from_nanos(period.noise_ns),
        );
        let found = hypothesis(Suspect::Periodic, share, says);
        Some((period.noise_ns, Hypothesis { period_ns: Some(period.period_ns), ..found }))
    };
    let mut found: Vec<(u64, Hypothesis)> = sides.par_iter().filter_map(of_cpu).collect();
    found.sort_by_key(|(noise, _)| std::cmp::Reverse(*noise));
    found.into_iter().take(3).map(|(_, hypothesis)| hypothesis).collect()
}

/// Detours on CPUs that the processor slowed. It counts how often, and not when.
fn throttled(recording: &Recording, sides: &[Side], alone: &Durations) -> Option<Hypothesis> {
    let slowed = |facts: &&CpuFacts| facts.throttling.is_some_and(Throttling::has_slowed);
    let slowed: BTreeSet<Cpu> =
        recording.manifest.cpus.iter().filter(slowed).map(|facts| facts.cpu).collect();
    let of = |side: &&Side| slowed.contains(&side.cpu);
    let on_them: usize = sides.iter().filter(of).map(|side| split::alone(side).detours.len()).sum();
    let throttling = recording
        .manifest
        .cpus
        .iter()
        .filter_map(|facts| facts.throttling)
        .max_by_key(|one| (one.total_ns, one.times))?;
    let says = format!(
        "{on_them} of these detours are on CPUs that the processor slowed because of heat, up to {} times and for {}: the change of \
         frequency itself stops a CPU, and slow turns of the loop may count",
        throttling.times, throttling.total_ns,
    );
    (on_them > 0).then(|| {
        hypothesis(Suspect::Throttling, percent(on_them as u64, alone.len() as u64).unwrap_or(0.0), says)
    })
}

/// Detours of less than twice the probe's resolution or threshold, whichever is larger.
fn near_resolution(recording: &Recording, sides: &[Side], alone: &Durations) -> Option<Hypothesis> {
    let limit_ns = split::near_resolution_ns(&recording.manifest);
    let (mut short, mut short_ns) = (0u64, 0u64);
    for side in sides {
        let limit = limit_ns(side.cpu)?;
        let of = side.joined.blames.iter().filter(|blame| is_alone(blame)).map(|blame| blame.left_ns);
        for ns in of.filter(|&ns| (ns as f64) < limit) {
            short += 1;
            short_ns += ns;
        }
    }
    let share = percent(short, alone.len() as u64)?;
    let share_of_time = percent(short_ns, alone.total())?;
    let says = format!(
        "{share:.0} % of these detours, with {share_of_time:.0} % of their time, are shorter than twice the shortest detour \
         that the probe records: these may be the memory system or the probe's own loop"
    );
    (share >= 10.0).then(|| hypothesis(Suspect::NearResolution, share, says))
}

/// System management interrupts while it was recorded, where the processor's count is known. Each stops all CPUs, so the counts of CPUs differ
/// by little.
fn smis(recording: &Recording) -> Option<u64> {
    recording.manifest.cpus.iter().filter_map(|facts| facts.smis).max()
}

/// Causes that the kernel cannot see at all.
fn by_elimination(recording: &Recording, alone: &Durations) -> Hypothesis {
    let vm = recording.manifest.warnings.contains(&Warning::VirtualMachine);
    let kind = if vm { Suspect::HypervisorExits } else { Suspect::FirmwareOrSibling };
    // A system management interrupt strikes a CPU once.
    let most = |smis: u64| smis.saturating_mul(recording.manifest.cpus.len() as u64);
    let who = match smis(recording) {
        _ if vm => "exits to the hypervisor, which its account of stolen time leaves out".to_owned(),
        None => "firmware (SMI), or the core's other hardware thread".to_owned(),
        Some(0) => {
            "the core's other hardware thread; the processor counted no system management interrupt (SMI)"
                .to_owned()
        }
        Some(smis) if most(smis) < alone.len() as u64 => format!(
            "the core's other hardware thread; or firmware, for some of them: the processor counted {smis} system \
             management interrupts (SMI)"
        ),
        Some(smis) => format!("firmware: the processor counted {smis} system management interrupts (SMI)"),
    };
    let median = alone.quantile(0.5).unwrap_or(0);
    let says = format!(
        "{} detours contain no interval that the kernel reported (median {}, {} in all): they may be {who}",
        alone.len(),
        Nanos::from_nanos(median),
        Nanos::from_nanos(alone.total()),
    );
    hypothesis(kind, 100.0, says)
}
