//! Namespaces in which this process sees other numbers than the programs, which see the kernel's own.

use std::os::unix::fs::MetadataExt as _;

/// Whether this process is in a PID namespace other than the first, whose ids the programs see.
pub(crate) fn in_pid_namespace() -> bool {
    /// The inode of the first PID namespace (include/linux/proc_ns.h: PROC_PID_INIT_INO).
    const FIRST: u64 = 0xEFFF_FFFC;
    fs_err::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() != FIRST)
}

/// By how much CLOCK_MONOTONIC is ahead of the kernel's here, in ns: not 0 in a time namespace (time_namespaces(7)).
pub(crate) fn monotonic_offset_ns() -> i64 {
    fs_err::read_to_string("/proc/self/timens_offsets").ok().and_then(|text| offset_of(&text)).unwrap_or(0)
}

/// From lines `CLOCK SECONDS NANOSECONDS`.
fn offset_of(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::offset_of;

    #[test]
    fn the_offset_of_the_monotonic_clock_is_read() {
        let text = "monotonic           -5       250\nboottime           100         0\n";
        assert_eq!(offset_of(text), Some(-4_999_999_750));
        assert_eq!(offset_of("boottime 1 0\nmonotonic 0 0\n"), Some(0));
        for bad in ["", "monotonic", "monotonic 1", "monotonic a b", "monotonic 9223372036854775807 0"] {
            assert_eq!(offset_of(bad), None, "{bad}");
        }
    }
}
