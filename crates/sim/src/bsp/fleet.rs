//! All nodes of one kind in a job. Finds the slowest of them in a phase without visiting each.
//!
//! The delay as a function of the start falls into ranges whose first start is the worst (see
//! [`ProgressClock::worst_starts`](crate::clock::ProgressClock)). As long as the nodes keep their distances, a
//! phase needs only the worst range that holds a node. There are three exact ways to find it, and the
//! cheapest is taken: from the worst range down, over the ranges that the nodes lie in, or node by node.

use super::node::{Pace, Slowest, StartRange};
use super::{Job, Layout, SyncMode, stream};
use crate::draws::Draws;
use crate::sorted::Sorted;

/// Below this number of steps, visiting every node is as fast as any other way.
const FEW: usize = 64;

/// The nodes of one kind, placed for one chain.
#[derive(Debug)]
pub(super) struct Fleet<'a> {
    pace: &'a Pace,
    crew: Crew,
    /// The last node of the job, when it is of this kind and not full, and how many of its CPUs are in use.
    partial: Option<(Member, usize)>,
}

/// The full nodes.
#[derive(Debug)]
enum Crew {
    /// Fixed distances: the offsets from a common place, each once (equal offsets mean equal delays).
    Rigid(Sorted),
    /// Each node drifts at its own rate.
    Drifting(Vec<Member>),
}

/// A node's position in its trace: `place + offset + elapsed·(1 + drift)`, modulo the period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    offset: u64,
    /// Clock error as a fraction.
    drift: f64,
}

/// Draws the positions of a job's nodes in one chain.
pub(super) struct Starts {
    sync: SyncMode,
    offsets: Draws,
    drifts: Draws,
}

impl Starts {
    pub(super) fn new(job: &Job, chain: u64) -> Self {
        let [offsets, drifts] =
            [stream::OFFSET, stream::DRIFT].map(|name| Draws::new(job.seed, &[name, chain]));
        Self { sync: job.sync, offsets, drifts }
    }

    /// The start of a node, in traces of `period` nanoseconds.
    pub(super) fn member(&self, node: u64, period: u64) -> Member {
        match self.sync {
            SyncMode::None => Member { offset: self.offsets.below(node, period), drift: 0.0 },
            SyncMode::Start { skew, drift_ppm } => {
                let offset = self.offsets.below(node, skew.as_nanos().saturating_add(1)) % period;
                Member { offset, drift: self.drifts.signed(node) * drift_ppm * 1e-6 }
            }
            SyncMode::Phase => Member { offset: 0, drift: 0.0 },
        }
    }
}

impl Member {
    /// Its position, when the common place is `place` and `elapsed` nanoseconds have passed.
    pub(super) fn at(self, place: u64, elapsed: u128, period: u64) -> u64 {
        let drifted = ((elapsed as f64 * self.drift).floor() as i64).rem_euclid(period as i64) as u64;
        ((place + self.offset) % period + remainder(elapsed, period) + drifted) % period
    }
}

impl<'a> Fleet<'a> {
    pub(super) fn new(pace: &'a Pace, layout: &Layout, job: &Job, chain: u64) -> Self {
        let starts = Starts::new(job, chain);
        let member = |node| starts.member(node, pace.period());
        let crew = if job.drifts() {
            Crew::Drifting(layout.nodes().map(member).collect())
        } else {
            let offsets: Vec<u64> = match job.sync {
                SyncMode::Phase => layout.nodes().take(1).map(|_| 0).collect(),
                _ => layout.nodes().map(|node| member(node).offset).collect(),
            };
            Crew::Rigid(Sorted::from_any_order(&offsets))
        };
        Self { pace, crew, partial: layout.partial.map(|(node, cpus)| (member(node), cpus)) }
    }

    pub(super) fn period(&self) -> u64 {
        self.pace.period()
    }

    /// The slowest rank, with all nodes `elapsed` past `place`.
    pub(super) fn slowest(&self, place: u64, elapsed: u128) -> Slowest {
        let period = self.period();
        let all = self.pace.cpus();
        let partial = self.partial.map_or(Slowest::default(), |(node, cpus)| {
            self.pace.slowest(node.at(place, elapsed, period), cpus)
        });
        let full = match &self.crew {
            Crew::Drifting(nodes) => nodes
                .iter()
                .map(|node| self.pace.slowest(node.at(place, elapsed, period), all))
                .fold(Slowest::default(), Slowest::or),
            Crew::Rigid(offsets) => {
                let shift = (place + remainder(elapsed, period)) % period;
                Shifted { pace: self.pace, offsets, shift }.slowest()
            }
        };
        full.or(partial)
    }
}

/// `elapsed` modulo a period, by a division of 64 bits where that is enough: it takes a fraction of the time of one of 128.
fn remainder(elapsed: u128, period: u64) -> u64 {
    match u64::try_from(elapsed) {
        Ok(elapsed) => elapsed % period,
        Err(_) => (elapsed % u128::from(period)) as u64,
    }
}

/// Nodes at fixed distances in one phase: each is at its offset + `shift`, modulo the period.
struct Shifted<'a> {
    pace: &'a Pace,
    offsets: &'a Sorted,
    shift: u64,
}

impl Shifted<'_> {
    fn slowest(&self) -> Slowest {
        if self.offsets.keys().is_empty() {
            return Slowest::default();
        }
        let nodes = self.offsets.keys().len() * self.pace.cpus();
        if nodes <= FEW {
            return self.by_node();
        }
        let ranges = self.occupied().map(|(_, _, count)| count + 1).sum();
        self.by_peak(nodes.min(ranges))
            .unwrap_or_else(|| if ranges < nodes { self.by_range() } else { self.by_node() })
    }

    /// Visits every node.
    fn by_node(&self) -> Slowest {
        let period = self.pace.period();
        let starts = self.offsets.keys().iter().map(|offset| (offset + self.shift) % period);
        starts.map(|start| self.pace.slowest(start, self.pace.cpus())).fold(Slowest::default(), Slowest::or)
    }

    /// Walks from the worst range down until no later one can be worse than what was found; `None` if that
    /// takes more than `steps`, or more ranges than are kept.
    fn by_peak(&self, steps: usize) -> Option<Slowest> {
        let mut worst = Slowest::default();
        for range in self.pace.ranges.iter().take(steps) {
            if worst.delay >= range.peak {
                return Some(worst);
            }
            if let Some(start) = self.first_within(range) {
                worst = worst.or(self.pace.slowness(range.cpu as usize, start));
            }
        }
        (steps >= self.pace.ranges.len() && worst.delay >= self.pace.rest_peak).then_some(worst)
    }

    /// The earliest position of a node in a range, which is the slowest of those in it.
    fn first_within(&self, range: &StartRange) -> Option<u64> {
        let period = self.pace.period();
        let goal = minus(range.first, self.shift, period);
        let keys = self.offsets.keys();
        let offset = keys.get(self.offsets.below(goal)).unwrap_or(&keys[0]);
        let way = minus(*offset, goal, period);
        (way < range.length).then(|| (range.first + way) % period)
    }

    /// Walks over the ranges of each CPU from the first node's to the last node's.
    fn by_range(&self) -> Slowest {
        let keys = self.offsets.keys();
        let period = self.pace.period();
        let mut worst = self.pace.slowest((keys[0] + self.shift) % period, self.pace.cpus());
        for (cpu, first, count) in self.occupied() {
            let starts = self.pace.worst_starts[cpu].keys();
            for start in starts[first..].iter().chain(starts).take(count) {
                let offset = keys[self.offsets.below(minus(*start, self.shift, period))];
                worst = worst.or(self.pace.slowness(cpu, (offset + self.shift) % period));
            }
        }
        worst
    }

    /// Per CPU, the ranges that begin after the first node's position and no later than the last node's: index of
    /// the first and count.
    fn occupied(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let keys = self.offsets.keys();
        let period = self.pace.period();
        let low = (keys[0] + self.shift) % period;
        let high = low + (keys[keys.len() - 1] - keys[0]);
        self.pace.worst_starts.iter().enumerate().map(move |(cpu, starts)| {
            let first = starts.below(low + 1);
            let end = if high < period {
                starts.below(high + 1)
            } else {
                starts.keys().len() + starts.below(high - period + 1)
            };
            (cpu, first, end - first)
        })
    }
}

/// `a − b` modulo a period; both are below it.
fn minus(a: u64, b: u64, period: u64) -> u64 {
    if a >= b { a - b } else { a + period - b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::busy_node;

    #[test]
    fn all_ways_to_the_slowest_agree() {
        let pace = Pace::new(busy_node(7, 3), 25_000);
        let draws = Draws::new(8, &[]);
        let mut found = 0;
        for (nodes, spread) in
            [(1, 1), (40, 10_000_000), (2_000, 10_000_000), (300, 50_000), (300, 9_000_000)]
        {
            let offsets: Vec<u64> = (0..nodes).map(|node| draws.below(node, spread)).collect();
            let offsets = Sorted::from_any_order(&offsets);
            for turn in 0..200 {
                let shifted =
                    Shifted { pace: &pace, offsets: &offsets, shift: draws.below(turn, 10_000_000) };
                let slowest = shifted.by_node().delay;
                assert_eq!(shifted.by_range().delay, slowest);
                for found in [Some(shifted.by_range()), shifted.by_peak(usize::MAX)].into_iter().flatten() {
                    assert_eq!(found.delay, slowest);
                    assert_eq!(pace.clocks[found.cpu].delay(found.at, pace.quantum), slowest);
                }
                found += usize::from(shifted.by_peak(usize::MAX).is_some());
            }
        }
        assert!(found > 200, "the walk from the worst down found {found} of 1,000");
    }

    /// All places of a node with few detours, among them each that begins or ends a range or the trace.
    #[test]
    fn all_ways_agree_at_every_place_of_a_short_trace() {
        const PERIOD: u64 = 60;
        let detours = [(0, 2), (7, 3), (30, 9), (58, 2)];
        let node = crate::bsp::tests::plain_node(PERIOD, &[&detours, &[(20, 1), (59, 1)]]);
        for quantum in [1, 5, 20] {
            let pace = Pace::new(node.clone(), quantum);
            for offsets in [&[0][..], &[59], &[0, 59], &[0, 7, 30], &[3, 29, 30, 31, 57]] {
                let offsets = Sorted::from_any_order(offsets);
                for shift in 0..PERIOD {
                    let shifted = Shifted { pace: &pace, offsets: &offsets, shift };
                    let expected = shifted.by_node();
                    let here: Vec<u64> = offsets.keys().iter().map(|key| (key + shift) % PERIOD).collect();
                    for found in [Some(shifted.by_range()), shifted.by_peak(usize::MAX)].into_iter().flatten()
                    {
                        assert_eq!(found.delay, expected.delay, "{quantum} {shift} {here:?}");
                        assert!(found.delay == 0 || here.contains(&found.at), "{found:?} of {here:?}");
                    }
                    for range in &pace.ranges {
                        let way = |at: u64| (at + PERIOD - range.first) % PERIOD;
                        let first = here.iter().copied().min_by_key(|&at| way(at));
                        assert_eq!(shifted.first_within(range), first.filter(|&at| way(at) < range.length));
                    }
                }
            }
        }
    }

    #[test]
    fn a_member_moves_and_drifts_around_the_period() {
        let at = |drift, elapsed| Member { offset: 7, drift }.at(95, elapsed, 100);
        // 95 + 7, 250 later.
        assert_eq!((at(0.0, 0), at(0.0, 250)), (2, 52));
        assert_eq!((at(-0.01, 250), at(0.01, 250)), (49, 54), "-2.5 and 2.5, rounded down");
        assert_eq!(at(0.0, 298), 0);
    }
}
