//! How the time of loads from memory varies, and what makes them slower: the kernel, the core itself, or others' use of caches and memory.
//!
//! Each CPU times loads from its own first cache, from the shared cache and from main memory in turn. What slows the first slows the core:
//! its frequency, the hypervisor. What slows only the others comes from outside the core.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Cpu, Interval, MemoryLevel, Method, Quanta, Recording};
use quell_sim::Draws;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::attribution::{activity, is_own, own_pid};
use crate::stats::{ascending, mean, nearest_rank};
use crate::time_range::TimeRange;

/// Length of a window, whose median stands for all loads of a level in it.
const WINDOW_NS: u64 = 20_000_000;
/// Fewest undisturbed quanta of a window whose median counts, and fewest such windows that show what is quiet.
const FEWEST: usize = 8;
const FEWEST_WINDOWS: usize = 20;
/// A window is slower if chance makes it as slow with at most this probability.
const RARE: f64 = 1e-3;
/// The quantile of the windows that counts as the quietest: some may hold fewer loads, or luckier ones.
const QUIET: f64 = 0.05;
/// Number of times that quanta are shuffled over the windows, to know what chance gives, and how many stay together then: neighbours are alike.
const SHUFFLES: u64 = 8;
const BLOCK: usize = 8;

/// Loads from one level by one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct MemoryRow {
    /// The CPU.
    #[column(title = "CPU", id)]
    pub cpu: u32,
    /// The level: `core` (the core's own first cache), `shared cache` or `main memory`.
    #[column(title = "loads from", words)]
    pub level: String,
    /// Bytes of the lines that are loaded.
    #[column(title = "bytes", page)]
    pub bytes: u64,
    /// Number of quanta, each of which is many loads.
    #[column(page)]
    pub quanta: u64,
    /// How long they were recorded.
    #[column(title = "watched", page)]
    pub span_ns: u64,
    /// The usual time of a load in the quietest moments: the 5th percentile of the medians of windows of 20 ms, less what chance
    /// makes of it.
    #[column(title = "quiet")]
    pub quiet_ns: f64,
    /// Median time of a load, over all quanta.
    #[column(title = "p50")]
    pub p50_ns: f64,
    /// 99th percentile.
    #[column(title = "p99")]
    pub p99_ns: f64,
    /// Time above that of the quietest moments, in percent of it: all loads together.
    #[column(title = "slower %", precision = 2)]
    pub slower_percent: f64,
    /// The part of it in which the kernel or another task had the CPU; null if sources are not known.
    #[column(title = "kernel %", precision = 2)]
    pub kernel_percent: Option<f64>,
    /// The part that is as long for loads from the core's own cache in the same windows: an upper bound, since memory has a clock of its own.
    #[column(title = "core %", precision = 2)]
    pub core_percent: f64,
    /// The part in windows whose usual load was slower, beyond what the core explains: others used the cache or the memory. A lower bound.
    #[column(title = "memory %", precision = 2)]
    pub memory_percent: f64,
    /// What chance would put there (for the core: into *core*): the mean of eight recordings with the same differences of loads from the median of their
    /// window, in random order.
    #[column(title = "by chance %", precision = 2)]
    pub chance_percent: f64,
    /// The rest: single slow loads, and what lasts for less than a window. Below zero where most, but not all, of slow windows was slow.
    #[column(title = "rest %", precision = 2)]
    pub rest_percent: f64,
}

/// Figures of each CPU and level; empty for other methods.
pub(crate) fn memory(recording: &Recording) -> Vec<MemoryRow> {
    if recording.manifest.method != Method::Memory {
        return Vec::new();
    }
    let levels = &recording.manifest.memory;
    let is_known = recording.manifest.sources.as_ref().is_some_and(|facts| facts.unknown_because.is_none());
    let own_pid = own_pid(recording);
    let per_cpu = |series: &Quanta| {
        let side = recording.intervals.iter().find(|side| side.cpu == series.cpu).filter(|_| is_known);
        rows(series, levels, side.map(|side| (side.intervals.as_slice(), own_pid)))
    };
    recording.quanta.par_iter().flat_map_iter(per_cpu).collect()
}

/// The time of loads in one quantum.
#[derive(Clone, Copy, Debug)]
struct Sample {
    window: u64,
    /// Mean time of a load, in ns, the kernel's included.
    load_ns: f64,
    /// The part of it that the kernel took.
    kernel_ns: f64,
}

impl Sample {
    fn is_clean(&self) -> bool {
        self.kernel_ns == 0.0
    }
}

fn rows(series: &Quanta, levels: &[MemoryLevel], side: Option<(&[Interval], Option<u32>)>) -> Vec<MemoryRow> {
    let samples = samples(series, levels, side);
    let windows = Windows::of_levels(&samples);
    let parts = split(&samples, &windows);
    let by_chance = |number| {
        let shuffled = shuffled(&samples, &windows, number);
        split(&shuffled, &Windows::of_levels(&shuffled))
    };
    let by_chance: Vec<Vec<Parts>> = (0..SHUFFLES).map(by_chance).collect();
    let end =
        series.quanta.last().map_or(0, |last| last.start.as_nanos().saturating_add(last.duration.as_nanos()));
    let span_ns = end.saturating_sub(series.quanta.first().map_or(0, |first| first.start.as_nanos()));
    let row = |(at, level): (usize, &MemoryLevel)| {
        let (samples, parts) = (&samples[at], &parts[at]);
        let times = ascending(samples.iter().map(|one| one.load_ns));
        let quiet_ns = parts.quiet_ns?;
        let percent = |ns: f64| 100.0 * ns / quiet_ns;
        let chance = by_chance.iter().map(|all| if at == 0 { all[at].core_ns } else { all[at].memory_ns });
        let Cpu(cpu) = series.cpu;
        Some(MemoryRow {
            cpu,
            level: level.name.to_string(),
            bytes: level.bytes,
            quanta: samples.len() as u64,
            span_ns,
            quiet_ns,
            p50_ns: nearest_rank(&times, 0.5)?,
            p99_ns: nearest_rank(&times, 0.99)?,
            slower_percent: percent(parts.slower_ns),
            kernel_percent: side.map(|_| percent(parts.kernel_ns)),
            core_percent: percent(parts.core_ns),
            memory_percent: percent(parts.memory_ns),
            chance_percent: percent(mean(chance)?),
            rest_percent: percent(parts.slower_ns - parts.kernel_ns - parts.core_ns - parts.memory_ns),
        })
    };
    levels.iter().enumerate().filter_map(row).collect()
}

/// The quanta of each level, with what the kernel took of each. Those in which quell itself worked are left out.
fn samples(
    series: &Quanta,
    levels: &[MemoryLevel],
    side: Option<(&[Interval], Option<u32>)>,
) -> Vec<Vec<Sample>> {
    let (intervals, own_pid) = side.unwrap_or_default();
    let busy = Covered::new(activity::busy(&activity::innermost(intervals)));
    let own = intervals.iter().filter(|one| is_own(one, own_pid)).map(TimeRange::from_interval);
    let own = Covered::new(own.collect());
    let mut samples = vec![Vec::new(); levels.len()];
    for quantum in &series.quanta {
        let level = usize::try_from(quantum.work).unwrap_or(usize::MAX);
        let (Some(facts), Some(of_level)) = (levels.get(level), samples.get_mut(level)) else { continue };
        let start = quantum.start.as_nanos();
        let range = TimeRange { start, end: start.saturating_add(quantum.duration.as_nanos()) };
        if range.length() == 0 || own.within(range) > 0 {
            continue;
        }
        let loads = f64::from(facts.loads.max(1));
        of_level.push(Sample {
            window: start / WINDOW_NS,
            load_ns: range.length() as f64 / loads,
            kernel_ns: busy.within(range) as f64 / loads,
        });
    }
    samples.iter_mut().for_each(|level| level.sort_by_key(|one| one.window));
    samples
}

/// Ranges of time in order, without overlaps.
struct Covered {
    ranges: Vec<TimeRange>,
    /// The time that those before each range take.
    before: Vec<u64>,
}

impl Covered {
    fn new(ranges: Vec<TimeRange>) -> Self {
        let sum = |sum: &mut u64, range: &TimeRange| {
            let before = *sum;
            *sum = sum.saturating_add(range.length());
            Some(before)
        };
        let before = ranges.iter().scan(0, sum).collect();
        Self { ranges, before }
    }

    /// How much of a range they take.
    fn within(&self, range: TimeRange) -> u64 {
        self.until(range.end).saturating_sub(self.until(range.start))
    }

    fn until(&self, time: u64) -> u64 {
        let Some(last) = self.ranges.partition_point(|one| one.start < time).checked_sub(1) else { return 0 };
        let TimeRange { start, end } = self.ranges[last];
        self.before[last].saturating_add(end.min(time).saturating_sub(start))
    }
}

/// What made loads slower, in ns of a mean load.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    /// None if too little was recorded to know it.
    quiet_ns: Option<f64>,
    slower_ns: f64,
    kernel_ns: f64,
    core_ns: f64,
    memory_ns: f64,
}

/// The windows of one level.
#[derive(Default)]
struct Windows {
    /// The median of each window that has enough undisturbed quanta, and the number of its quanta; by window, ascending.
    medians: Vec<(u64, f64, usize)>,
    quiet_ns: Option<f64>,
    /// A median above this is not chance.
    limit_ns: f64,
}

impl Windows {
    fn new(samples: &[Sample]) -> Option<Self> {
        let of_window = |window: &[Sample]| {
            let clean = ascending(window.iter().filter(|one| one.is_clean()).map(|one| one.load_ns));
            let median = nearest_rank(&clean, 0.5).filter(|_| clean.len() >= FEWEST)?;
            Some((window[0].window, median, window.len(), clean))
        };
        let found: Vec<_> =
            samples.chunk_by(|one, other| one.window == other.window).filter_map(of_window).collect();
        if found.len() < FEWEST_WINDOWS {
            return None;
        }
        let medians = ascending(found.iter().map(|one| one.1));
        let middle = nearest_rank(&medians, 0.5)?;
        // The quieter half: slow windows may vary more.
        let quieter = || found.iter().filter(|one| one.1 <= middle);
        let residuals = ascending(
            quieter().flat_map(|(_, median, _, clean)| clean.iter().map(move |load| load - median)),
        );
        let size = nearest_rank(&ascending(quieter().map(|one| one.3.len() as f64)), 0.5)? as usize;
        let spread = |p: f64| quantile_of_median(&residuals, size, p);
        let rank = (QUIET * medians.len() as f64).ceil().max(1.0);
        // Of equal windows the one of this rank lies that much below their centre.
        let quiet_ns = medians.get(rank as usize - 1)? - spread(rank / (medians.len() + 1) as f64)?;
        let limit_ns = quiet_ns + spread(1.0 - RARE)?;
        let medians = found.into_iter().map(|(window, median, size, _)| (window, median, size)).collect();
        (quiet_ns > 0.0).then_some(Self { medians, quiet_ns: Some(quiet_ns), limit_ns })
    }

    fn of_levels(levels: &[Vec<Sample>]) -> Vec<Self> {
        levels.iter().map(|samples| Self::new(samples).unwrap_or_default()).collect()
    }

    fn median(&self, window: u64) -> Option<f64> {
        let at = self.medians.binary_search_by_key(&window, |one| one.0).ok()?;
        Some(self.medians[at].1)
    }

    /// How many times slower the core was in a window; 1 if that may be chance.
    fn slowdown(&self, window: u64) -> f64 {
        let found = self.median(window).filter(|median| *median > self.limit_ns);
        found.zip(self.quiet_ns).map_or(1.0, |(median, quiet)| median / quiet)
    }
}

/// The quantile of the median of `size` values, each drawn from these: the lower median is the order statistic of rank k = (n + 1) / 2, whose place in the
/// distribution has a beta distribution with k and n − k + 1 (David & Nagaraja, "Order Statistics", 2003, 2.1).
fn quantile_of_median(ascending: &[f64], size: usize, p: f64) -> Option<f64> {
    let rank = size.div_ceil(2);
    let place = Beta::new(rank as f64, (size - rank + 1) as f64).ok()?.inverse_cdf(p);
    nearest_rank(ascending, place)
}

/// Of each level; the first one is the core's.
fn split(levels: &[Vec<Sample>], windows: &[Windows]) -> Vec<Parts> {
    let Some(core) = windows.first() else { return Vec::new() };
    let parts = |(at, (samples, mine)): (usize, (&Vec<Sample>, &Windows))| {
        let Some(quiet) = mine.quiet_ns else { return Parts::default() };
        let count = samples.len().max(1) as f64;
        let slower_ns = samples.iter().map(|one| one.load_ns - quiet).sum::<f64>() / count;
        let kernel_ns = samples.iter().map(|one| one.kernel_ns).sum::<f64>() / count;
        let mut parts = Parts { quiet_ns: Some(quiet), slower_ns, kernel_ns, ..Parts::default() };
        for &(window, median, size) in &mine.medians {
            let weight = size as f64 / count;
            let above = (core.slowdown(window) - 1.0) * quiet;
            // No more than this level was slower, which may depend less on the core.
            parts.core_ns += above.min((median - quiet).max(0.0)) * weight;
            if at > 0 && median > mine.limit_ns + above {
                parts.memory_ns += (median - quiet - above) * weight;
            }
        }
        parts
    };
    levels.iter().zip(windows).enumerate().map(parts).collect()
}

/// The same loads without what their windows have in common: the difference of each from the median of its window, in random order, block by block.
fn shuffled(levels: &[Vec<Sample>], windows: &[Windows], number: u64) -> Vec<Vec<Sample>> {
    let shuffle = |(of, (samples, windows)): (u64, (&Vec<Sample>, &Windows))| {
        let mut shuffled = samples.clone();
        let Some(quiet) = windows.quiet_ns else { return shuffled };
        let draws = Draws::new(number, &[1, of]);
        let counts = |one: &Sample| one.is_clean().then(|| windows.median(one.window)).flatten();
        let loads: Vec<f64> =
            samples.iter().filter_map(|one| Some(quiet + one.load_ns - counts(one)?)).collect();
        let mut blocks: Vec<&[f64]> = loads.chunks(BLOCK).collect();
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, draws.below(last as u64, last as u64 + 1) as usize);
        }
        let places = shuffled.iter_mut().filter(|one| counts(one).is_some());
        places.zip(blocks.into_iter().flatten()).for_each(|(one, load)| one.load_ns = *load);
        shuffled
    };
    (0..).zip(levels.iter().zip(windows)).map(shuffle).collect()
}

#[cfg(test)]
mod tests;
