//! Moves tasks from one cgroup v1 set to another.

use std::collections::BTreeSet;

use quell_recording::{Cpu, parse_cpu_list};

use super::super::PlaceError;
use super::super::thread::{affinity, stat};
use super::groups::get;
use crate::root::Root;

/// Maximum number of passes. Tasks fork while they are moved; if new ones still appear after this many passes, they always will.
const ROUNDS: usize = 20;

/// Maximum size of a set's list of tasks, which can be longer than other kernel files.
const LONGEST: u64 = 64 << 20;

/// Moves the tasks of a set to another, except those for which `stay` is true. Returns whether any that should be moved is left.
///
/// Kernel threads that are bound to their CPUs refuse (EINVAL) and stay. In a copy no tasks run, so none is moved.
pub fn move_all(root: &Root, from: &str, to: &str, stay: impl Fn(u32) -> bool) -> Result<bool, PlaceError> {
    if !root.is_system() {
        return Ok(false);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<u32> = tasks(root, from)?.into_iter().filter(|id| !seen.contains(id)).collect();
        if fresh.is_empty() {
            return Ok(false);
        }
        for id in fresh {
            seen.insert(id);
            if !stay(id) {
                move_one(root, to, id)?;
            }
        }
    }
    Ok(true)
}

fn move_one(root: &Root, to: &str, id: u32) -> Result<(), PlaceError> {
    match root.write(&format!("{to}/tasks"), &id.to_string()) {
        // The task refuses, or it has ended.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ESRCH)) => Ok(()),
        other => other.map_err(|e| PlaceError::from_io(&e, &id.to_string())),
    }
}

fn tasks(root: &Root, set: &str) -> Result<Vec<u32>, PlaceError> {
    let bytes = root.read_bytes(&format!("{set}/tasks"), LONGEST).map_err(|e| PlaceError::from_io(&e, ""))?;
    let text = String::from_utf8_lossy(&bytes);
    // Tasks outside of this PID namespace show as 0, and writing 0 would move the calling process.
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).filter(|id| *id != 0).collect())
}

/// Whether a task stays in the root set although the kernel would permit moving it.
///
/// The kernel itself bound some of its threads, those of threaded interrupts for instance, and moving one loses
/// its affinity. A task that runs only within `inside` disturbs no one there. Other tasks with an affinity of their own are moved:
/// since 6.2 the kernel remembers it, and restores it when the task is moved back.
pub fn keeps_its_own(root: &Root, id: u32, all: &[Cpu], inside: &[Cpu]) -> bool {
    let folder = format!("/proc/{id}");
    let list = affinity(root, &folder).ok().and_then(|list| parse_cpu_list(&list).ok());
    let Some(cpus) = list else { return false };
    if cpus.iter().all(|cpu| inside.contains(cpu)) {
        return true;
    }
    let narrow = !all.iter().all(|cpu| cpus.contains(cpu));
    narrow && stat(root, &folder).is_some_and(|stat| stat.is_kernel_thread())
}

/// The CPUs or memory nodes of a set.
pub fn list(root: &Root, path: &str) -> Result<Vec<Cpu>, PlaceError> {
    let text = get(root, path)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse_cpu_list(&text).map_err(PlaceError::Other)
}
