//! A property of a thread. Ids are reused, so start time and name must match too.

mod list;
mod policy;
mod stat;

pub use list::{Process, Task, kernel_threads, processes, successor, threads_of};
use quell_recording::{Cpu, parse_cpu_list};
use stat::Stat;
pub(super) use stat::stat;

use super::PlaceError;
use crate::catalogue::Property;
use crate::root::Root;

/// Maximum number of CPUs in an affinity; Linux itself stops at 8,192.
const MOST_CPUS: usize = 65_536;

pub(super) fn read(
    root: &Root,
    pid: u32,
    start: u64,
    comm: &str,
    property: Property,
) -> Result<String, PlaceError> {
    let (folder, stat) = check(root, pid, start, comm)?;
    match property {
        Property::Affinity => affinity(root, &folder),
        Property::Policy => Ok(policy::text(stat.policy, stat.priority)),
        Property::TimerSlack => {
            let text = root.read(&format!("{folder}/timerslack_ns"));
            text.map(|text| text.trim().to_owned()).map_err(|e| PlaceError::from_io(&e, ""))
        }
    }
}

pub(super) fn write(
    root: &Root,
    pid: u32,
    start: u64,
    comm: &str,
    property: Property,
    value: &str,
) -> Result<(), PlaceError> {
    let (folder, stat) = check(root, pid, start, comm)?;
    match property {
        Property::TimerSlack => {
            let path = format!("{folder}/timerslack_ns");
            root.write(&path, value.trim()).map_err(|e| PlaceError::from_io(&e, value))
        }
        _ if !root.is_system() => {
            Err(PlaceError::Unavailable("a thread can only be changed on a running machine".into()))
        }
        Property::Affinity => move_to(pid, &stat, value),
        Property::Policy => policy::set(pid, &stat, value),
    }
}

/// When a process of this machine started, in clock ticks after boot; none if it does not exist, or has ended and is a
/// zombie.
pub fn started(pid: u32) -> Option<u64> {
    stat(&Root::system(), &format!("/proc/{pid}")).filter(|stat| !stat.is_over()).map(|stat| stat.start)
}

/// The thread's folder below /proc and its `stat`, if it is still the same thread.
fn check(root: &Root, pid: u32, start: u64, comm: &str) -> Result<(String, Stat), PlaceError> {
    let gone = || PlaceError::Gone(format!("{comm} ({pid}) has ended"));
    let folder = folder(root, pid).ok_or_else(gone)?;
    let now = stat(root, &folder).ok_or_else(gone)?;
    if now.start != start {
        return Err(PlaceError::Gone(format!(
            "{comm} ended, and {pid} is now another thread, `{}`",
            now.comm
        )));
    }
    // Its name may have changed, by `exec` or by its own doing.
    Ok((folder, now))
}

/// The kernel has any thread at `/proc/TID`, although it lists only processes; a copy has only what was listed.
fn folder(root: &Root, pid: u32) -> Option<String> {
    let own = format!("/proc/{pid}");
    if root.has(&own) || root.is_system() {
        return root.has(&own).then_some(own);
    }
    root.glob(&format!("/proc/*/task/{pid}")).into_iter().next()
}

/// The CPUs on which it may run, from `status`, which copies of a machine have too.
pub(super) fn affinity(root: &Root, folder: &str) -> Result<String, PlaceError> {
    let bytes = root
        .read_bytes(&format!("{folder}/status"), stat::LONGEST)
        .map_err(|e| PlaceError::from_io(&e, ""))?;
    let text = String::from_utf8_lossy(&bytes);
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(|list| list.trim().to_owned())
        .ok_or_else(|| PlaceError::Other(format!("{folder}/status does not show on which CPUs it may run")))
}

pub(super) fn move_to(pid: u32, stat: &Stat, value: &str) -> Result<(), PlaceError> {
    if stat.bound() {
        return Err(PlaceError::Immovable(format!(
            "{} is one of the kernel's threads that are bound to their CPUs",
            stat.comm
        )));
    }
    let invalid = || PlaceError::Invalid(value.trim().to_owned());
    let cpus = parse_cpu_list(value).map_err(|_| invalid())?;
    let mask = words(&cpus).ok_or_else(invalid)?;
    // SAFETY: the mask lives through the call and has the size that is passed; u64 has the required alignment.
    let code = unsafe {
        libc::sched_setaffinity(pid as libc::pid_t, size_of_val(mask.as_slice()), mask.as_ptr().cast())
    };
    if code == 0 { Ok(()) } else { Err(PlaceError::from_io(&std::io::Error::last_os_error(), value)) }
}

fn words(cpus: &[Cpu]) -> Option<Vec<u64>> {
    let mut mask = vec![0u64; MOST_CPUS / 64];
    for cpu in cpus {
        *mask.get_mut(cpu.0 as usize / 64)? |= 1 << (cpu.0 % 64);
    }
    Some(mask)
}

#[cfg(test)]
mod tests;
