//! How often ranges of time meet by chance: as often as the same ranges do if some of them are moved.

use quell_recording::Span;
use quell_sim::Draws;

use crate::stats::poisson_at_least;
use crate::time_range::TimeRange;

/// Minimum and maximum number of shifts. Periodic ranges that take 1 % of the time meet again in one or two shifts of a hundred, so it takes
/// many to see how often that is.
const SHIFTS: [u64; 2] = [20, 64];
/// Number of ranges to move, over all shifts: bounds the time that a long recording takes.
const MOVES: u64 = 1 << 21;
/// The longest shift, in ns. Jobs and services make some seconds noisier than others, on all CPUs alike, and longer shifts would take that for
/// more than chance.
const LONGEST: u64 = 1_000_000_000;
/// The part of the longest shift that is the shortest. Ranges of half of that length may meet themselves.
const SHORTEST: u64 = 4;
/// What is found counts if chance gives as much with at most this probability, taken as independent events (Poisson), ...
const RARE: f64 = 1e-4;
/// ... and if at most one shift of this number gives as much: bursts are not independent events.
const REACHED: u64 = 20;

/// The number of shifts for this number of ranges.
pub(crate) fn shifts(ranges: u64) -> u64 {
    let [fewest, most] = SHIFTS;
    (MOVES / ranges.max(1)).clamp(fewest, most)
}

/// Ranges, moved by the `n`-th shift, in order of time. What leaves the span at one end comes back at the other.
pub(crate) fn shifted(ranges: &[TimeRange], span: Span, n: u64) -> Vec<TimeRange> {
    let length = span.length().as_nanos();
    if length == 0 {
        return Vec::new();
    }
    let zero = span.start.as_nanos();
    let by = u128::from(distance(length, n));
    let moved = ranges.iter().map(|one| {
        let at = u128::from(one.start.saturating_sub(zero)) + by;
        let start = zero + (at % u128::from(length)) as u64;
        TimeRange { start, end: start.saturating_add(one.length()) }
    });
    let mut moved: Vec<TimeRange> = moved.collect();
    moved.sort();
    moved
}

/// How far the `n`-th shift goes around a span of this length, to later times: a random distance, up to [`LONGEST`] either way.
fn distance(length: u64, n: u64) -> u64 {
    let longest = LONGEST.min(length / 2);
    let shortest = longest / SHORTEST;
    let draw = Draws::new(0, &[]).below(n, 2 * (longest - shortest));
    if draw < longest - shortest { shortest + draw } else { length - longest + (draw - (longest - shortest)) }
}

/// What chance gives, as a count for each shift.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chance(Vec<f64>);

impl Chance {
    pub fn from_shifts(counts: impl IntoIterator<Item = f64>) -> Self {
        Self(counts.into_iter().collect())
    }

    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// Whether fewer shifts than one of [`REACHED`] give as much.
    pub fn seldom_gives(&self, found: u64) -> bool {
        let reached = self.0.iter().filter(|count| **count >= found as f64).count() as u64;
        reached * REACHED <= self.0.len() as u64
    }

    /// Whether what is found is more than chance, which gives at most the share `most` of it.
    pub fn is_exceeded(&self, found: u64, most: f64) -> bool {
        // Nothing in all shifts does not prove that chance gives nothing.
        let mean = self.mean().max(1.0 / self.0.len().max(1) as f64);
        self.mean() <= most * found as f64
            && self.seldom_gives(found)
            && poisson_at_least(u32::try_from(found).unwrap_or(u32::MAX), mean) <= RARE
    }
}

#[cfg(test)]
mod tests {
    use quell_recording::Nanos;

    use super::*;

    const MOST: u64 = SHIFTS[1];

    fn time_range(start: u64, end: u64) -> TimeRange {
        TimeRange { start, end }
    }

    #[test]
    fn a_shift_keeps_lengths_and_order() {
        let span = Span { start: Nanos::from_nanos(1_000), end: Nanos::from_nanos(11_000) };
        let ranges = [time_range(1_000, 1_100), time_range(6_000, 6_010), time_range(10_500, 10_700)];
        for n in 0..MOST {
            let moved = shifted(&ranges, span, n);
            assert!(moved.is_sorted() && moved.iter().all(|one| one.start >= 1_000 && one.start < 11_000));
            assert_eq!(moved.iter().map(|one| one.length()).sum::<u64>(), 310);
        }
        assert_eq!(shifted(&ranges, Span::default(), 0), []);
    }

    #[test]
    fn a_shift_goes_a_quarter_of_a_second_to_a_second_either_way() {
        let length = 60_000_000_000;
        let earlier = |n: &u64| distance(length, *n) > length / 2;
        assert!((24..40).contains(&(0..MOST).filter(earlier).count()));
        for n in 0..MOST {
            let by = distance(length, n);
            let by = by.min(length - by);
            assert!((250_000_000..=1_000_000_000).contains(&by), "{by}");
            assert!(distance(8, n) < 8 && distance(1, n) <= 1);
        }
    }

    /// Multiples of the golden ratio would do so if the periods are a Fibonacci number, simple fractions of the span if they are even.
    #[test]
    fn no_period_moves_ranges_back_in_many_shifts() {
        for every in [1_000, 2_338, 6_944_444, 10_416_666, 100_000_000] {
            let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(every * 1_000) };
            let starts = (0..1_000).map(|n| n * every);
            let ranges: Vec<TimeRange> = starts.map(|start| time_range(start, start + every / 100)).collect();
            let is_back =
                |n: &u64| shifted(&ranges, span, *n).iter().any(|one| one.start % every < every / 100);
            let back = (0..MOST).filter(is_back).count();
            assert!(back <= 3, "{back} of {MOST} shifts, each {every} ns");
        }
    }

    #[test]
    fn a_burst_that_shifts_meet_as_a_whole_is_no_evidence() {
        // All 40 in one shift of ten: its mean is a tenth of what is found.
        let burst = Chance::from_shifts((0..60).map(|n| if n % 10 == 0 { 40.0 } else { 0.0 }));
        assert!(
            (burst.mean() - 4.0).abs() < 1e-12 && !burst.is_exceeded(40, 0.5) && burst.is_exceeded(41, 0.5)
        );
        let even = Chance::from_shifts([4.0; 60]);
        assert!(even.is_exceeded(40, 0.5) && !even.is_exceeded(40, 0.05) && !even.is_exceeded(8, 0.5));
        let none = Chance::from_shifts([0.0; 20]);
        assert!(none.is_exceeded(3, 0.1) && !none.is_exceeded(1, 0.1) && !none.is_exceeded(0, 0.1));
    }
}
