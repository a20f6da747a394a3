//! Detours that strike all observed CPUs at the same time: the whole machine stood still, as under a hypervisor that runs another guest, a
//! system management interrupt, or a bus that waits for a device.
//!
//! CPUs with independent noise are also struck at the same time now and then. How often is measured in the recording itself, with the
//! detours of the CPUs moved against each other ([`shifted`]); each doubling of length stands for itself, because short
//! detours are many and long ones few.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Span, Trace};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::chance::{Chance, shifted, shifts};
use crate::time_range::TimeRange;

/// Strikes of a length count if chance gives at most this share of as many.
const MOST_BY_CHANCE: f64 = 0.1;

/// What strikes all CPUs of a recording at the same time. quell's own detours are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Simultaneous {
    /// Number of CPUs that were observed at the same time.
    pub cpus: u32,
    /// Number of strikes, of the lengths in `bands`.
    pub strikes: u64,
    /// The time for which all CPUs stood still.
    pub total_ns: u64,
    /// The longest such time.
    pub longest_ns: u64,
    /// Number of strikes that chance would give, of these lengths.
    pub by_chance: f64,
    /// By length: only lengths of which there are more than chance gives.
    pub bands: Vec<Band>,
}

/// Strikes of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Band {
    /// The shortest of these lengths.
    #[column(title = "from")]
    pub from_ns: u64,
    /// The length at which the next begin, twice as long.
    #[column(title = "below")]
    pub below_ns: u64,
    /// Number of strikes.
    #[column]
    pub strikes: u64,
    /// Number that chance would give.
    #[column(title = "by chance", precision = 1)]
    pub by_chance: f64,
    /// The time for which all CPUs stood still.
    #[column(title = "total")]
    pub total_ns: u64,
}

/// The detours of one CPU, in order of time; none overlaps another.
#[derive(Clone, Debug)]
pub(crate) struct CpuDetours {
    pub span: Span,
    pub detours: Vec<TimeRange>,
}

impl CpuDetours {
    fn from_trace(trace: &Trace) -> Self {
        let noise = trace.detours.iter().filter(|detour| !detour.own);
        Self { span: trace.span, detours: noise.map(TimeRange::from_detour).collect() }
    }
}

/// What strikes all CPUs, and when.
#[derive(Clone, Debug)]
pub(crate) struct Strikes {
    pub found: Simultaneous,
    /// When all CPUs stood still: in order of time, without overlaps.
    at: Vec<TimeRange>,
}

impl Strikes {
    /// Whether a detour of any of the CPUs is part of one.
    pub fn hold(&self, detour: TimeRange) -> bool {
        let next = self.at.partition_point(|strike| strike.end <= detour.start);
        self.at.get(next).is_some_and(|strike| strike.start < detour.end)
    }
}

/// Of a recording's detours; `None` with fewer than two CPUs, or if any of them has none.
pub fn simultaneous(traces: &[Trace]) -> Option<Simultaneous> {
    Some(strikes(&traces.iter().map(CpuDetours::from_trace).collect::<Vec<_>>())?.found)
}

pub(crate) fn strikes(cpus: &[CpuDetours]) -> Option<Strikes> {
    let start = cpus.iter().map(|cpu| cpu.span.start).max()?;
    let end = cpus.iter().map(|cpu| cpu.span.end).min()?;
    if cpus.len() < 2 || start >= end || cpus.iter().any(|cpu| cpu.detours.is_empty()) {
        return None;
    }
    let span = Span { start, end };
    let within = |one: &&TimeRange| one.start >= start.as_nanos() && one.end <= end.as_nanos();
    let detours: Vec<Vec<TimeRange>> =
        cpus.iter().map(|cpu| cpu.detours.iter().filter(within).copied().collect()).collect();
    let found = by_length(&detours);
    let mut by_shift = Vec::new();
    if found.iter().any(|strikes| !strikes.is_empty()) {
        let others = detours.len() as u64 - 1;
        let counts = |n| -> Vec<usize> {
            let moved = (0..).zip(&detours).map(|(i, one)| match i {
                0 => one.clone(),
                i => shifted(one, span, n * others + i - 1),
            });
            by_length(&moved.collect::<Vec<_>>()).iter().map(Vec::len).collect()
        };
        let all = detours.iter().map(|one| one.len() as u64).sum();
        by_shift = (0..shifts(all)).into_par_iter().map(counts).collect();
    }
    let mut at = Vec::new();
    let mut all =
        Simultaneous { cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX), ..Simultaneous::default() };
    for (power, struck) in (0u32..).zip(found) {
        let strikes = struck.len() as u64;
        let chance = Chance::from_shifts(by_shift.iter().map(|counts| counts[power as usize] as f64));
        if !chance.is_exceeded(strikes, MOST_BY_CHANCE) {
            continue;
        }
        let by_chance = chance.mean();
        let total_ns = struck.iter().map(|strike| strike.length()).sum();
        all.strikes += strikes;
        all.total_ns += total_ns;
        let longest = struck.iter().map(|strike| strike.length()).max();
        all.longest_ns = all.longest_ns.max(longest.unwrap_or(0));
        all.by_chance += by_chance;
        let from_ns = 1u64 << power;
        all.bands.push(Band { from_ns, below_ns: from_ns.saturating_mul(2), strikes, by_chance, total_ns });
        at.extend(struck);
    }
    at.sort_unstable();
    Some(Strikes { found: all, at })
}

/// The strikes, by the power of two of their length. A strike is a detour on each CPU, of which all share at least half of the time that any
/// of them takes.
fn by_length(cpus: &[Vec<TimeRange>]) -> Vec<Vec<TimeRange>> {
    let mut bands = vec![Vec::new(); u64::BITS as usize];
    let mut firsts = vec![0; cpus.len()];
    for one in &cpus[0] {
        let (mut common, mut whole) = (*one, *one);
        for (other, first) in cpus.iter().zip(&mut firsts).skip(1) {
            while other.get(*first).is_some_and(|range| range.end <= one.start) {
                *first += 1;
            }
            let met = other[*first..].iter().take_while(|range| range.start < one.end);
            let Some(best) = met.max_by_key(|range| one.overlap(**range)) else {
                common.end = common.start;
                break;
            };
            common = TimeRange { start: common.start.max(best.start), end: common.end.min(best.end) };
            whole = TimeRange { start: whole.start.min(best.start), end: whole.end.max(best.end) };
        }
        let length = common.end.saturating_sub(common.start);
        if length > 0 && 2 * length >= whole.length() {
            bands[length.ilog2() as usize].push(common);
        }
    }
    bands
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_recording::Nanos;
    use quell_sim::Draws;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Detours at random times, with their mean number a second, and lengths between one half of `length` and three halves.
    fn random(seed: u64, per_s: u64, length: u64) -> Vec<TimeRange> {
        let draws = Draws::new(seed, &[]);
        let mut at = 0.0;
        let mut all = Vec::new();
        for index in (0..).step_by(2) {
            at += -(1.0 - draws.unit(index)).ln() * SECOND as f64 / per_s as f64;
            let start = at as u64;
            let end = start + length / 2 + (draws.unit(index + 1) * length as f64) as u64;
            if end >= 20 * SECOND {
                break;
            }
            all.push(TimeRange { start, end });
            at = end as f64;
        }
        all
    }

    fn cpu(detours: &[Vec<TimeRange>]) -> CpuDetours {
        let mut detours = detours.concat();
        detours.sort();
        let mut end = 0;
        detours.retain(|one| {
            let is_free = one.start >= end;
            end = if is_free { one.end } else { end };
            is_free
        });
        CpuDetours { span: Span { start: Nanos::ZERO, end: Nanos::from_secs(20) }, detours }
    }

    #[test]
    fn independent_noise_is_not_simultaneous_however_dense() {
        for (seed, (per_s, length)) in
            (0..).zip([(10, 5_000_000), (250, 200_000), (1_000, 10_000), (5_000, 50_000), (100, 500)])
        {
            let cpus: Vec<CpuDetours> =
                (0..2).map(|i| cpu(&[random(10 * seed + i, per_s, length)])).collect();
            let all = cpus[0].detours.len() as u64;
            let found = strikes(&cpus).unwrap().found;
            assert!(100 * found.strikes <= all, "{} of {all}: {found:?}", found.strikes);
        }
    }

    /// A job that makes both CPUs noisy in the same second.
    #[test]
    fn noise_of_the_same_second_is_not_simultaneous() {
        let noisy = |one: &TimeRange| (5 * SECOND..6 * SECOND).contains(&one.start);
        let of = |seed| random(seed, 100, 3_000_000).into_iter().filter(noisy).collect::<Vec<_>>();
        let falsely = (0..40).filter(|seed| {
            let cpus = [0, 1].map(|i| cpu(&[of(1_000 + 10 * seed + i)]));
            strikes(&cpus).is_some_and(|found| found.found.strikes > 0)
        });
        assert_eq!(falsely.count(), 0);
    }

    /// Stops of 200 µs, each CPU up to 10 µs later than the first, among noise of the same length.
    #[test]
    fn stops_of_the_whole_machine_are_found_among_other_noise() {
        for cpus in [2, 4] {
            let stops: Vec<u64> = (0..400).map(|i| i * 50_000_000 + i * i * 7_919 % 30_000_000).collect();
            let stopped = |i: u64| {
                let late = |n: u64| (n * 104_729 + i * 15_485_863) % 10_000;
                stops
                    .iter()
                    .zip(0..)
                    .map(|(at, n)| TimeRange { start: at + late(n), end: at + 200_000 })
                    .collect()
            };
            let all: Vec<CpuDetours> =
                (0..cpus).map(|i| cpu(&[stopped(i), random(i, 20, 200_000)])).collect();
            let Strikes { found, at } = strikes(&all).unwrap();
            assert!(at.len() as u64 == found.strikes && at.is_sorted_by(|a, b| a.end <= b.start));
            assert_eq!(u64::from(found.cpus), cpus);
            assert!(found.strikes >= 380 && found.strikes <= 404, "{found:?}");
            assert!(
                found.longest_ns <= 300_000 && found.bands.iter().all(|band| band.from_ns > 100_000),
                "{found:?}"
            );
        }
    }

    /// Moved by a multiple of their period, they would meet again: that is no chance.
    #[test]
    fn stops_with_a_period_are_found() {
        for periods in 50..300 {
            let every = 20_000_000;
            let start = |n: u64| n * every + every / 2;
            let stops = (0..periods).map(|n| TimeRange { start: start(n), end: start(n) + every / 100 });
            let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(periods * every) };
            let all = vec![CpuDetours { span, detours: stops.collect() }; 2];
            let found = strikes(&all).unwrap().found;
            assert_eq!(found.strikes, periods, "{found:?}");
        }
    }

    #[test]
    fn one_cpu_no_detours_and_no_common_time_say_nothing() {
        let noisy = cpu(&[random(1, 100, 1_000)]);
        let quiet = CpuDetours { detours: Vec::new(), ..noisy.clone() };
        let later = CpuDetours {
            span: Span { start: Nanos::from_secs(30), end: Nanos::from_secs(40) },
            ..noisy.clone()
        };
        assert!(strikes(&[]).is_none());
        assert!(strikes(std::slice::from_ref(&noisy)).is_none());
        assert!(strikes(&[noisy.clone(), quiet]).is_none());
        assert!(strikes(&[noisy, later]).is_none());
    }
}
