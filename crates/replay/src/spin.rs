//! The clock, and the loop that burns.

/// CLOCK_MONOTONIC in ns.
#[inline]
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
#[inline]
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

#[inline]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writes, and these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut t) };
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Burns until the clock reaches `until`, and returns the last reading. A single burn is limited to [`LONGEST_BURN_NS`].
#[inline]
pub fn burn_until(now: u64, until: u64) -> u64 {
    let until = until.min(now.saturating_add(LONGEST_BURN_NS));
    let mut now = now;
    while now < until {
        core::hint::spin_loop();
        now = now_ns();
    }
    now
}

/// Maximum length of a burn: one minute. A damaged file must not hold a program forever.
pub const LONGEST_BURN_NS: u64 = 60_000_000_000;
