//! The end of a page fault, which the kernel reports only through its software events.

use std::io;
use std::os::fd::{AsRawFd as _, IntoRawFd as _};

use libbpf_rs::Link;
use perf_event::events::Software;
use perf_event::{Builder, Counter};

use crate::bpf::RecorderSkel;
use crate::error::KernelError;

/// Runs the program at each counted fault, on every online CPU.
pub(crate) fn attach(skeleton: &RecorderSkel<'_>, cpus: u32) -> Result<Vec<Link>, KernelError> {
    let mut links = Vec::new();
    for cpu in 0..cpus {
        for event in [Software::PAGE_FAULTS_MIN, Software::PAGE_FAULTS_MAJ] {
            match each(cpu, event) {
                Ok(counter) => {
                    let link = skeleton.progs.fault_counted.attach_perf_event(counter.as_raw_fd());
                    links.push(link.map_err(|e| KernelError::refused("to see the end of page faults", &e))?);
                    // The link closes it.
                    let _ = counter.into_raw_fd();
                }
                // The CPU is possible, but not online.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => {
                    let (what, reason) = ("to see the end of page faults".into(), error.to_string());
                    return Err(KernelError::Refused { what, reason });
                }
            }
        }
    }
    Ok(links)
}

/// A counter that overflows at each event on a CPU.
fn each(cpu: u32, event: Software) -> io::Result<Counter> {
    let mut builder = Builder::new(event);
    builder.one_cpu(cpu as usize).any_pid().exclude_kernel(false).exclude_hv(false);
    builder.sample_period(1).enabled(true).build()
}
