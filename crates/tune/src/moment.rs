//! The time and the boot in which the steps of a transaction happen.

use std::time::SystemTime;

use crate::root::Root;

/// The current time, in UTC.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// The kernel's id of this boot; empty if it is not available.
pub(crate) fn boot_id(root: &Root) -> String {
    root.read("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// The time since the boot, in the clock ticks in which the kernel counts when threads start: 100 a second on every architecture.
pub(crate) fn ticks(root: &Root) -> Option<u64> {
    let text = root.read("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    Some(seconds.parse::<u64>().ok()?.checked_mul(100)? + hundredths.parse::<u64>().ok()?)
}
