//! The machine that runs the tests, and disturbers of known rate.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub fn monotonic_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A time limit that a busy machine does not exceed.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Waits for a condition, and panics if it does not become true.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what} did not come within {TIMEOUT:?}");
        std::thread::yield_now();
    }
}

/// The highest-numbered CPU that may be used. Tests probe it, so that the writer runs on another one.
pub fn last_cpu() -> usize {
    // SAFETY: an all-zero set is valid, and the kernel fills no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap()
    }
}

/// A CPU that is offline until this is dropped.
pub struct Offline(PathBuf);

impl Offline {
    /// `None` where this CPU cannot go offline.
    pub fn make(cpu: usize) -> Option<Self> {
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        if !switch.exists() {
            return None;
        }
        let made = Self(switch);
        fs_err::write(&made.0, "0").unwrap();
        Some(made)
    }

    /// Brings it back, and waits until it is there.
    pub fn end(self) {
        let switch = self.0.clone();
        drop(self);
        until("the CPU's return", || fs_err::read_to_string(&switch).is_ok_and(|text| text.trim() == "1"));
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let _ = fs_err::write(&self.0, "1");
    }
}

/// Wakes up every 10 ms on a CPU and burns `burn_ns` there; returns the start and end of each burn.
pub fn disturb(cpu: usize, burn_ns: u64, stop: &AtomicBool) -> Vec<(u64, u64)> {
    pin(cpu);
    let mut burns = Vec::new();
    let mut beat = monotonic_ns();
    while !stop.load(Ordering::Relaxed) {
        beat += 10_000_000;
        sleep_until(beat);
        let start = monotonic_ns();
        while monotonic_ns() < start + burn_ns {}
        burns.push((start, monotonic_ns()));
    }
    burns
}

/// The median.
pub fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// Binds the calling thread to a CPU.
pub fn pin(cpu: usize) {
    pin_thread(0, cpu);
}

/// Binds a thread to a CPU; 0 is the calling one.
pub fn pin_thread(tid: u64, cpu: usize) {
    // SAFETY: an all-zero set is valid, and lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(tid as _, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
}

/// Sleeps until a time on CLOCK_MONOTONIC.
pub fn sleep_until(ns: u64) {
    let at = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    // SAFETY: `at` lives through the call; the rest of the time is not asked for.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const at, std::ptr::null_mut())
    };
}
