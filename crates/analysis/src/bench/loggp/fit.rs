//! Derives parameters from times per size.

use super::samples::Point;
use crate::stats::mean;

/// Maximum relative deviation of a range's parameters from its times.
pub const TOLERANCE: f64 = 0.08;

/// Half a round trip takes `half + b·slope`, and messages follow each other by `interval + b·slope`, where b is the size less one:
/// the simulator has one G for both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub half: f64,
    pub interval: f64,
    pub slope: f64,
}

fn beyond_first(point: &Point) -> f64 {
    point.bytes.saturating_sub(1) as f64
}

/// The weighted means of x and y, and the sums of (x − x̄)² and (x − x̄)·(y − ȳ). A weight of 1/y² makes residuals relative.
fn moments(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> [f64; 4] {
    let weight = |y: f64| 1.0 / (y * y).max(1e-9);
    let sums = pairs.clone().fold([0.0; 3], |[w, x, y], (xi, yi)| {
        let wi = weight(yi);
        [w + wi, x + wi * xi, y + wi * yi]
    });
    let (x, y) = (sums[1] / sums[0], sums[2] / sums[0]);
    let (xx, xy) = pairs.fold((0.0, 0.0), |(xx, xy), (xi, yi)| {
        let wi = weight(yi);
        (xx + wi * (xi - x) * (xi - x), xy + wi * (xi - x) * (yi - y))
    });
    [x, y, xx, xy]
}

/// Intercept at the first byte and slope of the line with the least relative squares; neither is negative.
fn straight(points: &[Point], get: fn(&Point) -> f64) -> (f64, f64) {
    let [x, y, xx, xy] = moments(points.iter().map(|point| (beyond_first(point), get(point))));
    let most = if x > 0.0 { y / x } else { 0.0 };
    let slope = if xx > 0.0 { (xy / xx).clamp(0.0, most) } else { 0.0 };
    ((y - slope * x).max(0.0), slope)
}

impl Line {
    /// The line with the least relative squares through both times; no part of it is negative.
    fn through(points: &[Point]) -> Self {
        let half = moments(points.iter().map(|point| (beyond_first(point), point.half)));
        let interval = moments(points.iter().map(|point| (beyond_first(point), point.interval)));
        let spread = half[2] + interval[2];
        let slope = if spread > 0.0 { (half[3] + interval[3]) / spread } else { 0.0 };
        let most = (half[1] / half[0].max(1e-9)).min(interval[1] / interval[0].max(1e-9));
        let slope = slope.clamp(0.0, most);
        Self { half: half[1] - slope * half[0], interval: interval[1] - slope * interval[0], slope }
    }

    /// The line through the smallest message whose slope fits the largest ones. Those of a rendezvous also wait for an answer.
    fn between_ends(points: &[Point], eager_limit: u64, answer: f64) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let large = points.iter().filter(|point| point.bytes > last.bytes / 2 && point.bytes > first.bytes);
        let (mut xx, mut xy) = (0.0, 0.0);
        for point in large {
            let x = beyond_first(point) - beyond_first(first);
            let answer = if point.bytes > eager_limit { answer } else { 0.0 };
            for (y, base) in [(point.half, first.half + answer), (point.interval, first.interval + answer)] {
                xx += x * x / (y * y);
                xy += x * (y - base) / (y * y);
            }
        }
        let slope = if xx > 0.0 { (xy / xx).max(0.0) } else { 0.0 };
        Some(Self { half: first.half, interval: first.interval, slope })
    }

    /// The times that the simulator computes with L, o, g and G: the reverse of [`Logp::eager`] and [`Logp::rendezvous`].
    pub fn from_figures([latency, overhead, gap, slope]: [f64; 4], rendezvous: bool) -> Self {
        if rendezvous {
            let (half, interval) = (3.0 * latency + 4.0 * overhead, 2.0 * (latency + overhead) + gap);
            return Self { half, interval, slope };
        }
        Self { half: latency + 2.0 * overhead, interval: gap, slope }
    }

    /// The largest relative residual.
    pub fn worst(&self, points: &[Point]) -> f64 {
        let residual = |point: &Point| {
            let bytes = beyond_first(point) * self.slope;
            let half = (self.half + bytes) / point.half - 1.0;
            let interval = (self.interval + bytes) / point.interval - 1.0;
            half.abs().max(interval.abs())
        };
        points.iter().map(residual).fold(0.0, f64::max)
    }
}

/// The indices at which ranges begin and end. Each is as long as one line is within the tolerance; none crosses S.
pub(super) fn spans(points: &[Point], eager_limit: u64) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut begin = 0;
    while begin < points.len() {
        let is_eager = |point: &Point| point.bytes <= eager_limit;
        let mut end = begin + 1;
        while end < points.len()
            && is_eager(&points[end]) == is_eager(&points[begin])
            && Line::through(&points[begin..=end]).worst(&points[begin..=end]) <= TOLERANCE
        {
            end += 1;
        }
        spans.push((begin, end));
        begin = end;
    }
    spans
}

/// The parameters of one line, in nanoseconds and nanoseconds per byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Logp {
    pub latency: f64,
    pub overhead: f64,
    pub gap: f64,
    pub gap_per_byte: f64,
    pub overhead_per_byte: f64,
}

impl Logp {
    /// Up to S: half a round trip takes L + 2·o, and messages follow each other by g.
    fn eager(line: Line, overhead: f64, overhead_per_byte: f64) -> Self {
        let overhead = overhead.min(line.half / 2.0).min(line.interval).max(0.0);
        Self {
            latency: line.half - 2.0 * overhead,
            overhead,
            gap: line.interval,
            gap_per_byte: line.slope,
            overhead_per_byte: overhead_per_byte.min(line.slope),
        }
    }

    /// Above S: half a round trip takes 3·L + 4·o, and each send waits for an answer, so that messages follow each other by 2·(L + o) + g.
    /// o is at most what leaves a g of at least o, so that no CPU but the network limits their rate.
    fn rendezvous(line: Line, overhead: f64, overhead_per_byte: f64) -> Self {
        let most = (line.half / 4.0).min(3.0 * line.interval - 2.0 * line.half);
        let overhead = overhead.min(most).max(0.0);
        let latency = (line.half - 4.0 * overhead) / 3.0;
        Self {
            latency,
            overhead,
            gap: (line.interval - 2.0 * (latency + overhead)).max(overhead),
            gap_per_byte: line.slope,
            overhead_per_byte: overhead_per_byte.min(line.slope),
        }
    }

    fn list(&self) -> [f64; 5] {
        [self.latency, self.overhead, self.gap, self.gap_per_byte, self.overhead_per_byte]
    }
}

/// All parameters of one kind of network.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    send_overhead: f64,
    receive_overhead: f64,
    overhead_per_byte: f64,
    all: Logp,
    ranges: Vec<Logp>,
}

impl Figures {
    /// Computes the parameters from the points of all sizes and the given ranges; `None` without points.
    pub fn from_points(points: &[Point], spans: &[(usize, usize)], eager_limit: u64) -> Option<Self> {
        // Above S the sends wait, so their times do not show the CPU time.
        let eager = points.iter().take_while(|point| point.bytes <= eager_limit).count().max(1);
        let (send_overhead, per_sent) = straight(points.get(..eager)?, |point| point.send);
        let (receive_overhead, per_received) = straight(points.get(..eager)?, |point| point.receive);
        let overhead = f64::midpoint(send_overhead, receive_overhead);
        let overhead_per_byte = f64::midpoint(per_sent, per_received);
        let of_range = |&(begin, end): &(usize, usize)| {
            let points = points.get(begin..end)?;
            let of = if points.first()?.bytes > eager_limit { Logp::rendezvous } else { Logp::eager };
            Some(of(Line::through(points), overhead, overhead_per_byte))
        };
        let first = points.first()?;
        let answer = 2.0 * (first.half - overhead.min(first.half / 2.0));
        let line = Line::between_ends(points, eager_limit, answer)?;
        Some(Self {
            send_overhead,
            receive_overhead,
            overhead_per_byte,
            all: Logp::eager(line, overhead, overhead_per_byte),
            ranges: spans.iter().map(of_range).collect::<Option<_>>()?,
        })
    }

    /// o_s, o_r and O as measured, the five overall parameters, and five of each range.
    pub fn flat(&self) -> Vec<f64> {
        let measured = [self.send_overhead, self.receive_overhead, self.overhead_per_byte];
        let ranges = self.ranges.iter().flat_map(Logp::list);
        measured.into_iter().chain(self.all.list()).chain(ranges).collect()
    }
}

/// The least-squares line through the intervals of messages, as netgauge fits it: g, G and the root of the mean squared residual.
pub(super) fn netgauge(points: &[Point]) -> (f64, f64, f64) {
    let count = points.len().max(1) as f64;
    let x = mean(points.iter().map(beyond_first)).unwrap_or(0.0);
    let y = mean(points.iter().map(|point| point.interval)).unwrap_or(0.0);
    let xx: f64 = points.iter().map(|point| (beyond_first(point) - x).powi(2)).sum();
    let xy: f64 = points.iter().map(|point| (beyond_first(point) - x) * (point.interval - y)).sum();
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let at_first = y - slope * x;
    let residual = |point: &Point| point.interval - at_first - slope * beyond_first(point);
    let squares: f64 = points.iter().map(|point| residual(point).powi(2)).sum();
    (at_first, slope, (squares / count).sqrt())
}
