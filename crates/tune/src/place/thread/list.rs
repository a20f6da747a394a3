//! Lists of threads.

use super::super::PlaceError;
use super::stat::{Stat, stat};
use super::{affinity, folder};
use crate::root::Root;

/// A thread, as a place identifies it, and its affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start: u64,
    /// Its name; a kernel worker's without its current work.
    pub comm: String,
    /// The CPUs on which it may run, as a list.
    pub affinity: String,
    /// Whether the kernel does not permit moving it.
    pub bound: bool,
}

/// A process other than a kernel thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start: u64,
    /// Its name.
    pub comm: String,
}

/// All kernel threads, by id.
pub fn kernel_threads(root: &Root) -> Vec<Task> {
    let kernel = all(root).filter(|(_, stat)| stat.is_kernel_thread());
    kernel.filter_map(|(folder, stat)| task(root, &folder, stat)).collect()
}

/// All processes except kernel threads, by id.
pub fn processes(root: &Root) -> Vec<Process> {
    let others = all(root).filter(|(_, stat)| !stat.is_kernel_thread());
    others.map(|(_, stat)| Process { pid: stat.pid, start: stat.start, comm: stat.comm }).collect()
}

/// All threads of a process, by id.
///
/// # Errors
/// If there is no such process.
pub fn threads_of(root: &Root, pid: u32) -> Result<Vec<Task>, PlaceError> {
    let gone = || PlaceError::Gone(format!("there is no process {pid}"));
    let folder = folder(root, pid).ok_or_else(gone)?;
    let threads = root.names(&format!("{folder}/task")).into_iter().filter_map(|name| {
        let folder = format!("{folder}/task/{}", name.parse::<u32>().ok()?);
        task(root, &folder, stat(root, &folder)?)
    });
    let threads: Vec<Task> = threads.collect();
    if threads.is_empty() { Err(gone()) } else { Ok(threads) }
}

/// The only kernel thread that has a name now: the kernel ends some of its threads and starts new ones when a setting changes.
pub fn successor(root: &Root, comm: &str) -> Option<Task> {
    let mut named = all(root).filter(|(_, stat)| stat.is_kernel_thread() && stat.comm == comm);
    let (folder, stat) = named.next()?;
    if named.next().is_some() { None } else { task(root, &folder, stat) }
}

fn all(root: &Root) -> impl Iterator<Item = (String, Stat)> {
    root.names("/proc").into_iter().filter_map(move |name| {
        let pid: u32 = name.parse().ok()?;
        let folder = format!("/proc/{name}");
        let stat = stat(root, &folder).filter(|stat| stat.pid == pid)?;
        Some((folder, stat))
    })
}

fn task(root: &Root, folder: &str, stat: Stat) -> Option<Task> {
    let affinity = affinity(root, folder).ok()?;
    let bound = stat.bound();
    Some(Task { pid: stat.pid, start: stat.start, comm: stat.comm, affinity, bound })
}
