//! What the programs cost, by the kernel's own accounting (`bpf_stats`).

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

use libbpf_rs::Object;
use quell_recording::ProgramCost;

use crate::error::KernelError;

/// Keeps the kernel's run-time statistics of eBPF programs enabled while it lives. The statistics cost about 20 ns a run.
#[derive(Debug)]
pub struct Cost(#[expect(dead_code, reason = "held open")] OwnedFd);

/// Enables run-time statistics of programs (kernel 5.8 and later).
///
/// # Errors
/// [`KernelError::Refused`] where this user lacks the privilege.
pub fn count_cost() -> Result<Cost, KernelError> {
    // SAFETY: the call takes a number and returns a descriptor or a negative error.
    let fd = unsafe { libbpf_rs::libbpf_sys::bpf_enable_stats(libbpf_rs::libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        let reason = std::io::Error::from_raw_os_error(-fd).to_string();
        return Err(KernelError::Refused { what: "to count the time in programs".into(), reason });
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(Cost(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// The statistics of each loaded program.
pub(crate) fn collect(object: &Object) -> Vec<ProgramCost> {
    let mut costs = Vec::new();
    for program in object.progs() {
        let mut info = libbpf_rs::libbpf_sys::bpf_prog_info::default();
        let mut length = size_of_val(&info) as u32;
        // SAFETY: `info` is valid for writes of the length that is passed.
        let code = unsafe {
            libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(
                program.as_fd().as_raw_fd(),
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        if code == 0 && info.run_cnt > 0 {
            let program = program.name().to_string_lossy().into_owned();
            costs.push(ProgramCost { program, runs: info.run_cnt, ns: info.run_time_ns });
        }
    }
    costs
}
