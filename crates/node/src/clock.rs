//! The clocks that a probe can read without a system call, and their mapping to CLOCK_MONOTONIC.

use std::time::Duration;

use quell_recording::Nanos;

/// A clock that a measuring loop reads. Implementations are zero-sized, so that the loop is compiled separately for each.
pub trait Clock: Copy + Send + 'static {
    /// Ticks since a fixed time, read after all earlier instructions have completed.
    fn now(self) -> u64;
}

/// The time stamp counter, fenced so that no instruction moves across the reading.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

#[cfg(target_arch = "x86_64")]
impl Clock for Tsc {
    #[inline(always)]
    fn now(self) -> u64 {
        // SAFETY: both instructions exist on every x86-64 and touch no memory.
        unsafe {
            std::arch::x86_64::_mm_lfence();
            std::arch::x86_64::_rdtsc()
        }
    }
}

/// The virtual counter of the generic timer.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug)]
pub struct Cntvct;

#[cfg(target_arch = "aarch64")]
impl Clock for Cntvct {
    #[inline(always)]
    fn now(self) -> u64 {
        let ticks: u64;
        // SAFETY: Linux lets user space read the virtual counter; `isb` only orders instructions.
        unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, nomem)) };
        ticks
    }
}

/// CLOCK_MONOTONIC through the vDSO: the fallback where the processor's own counter is not reliable.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline(always)]
    fn now(self) -> u64 {
        monotonic_ns()
    }
}

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Wall-clock time in ns since 1970.
pub fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the answer, and these clocks exist on every Linux.
    unsafe { libc::clock_gettime(id, &raw mut t) };
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Which clock the probes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// The x86 time stamp counter.
    Tsc,
    /// The arm64 virtual counter.
    Cntvct,
    /// CLOCK_MONOTONIC.
    Monotonic,
}

/// Runs `$body` with `$clock` bound to the zero-sized clock of a [`ClockKind`].
macro_rules! with_clock {
    ($kind:expr, $clock:ident => $body:expr) => {
        match $kind {
            #[cfg(target_arch = "x86_64")]
            $crate::clock::ClockKind::Tsc => {
                let $clock = $crate::clock::Tsc;
                $body
            }
            #[cfg(target_arch = "aarch64")]
            $crate::clock::ClockKind::Cntvct => {
                let $clock = $crate::clock::Cntvct;
                $body
            }
            _ => {
                let $clock = $crate::clock::Monotonic;
                $body
            }
        }
    };
}
pub(crate) use with_clock;

impl ClockKind {
    /// The best clock of this machine, and the reason if that is only the fallback.
    pub fn choose() -> (Self, Option<String>) {
        match processor_counter() {
            Ok(kind) => (kind, None),
            Err(reason) => (Self::Monotonic, Some(reason)),
        }
    }

    /// The clock's name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Cntvct => "cntvct",
            Self::Monotonic => "clock_monotonic",
        }
    }

    /// One reading, for all code except a measuring loop.
    pub fn now(self) -> u64 {
        with_clock!(self, clock => clock.now())
    }
}

#[cfg(target_arch = "x86_64")]
fn processor_counter() -> Result<ClockKind, String> {
    use std::arch::x86_64::__cpuid;
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    if !invariant {
        return Err("the processor has no invariant TSC".into());
    }
    // The kernel stops using the TSC as its clock source where CPUs disagree. Paravirtual clocks are built on the TSC.
    let source = fs_err::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match source.as_deref().map(str::trim) {
        Ok("tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page") | Err(_) => Ok(ClockKind::Tsc),
        Ok(other) => Err(format!("the kernel uses the clock source `{other}` and does not trust the TSC")),
    }
}

#[cfg(target_arch = "aarch64")]
fn processor_counter() -> Result<ClockKind, String> {
    Ok(ClockKind::Cntvct)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn processor_counter() -> Result<ClockKind, String> {
    Err("the counter of this processor is not supported".into())
}

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The probe's clock.
    pub ticks: u64,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
}

impl Anchor {
    /// Reads both clocks. Of several attempts it keeps the one with the least time between the readings.
    pub fn take(kind: ClockKind) -> Self {
        let try_once = || {
            let before = kind.now();
            let monotonic_ns = monotonic_ns();
            let after = kind.now();
            let width = after.saturating_sub(before);
            (width, Self { ticks: before + width / 2, monotonic_ns })
        };
        (0..16)
            .map(|_| try_once())
            .min_by_key(|(width, _)| *width)
            .map_or_else(|| try_once().1, |(_, anchor)| anchor)
    }
}

/// The line through two anchors: converts ticks to ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    from: Anchor,
    ticks: u64,
    ns: u64,
}

impl Scale {
    /// The line from one anchor to a later one.
    pub fn between(from: Anchor, to: Anchor) -> Self {
        let ticks = to.ticks.saturating_sub(from.ticks).max(1);
        Self { from, ticks, ns: to.monotonic_ns.saturating_sub(from.monotonic_ns).max(1) }
    }

    /// A first estimate from two anchors `wait` apart.
    pub fn estimate(kind: ClockKind, wait: Duration) -> Self {
        let from = Anchor::take(kind);
        std::thread::sleep(wait);
        Self::between(from, Anchor::take(kind))
    }

    /// Ticks per second.
    pub fn ticks_per_second(self) -> f64 {
        self.ticks as f64 / self.ns as f64 * 1e9
    }

    /// A length in ticks as ns.
    pub fn length(self, ticks: u64) -> Nanos {
        let ns = u128::from(ticks) * u128::from(self.ns) / u128::from(self.ticks);
        Nanos::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// A length in ticks as ns with its fraction, for means and quantiles of the loop.
    pub fn length_f64(self, ticks: f64) -> f64 {
        ticks * self.ns as f64 / self.ticks as f64
    }

    /// A length in ns as ticks.
    pub fn ticks(self, length: Nanos) -> u64 {
        let ticks = u128::from(length.as_nanos()) * u128::from(self.ticks) / u128::from(self.ns);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// A reading as CLOCK_MONOTONIC in ns.
    pub fn monotonic(self, ticks: u64) -> u64 {
        if ticks >= self.from.ticks {
            self.from.monotonic_ns.saturating_add(self.length(ticks - self.from.ticks).as_nanos())
        } else {
            self.from.monotonic_ns.saturating_sub(self.length(self.from.ticks - ticks).as_nanos())
        }
    }
}

/// The granularity of a clock, in ticks, from the gaps between fenced readings.
///
/// Hypervisors and some processors quantise the counter: nearly all gaps are then multiples of a step of many ticks. The granularity
/// is the largest step that explains 95 % of the gaps (each within one tick) by at least two different multiples. A loop that takes
/// the same time on every turn gives no information about the step; where no step fits, the granularity is one tick.
pub fn granularity_ticks(gaps: &[u32]) -> u32 {
    const LARGEST: u32 = 4_096;
    const MULTIPLES: u32 = 4;
    let shortest = gaps.iter().copied().filter(|&gap| gap > 4).min().unwrap_or(1).min(LARGEST);
    let fits = |step: u32| {
        let mut at_multiple = [0usize; MULTIPLES as usize + 1];
        let mut all = 0usize;
        for &gap in gaps.iter().filter(|&&gap| gap <= MULTIPLES * step + 1) {
            all += 1;
            let multiple = (gap + step / 2) / step;
            if multiple > 0 && gap.abs_diff(multiple * step) <= 1 {
                at_multiple[multiple as usize] += 1;
            }
        }
        // One or two gaps at a multiple may be detours, so a multiple counts only if one percent of the gaps are at it.
        let seen = at_multiple.iter().filter(|&&count| count * 100 >= all.max(1)).count();
        all > gaps.len() / 2 && seen >= 2 && at_multiple.iter().sum::<usize>() * 100 >= all * 95
    };
    (6..=shortest.saturating_add(1)).rev().find(|&step| fits(step)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantised_counter_shows_its_step() {
        let gaps: Vec<u32> = (0..10_000).map(|i| [52, 52, 51, 26, 78, 53][i % 6]).collect();
        assert_eq!(granularity_ticks(&gaps), 26);
        let smooth: Vec<u32> = (0..10_000).map(|i| 40 + (i * 7919 % 23) as u32).collect();
        assert_eq!(granularity_ticks(&smooth), 1);
        for steady in [[50, 50], [36, 38], [24, 26]] {
            let gaps: Vec<u32> = (0..10_000).map(|i| steady[i % 2]).collect();
            assert_eq!(granularity_ticks(&gaps), 1, "{steady:?}");
        }
        assert_eq!(granularity_ticks(&[]), 1);
    }

    #[test]
    fn scales_are_exact_at_their_anchors_and_monotone() {
        let from = Anchor { ticks: 1_000, monotonic_ns: 50 };
        let to = Anchor { ticks: 2_597_130, monotonic_ns: 1_000_050 };
        let scale = Scale::between(from, to);
        assert_eq!(scale.monotonic(1_000), 50);
        assert_eq!(scale.monotonic(2_597_130), 1_000_050);
        assert!((0..5_000).map(|t| scale.monotonic(t)).is_sorted());
        let hour = Nanos::from_secs(3600);
        assert!(scale.length(scale.ticks(hour)).as_nanos().abs_diff(hour.as_nanos()) <= 1);
    }

    /// On the kernel that runs the tests.
    mod on_this_machine {
        use super::*;

        #[test]
        fn this_machines_clock_agrees_with_monotonic() {
            quell_testing::measure(|_| {
                let (kind, _) = ClockKind::choose();
                let scale = Scale::estimate(kind, Duration::from_millis(20));
                let anchor = Anchor::take(kind);
                let off = scale.monotonic(anchor.ticks).abs_diff(anchor.monotonic_ns);
                if off < 1_000_000 { Ok(()) } else { Err(format!("{off} ns off")) }
            });
        }
    }
}
