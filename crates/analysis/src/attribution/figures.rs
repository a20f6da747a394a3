//! How much of the detours is explained.

use schemars::JsonSchema;
use serde::Serialize;

use super::blame::Blame;

/// Three figures of how much is explained. A single one misleads: few long tasks make up most of the time, many
/// short detours most of the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Mean over the detours of the explained share of each one's time, in percent: a detour counts as explained as far as its time is.
    pub count_percent: f64,
    /// Attributed time / time of detours, in percent.
    pub time_percent: f64,
    /// The same without detours that hold a task; null if none remain.
    pub time_without_tasks_percent: Option<f64>,
    /// Number of detours; quell's own count in no figure.
    pub detours: u64,
    /// Sum of their times.
    pub detour_ns: u64,
    /// The part of that time that is attributed to sources.
    pub attributed_ns: u64,
    /// The part of that time that is not attributed.
    pub unattributed_ns: u64,
}

/// The three figures over some detours; `None` if there are none.
pub(super) fn figures<'a>(blames: impl Iterator<Item = &'a Blame>) -> Option<Figures> {
    let mut sum = Figures::default();
    let mut explained = 0.0;
    let (mut taskless_ns, mut taskless_left_ns) = (0u64, 0u64);
    for blame in blames {
        let ns = blame.detour.duration.as_nanos();
        sum.detours += 1;
        sum.detour_ns = sum.detour_ns.saturating_add(ns);
        sum.unattributed_ns = sum.unattributed_ns.saturating_add(blame.left_ns);
        explained += percent(blame.attributed_ns(), ns).unwrap_or(0.0);
        if !blame.met_task {
            taskless_ns = taskless_ns.saturating_add(ns);
            taskless_left_ns = taskless_left_ns.saturating_add(blame.left_ns);
        }
    }
    sum.attributed_ns = sum.detour_ns - sum.unattributed_ns;
    sum.count_percent = (sum.detours > 0).then(|| (explained / sum.detours as f64).clamp(0.0, 100.0))?;
    sum.time_percent = percent(sum.attributed_ns, sum.detour_ns).unwrap_or(0.0);
    sum.time_without_tasks_percent = percent(taskless_ns - taskless_left_ns, taskless_ns);
    Some(sum)
}

/// A share in percent, 0 to 100; `None` if the whole is 0.
pub(super) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (100.0 * part as f64 / whole as f64).clamp(0.0, 100.0))
}
