//! The end of a page fault, which the kernel reports only through its software events.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use libbpf_rs::Link;

use crate::bpf::RecorderSkel;
use crate::error::KernelError;

/// From include/uapi/linux/perf_event.h.
const PERF_TYPE_SOFTWARE: u32 = 1;
const PAGE_FAULTS_MIN: u64 = 5;
const PAGE_FAULTS_MAJ: u64 = 6;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// The first version of `struct perf_event_attr` (64 bytes), which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    rest: [u64; 5],
}

/// Runs the program at each counted fault, on every online CPU.
pub(crate) fn attach(skeleton: &RecorderSkel<'_>, cpus: u32) -> Result<Vec<Link>, KernelError> {
    let mut links = Vec::new();
    for cpu in 0..cpus {
        for event in [PAGE_FAULTS_MIN, PAGE_FAULTS_MAJ] {
            match open(cpu, event) {
                Ok(fd) => links.push(
                    skeleton
                        .progs
                        .fault_counted
                        .attach_perf_event(fd.as_raw_fd())
                        .inspect(|_| std::mem::forget(fd))
                        .map_err(|e| KernelError::refused("to see the end of page faults", &e))?,
                ),
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

fn open(cpu: u32, event: u64) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: event,
        sample_period: 1,
        ..Attributes::default()
    };
    // SAFETY: the attributes live through the call and say their own size; the rest are numbers.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
