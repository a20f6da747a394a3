//! Which hosts stand out: by the median of all and their median absolute deviation, so that the odd ones do not hide themselves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::HostRow;
use crate::stats::{MAD_TO_SIGMA, ascending, median, median_absolute_deviation};

/// Fewer hosts have no common habit.
pub const FEWEST: usize = 4;
/// A modified z-score above this stands out (Iglewicz & Hoaglin, "How to Detect and Handle Outliers", 1993).
const HIGHEST_SCORE: f64 = 3.5;
/// Hosts that are alike to within this share of the median do not stand out, however alike the others are.
const NEAR: f64 = 0.1;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Noise overhead of the host.
    Overhead,
    /// Noise overhead of its worst CPU.
    WorstCpu,
}

impl Figure {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overhead => "noise",
            Self::WorstCpu => "worst CPU",
        }
    }

    fn of(self, row: &HostRow) -> Option<f64> {
        match self {
            Self::Overhead => row.overhead_percent,
            Self::WorstCpu => row.worst_cpu.map(|cpu| cpu.overhead_percent),
        }
    }
}

/// In what a host stands out, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StandsOut {
    /// What is high.
    pub figure: Figure,
    /// How many times the median it is; null where that is zero.
    pub times_median: Option<f64>,
}

/// What is usual among hosts that were recorded alike, in percent of the time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Typical {
    /// The method of recording.
    pub method: String,
    /// Hosts whose noise is known.
    pub hosts: u64,
    /// Median of their noise overhead.
    pub overhead_percent: f64,
    /// Median absolute deviation from it.
    pub deviation_percent: f64,
    /// Above this a host stands out; null where the hosts are too few.
    pub limit_percent: Option<f64>,
}

/// Marks the rows that stand out, and says what is usual.
pub(super) fn mark(rows: &mut [HostRow]) -> Vec<Typical> {
    let mut methods: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        methods.entry(row.method.clone()).or_default().push(at);
    }
    let mut typical = Vec::new();
    for (method, members) in methods {
        for figure in [Figure::Overhead, Figure::WorstCpu] {
            let values: Vec<f64> = members.iter().filter_map(|&at| figure.of(&rows[at])).collect();
            let Some((median, deviation)) = middle(&values) else { continue };
            let limit = (values.len() >= FEWEST).then(|| limit(median, deviation));
            for &at in &members {
                if let (Some(value), Some(limit)) = (figure.of(&rows[at]), limit)
                    && value > limit
                {
                    let times_median = (median > 0.0).then(|| value / median);
                    rows[at].stands_out.push(StandsOut { figure, times_median });
                }
            }
            if figure == Figure::Overhead {
                let hosts = values.len() as u64;
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

/// Median, and median absolute deviation from it.
fn middle(values: &[f64]) -> Option<(f64, f64)> {
    let centre = median(&ascending(values.iter().copied()))?;
    Some((centre, median_absolute_deviation(values, centre)?))
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
    fn methods_are_held_apart() {
        let mut rows = vec![row(9.0, 9.0, "kernel")];
        rows.extend([1.0, 1.1, 0.9, 1.0].map(|noise| row(noise, noise, "detour")));
        let typical = mark(&mut rows);
        assert!(rows.iter().all(|row| row.stands_out.is_empty()));
        assert_eq!(typical.iter().map(|one| one.hosts).collect::<Vec<_>>(), [4, 1]);
        assert!(typical[0].limit_percent.is_some() && typical[1].limit_percent.is_none());
    }
}
