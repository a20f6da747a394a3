//! The delay of a node over one quantum, as a distribution on a grid that all nodes share.

use quell_recording::{Nanos, Trace};
use quell_sim::{BspError, Draws, Node};

/// Grid steps per factor of ten: adjacent points are 3.7 % apart.
const STEPS: usize = 64;
/// The grid begins at 10 ns …
const FIRST_NS: f64 = 10.0;
/// … and covers eleven powers of ten, up to 1,000 s.
pub(super) const POINTS: usize = 11 * STEPS + 1;
/// Maximum number of starts that are evaluated on a node with one CPU; nodes with more CPUs use fewer, so that every node costs the same.
const MAX_STARTS: u64 = 4_000_000;
/// Minimum number of starts, unless the recording is too short for them.
const FEWEST_STARTS: u64 = 4_096;

/// The delay at a point of the grid, in ns.
pub(super) fn at(point: usize) -> f64 {
    FIRST_NS * 10f64.powf(point as f64 / STEPS as f64)
}

/// For a quantum begun at a uniform place of a node's recording, how often its slowest CPU is later than each point of the grid.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// Number of starts that were evaluated.
    starts: u32,
    /// Number of these that were late at all, and number that were late by more than each point.
    late: u32,
    later: Vec<u32>,
}

impl Curve {
    /// The curve of a node for a quantum. One start is drawn from each of equal strides of at most half a quantum, so no detour
    /// falls between two, and the starts are not in step with any period.
    pub fn from_traces(traces: &[Trace], quantum: Nanos, draws: Draws) -> Result<Self, BspError> {
        let node = Node::new(traces)?;
        let period = node.clocks()[0].period();
        let cpus = node.clocks().len() as u64;
        let wanted = period.div_ceil((quantum.as_nanos() / 2).max(1));
        let starts = wanted.min((MAX_STARTS / cpus).max(FEWEST_STARTS)).clamp(1, u64::from(u32::MAX));
        let place = |index: u32| {
            let index = u64::from(index);
            let from = (u128::from(index) * u128::from(period) / u128::from(starts)) as u64;
            let to = (u128::from(index + 1) * u128::from(period) / u128::from(starts)) as u64;
            from + draws.below(index, to - from)
        };
        // A phase ends when the last CPU is done, so none begins within a detour, except one that began while the phase waited.
        let free = |&start: &u64| {
            node.clocks().iter().all(|clock| clock.useful_at(start + 1) > clock.useful_at(start))
        };
        let mut places: Vec<u64> = (0..starts as u32).map(place).collect();
        let outside: Vec<u64> = places.iter().copied().filter(free).collect();
        // With many CPUs one or another may always be in a detour; then all starts are used.
        if outside.len() as u64 >= FEWEST_STARTS.min(starts / 8) {
            places = outside;
        }
        let mut hits = vec![0u32; POINTS + 1];
        let (mut late, seen) = (0, places.len() as u32);
        for start in places {
            let delay =
                node.clocks().iter().map(|clock| clock.delay(start, quantum.as_nanos())).max().unwrap_or(0);
            if delay > 0 {
                late += 1;
                hits[points_below(delay)] += 1;
            }
        }
        // The number that is later than a point: all hits above it.
        let mut above = 0;
        let mut later: Vec<u32> = hits
            .iter()
            .skip(1)
            .rev()
            .map(|count| {
                above += count;
                above
            })
            .collect();
        later.reverse();
        Ok(Self { starts: seen, late, later })
    }

    /// The probability to be no later than each point of the grid. The first point is no delay, 0 ns; the others are [`at`].
    pub fn in_time(&self) -> impl Iterator<Item = f64> + '_ {
        let starts = f64::from(self.starts.max(1));
        std::iter::once(self.late)
            .chain(self.later.iter().copied())
            .map(move |late| 1.0 - f64::from(late) / starts)
    }
}

/// Number of grid points that a delay exceeds.
fn points_below(delay: u64) -> usize {
    let place = (delay as f64 / FIRST_NS).log10() * STEPS as f64;
    if place <= 0.0 { 0 } else { (place.ceil() as usize).min(POINTS) }
}

/// The mean of a delay with these probabilities to be in time: the integral of one less the probability over all delays.
pub(super) fn mean_ns(in_time: &[f64]) -> f64 {
    let mut last = (0.0, 1.0 - in_time[0]);
    let mut sum = 0.0;
    for (point, chance) in in_time[1..].iter().enumerate() {
        let next = (at(point), 1.0 - chance);
        sum += (next.0 - last.0) * (next.1 + last.1) / 2.0;
        last = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_recording::{Cpu, Detour, Span};

    use super::*;

    fn late(curve: &Curve) -> f64 {
        mean_ns(&curve.in_time().collect::<Vec<f64>>())
    }

    fn trace(cpu: u32, period: u64, long: u64) -> Trace {
        let ns = Nanos::from_nanos;
        let whole = 1_000_000_000;
        let detours = (0..whole / period)
            .map(|i| Detour { start: ns(i * period + 7), duration: ns(long), own: false })
            .collect();
        Trace { cpu: Cpu(cpu), span: Span { start: ns(0), end: ns(whole) }, detours }
    }

    #[test]
    fn a_periodic_detour_delays_as_it_must() {
        let quantum = Nanos::from_nanos(1_000_000);
        let curve = Curve::from_traces(&[trace(0, 4_000_000, 50_000)], quantum, Draws::new(1, &[])).unwrap();
        // A quantum that begins in the millisecond before it meets all of it.
        let exact = 50_000.0 * 1_000_000.0 / (4_000_000.0 - 50_000.0);
        assert!((late(&curve) / exact - 1.0).abs() < 0.05, "{} {exact}", late(&curve));
    }

    #[test]
    fn the_slowest_cpu_counts() {
        let quantum = Nanos::from_nanos(1_000_000);
        let of = |traces: &[Trace]| late(&Curve::from_traces(traces, quantum, Draws::new(1, &[])).unwrap());
        let (short, long) = (trace(0, 1_000_000, 3_000), trace(1, 1_000_000, 9_000));
        let both = of(&[short.clone(), long.clone()]);
        assert!((both / of(&[long]) - 1.0).abs() < 0.01 && both > 2.0 * of(&[short]));
    }

    #[test]
    fn points_hold_what_is_above_them() {
        assert_eq!([1, 10, 11, 100, 101, u64::MAX].map(points_below), [0, 0, 3, STEPS, STEPS + 1, POINTS]);
        assert!((at(STEPS) - 100.0).abs() < 1e-9);
    }
}
