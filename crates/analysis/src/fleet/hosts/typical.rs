//! Which hosts stand out: relative to the median of all hosts and their median absolute deviation, which outliers do not shift.

use std::collections::BTreeMap;

use quell_recording::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::HostRow;
use crate::fleet::outliers::score::Ordered;
use crate::stats::MAD_TO_SIGMA;

/// Minimum number of hosts for a typical value.
pub const FEWEST: usize = 4;
/// Maximum modified z-score; a host above it stands out (Iglewicz & Hoaglin, "How to Detect and Handle Outliers", 1993).
const HIGHEST_SCORE: f64 = 3.5;
/// Hosts within this share of the median do not stand out, however small the deviation of the others is.
const NEAR: f64 = 0.1;
/// Below this, in percent, others' use of memory may be chance, also where most hosts have none.
const LEAST_OF_MEMORY: f64 = 1.0;

/// The figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostFigure {
    /// Noise overhead of the host.
    Overhead,
    /// Noise overhead of its worst CPU.
    WorstCpu,
}

impl HostFigure {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overhead => "noise",
            Self::WorstCpu => "worst CPU",
        }
    }

    fn value(self, row: &HostRow) -> Option<f64> {
        match self {
            Self::Overhead => row.overhead_percent,
            Self::WorstCpu => row.worst_cpu.map(|cpu| cpu.overhead_percent),
        }
    }
}

/// The figure in which a host stands out, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StandsOut {
    /// The figure that is high.
    pub figure: HostFigure,
    /// The ratio to the median; null if the median is zero.
    pub times_median: Option<f64>,
}

/// The typical values of hosts that were recorded in the same way, in percent of the time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Typical {
    /// The method of recording.
    pub method: String,
    /// Number of hosts whose noise is known.
    pub hosts: u64,
    /// Median of their noise overhead.
    pub overhead_percent: f64,
    /// Median absolute deviation from it.
    pub deviation_percent: f64,
    /// A host above this stands out; null if there are too few hosts.
    pub limit_percent: Option<f64>,
}

/// Marks the rows that stand out, and returns the typical values.
pub(super) fn mark(rows: &mut [HostRow]) -> Vec<Typical> {
    let mut methods: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        methods.entry(row.method.clone()).or_default().push(at);
    }
    let mut typical = Vec::new();
    for (method, members) in methods {
        for figure in [HostFigure::Overhead, HostFigure::WorstCpu] {
            let values = Ordered::new(members.iter().filter_map(|&at| figure.value(&rows[at])));
            if values.count() == 0 {
                continue;
            }
            let (median, deviation) = (values.median(), values.deviation());
            let least = if method == Method::Memory.to_string() { LEAST_OF_MEMORY } else { 0.0 };
            let limit = (values.count() >= FEWEST).then(|| limit(median, deviation).max(least));
            for &at in &members {
                if let (Some(value), Some(limit)) = (figure.value(&rows[at]), limit)
                    && value > limit
                {
                    let times_median = (median > 0.0).then(|| value / median);
                    rows[at].stands_out.push(StandsOut { figure, times_median });
                }
            }
            if figure == HostFigure::Overhead {
                let hosts = values.count() as u64;
                let (method, limit_percent) = (method.clone(), limit);
                typical.push(Typical {
                    method,
                    hosts,
                    overhead_percent: median,
                    deviation_percent: deviation,
                    limit_percent,
                });
            }
        }
    }
    typical
}

fn limit(median: f64, deviation: f64) -> f64 {
    median + (HIGHEST_SCORE * MAD_TO_SIGMA * deviation).max(NEAR * median)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::super::WorstCpu;
    use super::*;

    fn row(overhead: f64, worst: f64, method: &str) -> HostRow {
        HostRow {
            name: "h".into(),
            host: None,
            state: "complete".into(),
            method: method.into(),
            cpus: "0".into(),
            cpu_count: 1,
            span_ns: 1,
            overhead_percent: Some(overhead),
            worst_cpu: Some(WorstCpu { cpu: 0, overhead_percent: worst }),
            events: None,
            top_source: None,
            ranks: Vec::new(),
            lost: 0,
            stands_out: Vec::new(),
        }
    }

    fn marked(values: &[(f64, f64)]) -> Vec<usize> {
        let mut rows: Vec<HostRow> = values.iter().map(|&(mean, worst)| row(mean, worst, "detour")).collect();
        mark(&mut rows);
        (0..rows.len()).filter(|&at| !rows[at].stands_out.is_empty()).collect()
    }

    #[test]
    fn the_odd_host_is_marked_and_two_odd_ones_do_not_hide_each_other() {
        assert_eq!(marked(&[(1.0, 1.0), (1.1, 1.1), (0.9, 0.9), (5.0, 5.0)]), [3]);
        let two = [(1.0, 1.0), (1.1, 1.1), (0.9, 0.9), (1.0, 1.0), (1.05, 1.05), (5.0, 5.0), (6.0, 6.0)];
        assert_eq!(marked(&two), [5, 6]);
    }

    #[test]
    fn one_bad_cpu_is_enough() {
        assert_eq!(marked(&[(1.0, 1.0), (1.0, 1.1), (1.0, 1.0), (1.01, 40.0)]), [3]);
    }

    #[test]
    fn hosts_that_are_alike_or_few_or_quiet_do_not_stand_out() {
        let none: Vec<usize> = Vec::new();
        assert_eq!(marked(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.05, 1.05)]), none);
        assert_eq!(marked(&[(1.0, 1.0), (9.0, 9.0), (1.0, 1.0)]), none);
        assert_eq!(marked(&[(1.0, 1.0), (1.1, 1.0), (1.0, 1.0), (0.0, 0.0)]), none, "quieter is no fault");
        assert_eq!(marked(&[(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.1, 0.1)]), [3]);
    }

    #[test]
    fn little_use_of_memory_may_be_chance() {
        let mut rows: Vec<HostRow> =
            [0.0, 0.0, 0.0, 0.1, 20.0].map(|noise| row(noise, noise, "memory")).into();
        mark(&mut rows);
        let marked: Vec<bool> = rows.iter().map(|row| !row.stands_out.is_empty()).collect();
        assert_eq!(marked, [false, false, false, false, true]);
    }

    #[test]
    fn methods_are_held_apart() {
        let mut rows = vec![row(9.0, 9.0, "kernel")];
        rows.extend([1.0, 1.1, 0.9, 1.0].map(|noise| row(noise, noise, "detour")));
        let typical = mark(&mut rows);
        assert!(rows.iter().all(|row| row.stands_out.is_empty()));
        assert_eq!(typical.iter().map(|one| one.hosts).collect::<Vec<_>>(), [4, 1]);
        assert!(typical[0].limit_percent.is_some() && typical[1].limit_percent.is_none());
    }
}
