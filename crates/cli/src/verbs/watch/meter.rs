//! Measures what quell itself costs: CPU time in its eBPF programs and on its own thread.

use quell_analysis::live::Overhead;
use quell_kernel::{Cost, Recorder, count_cost};

/// Readings of both CPU times.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    time_ns: u64,
    bpf_ns: u64,
    bpf_runs: u64,
    thread_ns: u64,
}

/// Computes the difference between successive readings.
#[derive(Debug)]
pub struct Meter {
    /// Kept open, so that the kernel continues to count.
    counting: Option<Cost>,
    last: Reading,
}

impl Meter {
    /// Starts to count, if this kernel can.
    pub fn start(recorder: Option<&Recorder>) -> Self {
        let counting = recorder.and_then(|_| count_cost().ok());
        Self { counting, last: Reading::take(recorder) }
    }

    /// The cost since the last call.
    pub fn read(&mut self, recorder: Option<&Recorder>) -> Overhead {
        let now = Reading::take(recorder);
        let span = now.time_ns.saturating_sub(self.last.time_ns).max(1) as f64;
        let since = |now: u64, last: u64| now.saturating_sub(last) as f64 / span;
        let counted = self.counting.is_some();
        let overhead = Overhead {
            bpf_percent: counted.then(|| 100.0 * since(now.bpf_ns, self.last.bpf_ns)),
            bpf_runs_per_s: counted.then(|| 1e9 * since(now.bpf_runs, self.last.bpf_runs)),
            thread_percent: 100.0 * since(now.thread_ns, self.last.thread_ns),
            lost_intervals: recorder.map_or(0, Recorder::lost),
            ..Overhead::default()
        };
        self.last = now;
        overhead
    }
}

impl Reading {
    fn take(recorder: Option<&Recorder>) -> Self {
        let programs = recorder.map(Recorder::cost).unwrap_or_default();
        Self {
            time_ns: clock_ns(libc::CLOCK_MONOTONIC),
            bpf_ns: programs.iter().map(|program| program.ns).sum(),
            bpf_runs: programs.iter().map(|program| program.runs).sum(),
            thread_ns: clock_ns(libc::CLOCK_THREAD_CPUTIME_ID),
        }
    }
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
