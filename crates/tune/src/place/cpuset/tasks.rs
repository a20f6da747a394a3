//! Moving tasks from one set of cgroup v1 to another.

use std::collections::BTreeSet;

use quell_recording::{Cpu, parse_cpu_list};

use super::super::Trouble;
use super::super::thread::{affinity, stat};
use super::groups::get;
use crate::root::Root;

/// Tasks fork while they are moved; those that come after so many rounds come for ever.
const ROUNDS: usize = 20;

/// A set has more tasks than a file of the kernel's has text.
const LONGEST: u64 = 64 << 20;

/// Moves the tasks of a set to another, but for those that `stay`; says whether any that may be moved is left.
///
/// Kernel threads that are bound to their CPUs refuse (EINVAL) and stay. In a tree nothing runs, so nothing is moved.
pub fn move_all(root: &Root, from: &str, to: &str, stay: impl Fn(u32) -> bool) -> Result<bool, Trouble> {
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

fn move_one(root: &Root, to: &str, id: u32) -> Result<(), Trouble> {
    match root.write(&format!("{to}/tasks"), &id.to_string()) {
        // It refuses, or it has ended.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ESRCH)) => Ok(()),
        other => other.map_err(|e| Trouble::from_io(&e, &id.to_string())),
    }
}

fn tasks(root: &Root, set: &str) -> Result<Vec<u32>, Trouble> {
    let bytes = root.read_bytes(&format!("{set}/tasks"), LONGEST).map_err(|e| Trouble::from_io(&e, ""))?;
    let text = String::from_utf8_lossy(&bytes);
    // Tasks outside of this pid namespace show as 0, and writing 0 would move ourselves.
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).filter(|id| *id != 0).collect())
}

/// Whether a task stays in the root set though the kernel would let it be moved.
///
/// The kernel gave some of its threads their CPUs itself, those of threaded interrupts for instance, and moving one makes it
/// forget them. A task that runs within `inside` anyway is in nobody's way. Others that were given CPUs of their own are moved:
/// since 6.2 the kernel remembers them, and gives them back with the task.
pub fn keeps_its_own(root: &Root, id: u32, all: &[Cpu], inside: &[Cpu]) -> bool {
    let folder = format!("/proc/{id}");
    let list = affinity(root, &folder).ok().and_then(|list| parse_cpu_list(&list).ok());
    let Some(cpus) = list else { return false };
    if cpus.iter().all(|cpu| inside.contains(cpu)) {
        return true;
    }
    let narrow = !all.iter().all(|cpu| cpus.contains(cpu));
    narrow && stat(root, &folder).is_some_and(|stat| stat.of_kernel())
}

/// A set's CPUs or memory nodes.
pub fn list(root: &Root, path: &str) -> Result<Vec<Cpu>, Trouble> {
    let text = get(root, path)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse_cpu_list(&text).map_err(Trouble::Other)
}
