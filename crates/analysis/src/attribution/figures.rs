//! How much of the detours is explained.

use super::document::Figures;
use super::join::Blame;

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
