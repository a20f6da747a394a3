//! Moving tasks from one set of cgroup v1 to another.

use std::collections::BTreeSet;

use quell_recording::{Cpu, parse_cpu_list};

use super::super::Trouble;
use super::groups::get;
use crate::tune::root::Root;

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

/// Whether a task was given CPUs of its own, all of them within `inside`: it is in nobody's way, and moving it would make kernels
/// before 6.2 forget its own CPUs.
pub fn keeps_to(root: &Root, id: u32, inside: &[Cpu]) -> bool {
    let Ok(status) = root.read_bytes(&format!("/proc/{id}/status"), 1 << 16) else { return false };
    let status = String::from_utf8_lossy(&status);
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpus = list.and_then(|list| parse_cpu_list(list).ok());
    cpus.is_some_and(|cpus| cpus.iter().all(|cpu| inside.contains(cpu)))
}

/// A set's CPUs or memory nodes.
pub fn list(root: &Root, path: &str) -> Result<Vec<Cpu>, Trouble> {
    let text = get(root, path)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse_cpu_list(&text).map_err(Trouble::Other)
}
