//! The document of the parameters.

use quell_recording::columns::{Columns, describe};
use quell_sim::loggops::{Network, PerByte, SizeRange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fit;
use super::samples::{Estimate, KindName, Point};
use crate::Warning;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.bench-loggp/2";

/// Measured LogGOPS parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// Always `quell.bench-loggp/2`.
    pub schema: String,
    /// The MPI library, as it names itself.
    pub mpi: String,
    /// When the job began, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Each kind of network between the job's ranks.
    pub kinds: Vec<Kind>,
    /// What limits the figures.
    pub warnings: Vec<Warning>,
}

/// One kind of network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// The kind.
    pub kind: KindName,
    /// The hosts of the two ranks; one entry if they share it.
    pub hosts: Vec<String>,
    /// The rank with which rank 0 measured.
    pub partner: u64,
    /// Number of rounds of measurement.
    pub rounds: u64,
    /// The overall parameters: they fit the smallest message and the largest.
    pub parameters: Parameters,
    /// S: the largest message whose send does not wait for its receive, in bytes, over rounds.
    pub eager_limit_bytes: Estimate,
    /// Whether a larger message did wait; if not, S is at least the given value.
    pub eager_limit_found: bool,
    /// Sizes that one set of parameters describes, in order.
    pub ranges: Vec<Range>,
    /// The measurements of each size.
    pub sizes: Vec<SizeTimes>,
    /// Ping-pongs and linear scatters, measured and simulated.
    pub checks: Vec<Check>,
}

/// Parameters as the simulator's physical rules use them, and the overheads that they are derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// L, without the overheads of sender and receiver, in nanoseconds.
    pub latency_ns: Estimate,
    /// o, of each send and each arrival, in nanoseconds.
    pub overhead_ns: Estimate,
    /// o_s as measured: of a send whose receiver computes, in nanoseconds.
    pub send_overhead_ns: Estimate,
    /// o_r as measured: of a receive whose message has arrived, in nanoseconds.
    pub receive_overhead_ns: Estimate,
    /// g, in nanoseconds.
    pub gap_ns: Estimate,
    /// G, in nanoseconds per byte.
    pub gap_per_byte_ns: Estimate,
    /// O, at most G, in nanoseconds per byte.
    pub overhead_per_byte_ns: Estimate,
    /// O as measured: the slope of o over the size up to S, in nanoseconds per byte.
    pub measured_overhead_per_byte_ns: Estimate,
}

/// Sizes that one set of parameters describes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Range {
    /// Its smallest message, in bytes.
    pub from_bytes: u64,
    /// Its largest.
    pub to_bytes: u64,
    /// L, in nanoseconds.
    #[column(title = "L")]
    pub latency_ns: Estimate,
    /// o, in nanoseconds.
    #[column(title = "o")]
    pub overhead_ns: Estimate,
    /// g, in nanoseconds.
    #[column(title = "g")]
    pub gap_ns: Estimate,
    /// G, in nanoseconds per byte.
    #[column(title = "G", number, precision = 4, suffix = " ns/B")]
    pub gap_per_byte_ns: Estimate,
    /// O, in nanoseconds per byte.
    #[column(title = "O", number, precision = 4, suffix = " ns/B")]
    pub overhead_per_byte_ns: Estimate,
    /// The largest deviation of the parameters from half a round trip and the interval of messages, in percent of them.
    #[column(title = "largest error", precision = 1, suffix = " %")]
    pub worst_residual_percent: f64,
    /// g and G as netgauge fits them.
    pub interval_fit: IntervalFit,
}

/// The least-squares line through (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1) over s − 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalFit {
    /// g, in nanoseconds; can be negative for a fit far from the first byte.
    pub gap_ns: f64,
    /// G, in nanoseconds per byte.
    pub gap_per_byte_ns: f64,
    /// The root of the mean squared residual, in nanoseconds.
    pub residual_ns: f64,
}

/// Times of messages of one size, as lower quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeTimes {
    /// The size, in bytes.
    pub bytes: u64,
    /// PRTT(1, 0, s) / 2, in nanoseconds.
    pub half_round_trip_ns: f64,
    /// (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1), in nanoseconds.
    pub interval_ns: f64,
    /// Time of a send whose receiver computes, in nanoseconds; above S it waits.
    pub send_ns: f64,
    /// Time of a receive whose message has arrived, in nanoseconds; above S it takes the whole transfer.
    pub receive_ns: f64,
    /// The paper's o_s: (PRTT(n, d, s) − PRTT(1, 0, s)) / (n − 1) − d, in nanoseconds.
    pub paced_send_ns: f64,
}

/// A ping-pong and a linear scatter of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The size, in bytes.
    pub bytes: u64,
    /// Half a round trip.
    pub pingpong: Comparison,
    /// Rank 0 sends to each other rank in turn, repeatedly, until an answer of one byte from the last; the time of one
    /// scatter is the total over their number.
    pub scatter: Comparison,
}

/// A measured and a simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// As measured, in nanoseconds.
    pub measured_ns: f64,
    /// With the parameters of the size's range, in nanoseconds.
    pub simulated_ns: f64,
    /// Deviation from the measured time, in percent of it.
    pub deviation_percent: f64,
    /// With the overall parameters, in nanoseconds.
    pub simulated_overall_ns: f64,
    /// Deviation of that, in percent.
    pub overall_deviation_percent: f64,
}

impl SizeTimes {
    pub(super) fn from_point(point: &Point) -> Self {
        Self {
            bytes: point.bytes,
            half_round_trip_ns: point.half,
            interval_ns: point.interval,
            send_ns: point.send,
            receive_ns: point.receive,
            paced_send_ns: point.paced_send,
        }
    }
}

/// Names the estimates, which have the order of `Figures::flat`.
pub(super) fn parameters(
    estimates: &[Estimate],
    points: &[Point],
    spans: &[(usize, usize)],
    eager_limit: u64,
) -> (Parameters, Vec<Range>) {
    let at = |index: usize| estimates.get(index).copied().unwrap_or_default();
    let parameters = Parameters {
        send_overhead_ns: at(0),
        receive_overhead_ns: at(1),
        measured_overhead_per_byte_ns: at(2),
        latency_ns: at(3),
        overhead_ns: at(4),
        gap_ns: at(5),
        gap_per_byte_ns: at(6),
        overhead_per_byte_ns: at(7),
    };
    let range = |(index, &(begin, end)): (usize, &(usize, usize))| {
        let (points, first) = (&points[begin..end], 8 + 5 * index);
        let times = [0, 1, 2, 3].map(|figure| at(first + figure).value);
        let above = points.first().is_some_and(|point| point.bytes > eager_limit);
        let line = fit::Line::from_figures(times, above);
        let (gap_ns, gap_per_byte_ns, residual_ns) = fit::netgauge(points);
        Range {
            from_bytes: points.first().map_or(0, |point| point.bytes),
            to_bytes: points.last().map_or(0, |point| point.bytes),
            latency_ns: at(first),
            overhead_ns: at(first + 1),
            gap_ns: at(first + 2),
            gap_per_byte_ns: at(first + 3),
            overhead_per_byte_ns: at(first + 4),
            worst_residual_percent: 100.0 * line.worst(points),
            interval_fit: IntervalFit { gap_ns, gap_per_byte_ns, residual_ns },
        }
    };
    (parameters, spans.iter().enumerate().map(range).collect())
}

/// A network with L, o and g in whole nanoseconds, G and O in whole femtoseconds.
pub(super) fn net(times: [Estimate; 3], rates: [Estimate; 2], eager_limit: u64) -> Network {
    let [latency, overhead, gap] = times.map(|time| time.value.max(0.0).round() as u64);
    let [gap_per_byte, overhead_per_byte] =
        rates.map(|rate| PerByte::from_femtoseconds((rate.value.max(0.0) * 1e6).round() as u64));
    Network { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit }
}

impl Parameters {
    /// The network for the simulator.
    pub fn net(&self, eager_limit: u64) -> Network {
        let times = [self.latency_ns, self.overhead_ns, self.gap_ns];
        net(times, [self.gap_per_byte_ns, self.overhead_per_byte_ns], eager_limit)
    }
}

impl Range {
    /// Its sizes and their network, for the simulator.
    pub fn sized(&self, eager_limit: u64) -> SizeRange {
        SizeRange { from_bytes: self.from_bytes, to_bytes: self.to_bytes, network: self.net(eager_limit) }
    }

    /// The network for the simulator.
    pub fn net(&self, eager_limit: u64) -> Network {
        let times = [self.latency_ns, self.overhead_ns, self.gap_ns];
        net(times, [self.gap_per_byte_ns, self.overhead_per_byte_ns], eager_limit)
    }
}
