//! What the processor itself counts: interrupts that no kernel sees, its frequency, and how often heat slowed it.
//!
//! All of it is read before the probes measure, and after: reading interrupts their CPUs.

use std::path::Path;

use perf_event::events::x86::{Msr, MsrId};
use perf_event::{Builder, Counter};
use quell_recording::{Cpu, CpuFacts, Nanos, Throttling};

/// The counters of a CPU. Each is `None` where the processor, the kernel or the user's rights do not have it.
pub(crate) struct Counters {
    cpu: Cpu,
    /// MSR_SMI_COUNT: Intel's processors alone have it.
    smis: Option<Counter>,
    /// APERF and MPERF: cycles at the actual frequency and at the time-stamp counter's, both while the CPU does not sleep (Intel 64 and IA-32
    /// Architectures Software Developer's Manual, volume 3, section 15.2).
    cycles: Option<[Counter; 2]>,
    throttled: Throttled,
}

impl Counters {
    /// Starts counting. A virtual machine's count of system management interrupts says nothing of the host's.
    pub(crate) fn start(cpu: Cpu, is_virtual: bool) -> Self {
        let smis = if is_virtual { None } else { register(cpu, MsrId::SMI) };
        let cycles =
            register(cpu, MsrId::APERF).and_then(|actual| Some([actual, register(cpu, MsrId::MPERF)?]));
        Self { cpu, smis, cycles, throttled: Throttled::read(&folder(cpu)) }
    }

    /// Writes what was counted since then.
    pub(crate) fn end(self, facts: &mut CpuFacts) {
        facts.smis = self.smis.and_then(|mut counter| counter.read().ok());
        facts.frequency_percent = self.cycles.and_then(|[mut actual, mut fixed]| {
            let (actual, fixed) = (actual.read().ok()?, fixed.read().ok()?);
            (fixed > 0).then(|| 100.0 * actual as f64 / fixed as f64)
        });
        facts.throttling = Throttled::read(&folder(self.cpu)).since(&self.throttled);
    }
}

/// Counts with a register of the CPU, through the kernel's perf events. Takes CAP_PERFMON, or `perf_event_paranoid` below 1.
fn register(cpu: Cpu, register: MsrId) -> Option<Counter> {
    let mut builder = Builder::new(Msr::new(register).ok()?);
    builder.one_cpu(cpu.0 as usize).any_pid().exclude_kernel(false).exclude_hv(false).enabled(true);
    builder.build().ok()
}

fn folder(cpu: Cpu) -> std::path::PathBuf {
    format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle").into()
}

/// The kernel's counts of a CPU since boot, for its core and its package: how often it was too hot, and for how many ms. The count grows when
/// that begins, and the time when it ends (Documentation/admin-guide/thermal/intel_thermal_throttle.rst).
#[derive(Debug)]
struct Throttled {
    times: [Option<u64>; 2],
    total_ms: [Option<u64>; 2],
}

impl Throttled {
    fn read(folder: &Path) -> Self {
        let number = |file: &str| fs_err::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
        let both = |what: &str| ["core", "package"].map(|whose| number(&format!("{whose}_throttle_{what}")));
        Self { times: both("count"), total_ms: both("total_time_ms") }
    }

    /// What was added; the core and its package count the same heat.
    fn since(&self, before: &Self) -> Option<Throttling> {
        let added = |now: [Option<u64>; 2], before: [Option<u64>; 2]| {
            let pairs = now.into_iter().zip(before);
            pairs.filter_map(|(now, before)| Some(now?.saturating_sub(before?))).max()
        };
        let total_ms = added(self.total_ms, before.total_ms).unwrap_or(0);
        let total_ns = Nanos::from_nanos(total_ms.saturating_mul(1_000_000));
        Some(Throttling { times: added(self.times, before.times)?, total_ns })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn the_core_and_its_package_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| fs_err::write(folder.path().join(file), text).unwrap();
        let read = || Throttled::read(folder.path());
        assert_eq!(read().since(&read()), None);
        put("core_throttle_count", "3\n");
        put("package_throttle_count", "5\n");
        let before = read();
        put("core_throttle_count", "7\n");
        let added = |times, ms: u64| Some(Throttling { times, total_ns: Nanos::from_nanos(ms * 1_000_000) });
        assert_eq!(read().since(&before), added(4, 0));
        put("core_throttle_total_time_ms", "12\n");
        put("package_throttle_total_time_ms", "7\n");
        let before = read();
        put("package_throttle_total_time_ms", "30\n");
        assert_eq!(read().since(&before), added(0, 23));
        put("core_throttle_count", "-1\n");
        put("package_throttle_count", "\n");
        assert_eq!(read().since(&before), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_register_counts_between_its_readings() {
        use crate::clock::{Clock as _, Tsc};
        let before = Tsc.now();
        let Some(mut counter) = register(Cpu(0), MsrId::TSC) else {
            return quell_testing::skip("perf events of the processor's registers are not to be had here");
        };
        let begun = Tsc.now();
        let ending = Tsc.now();
        let counted = counter.read().unwrap();
        let after = Tsc.now();
        // Counters of CPUs may differ by the time that a cache line takes.
        assert!((ending - begun..=after - before).contains(&counted), "{counted}");
    }
}
