//! How the time of loads from memory varies, and what makes them slower: the kernel, the core itself, or others' use of caches and memory.
//!
//! Each CPU times loads from its own first cache, from the shared cache and from main memory in turn. What slows the first slows the core:
//! its frequency, its other hardware thread. What slows only the others comes from outside the core.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Cpu, Interval, MemoryLevel, MemoryName, Method, Quanta, Recording};
use quell_sim::Draws;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::{activity, is_own, own_pid};
use crate::stats::{MAD_TO_SIGMA, ascending, mean, median, median_low, nearest_rank, normal_quantile};
use crate::time_range::TimeRange;

/// Length of a window, whose median stands for all loads of a level in it.
const WINDOW_NS: u64 = 20_000_000;
/// Fewest quanta of a window whose median counts, and fewest such windows that show what is quiet. Where memory is slow, a window holds few.
const FEWEST: usize = 4;
const FEWEST_WINDOWS: usize = 20;
/// A window is slower if chance makes it as slow with at most this probability.
const RARE: f64 = 1e-3;
/// The quantile of the windows that counts as the quietest: some may hold fewer loads, or luckier ones.
const QUIET: f64 = 0.05;
/// Number of times that quanta are shuffled over the windows, to know what chance gives.
const SHUFFLES: u64 = 8;
/// Largest part of a quantum that the kernel may take for the rest of it to count.
const MOST_KERNEL: f64 = 0.5;

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
    /// Bytes of all its lines. Where more than sixteen CPUs of a NUMA node are recorded, each loads a part of main memory's.
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
    #[column(title = "p50", minor)]
    pub p50_ns: f64,
    /// 99th percentile.
    #[column(title = "p99", minor)]
    pub p99_ns: f64,
    /// Time above that of the quietest moments, in percent of it: all loads together.
    #[column(title = "slower %", precision = 2)]
    pub slower_percent: f64,
    /// The part of it in which the kernel or another task had the CPU; null if sources are not known, and then within the other parts.
    #[column(title = "kernel %", precision = 2)]
    pub kernel_percent: Option<f64>,
    /// The part that is as long for loads from the core's own cache in the same windows: an upper bound, since memory has a clock of its own.
    #[column(title = "core %", precision = 2)]
    pub core_percent: f64,
    /// The part in windows of 20 ms whose usual load was slower, beyond what the core explains: others used the cache or the memory.
    #[column(title = "memory %", precision = 2, key)]
    pub memory_percent: f64,
    /// What chance would put there (for the core: into *core*): the mean of eight recordings with the same differences of loads from the median of their
    /// window, in random order.
    #[column(title = "by chance %", precision = 2, key)]
    pub chance_percent: f64,
    /// The rest: single slow loads, what lasts for less than a window, and what the hypervisor stole. Below zero where most, but not all, of slow windows was slow.
    #[column(title = "rest %", precision = 2, minor)]
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

impl MemoryRow {
    /// The part of the time in these loads that is others' use, less what chance gives; 0 to 1.
    pub(crate) fn share_of_others(&self) -> f64 {
        ((self.memory_percent - self.chance_percent) / (100.0 + self.slower_percent)).clamp(0.0, 1.0)
    }
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
    /// The time without the kernel's, if that was not most of it.
    fn own_ns(&self) -> Option<f64> {
        (self.kernel_ns <= MOST_KERNEL * self.load_ns).then_some(self.load_ns - self.kernel_ns)
    }
}

fn rows(series: &Quanta, levels: &[MemoryLevel], side: Option<(&[Interval], Option<u32>)>) -> Vec<MemoryRow> {
    let samples = samples(series, levels, side);
    let windows = Windows::of_levels(&samples);
    let Some(core) = levels.iter().position(|level| level.name == MemoryName::Core) else {
        return Vec::new();
    };
    if windows.get(core).is_none_or(|core| core.quiet_ns.is_none()) {
        return Vec::new();
    }
    let parts = split(&samples, &windows, core);
    let by_chance = |number| {
        let shuffled = shuffled(&samples, &windows, number);
        split(&shuffled, &Windows::of_levels(&shuffled), core)
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
        let chance = by_chance.iter().map(|all| if at == core { all[at].core_ns } else { all[at].memory_ns });
        let Cpu(cpu) = series.cpu;
        Some(MemoryRow {
            cpu,
            level: level.name.to_string(),
            bytes: level.bytes,
            quanta: samples.len() as u64,
            span_ns,
            quiet_ns,
            p50_ns: median_low(&times)?,
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
    /// The median of each window that has enough quanta, and their number; by window, ascending.
    medians: Vec<(u64, f64, usize)>,
    quiet_ns: Option<f64>,
    /// Usual number of quanta in a window, and the standard deviation of the median of that many by chance.
    usual: f64,
    deviation_ns: f64,
}

/// A window while `Windows` are made.
struct Window {
    number: u64,
    median: f64,
    size: usize,
    /// Half the difference of the medians of its first and its second half.
    half_difference: f64,
}

impl Window {
    fn new(samples: &[Sample]) -> Option<Self> {
        let loads: Vec<f64> = samples.iter().filter_map(Sample::own_ns).collect();
        if loads.len() < FEWEST {
            return None;
        }
        // The middle of the two that are in the middle: of a few loads the lower one would be the luckiest.
        let median = |loads: &[f64]| median(&ascending(loads.iter().copied()));
        let (first, second) = loads.split_at(loads.len() / 2);
        let half_difference = (median(first)? - median(second)?) / 2.0;
        Some(Self {
            number: samples.first()?.window,
            median: median(&loads)?,
            size: loads.len(),
            half_difference,
        })
    }
}

impl Windows {
    fn new(samples: &[Sample]) -> Option<Self> {
        let same = |one: &Sample, other: &Sample| one.window == other.window;
        let found: Vec<Window> = samples.chunk_by(same).filter_map(Window::new).collect();
        if found.len() < FEWEST_WINDOWS {
            return None;
        }
        let medians = ascending(found.iter().map(|one| one.median));
        let middle = median_low(&medians)?;
        // The quieter half: slow windows may vary more.
        let quieter = || found.iter().filter(|one| one.median <= middle);
        let usual = median_low(&ascending(quieter().map(|one| one.size as f64)))?;
        // Half the difference of two halves varies as much as the median of the whole, also where neighbouring loads are alike.
        let scaled = quieter().map(|one| one.half_difference.abs() * (one.size as f64 / usual).sqrt());
        let deviation_ns = MAD_TO_SIGMA * median_low(&ascending(scaled))?;
        let rank = (QUIET * medians.len() as f64).ceil().max(1.0);
        // Of equal windows the one of this rank lies that much below their centre.
        let below = normal_quantile(rank / (medians.len() + 1) as f64) * deviation_ns;
        let quiet_ns = medians.get(rank as usize - 1)? - below;
        let medians = found.iter().map(|one| (one.number, one.median, one.size)).collect();
        (quiet_ns > 0.0).then_some(Self { medians, quiet_ns: Some(quiet_ns), usual, deviation_ns })
    }

    fn of_levels(levels: &[Vec<Sample>]) -> Vec<Self> {
        levels.iter().map(|samples| Self::new(samples).unwrap_or_default()).collect()
    }

    fn window(&self, window: u64) -> Option<(f64, usize)> {
        let at = self.medians.binary_search_by_key(&window, |one| one.0).ok()?;
        Some((self.medians[at].1, self.medians[at].2))
    }

    /// By how much chance makes the median of this number of quanta slower, with probability `RARE` at most.
    fn chance_ns(&self, size: usize) -> f64 {
        normal_quantile(1.0 - RARE) * self.deviation_ns * (self.usual / size.max(1) as f64).sqrt()
    }

    /// How many times slower the core was in a window; 1 if that may be chance.
    fn slowdown(&self, window: u64) -> f64 {
        let (Some(quiet), Some((median, size))) = (self.quiet_ns, self.window(window)) else { return 1.0 };
        if median > quiet + self.chance_ns(size) { median / quiet } else { 1.0 }
    }
}

/// Of each level; `core` is the number of the core's.
fn split(levels: &[Vec<Sample>], windows: &[Windows], core: usize) -> Vec<Parts> {
    let parts = |(at, (samples, mine)): (usize, (&Vec<Sample>, &Windows))| {
        let Some(quiet) = mine.quiet_ns else { return Parts::default() };
        let count = samples.len().max(1) as f64;
        let slower_ns = samples.iter().map(|one| one.load_ns - quiet).sum::<f64>() / count;
        let kernel_ns = samples.iter().map(|one| one.kernel_ns).sum::<f64>() / count;
        let mut parts = Parts { quiet_ns: Some(quiet), slower_ns, kernel_ns, ..Parts::default() };
        for &(window, median, size) in &mine.medians {
            let weight = size as f64 / count;
            let above = (windows[core].slowdown(window) - 1.0) * quiet;
            // No more than this level was slower, which may depend less on the core.
            parts.core_ns += above.min((median - quiet).max(0.0)) * weight;
            if at != core && median > quiet + mine.chance_ns(size) + above {
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
        let above = |one: &Sample| Some(one.own_ns()? - windows.window(one.window)?.0);
        let loads: Vec<f64> = samples.iter().filter_map(above).collect();
        // Half a window stays together, since neighbouring loads are alike.
        let mut blocks: Vec<&[f64]> = loads.chunks((windows.usual / 2.0).max(1.0) as usize).collect();
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, draws.below(last as u64, last as u64 + 1) as usize);
        }
        let places = shuffled.iter_mut().filter(|one| above(one).is_some());
        for (one, above) in places.zip(blocks.into_iter().flatten()) {
            one.load_ns = one.kernel_ns + quiet + above;
        }
        shuffled
    };
    (0..).zip(levels.iter().zip(windows)).map(shuffle).collect()
}

#[cfg(test)]
mod tests;
