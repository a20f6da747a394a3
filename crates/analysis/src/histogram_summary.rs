//! Summaries of histograms from other tools.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Bucket, Nanos, Recording};
use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::nearest_rank_in_counts;

/// Figures of a histogram of one CPU, thread and kind. A quantile is the upper end of the bucket that holds it (by the nearest rank), so that
/// it is never too short.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct HistogramOverview {
    /// The CPU.
    #[column(title = "CPU", id)]
    pub cpu: u32,
    /// The tool's thread.
    #[column(id)]
    pub thread: u32,
    /// What was timed: `gap`, `latency`, `irq_latency`, `thread_latency`, `user_latency` or `noise`.
    #[column(title = "of", number)]
    pub kind: &'static str,
    /// Number of samples.
    #[column]
    pub samples: u64,
    /// Samples per second; absent if it is not known how long the CPU was observed.
    #[column(title = "per s", precision = 1)]
    pub rate_per_s: Option<f64>,
    /// The lower end of the first bucket.
    #[column(title = "min")]
    pub min_ns: u64,
    /// Median.
    #[column(title = "p50")]
    pub p50_ns: u64,
    /// 90th percentile.
    #[column(title = "p90")]
    pub p90_ns: u64,
    /// 99th percentile.
    #[column(title = "p99")]
    pub p99_ns: u64,
    /// 99.9th percentile.
    #[column(title = "p99.9")]
    pub p99_9_ns: u64,
    /// The upper end of the last bucket.
    #[column(title = "max")]
    pub max_ns: u64,
    /// How long the CPU was observed; 0 if the tool does not report it.
    pub span_ns: u64,
}

/// The summary of each histogram of a recording.
pub(crate) fn overviews(recording: &Recording) -> Vec<HistogramOverview> {
    let mut all = Vec::new();
    for histogram in &recording.histograms {
        let facts = recording.manifest.cpus.iter().find(|facts| facts.cpu == histogram.cpu);
        let span = facts.map_or(Nanos::ZERO, |facts| facts.span().length());
        all.extend(histogram.series().map(|series| from_series(histogram.cpu.0, span, series)));
    }
    all
}

fn from_series(cpu: u32, span: Nanos, series: &[Bucket]) -> HistogramOverview {
    let samples = series.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.count));
    let watched = span.as_secs_f64();
    let max_ns = series.iter().map(|bucket| bucket.to.as_nanos()).max().unwrap_or(0);
    let quantile = |p: f64| {
        let found = nearest_rank_in_counts(series.iter().map(|bucket| bucket.count), samples, p);
        found.map_or(max_ns, |(bucket, _)| series[bucket].to.as_nanos())
    };
    HistogramOverview {
        cpu,
        thread: series.first().map_or(0, |bucket| bucket.thread),
        kind: series.first().map_or("gap", |bucket| bucket.kind.name()),
        samples,
        span_ns: span.as_nanos(),
        rate_per_s: (watched > 0.0).then(|| samples as f64 / watched),
        min_ns: series.iter().map(|bucket| bucket.from.as_nanos()).min().unwrap_or(0),
        p50_ns: quantile(0.5),
        p90_ns: quantile(0.9),
        p99_ns: quantile(0.99),
        p99_9_ns: quantile(0.999),
        max_ns,
    }
}

#[cfg(test)]
mod tests {
    use quell_recording::HistogramKind;

    use super::*;

    #[test]
    fn a_quantile_is_the_upper_end_of_its_bucket() {
        let bucket = |from: u64, to: u64, count| {
            let [from, to] = [from, to].map(Nanos::from_nanos);
            Bucket { thread: 2, kind: HistogramKind::Latency, from, to, count }
        };
        let series = [bucket(0, 999, 50), bucket(1_000, 1_999, 49), bucket(5_000, 7_000, 1)];
        let found = from_series(3, Nanos::from_secs(2), &series);
        assert_eq!((found.samples, found.rate_per_s), (100, Some(50.0)));
        assert_eq!((found.p50_ns, found.p90_ns, found.p99_ns, found.p99_9_ns), (999, 1_999, 1_999, 7_000));
        assert_eq!((found.min_ns, found.max_ns, found.thread, found.kind), (0, 7_000, 2, "latency"));
        let huge = from_series(0, Nanos::ZERO, &[bucket(1, 1, u64::MAX), bucket(2, 2, u64::MAX)]);
        assert_eq!((huge.samples, huge.p50_ns, huge.rate_per_s), (u64::MAX, 1, None));
    }
}
