//! What the processor itself counts: interrupts that no kernel sees, its frequency, and how often heat or power slowed it.
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
    throttling: Option<Throttling>,
}

impl Counters {
    /// Starts counting. A virtual machine's count of system management interrupts says nothing of the host's.
    pub(crate) fn start(cpu: Cpu, is_virtual: bool) -> Self {
        let smis = if is_virtual { None } else { register(cpu, MsrId::SMI) };
        let cycles =
            register(cpu, MsrId::APERF).and_then(|actual| Some([actual, register(cpu, MsrId::MPERF)?]));
        Self { cpu, smis, cycles, throttling: throttling(&folder(cpu)) }
    }

    /// Writes what was counted since then.
    pub(crate) fn end(self, facts: &mut CpuFacts) {
        facts.smis = self.smis.and_then(|mut counter| counter.read().ok());
        facts.frequency_percent = self.cycles.and_then(|[mut actual, mut fixed]| {
            let (actual, fixed) = (actual.read().ok()?, fixed.read().ok()?);
            (fixed > 0).then(|| 100.0 * actual as f64 / fixed as f64)
        });
        let now = self.throttling.and_then(|before| Some((before, throttling(&folder(self.cpu))?)));
        facts.throttling = now.map(|(before, after)| Throttling {
            times: after.times.saturating_sub(before.times),
            total_ns: after.total_ns.saturating_sub(before.total_ns),
        });
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

/// How often the core or its package was slowed since boot, and for how long; both at once count once (Documentation/admin-guide/pm/intel_pstate
/// and Documentation/ABI/testing/sysfs-devices-system-cpu, from Linux 5.5 with times).
fn throttling(folder: &Path) -> Option<Throttling> {
    let number = |file: &str| fs_err::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let of_both = |what: &str| {
        let both = ["core", "package"].map(|whose| number(&format!("{whose}_throttle_{what}")));
        both.into_iter().flatten().max()
    };
    let total_ns = Nanos::from_nanos(of_both("total_time_ms").unwrap_or(0).saturating_mul(1_000_000));
    Some(Throttling { times: of_both("count")?, total_ns })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn the_core_and_its_package_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(throttling(folder.path()), None);
        let put = |file: &str, text: &str| fs_err::write(folder.path().join(file), text).unwrap();
        put("core_throttle_count", "3\n");
        put("package_throttle_count", "5\n");
        assert_eq!(throttling(folder.path()), Some(Throttling { times: 5, total_ns: Nanos::ZERO }));
        put("core_throttle_total_time_ms", "12\n");
        put("package_throttle_total_time_ms", "7\n");
        let both = Throttling { times: 5, total_ns: Nanos::from_nanos(12_000_000) };
        assert_eq!(throttling(folder.path()), Some(both));
        put("core_throttle_count", "-1\n");
        put("package_throttle_count", "\n");
        assert_eq!(throttling(folder.path()), None);
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
