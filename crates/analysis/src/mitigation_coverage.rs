//! How much of the noise of recordings a mitigation addresses: the intervals whose source or activity matches its patterns.

use std::collections::BTreeMap;

use quell_recording::{Nanos, Recording, Source, SourcePattern};
use schemars::JsonSchema;
use serde::Serialize;

/// Noise by source and activity of that source.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    by: BTreeMap<(Source, Option<String>), Addressed>,
    watched: Nanos,
}

/// Part of the noise of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Addressed {
    /// Number of intervals.
    pub count: u64,
    /// Sum of their net times, in nanoseconds.
    pub total_ns: u64,
    /// The longest net time of one, in nanoseconds.
    pub max_ns: u64,
    /// Their net time as a share of the time observed on all CPUs, in percent.
    pub percent: f64,
}

impl Sources {
    /// The noise on all CPUs of the recordings whose sources are known.
    pub fn from_recordings(recordings: &[Recording]) -> Self {
        let mut all = Self::default();
        for recording in recordings {
            let spans = recording.manifest.cpus.iter().map(|cpu| cpu.span().length());
            all.watched = spans.fold(all.watched, |sum, span| sum + span);
            for interval in recording.intervals.iter().flat_map(|cpu| &cpu.intervals) {
                let key = (interval.source.clone(), interval.detail.as_deref().map(str::to_owned));
                let sum = all.by.entry(key).or_default();
                sum.count += 1;
                sum.total_ns += interval.net.as_nanos();
                sum.max_ns = sum.max_ns.max(interval.net.as_nanos());
            }
        }
        all
    }

    /// Whether no source is known.
    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// The noise that any of the patterns matches; an interval that several match counts once.
    pub fn addressed(&self, patterns: &[SourcePattern]) -> Addressed {
        let meant =
            |source: &Source, detail: Option<&str>| patterns.iter().any(|one| one.matches(source, detail));
        let mut sum = Addressed::default();
        for ((source, detail), some) in &self.by {
            if meant(source, detail.as_deref()) {
                sum.count += some.count;
                sum.total_ns += some.total_ns;
                sum.max_ns = sum.max_ns.max(some.max_ns);
            }
        }
        if self.watched > Nanos::ZERO {
            sum.percent = 100.0 * sum.total_ns as f64 / self.watched.as_nanos() as f64;
        }
        sum
    }
}
