//! Statistics of unattributed time.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::Summary;

/// A table row: one kind of unattributed time.
#[derive(Debug, Columns)]
pub struct LeftOverRow<'a> {
    /// The kind of detour that it lies in.
    #[column(title = "unattributed")]
    pub what: &'static str,
    /// Its statistics.
    #[column(flatten)]
    pub left: &'a LeftOver,
    /// Number of detours that chance would put here: about that many are blamed falsely.
    #[column(title = "by chance", precision = 1)]
    pub by_chance: Option<f64>,
}

/// Statistics of unattributed time, over the detours that have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct LeftOver {
    /// Number of detours.
    #[column(title = "detours")]
    pub count: u64,
    /// Sum of the times.
    #[column(title = "total", zero)]
    pub total_ns: u64,
    /// The shortest time; zero if there is none, like all that follow.
    #[column(title = "min", zero)]
    pub min_ns: u64,
    /// The median time.
    #[column(title = "median", zero)]
    pub median_ns: u64,
    /// 90th percentile.
    #[column(title = "p90", zero)]
    pub p90_ns: u64,
    /// The longest time.
    #[column(title = "max", zero)]
    pub max_ns: u64,
}

impl LeftOver {
    pub(super) fn from_summary(s: Summary) -> Self {
        Self {
            count: s.count,
            total_ns: s.total_ns,
            min_ns: s.min_ns,
            median_ns: s.p50_ns,
            p90_ns: s.p90_ns,
            max_ns: s.max_ns,
        }
    }
}
