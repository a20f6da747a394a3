//! What the memory probe loads: circles of cache lines, for each level of the memory system.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use quell_recording::{Cpu, MemoryLevel, MemoryName};

use super::ProbeError;
use crate::machine;
use crate::memory::{self, Cache};

/// Bytes of a line.
const LINE: usize = 64;
/// Links in a line: as many probes have a circle of their own through the same lines.
const CIRCLES: usize = LINE / size_of::<u32>();
/// Loads of a quantum: few enough for several in each window of 20 ms where memory is slow. Those of the core's own cache take as long as some
/// thousands that leave it.
const CORE_LOADS: u32 = 16_384;
const LOADS: u32 = 2_048;
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
    fn new(level: MemoryLevel, node: Option<u32>, probes: usize, stop: &AtomicBool) -> io::Result<Self> {
        let MemoryLevel { name, bytes, loads } = level;
        let parts = sharers(probes);
        let count = (bytes as usize / LINE).max(2 * parts);
        let no_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let mut lines: Vec<Line> = Vec::new();
        lines.try_reserve_exact(count).map_err(no_memory)?;
        let room = lines.spare_capacity_mut().as_mut_ptr_range();
        let room = room.start.cast()..room.end.cast();
        if let Some(node) = node {
            memory::prefer_node(&room, node);
        }
        memory::prefer_huge_pages(&room);
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
    facts: Vec<MemoryLevel>,
    /// Whether all lines are linked.
    complete: bool,
}

type Making<'scope> = (Vec<Cpu>, ScopedJoinHandle<'scope, Result<Vec<Lines>, ProbeError>>);

impl Levels {
    /// Lines for the caches of these CPUs. With `stop` set, they are not complete, and no probe has a way.
    ///
    /// # Errors
    /// If there is not enough memory, or a node's thread cannot be started and bound.
    pub fn new(cpus: &[Cpu], stop: &AtomicBool) -> Result<Self, ProbeError> {
        let caches: Vec<_> = cpus.iter().map(|&cpu| memory::caches(cpu)).collect();
        let mut by_node: Vec<(Option<u32>, Vec<Cpu>)> = Vec::new();
        for &cpu in cpus {
            let node = machine::place(cpu).numa_node;
            match by_node.iter_mut().find(|one| one.0 == node) {
                Some((_, cpus)) => cpus.push(cpu),
                None => by_node.push((node, vec![cpu])),
            }
        }
        let most = by_node.iter().map(|(_, cpus)| sharers(cpus.len())).max().unwrap_or(1);
        // Half of what is free is left to others.
        let room = memory::available().map_or(MOST_BYTES, |bytes| bytes / 2 / by_node.len().max(1));
        let least = least(&caches);
        if room < least {
            let [needed_mib, free_mib] = [least, room].map(|each| (2 * each * by_node.len()) >> 20);
            return Err(ProbeError::Memory { needed_mib, free_mib });
        }
        let facts = levels(&caches, most, room);
        let nodes = std::thread::scope(|scope| {
            let making: Vec<Making<'_>> = by_node
                .into_iter()
                .map(|(node, cpus)| start_making(scope, (node, cpus), &facts, stop))
                .collect::<Result<_, _>>()?;
            let join = |(cpus, thread): Making<'_>| {
                let made = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                made.map(|lines| (cpus, lines))
            };
            making.into_iter().map(join).collect::<Result<Vec<_>, ProbeError>>()
        })?;
        Ok(Self { nodes, facts, complete: !stop.load(Ordering::Relaxed) })
    }

    /// A probe's way through each level; none if the CPU is not one of them, or lines are not complete.
    pub fn walks(&self, cpu: Cpu) -> Vec<Walk<'_>> {
        let of_node = self.nodes.iter().filter(|_| self.complete).find_map(|(cpus, lines)| {
            let number = cpus.iter().position(|one| *one == cpu)?;
            Some(lines.iter().map(move |level| Walk::new(level, number)).collect())
        });
        of_node.unwrap_or_default()
    }

    /// What they are, for the manifest.
    pub fn facts(&self) -> Vec<MemoryLevel> {
        self.facts.clone()
    }
}

/// Makes the lines of a node on one of its CPUs: who touches a page first has it in the memory of its node.
fn start_making<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (node, cpus): (Option<u32>, Vec<Cpu>),
    levels: &'scope [MemoryLevel],
    stop: &'scope AtomicBool,
) -> Result<Making<'scope>, ProbeError> {
    let (cpu, probes) = (cpus[0], cpus.len());
    let make = move || {
        machine::pin(&[cpu]).map_err(|source| ProbeError::Pin { cpu, source })?;
        let lines = |level: &MemoryLevel| {
            Lines::new(*level, node, probes, stop).map_err(|source| ProbeError::Buffer { cpu, source })
        };
        levels.iter().map(lines).collect()
    };
    let thread = Builder::new().spawn_scoped(scope, make);
    Ok((cpus, thread.map_err(|source| ProbeError::Spawn { cpu, source })?))
}

/// The least that the last caches do not hold: lines in them would pass for main memory.
fn least(caches: &[Vec<Cache>]) -> usize {
    let largest = caches.iter().flatten().map(|cache| cache.bytes).max().unwrap_or(0);
    largest.saturating_mul(2).clamp(LEAST_BYTES, MOST_BYTES)
}

/// Half of the first cache; where the last one is shared, twice what comes before it, and at most half of it; four times the last one. Of unlike CPUs
/// the smaller or the larger cache counts. Where `sharers` probes share an order of main memory's lines, there are as many times as many, within the
/// `room` that there is.
fn levels(caches: &[Vec<Cache>], sharers: usize, room: usize) -> Vec<MemoryLevel> {
    let of = |cpu: &[Cache], level: u32| cpu.iter().find(|one| one.level == level).map(|one| one.bytes);
    let first = caches.iter().filter_map(|cpu| of(cpu, 1)).min().unwrap_or(32 << 10);
    let lasts: Vec<Cache> = caches.iter().filter_map(|cpu| cpu.iter().max().copied()).collect();
    let before = |cpu: &Vec<Cache>| of(cpu, cpu.iter().max()?.level.saturating_sub(1));
    let before = caches.iter().filter_map(before).max().unwrap_or(first);
    let least = 4 * first;
    let shared = lasts.iter().map(|last| last.bytes).min();
    // A cache that is not shared, or not shown, is none whose use by others could be seen.
    let shared = shared.filter(|_| lasts.len() == caches.len() && lasts.iter().all(|last| last.is_shared));
    let largest = lasts.iter().map(|last| last.bytes).max().unwrap_or(0);
    let main = (4 * largest).max(LEAST_BYTES).saturating_mul(sharers).min(MOST_BYTES).min(room);
    let level = |name, bytes, loads| MemoryLevel { name, bytes: bytes as u64, loads };
    let mut levels = vec![level(MemoryName::Core, first / 2, CORE_LOADS)];
    levels.extend(
        shared.map(|last| level(MemoryName::Shared, (2 * before).clamp(least, (last / 2).max(least)), LOADS)),
    );
    levels.push(level(MemoryName::Main, main, LOADS));
    levels
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    static GOES_ON: AtomicBool = AtomicBool::new(false);

    /// Lines of which a quantum loads one.
    fn lines(name: MemoryName, bytes: usize, probes: usize, stop: &AtomicBool) -> Lines {
        let level = MemoryLevel { name, bytes: bytes as u64, loads: 1 };
        Lines::new(level, Some(0), probes, stop).unwrap()
    }

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
            let level = lines(name, bytes, probes, &GOES_ON);
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
        let level = lines(MemoryName::Main, 1_000 * LINE, 32, &GOES_ON);
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
        let stop = AtomicBool::new(true);
        let level = lines(MemoryName::Main, 1 << 20, 2, &stop);
        let mut walk = Walk::new(&level, 1);
        walk.load();
        assert_eq!(walk.at, 0);
        let cpu = machine::Cpus::from_this_machine().unwrap().allowed[0];
        match Levels::new(&[cpu], &stop) {
            Ok(levels) => assert!(levels.walks(cpu).is_empty(), "no probe loads what is not linked"),
            Err(error) => assert!(matches!(error, ProbeError::Memory { .. }), "{error}"),
        }
    }

    #[test]
    fn each_level_has_lines_that_the_ones_before_cannot_hold() {
        const KIB: usize = 1 << 10;
        const MIB: usize = 1 << 20;
        let cache = |(level, bytes): (u32, usize)| Cache { level, bytes, is_shared: level > 2 };
        let cpu = |caches: &[(u32, usize)]| caches.iter().copied().map(cache).collect::<Vec<_>>();
        let sizes = |caches: Vec<Vec<Cache>>, sharers| -> Vec<(MemoryName, usize)> {
            let levels = levels(&caches, sharers, usize::MAX);
            levels.into_iter().map(|level| (level.name, level.bytes as usize)).collect()
        };
        let all = |core, shared, main| {
            vec![(MemoryName::Core, core), (MemoryName::Shared, shared), (MemoryName::Main, main)]
        };
        // A server, a desktop.
        let server = cpu(&[(1, 32 * KIB), (2, MIB), (3, 36 * MIB)]);
        assert_eq!(sizes(vec![server.clone()], 1), all(16 * KIB, 2 * MIB, 144 * MIB));
        let desktop = cpu(&[(1, 48 * KIB), (2, 2 * MIB), (3, 12 * MIB)]);
        assert_eq!(sizes(vec![desktop], 1), all(24 * KIB, 4 * MIB, 64 * MIB));
        // A small board, whose cores share the second level; one whose cores do not; nothing known.
        let mut board = cpu(&[(1, 32 * KIB), (2, 512 * KIB)]);
        let without = vec![(MemoryName::Core, 16 * KIB), (MemoryName::Main, 64 * MIB)];
        assert_eq!(sizes(vec![board.clone()], 1), without);
        board[1].is_shared = true;
        assert_eq!(sizes(vec![board], 1), all(16 * KIB, 128 * KIB, 64 * MIB));
        assert_eq!(sizes(vec![cpu(&[])], 1), without);
        // Large and small cores.
        let (large, small) = (
            cpu(&[(1, 64 * KIB), (2, MIB), (3, 8 * MIB)]),
            cpu(&[(1, 32 * KIB), (2, 128 * KIB), (3, 8 * MIB)]),
        );
        assert_eq!(sizes(vec![large, small], 1), all(16 * KIB, 2 * MIB, 64 * MIB));
        // The largest last cache of today.
        let largest = cpu(&[(1, 32 * KIB), (2, 2 * MIB), (3, 504 * MIB)]);
        assert_eq!(sizes(vec![largest], 1)[2].1, 1024 * MIB);
        // More probes than circles; little memory.
        assert_eq!(sizes(vec![server.clone()], 4)[2].1, 576 * MIB);
        assert_eq!(least(std::slice::from_ref(&server)), 72 * MIB);
        assert_eq!(levels(&[server], 1, 100 * MIB)[2].bytes, 100 * MIB as u64);
    }
}
