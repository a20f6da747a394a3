//! What the memory probe loads: circles of cache lines, one for each level of the memory system.

use std::io;

use quell_recording::{Cpu, MemoryLevel, MemoryName};

use crate::machine;

/// Bytes of a line.
const LINE: usize = 64;
/// Links in a line: as many probes have a circle of their own through the same lines.
const CIRCLES: usize = LINE / size_of::<u32>();
/// Loads of a quantum. Those of the core's own cache take as long as some thousands that leave it.
const LOADS: [u32; 3] = [32_768, 4_096, 4_096];
/// Bounds of the largest level: no last cache is smaller than a quarter of the first, and more than the last would take long to make.
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
    name: MemoryName,
    loads: u32,
}

impl Lines {
    /// Lines with this many circles, each through all of them in an order of its own: no load can begin before the one before it has ended, no
    /// prefetcher knows the next, and no probe follows another.
    fn new(name: MemoryName, bytes: usize, loads: u32, circles: usize) -> io::Result<Self> {
        let count = (bytes / LINE).max(2);
        let mut lines: Vec<Line> = Vec::new();
        lines.try_reserve_exact(count).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        machine::prefer_huge_pages(lines.as_mut_ptr().cast(), count * LINE);
        lines.extend((0..count as u32).map(|own| Line([own; CIRCLES])));
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for circle in 0..circles.clamp(1, CIRCLES) {
            // Sattolo's algorithm gives one circle.
            for last in (1..count).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let other = (((state >> 32) * last as u64) >> 32) as usize;
                let link = lines[last].0[circle];
                lines[last].0[circle] = lines[other].0[circle];
                lines[other].0[circle] = link;
            }
        }
        Ok(Self { lines, name, loads })
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
    /// The walk of the probe with this number, of `probes`. Those that share a circle begin as far from each other as they can.
    fn new(level: &'a Lines, number: usize, probes: usize) -> Self {
        // Other levels have replaced the core's lines since they were loaded last.
        let warm = if level.name == MemoryName::Core { level.lines.len() as u32 } else { 0 };
        let mut walk =
            Self { lines: &level.lines, circle: number % CIRCLES, at: 0, loads: level.loads, warm };
        let (part, parts) = (number / CIRCLES, probes.div_ceil(CIRCLES).max(1));
        walk.follow((level.lines.len() * part / parts) as u32);
        walk
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

impl Levels {
    /// Lines for the caches of these CPUs.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(cpus: &[Cpu]) -> io::Result<Self> {
        let caches: Vec<_> = cpus.iter().map(|&cpu| machine::caches(cpu)).collect();
        let sizes = sizes(&caches);
        let mut nodes: Vec<(Option<u32>, Vec<Cpu>)> = Vec::new();
        for &cpu in cpus {
            let node = machine::place(cpu).numa_node;
            match nodes.iter_mut().find(|one| one.0 == node) {
                Some((_, cpus)) => cpus.push(cpu),
                None => nodes.push((node, vec![cpu])),
            }
        }
        let make = |cpus: &[Cpu]| -> io::Result<Vec<Lines>> {
            // Who touches a page first has it in the memory of its node.
            machine::pin(&cpus[..1])?;
            let level = |at: usize| Lines::new(NAMES[at], sizes[at], LOADS[at], cpus.len());
            (0..NAMES.len()).map(level).collect()
        };
        let nodes = nodes.into_iter().map(|(_, cpus)| {
            let made = std::thread::scope(|scope| scope.spawn(|| make(&cpus)).join());
            let lines = made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((cpus, lines))
        });
        Ok(Self { nodes: nodes.collect::<io::Result<_>>()?, sizes })
    }

    /// A probe's way through each level; none if the CPU is not one of them.
    pub fn walks(&self, cpu: Cpu) -> Vec<Walk<'_>> {
        let of_node = self.nodes.iter().find_map(|(cpus, lines)| {
            let number = cpus.iter().position(|one| *one == cpu)?;
            Some(lines.iter().map(move |level| Walk::new(level, number, cpus.len())).collect())
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

/// Half of the first cache; twice what comes before the last one, and at most half of that; four times the last one. `caches` are the sizes of the
/// data caches of each CPU, by level: of unlike CPUs the smaller or the larger one counts.
fn sizes(caches: &[Vec<(u32, usize)>]) -> [usize; 3] {
    let of = |cpu: &[(u32, usize)], level: u32| cpu.iter().find(|one| one.0 == level).map(|one| one.1);
    let first = caches.iter().filter_map(|cpu| of(cpu, 1)).min().unwrap_or(32 << 10);
    let last = |cpu: &Vec<(u32, usize)>| cpu.iter().copied().max();
    let lasts: Vec<usize> = caches.iter().filter_map(last).map(|one| one.1).collect();
    let (smallest, largest) = (lasts.iter().min().copied(), lasts.iter().max().copied());
    let before = |cpu: &Vec<(u32, usize)>| of(cpu, last(cpu)?.0.saturating_sub(1));
    let before = caches.iter().filter_map(before).max().unwrap_or(first);
    let least = 4 * first;
    let shared = (2 * before).clamp(least, (smallest.unwrap_or(1 << 20) / 2).max(least));
    [first / 2, shared, (4 * largest.unwrap_or(0)).clamp(LEAST_BYTES, MOST_BYTES)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn each_probe_visits_every_line_before_it_comes_back() {
        for (bytes, probes) in [(2 * LINE, 1), (16 << 10, 3), (100 * LINE, 40)] {
            let level = Lines::new(MemoryName::Main, bytes, 1, probes).unwrap();
            for number in 0..probes {
                let mut walk = Walk::new(&level, number, probes);
                let (start, mut visited) = (walk.at, vec![false; level.lines.len()]);
                for _ in 0..level.lines.len() {
                    assert!(!std::mem::replace(&mut visited[walk.at as usize], true), "{bytes} {number}");
                    walk.load();
                }
                assert_eq!(walk.at, start);
            }
        }
    }

    /// A probe that follows another finds in the shared cache what that one has loaded.
    #[test]
    fn probes_do_not_follow_each_other() {
        let level = Lines::new(MemoryName::Main, 1_000 * LINE, 1, 32).unwrap();
        let way = |number: usize| {
            let mut walk = Walk::new(&level, number, 32);
            (0..1_000).map(|_| (walk.at, walk.load()).0).collect::<Vec<u32>>()
        };
        let [first, other, same] = [0, 1, 16].map(way);
        let next = |way: &[u32], line: u32| {
            let at = way.iter().position(|one| *one == line).unwrap();
            way[(at + 1) % way.len()]
        };
        let shared = (0..1_000).filter(|&line| next(&first, line) == next(&other, line)).count();
        assert!(shared < 20, "{shared} of 1,000 steps are the same");
        assert_eq!(same[0], first[500], "half a circle ahead");
    }

    #[test]
    fn each_level_has_lines_that_the_ones_before_cannot_hold() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let sizes = |caches: &[&[(u32, usize)]]| {
            super::sizes(&caches.iter().map(|cpu| cpu.to_vec()).collect::<Vec<_>>())
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
    }
}
