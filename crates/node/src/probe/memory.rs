//! What the memory probe loads: circles of cache lines, for each level of the memory system.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use quell_recording::{Cpu, MemoryLevel, MemoryName};

use super::ProbeError;
use crate::machine;

/// Bytes of a line.
const LINE: usize = 64;
/// Links in a line: as many probes have a circle of their own through the same lines.
const CIRCLES: usize = LINE / size_of::<u32>();
/// Loads of a quantum. Those of the core's own cache take as long as some thousands that leave it.
const LOADS: [u32; 3] = [32_768, 4_096, 4_096];
/// Bounds of the largest level, where the last cache is unknown or small, and because more would take long to make.
const LEAST_BYTES: usize = 64 << 20;
const MOST_BYTES: usize = 1 << 30;

/// A line with the number of the next one, for each circle.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; CIRCLES]);

/// The lines of a level. They are only read, so that each core has copies of its own in its caches.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// Where each probe begins.
    starts: Vec<u32>,
    name: MemoryName,
    loads: u32,
}

/// Number of probes that share a circle.
fn sharers(probes: usize) -> usize {
    probes.div_ceil(CIRCLES).max(1)
}

impl Lines {
    /// Lines with a circle for each probe, in an order of its own: no load can begin before the one before it has ended, no prefetcher knows the
    /// next, and no probe follows another. Where probes share an order, each has a part of main memory's lines as its circle; of a cache's lines,
    /// all must be loaded, and whoever follows finds them in the cache in any case. Ends early if `stop` is set.
    fn new(name: MemoryName, bytes: usize, loads: u32, probes: usize, stop: &AtomicBool) -> io::Result<Self> {
        let parts = sharers(probes);
        let count = (bytes / LINE).max(2 * parts);
        let no_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let mut lines: Vec<Line> = Vec::new();
        lines.try_reserve_exact(count).map_err(no_memory)?;
        machine::prefer_huge_pages(lines.as_mut_ptr().cast(), count * LINE);
        lines.resize(count, Line([0; CIRCLES]));
        let mut order: Vec<u32> = Vec::new();
        order.try_reserve_exact(count).map_err(no_memory)?;
        order.extend(0..count as u32);
        let mut starts = vec![0; probes];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for circle in 0..probes.min(CIRCLES) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for last in (1..count).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(last, (((state >> 32) * (last as u64 + 1)) >> 32) as usize);
            }
            let part = |at: usize| &order[count * at / parts..count * (at + 1) / parts];
            let circles: Vec<&[u32]> =
                if name == MemoryName::Main { (0..parts).map(part).collect() } else { vec![&order] };
            for way in circles {
                for (line, next) in way.iter().zip(way.iter().cycle().skip(1)) {
                    lines[*line as usize].0[circle] = *next;
                }
            }
            for at in 0..parts {
                if let Some(start) = starts.get_mut(at * CIRCLES + circle) {
                    *start = part(at)[0];
                }
            }
        }
        Ok(Self { lines, starts, name, loads })
    }
}

/// A probe's way through the lines of a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    lines: &'a [Line],
    circle: usize,
    at: u32,
    loads: u32,
    /// Loads before those that are timed.
    warm: u32,
}

impl<'a> Walk<'a> {
    /// The walk of the probe with this number.
    fn new(level: &'a Lines, number: usize) -> Self {
        // Other levels have replaced the core's lines since they were loaded last.
        let warm = if level.name == MemoryName::Core { level.lines.len() as u32 } else { 0 };
        let at = level.starts.get(number).copied().unwrap_or(0);
        Self { lines: &level.lines, circle: number % CIRCLES, at, loads: level.loads, warm }
    }

    #[inline]
    fn follow(&mut self, loads: u32) {
        let mut at = self.at;
        for _ in 0..loads {
            at = self.lines.get(at as usize).map_or(0, |line| line.0[self.circle]);
        }
        self.at = std::hint::black_box(at);
    }

    /// What comes before the timed loads.
    #[inline]
    pub fn warm(&mut self) {
        self.follow(self.warm);
    }

    /// The timed loads.
    #[inline]
    pub fn load(&mut self) {
        self.follow(self.loads);
    }
}

/// The lines of all levels, one set for each NUMA node.
#[derive(Debug)]
pub(super) struct Levels {
    /// The CPUs of a node, and the lines in its memory.
    nodes: Vec<(Vec<Cpu>, Vec<Lines>)>,
    sizes: [usize; 3],
}

const NAMES: [MemoryName; 3] = [MemoryName::Core, MemoryName::Shared, MemoryName::Main];

type Making<'scope> = (Vec<Cpu>, ScopedJoinHandle<'scope, Result<Vec<Lines>, ProbeError>>);

impl Levels {
    /// Lines for the caches of these CPUs. With `stop` set, they are not complete.
    ///
    /// # Errors
    /// If there is not enough memory, or a node's thread cannot be started and bound.
    pub fn new(cpus: &[Cpu], stop: &AtomicBool) -> Result<Self, ProbeError> {
        let caches: Vec<_> = cpus.iter().map(|&cpu| machine::caches(cpu)).collect();
        let mut by_node: Vec<(Option<u32>, Vec<Cpu>)> = Vec::new();
        for &cpu in cpus {
            let node = machine::place(cpu).numa_node;
            match by_node.iter_mut().find(|one| one.0 == node) {
                Some((_, cpus)) => cpus.push(cpu),
                None => by_node.push((node, vec![cpu])),
            }
        }
        let most = by_node.iter().map(|(_, cpus)| sharers(cpus.len())).max().unwrap_or(1);
        let sizes = sizes(&caches, most);
        let nodes = std::thread::scope(|scope| {
            let making: Vec<Making<'_>> = by_node
                .into_iter()
                .map(|(_, cpus)| start_making(scope, cpus, sizes, stop))
                .collect::<Result<_, _>>()?;
            let join = |(cpus, thread): Making<'_>| {
                let made = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                made.map(|lines| (cpus, lines))
            };
            making.into_iter().map(join).collect::<Result<Vec<_>, ProbeError>>()
        })?;
        Ok(Self { nodes, sizes })
    }

    /// A probe's way through each level; none if the CPU is not one of them.
    pub fn walks(&self, cpu: Cpu) -> Vec<Walk<'_>> {
        let of_node = self.nodes.iter().find_map(|(cpus, lines)| {
            let number = cpus.iter().position(|one| *one == cpu)?;
            Some(lines.iter().map(move |level| Walk::new(level, number)).collect())
        });
        of_node.unwrap_or_default()
    }

    /// What they are, for the manifest.
    pub fn facts(&self) -> Vec<MemoryLevel> {
        let facts =
            |at: usize| MemoryLevel { name: NAMES[at], bytes: self.sizes[at] as u64, loads: LOADS[at] };
        (0..NAMES.len()).map(facts).collect()
    }
}

/// Makes the lines of a node on one of its CPUs: who touches a page first has it in the memory of its node.
fn start_making<'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpus: Vec<Cpu>,
    sizes: [usize; 3],
    stop: &'scope AtomicBool,
) -> Result<Making<'scope>, ProbeError> {
    let (cpu, probes) = (cpus[0], cpus.len());
    let make = move || {
        machine::pin(&[cpu]).map_err(|source| ProbeError::Pin { cpu, source })?;
        let level = |at: usize| {
            Lines::new(NAMES[at], sizes[at], LOADS[at], probes, stop)
                .map_err(|source| ProbeError::Buffer { cpu, source })
        };
        (0..NAMES.len()).map(level).collect()
    };
    let thread = Builder::new().spawn_scoped(scope, make);
    Ok((cpus, thread.map_err(|source| ProbeError::Spawn { cpu, source })?))
}

/// Half of the first cache; twice what comes before the last one, and at most half of that; four times the last one. `caches` are the sizes of the
/// data caches of each CPU, by level: of unlike CPUs the smaller or the larger one counts. Where `sharers` probes share an order of main memory's lines,
/// there are as many times as many.
fn sizes(caches: &[Vec<(u32, usize)>], sharers: usize) -> [usize; 3] {
    let of = |cpu: &[(u32, usize)], level: u32| cpu.iter().find(|one| one.0 == level).map(|one| one.1);
    let first = caches.iter().filter_map(|cpu| of(cpu, 1)).min().unwrap_or(32 << 10);
    let last = |cpu: &Vec<(u32, usize)>| cpu.iter().copied().max();
    let lasts: Vec<usize> = caches.iter().filter_map(last).map(|one| one.1).collect();
    let (smallest, largest) = (lasts.iter().min().copied(), lasts.iter().max().copied());
    let before = |cpu: &Vec<(u32, usize)>| of(cpu, last(cpu)?.0.saturating_sub(1));
    let before = caches.iter().filter_map(before).max().unwrap_or(first);
    let least = 4 * first;
    let shared = (2 * before).clamp(least, (smallest.unwrap_or(1 << 20) / 2).max(least));
    let main = (4 * largest.unwrap_or(0)).max(LEAST_BYTES).saturating_mul(sharers);
    [first / 2, shared, main.min(MOST_BYTES)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    static GOES_ON: AtomicBool = AtomicBool::new(false);

    /// The lines that a probe loads until it is where it began.
    fn way(level: &Lines, number: usize) -> Vec<u32> {
        let mut walk = Walk::new(level, number);
        let mut way = Vec::new();
        while way.first() != Some(&walk.at) {
            way.push(walk.at);
            walk.load();
        }
        way
    }

    #[test]
    fn each_probe_visits_every_line_before_it_comes_back() {
        for (name, bytes, probes) in [
            (MemoryName::Main, 2 * LINE, 1),
            (MemoryName::Main, 16 << 10, 3),
            (MemoryName::Shared, 100 * LINE, 40),
        ] {
            let level = Lines::new(name, bytes, 1, probes, &GOES_ON).unwrap();
            for number in 0..probes {
                let mut way = way(&level, number);
                way.sort_unstable();
                assert!(way.into_iter().eq(0..level.lines.len() as u32), "{bytes} {number}");
            }
        }
    }

    /// A probe that follows another finds in the shared cache what that one has loaded.
    #[test]
    fn probes_do_not_follow_each_other() {
        let level = Lines::new(MemoryName::Main, 1_000 * LINE, 1, 32, &GOES_ON).unwrap();
        let [first, other, same] = [0, 1, 16].map(|number| way(&level, number));
        let next = |way: &[u32], line: u32| {
            let at = way.iter().position(|one| *one == line)?;
            Some(way[(at + 1) % way.len()])
        };
        let shared = (0..1_000)
            .filter(|&line| next(&first, line).is_some_and(|found| next(&other, line) == Some(found)));
        let shared = shared.count();
        assert!(shared < 20, "{shared} of 1,000 steps are the same");
        assert_eq!((first.len(), same.len()), (500, 500));
        assert!(first.iter().all(|line| !same.contains(line)), "those on one order have no line in common");
    }

    #[test]
    fn a_stop_ends_the_making() {
        let level = Lines::new(MemoryName::Main, 1 << 20, 1, 2, &AtomicBool::new(true)).unwrap();
        let mut walk = Walk::new(&level, 1);
        walk.load();
        assert_eq!(walk.at, 0);
    }

    #[test]
    fn each_level_has_lines_that_the_ones_before_cannot_hold() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let sizes = |caches: &[&[(u32, usize)]]| {
            super::sizes(&caches.iter().map(|cpu| cpu.to_vec()).collect::<Vec<_>>(), 1)
        };
        // A server, a desktop, a small board without a third level, nothing known.
        assert_eq!(sizes(&[&[(1, 32 * kib), (2, mib), (3, 36 * mib)]]), [16 * kib, 2 * mib, 144 * mib]);
        assert_eq!(sizes(&[&[(1, 48 * kib), (2, 2 * mib), (3, 12 * mib)]]), [24 * kib, 4 * mib, 64 * mib]);
        assert_eq!(sizes(&[&[(1, 32 * kib), (2, 512 * kib)]]), [16 * kib, 128 * kib, 64 * mib]);
        assert_eq!(sizes(&[&[]]), [16 * kib, 128 * kib, 64 * mib]);
        // Large and small cores.
        let (large, small) =
            ([(1, 64 * kib), (2, mib), (3, 8 * mib)], [(1, 32 * kib), (2, 128 * kib), (3, 8 * mib)]);
        assert_eq!(sizes(&[&large, &small]), [16 * kib, 2 * mib, 64 * mib]);
        // The largest last cache of today.
        assert_eq!(sizes(&[&[(1, 32 * kib), (2, 2 * mib), (3, 504 * mib)]])[2], 1024 * mib);
        // More probes than circles.
        assert_eq!(super::sizes(&[vec![(1, 32 * kib), (2, mib), (3, 36 * mib)]], 4)[2], 576 * mib);
    }
}
