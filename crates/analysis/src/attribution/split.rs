//! What is known of the detours that hold no interval: each is in the first class that fits it, with the number that chance would put there.

use std::collections::BTreeMap;

use quell_recording::{Cpu, CpuFacts, Manifest, Span};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::Side;
use super::blame::Blame;
use super::left_over::LeftOver;
use super::{proximity, steal};
use crate::chance::{Chance, shifted, shifts};
use crate::simultaneous::{self, CpuDetours, Strikes};
use crate::stats::Durations;
use crate::time_range::TimeRange;

/// Detours without an interval, of one class.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlonePart {
    /// The class.
    pub class: AloneClass,
    /// Their unattributed time.
    pub left: LeftOver,
    /// Number of detours that chance would put into the class: about that many of them are blamed falsely. Absent if chance does not apply.
    pub by_chance: Option<f64>,
}

/// What is known of detours without an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AloneClass {
    /// All CPUs have such a detour at the same time: the whole machine stood still.
    AllCpus,
    /// They lie in windows in which the hypervisor took time from this CPU, beyond the time that it counted.
    Stolen,
    /// They come just after or just before known work of the kernel.
    NearKnown,
    /// They are shorter than twice the shortest detour that the probe records: memory, or the probe's own loop.
    NearResolution,
    /// Nothing is known of them.
    Rest,
}

impl AloneClass {
    /// In a table, below the row of all detours without an interval.
    pub fn words(self) -> &'static str {
        match self {
            Self::AllCpus => "  on all CPUs at once",
            Self::Stolen => "  while time was stolen",
            Self::NearKnown => "  close to known work",
            Self::NearResolution => "  close to the resolution",
            Self::Rest => "  the rest",
        }
    }
}

/// The number of lengths: powers of two, in ns.
const BANDS: usize = u64::BITS as usize;
/// A class has detours of a length if chance gives at most this share of as many.
const MOST_BY_CHANCE: f64 = 0.5;

/// What is known of the detours of each length that are more than chance gives.
#[derive(Debug)]
pub(super) struct Evidence {
    pub strikes: Option<Strikes>,
    stolen: Option<Bands>,
    pub near: [Near; 2],
    /// Number of detours of no earlier class that chance puts close to known work.
    near_by_chance: f64,
}

/// A CPU's detours without an interval.
struct AloneOnCpu<'a> {
    detours: Vec<TimeRange>,
    busy: &'a [TimeRange],
    /// In which the hypervisor took time.
    windows: Vec<TimeRange>,
    span: Span,
}

/// Number of detours of each length.
type Lengths = [f64; BANDS];

/// Detours on one side of known work.
#[derive(Debug)]
pub(super) struct Near {
    pub which: proximity::Side,
    found: Lengths,
    /// With the known work moved.
    by_shift: Vec<Lengths>,
    bands: Option<Bands>,
}

/// The lengths of which a class has detours. Each doubling of length stands for itself, because short detours are many and long ones few.
#[derive(Debug, PartialEq)]
struct Bands {
    chosen: [bool; BANDS],
    /// Number of detours of these lengths that chance gives.
    by_chance: f64,
}

impl Evidence {
    pub fn from_sides(sides: &[Side]) -> Self {
        let strikes = simultaneous::strikes(&sides.iter().map(alone).collect::<Vec<_>>());
        let strikes = strikes.filter(|strikes| strikes.found.strikes > 0);
        let mut cpus: Vec<AloneOnCpu> = sides.iter().map(AloneOnCpu::from_side).collect();
        let near = Near::both(&cpus);
        // The further classes are of what is left.
        for cpu in &mut cpus {
            cpu.detours.retain(|detour| !strikes.as_ref().is_some_and(|strikes| strikes.hold(*detour)));
        }
        let stolen = stolen(&cpus);
        for AloneOnCpu { detours, windows, .. } in &mut cpus {
            let is_stolen =
                |detour: &TimeRange| has(stolen.as_ref(), *detour) && steal::holds(windows, detour.start);
            detours.retain(|detour| !is_stolen(detour));
        }
        let near_by_chance = near_by_chance(&cpus, &near);
        Self { strikes, stolen, near, near_by_chance }
    }
}

impl<'a> AloneOnCpu<'a> {
    fn from_side(side: &'a Side) -> Self {
        let windows = steal_windows(side);
        Self { detours: alone(side).detours, busy: &side.joined.busy, windows, span: side.span }
    }

    fn shift(&self, n: u64) -> Shifted<'_> {
        let busy = shifted(self.busy, self.span, n);
        let is_free = |detour: &&TimeRange| {
            let next = busy.partition_point(|busy| busy.end <= detour.start);
            !busy.get(next).is_some_and(|busy| busy.meets(**detour))
        };
        let free = self.detours.iter().filter(is_free).copied().collect();
        Shifted { cpu: self, busy, free }
    }
}

/// The same CPU, with the known work moved.
struct Shifted<'a> {
    cpu: &'a AloneOnCpu<'a>,
    busy: Vec<TimeRange>,
    /// The detours that meet none of it: those without an interval do not, so no others must count.
    free: Vec<TimeRange>,
}

impl Shifted<'_> {
    /// Number of detours of each length that are near it, from the share of the free ones; all of a length of which none is free, because nothing
    /// is known of them.
    fn near(&self, is_near: impl Fn(TimeRange, &[TimeRange]) -> bool) -> Lengths {
        let near = by_length(self.free.iter().filter(|detour| is_near(**detour, &self.busy)));
        let (free, all) = (by_length(&self.free), by_length(&self.cpu.detours));
        std::array::from_fn(
            |band| {
                if free[band] > 0.0 { near[band] / free[band] * all[band] } else { all[band] }
            },
        )
    }
}

impl Bands {
    fn choose(found: &Lengths, by_shift: &[Lengths]) -> Option<Self> {
        let mut bands = Self { chosen: [false; BANDS], by_chance: 0.0 };
        for (band, found) in found.iter().enumerate() {
            let chance = Chance::from_shifts(by_shift.iter().map(|lengths| lengths[band]));
            if chance.is_exceeded(*found as u64, MOST_BY_CHANCE) {
                bands.chosen[band] = true;
                bands.by_chance += chance.mean();
            }
        }
        bands.chosen.contains(&true).then_some(bands)
    }

    fn has(&self, detour: TimeRange) -> bool {
        self.chosen[band(detour)]
    }
}

fn has(bands: Option<&Bands>, detour: TimeRange) -> bool {
    bands.is_some_and(|bands| bands.has(detour))
}

fn band(detour: TimeRange) -> usize {
    detour.length().max(1).ilog2() as usize
}

fn by_length<'a>(detours: impl IntoIterator<Item = &'a TimeRange>) -> Lengths {
    let mut counts = [0.0; BANDS];
    detours.into_iter().for_each(|detour| counts[band(*detour)] += 1.0);
    counts
}

fn sum_of(all: impl IntoIterator<Item = Lengths>) -> Lengths {
    all.into_iter().fold([0.0; BANDS], |sum, one| std::array::from_fn(|band| sum[band] + one[band]))
}

/// What each shift gives.
fn each_shift<T: Send>(cpus: &[AloneOnCpu], count: impl Fn(u64) -> T + Sync + Send) -> Vec<T> {
    let ranges = cpus.iter().map(|cpu| (cpu.detours.len() + cpu.busy.len()) as u64).sum();
    (0..shifts(ranges)).into_par_iter().map(count).collect()
}

/// Detours in windows of stolen time, beyond what was counted as stolen.
fn stolen(cpus: &[AloneOnCpu]) -> Option<Bands> {
    let inside = |cpu: &AloneOnCpu, windows: &[TimeRange]| {
        by_length(cpu.detours.iter().filter(|detour| steal::holds(windows, detour.start)))
    };
    let found = sum_of(cpus.iter().map(|cpu| inside(cpu, &cpu.windows)));
    let of_shift = |n| sum_of(cpus.iter().map(|cpu| inside(cpu, &shifted(&cpu.windows, cpu.span, n))));
    Bands::choose(&found, &each_shift(cpus, of_shift))
}

fn steal_windows(side: &Side) -> Vec<TimeRange> {
    steal::windows(side.intervals).into_iter().map(|(window, _)| window).collect()
}

impl Near {
    fn both(cpus: &[AloneOnCpu]) -> [Self; 2] {
        let sides = [proximity::Side::After, proximity::Side::Before];
        let by_shift = each_shift(cpus, |n| {
            let cpus: Vec<Shifted> = cpus.iter().map(|cpu| cpu.shift(n)).collect();
            sides.map(|which| {
                let is_near = |detour, busy: &[TimeRange]| proximity::is_near(detour, busy, which);
                sum_of(cpus.iter().map(|cpu| cpu.near(is_near)))
            })
        });
        [0, 1].map(|side| {
            let which = sides[side];
            let near = |cpu: &AloneOnCpu| {
                by_length(cpu.detours.iter().filter(|one| proximity::is_near(**one, cpu.busy, which)))
            };
            let found = sum_of(cpus.iter().map(near));
            let by_shift: Vec<Lengths> = by_shift.iter().map(|sides| sides[side]).collect();
            let bands = Bands::choose(&found, &by_shift);
            Self { which, found, by_shift, bands }
        })
    }

    /// The number of detours, of any length.
    pub fn count(&self) -> u64 {
        self.found.iter().sum::<f64>() as u64
    }

    /// The number by chance, of any length.
    pub fn chance(&self) -> Chance {
        Chance::from_shifts(self.by_shift.iter().map(|shift| shift.iter().sum()))
    }

    fn has(&self, detour: TimeRange, busy: &[TimeRange]) -> bool {
        has(self.bands.as_ref(), detour) && proximity::is_near(detour, busy, self.which)
    }
}

/// Number of these detours that chance puts close to known work, on either side.
fn near_by_chance(cpus: &[AloneOnCpu], near: &[Near; 2]) -> f64 {
    if near.iter().all(|near| near.bands.is_none()) {
        return 0.0;
    }
    let counts = each_shift(cpus, |n| {
        let is_near = |detour, busy: &[TimeRange]| near.iter().any(|near| near.has(detour, busy));
        let all = sum_of(cpus.iter().map(|cpu| cpu.shift(n).near(is_near)));
        // Of a length of which nothing is close, none is, free or not.
        let chosen = |band: &usize| {
            near.iter().any(|near| near.bands.as_ref().is_some_and(|bands| bands.chosen[*band]))
        };
        (0..BANDS).filter(chosen).map(|band| all[band]).sum()
    });
    Chance::from_shifts(counts).mean()
}

/// Whether a detour holds no interval.
pub(super) fn is_alone(blame: &Blame) -> bool {
    !blame.met && blame.left_ns > 0
}

/// The detours of a CPU that hold no interval.
pub(super) fn alone(side: &Side) -> CpuDetours {
    let alone = side.joined.blames.iter().filter(|blame| is_alone(blame)).map(|blame| blame.detour);
    CpuDetours { span: side.span, detours: alone.map(|one| TimeRange::from_detour(&one)).collect() }
}

/// Below this length a detour of a CPU is near the probe's resolution; `None` if that is not known.
pub(super) fn near_resolution_ns(manifest: &Manifest) -> impl Fn(Cpu) -> Option<f64> {
    let facts: BTreeMap<Cpu, &CpuFacts> = manifest.cpus.iter().map(|facts| (facts.cpu, facts)).collect();
    move |cpu| Some(2.0 * facts.get(&cpu)?.resolution_ns?.max(manifest.threshold_ns.unwrap_or(0.0)))
}

/// The classes that have detours, in order; nothing if all is in the rest.
pub(super) fn split(manifest: &Manifest, sides: &[Side], evidence: &Evidence) -> Vec<AlonePart> {
    let near_resolution_ns = near_resolution_ns(manifest);
    let mut lengths = BTreeMap::<AloneClass, Vec<u64>>::new();
    for side in sides {
        let windows = steal_windows(side);
        let limit = near_resolution_ns(side.cpu).unwrap_or(0.0);
        let is_near = |detour| evidence.near.iter().any(|near| near.has(detour, &side.joined.busy));
        for blame in side.joined.blames.iter().filter(|blame| is_alone(blame)) {
            let detour = TimeRange::from_detour(&blame.detour);
            let class = if evidence.strikes.as_ref().is_some_and(|strikes| strikes.hold(detour)) {
                AloneClass::AllCpus
            } else if has(evidence.stolen.as_ref(), detour) && steal::holds(&windows, detour.start) {
                AloneClass::Stolen
            } else if is_near(detour) {
                AloneClass::NearKnown
            } else if (blame.left_ns as f64) < limit {
                AloneClass::NearResolution
            } else {
                AloneClass::Rest
            };
            lengths.entry(class).or_default().push(blame.left_ns);
        }
    }
    if lengths.keys().eq([&AloneClass::Rest]) {
        return Vec::new();
    }
    let by_chance = |class| match class {
        AloneClass::AllCpus => {
            let strikes = &evidence.strikes.as_ref()?.found;
            Some(strikes.by_chance * f64::from(strikes.cpus))
        }
        AloneClass::Stolen => evidence.stolen.as_ref().map(|bands| bands.by_chance),
        AloneClass::NearKnown => Some(evidence.near_by_chance),
        AloneClass::NearResolution | AloneClass::Rest => None,
    };
    let part = |(class, lengths)| {
        let left = LeftOver::from_summary(Durations::new(lengths).summary());
        AlonePart { class, left, by_chance: by_chance(class) }
    };
    lengths.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use quell_recording::{Detour, Interval, Nanos};
    use quell_sim::Draws;

    use super::*;
    use crate::attribution::attribution;
    use crate::attribution::fixture::{detour, recording, steal, tick, trace};

    const SPAN: u64 = 20_000_000_000;

    /// Detours of this length at random times, a number a second.
    fn random(seed: u64, per_s: f64, length: u64) -> Vec<Detour> {
        let draws = Draws::new(seed, &[]);
        let gaps = (0..).map(|index| (-(1.0 - draws.unit(index)).ln() * 1e9 / per_s) as u64 + length);
        let starts = gaps.scan(0, |at, gap| Some(std::mem::replace(at, *at + gap)).map(|_| *at));
        starts.take_while(|start| start + length < SPAN).map(|start| detour(start, length)).collect()
    }

    /// Of two CPUs with these detours and intervals: those that overlap an earlier one are left out.
    fn parts(cpus: [(Vec<Detour>, Vec<Interval>); 2]) -> Vec<AlonePart> {
        let (mut traces, mut intervals) = (Vec::new(), Vec::new());
        for (cpu, (mut detours, of_cpu)) in (1..).zip(cpus) {
            detours.sort_by_key(|one| one.start);
            let mut end = 0;
            detours.retain(|one| {
                let free = one.start.as_nanos() >= end;
                end = if free { one.end().as_nanos() } else { end };
                free
            });
            traces.push(quell_recording::Trace { cpu: Cpu(cpu), ..trace(SPAN, detours) });
            intervals.push(of_cpu);
        }
        let mut made = recording(traces, intervals);
        made.manifest.cpus.iter_mut().for_each(|facts| facts.resolution_ns = Some(50.0));
        attribution(&made).explained.unwrap().unattributed.parts
    }

    fn count_of(parts: &[AlonePart], class: AloneClass) -> (u64, f64) {
        let part = parts.iter().find(|part| part.class == class);
        part.map_or((0, 0.0), |part| (part.left.count, part.by_chance.unwrap_or(0.0)))
    }

    /// Work of the kernel on a CPU, which explains nothing else.
    fn ticks(shift: u64) -> (Vec<Detour>, Vec<Interval>) {
        let starts = (0..4_990).map(|i| i * 4_000_000 + shift);
        starts.map(|start| (detour(start, 2_000), tick(start, 2_000))).unzip()
    }

    #[test]
    fn each_detour_is_in_the_class_that_it_was_made_for() {
        let stops = random(1, 20.0, 200_000);
        let cpu = |n: u64| {
            let (mut detours, mut intervals) = ticks(1_000_000 * n);
            let stopped = |start: Nanos| {
                stops.iter().any(|stop| stop.start.as_nanos().abs_diff(start.as_nanos()) < 300_000)
            };
            intervals.retain(|one| !stopped(one.start));
            // In windows of 1 ms, of which 30 us were counted as stolen.
            let mine = random(10 + n, 10.0, 70_000);
            intervals.extend(
                mine.iter().map(|one| steal(one.start.as_nanos().saturating_sub(400_000), 1_000_000, 30_000)),
            );
            intervals.sort_by_key(|one| one.start);
            detours.extend(mine);
            detours.extend(random(20 + n, 40.0, 80));
            detours.extend(random(30 + n, 30.0, 5_000));
            // 3 us after every fifth tick.
            detours.extend((0..900).map(|i| detour(i * 20_000_000 + 1_000_000 * n + 5_000, 500)));
            detours.retain(|one| !stopped(one.start));
            detours.extend(&stops);
            (detours, intervals)
        };
        let found = parts([cpu(0), cpu(1)]);
        // Some are left out because they overlap others.
        let near = |(count, by_chance): (u64, f64), made: f64| {
            (count as f64 - made).abs() <= 0.05 * made + 2.0 * by_chance
        };
        assert!(near(count_of(&found, AloneClass::AllCpus), 2.0 * stops.len() as f64), "{found:?}");
        assert!(near(count_of(&found, AloneClass::Stolen), 400.0), "{found:?}");
        assert!(near(count_of(&found, AloneClass::NearKnown), 1_800.0), "{found:?}");
        assert!(near(count_of(&found, AloneClass::NearResolution), 1_600.0), "{found:?}");
        assert!(near(count_of(&found, AloneClass::Rest), 1_200.0), "{found:?}");
    }

    /// Noise that has nothing to do with anything: no more than one in a hundred is blamed falsely.
    #[test]
    fn independent_noise_is_in_the_rest() {
        for seed in 0..8 {
            let cpu = |n: u64| {
                let (mut detours, mut intervals) = ticks(1_700_000 * n);
                detours.extend(random(100 * seed + n, 100.0, 20_000));
                let windows = random(100 * seed + 10 + n, 10.0, 1_000_000);
                intervals.extend(windows.iter().map(|one| steal(one.start.as_nanos(), 1_000_000, 10)));
                intervals.sort_by_key(|one| one.start);
                (detours, intervals)
            };
            let found = parts([cpu(0), cpu(1)]);
            let all: u64 = found.iter().map(|part| part.left.count).sum();
            let (rest, _) = count_of(&found, AloneClass::Rest);
            assert!(found.is_empty() || 100 * (all - rest) <= all, "{found:?}");
        }
    }
}
