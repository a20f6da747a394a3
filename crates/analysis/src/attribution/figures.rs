//! How much of the detours is explained.

use schemars::JsonSchema;
use serde::Serialize;

use super::blame::Blame;

/// The three figures of how much is explained. One alone misleads: few long tasks make up most of the time, many
/// short detours most of the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Detours that hold an interval (or were half stolen) / detours.
    pub count_percent: f64,
    /// Attributed time / time of detours.
    pub time_percent: f64,
    /// The same, detours that hold a task left out; null where none is left.
    pub time_without_tasks_percent: Option<f64>,
    /// Detours; quell's own are in no figure.
    pub detours: u64,
    /// Their time.
    pub detour_ns: u64,
    /// The part that sources took.
    pub attributed_ns: u64,
    /// The part that nothing explains.
    pub unattributed_ns: u64,
}

/// The three figures over some detours; `None` where there are none.
pub(super) fn figures<'a>(blames: impl Iterator<Item = &'a Blame>) -> Option<Figures> {
    let mut sum = Figures::default();
    let (mut explained, mut taskless_ns, mut taskless_left_ns) = (0u64, 0u64, 0u64);
    for blame in blames {
        let ns = blame.detour.duration.as_nanos();
        sum.detours += 1;
        sum.detour_ns = sum.detour_ns.saturating_add(ns);
        sum.unattributed_ns = sum.unattributed_ns.saturating_add(blame.left_ns);
        explained += u64::from(blame.explained());
        if !blame.met_task {
            taskless_ns = taskless_ns.saturating_add(ns);
            taskless_left_ns = taskless_left_ns.saturating_add(blame.left_ns);
        }
    }
    sum.attributed_ns = sum.detour_ns - sum.unattributed_ns;
    sum.count_percent = percent(explained, sum.detours)?;
    sum.time_percent = percent(sum.attributed_ns, sum.detour_ns).unwrap_or(0.0);
    sum.time_without_tasks_percent = percent(taskless_ns - taskless_left_ns, taskless_ns);
    Some(sum)
}

/// A share in percent, 0 to 100; `None` of nothing.
pub(super) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (100.0 * part as f64 / whole as f64).clamp(0.0, 100.0))
}
