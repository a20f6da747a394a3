//! The end of a page fault, which the kernel reports only through its software events.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd as _, IntoRawFd as _};

use libbpf_rs::Link;
use perf_event::events::Software;
use perf_event::{Builder, Counter};
use quell_recording::{Cpu, Interval};

use crate::bpf::RecorderSkel;
use crate::error::KernelError;

/// The program that runs at each counted fault, while it is attached to the counters of all CPUs.
#[derive(Default)]
pub(crate) struct Faults {
    links: Vec<Link>,
    /// The possible CPUs that were not online.
    offline: BTreeSet<Cpu>,
}

impl Faults {
    /// Runs the program at each counted fault, on every online CPU.
    pub fn attach(skeleton: &RecorderSkel<'_>, cpus: u32) -> Result<Self, KernelError> {
        let mut faults = Self::default();
        for cpu in (0..cpus).map(Cpu) {
            if !faults.attach_to(skeleton, cpu)? {
                faults.offline.insert(cpu);
            }
        }
        Ok(faults)
    }

    /// Attaches the program to CPUs that have come online, which their first rows show. Returns what is missing from the data.
    pub fn attach_to_new(&mut self, skeleton: &RecorderSkel<'_>, rows: &[(Cpu, Interval)]) -> Vec<String> {
        let new = take_seen(&mut self.offline, rows);
        new.into_iter()
            .map(|cpu| match self.attach_to(skeleton, cpu) {
                Ok(true) => {
                    format!(
                        "page_fault_user: CPU {cpu} came online later, and its first page faults are not seen"
                    )
                }
                Ok(false) => format!(
                    "page_fault_user: CPU {cpu} was online for a moment, and its page faults are not seen"
                ),
                Err(error) => format!(
                    "page_fault_user: CPU {cpu} came online later, and its page faults are not seen: {error}"
                ),
            })
            .collect()
    }

    /// Whether the CPU is online.
    fn attach_to(&mut self, skeleton: &RecorderSkel<'_>, cpu: Cpu) -> Result<bool, KernelError> {
        for event in [Software::PAGE_FAULTS_MIN, Software::PAGE_FAULTS_MAJ] {
            let counter = match each(cpu, event) {
                Ok(counter) => counter,
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(false),
                Err(error) => {
                    let (what, reason) = ("to see the end of page faults".into(), error.to_string());
                    return Err(KernelError::Refused { what, reason });
                }
            };
            let link = skeleton.progs.fault_counted.attach_perf_event(counter.as_raw_fd());
            self.links.push(link.map_err(|e| KernelError::refused("to see the end of page faults", &e))?);
            // The link closes it.
            let _ = counter.into_raw_fd();
        }
        Ok(true)
    }
}

/// Takes the CPUs out that have rows.
fn take_seen(offline: &mut BTreeSet<Cpu>, rows: &[(Cpu, Interval)]) -> BTreeSet<Cpu> {
    if offline.is_empty() {
        return BTreeSet::new();
    }
    rows.iter().map(|row| row.0).filter(|cpu| offline.remove(cpu)).collect()
}

/// A counter that overflows at each event on a CPU.
fn each(cpu: Cpu, event: Software) -> io::Result<Counter> {
    let mut builder = Builder::new(event);
    builder.one_cpu(cpu.0 as usize).any_pid().exclude_kernel(false).exclude_hv(false);
    builder.sample_period(1).enabled(true).build()
}

#[cfg(test)]
mod tests {
    use quell_recording::{Nanos, Source};

    use super::*;

    #[test]
    fn a_cpu_that_comes_online_is_noticed_once() {
        let interval = Interval {
            start: Nanos::ZERO,
            duration: Nanos::ZERO,
            net: Nanos::ZERO,
            source: Source::Tick,
            pid: 0,
            victim: 0,
            detail: None,
            cause: None,
        };
        let rows = [0, 5, 5, 1].map(|cpu| (Cpu(cpu), interval.clone()));
        let mut offline = BTreeSet::from([Cpu(5), Cpu(6)]);
        assert_eq!(take_seen(&mut offline, &rows), BTreeSet::from([Cpu(5)]));
        assert_eq!(take_seen(&mut offline, &rows), BTreeSet::new());
        assert_eq!(offline, BTreeSet::from([Cpu(6)]));
    }
}
