//! When a transaction's steps happen: the time, and the boot.

use std::time::SystemTime;

use crate::root::Root;

/// This instant, in UTC.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// The kernel's id of this boot; empty where it is not told.
pub(crate) fn boot_id(root: &Root) -> String {
    root.read("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}
