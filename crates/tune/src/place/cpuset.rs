//! quell's cpusets: on cgroup v1 a set for the job, and one for the system's tasks; on cgroup v2 an isolated partition.
//!
//! Their value is text: `compute=1 housekeeping=0 mems=0 balance=off`. In a copy of a machine, they are plain folders and files.

mod bound;
mod groups;
mod partition;
mod sets;
mod tasks;

use std::fmt::Write as _;

use quell_recording::{Cpu, format_cpu_list, parse_cpu_list};

use self::bound::Bindings;
use super::{ABSENT, PlaceError};
use crate::catalogue::CpusetKind;
use crate::root::Root;

/// The state of a partition that the kernel could not keep.
const INVALID: &str = "invalid";

pub(super) fn read(root: &Root, what: CpusetKind) -> Result<String, PlaceError> {
    Ok(parts(root, what)?.map_or_else(|| ABSENT.to_owned(), |parts| parts.to_string()))
}

fn parts(root: &Root, what: CpusetKind) -> Result<Option<Parts>, PlaceError> {
    match what {
        CpusetKind::Shield | CpusetKind::Job => sets::read(root, what),
        CpusetKind::Isolated => partition::read(root),
    }
}

pub(super) fn write(root: &Root, what: CpusetKind, value: &str) -> Result<(), PlaceError> {
    let wanted = if value.trim() == ABSENT { None } else { Some(Parts::parse(value)?) };
    if wanted.as_ref().is_some_and(|parts| parts.partition.as_deref() == Some(INVALID)) {
        return Err(PlaceError::Invalid(value.trim().to_owned()));
    }
    let change = || match (what, &wanted) {
        (CpusetKind::Isolated, None) => partition::undo(root),
        (CpusetKind::Isolated, Some(parts)) => partition::make(root, parts),
        (_, None) => sets::undo(root, what),
        (_, Some(parts)) => sets::make(root, what, parts),
    };
    // A set for the job alone moves no thread, and in a copy none runs.
    if what == CpusetKind::Job || !root.is_system() {
        change()?;
        if what != CpusetKind::Job && wanted.is_none() {
            bound::forget(root);
        }
        return Ok(());
    }
    let last = Bindings::now(root);
    let left = Left::by(root, what);
    if let Some(wanted) = &wanted {
        note_first(root, what, &last, wanted)?;
        let changed = change();
        // Also after a failure, which may come late enough for the kernel to forget.
        last.narrow(root);
        if changed.is_err() && matches!(parts(root, what), Ok(None)) {
            last.restore(root, &left);
        }
        changed?;
    } else {
        // Without a set there is nothing to change, but a crash after its end may have left threads as they were in it.
        change()?;
        last.restore(root, &left);
    }
    Ok(())
}

/// Notes how threads are bound before there is a set. Afterwards they are bound to its CPUs.
fn note_first(root: &Root, what: CpusetKind, now: &Bindings, wanted: &Parts) -> Result<(), PlaceError> {
    let compute = wanted.compute.as_deref().unwrap_or_default();
    if matches!(parts(root, what), Ok(None)) { now.note(root, compute) } else { Ok(()) }
}

/// The CPUs that a set of quell's leaves, or left, to other threads.
#[derive(Debug)]
struct Left {
    /// The others; none if that cannot be read.
    housekeeping: Vec<Cpu>,
    /// Where there is no set any more: all CPUs, to which a kernel before 6.2 has set the threads.
    all: Option<Vec<Cpu>>,
}

impl Left {
    fn by(root: &Root, what: CpusetKind) -> Self {
        let list = |text: &str| parse_cpu_list(text).unwrap_or_default();
        let online =
            root.read("/sys/devices/system/cpu/online").map_or_else(|_| Vec::new(), |text| list(&text));
        let parts = parts(root, what).ok();
        let is_gone = matches!(parts, Some(None));
        let compute = match parts.flatten() {
            Some(parts) => parts.compute.map_or_else(Vec::new, |text| list(&text)),
            None if is_gone => bound::noted_compute(root),
            None => Vec::new(),
        };
        let housekeeping = online.iter().filter(|cpu| !compute.contains(cpu)).copied().collect();
        Self { housekeeping, all: is_gone.then_some(online) }
    }
}

/// The value to write for a division of the CPUs.
///
/// # Errors
/// If this machine has no cpusets of that kind, or a part has no CPUs.
pub fn wanted(
    what: CpusetKind,
    compute: &[Cpu],
    housekeeping: &[Cpu],
    root: &Root,
) -> Result<String, PlaceError> {
    let none = |part: &str| PlaceError::Unavailable(format!("there are no {part} CPUs to make a cpuset of"));
    if compute.is_empty() {
        return Err(none("compute"));
    }
    if housekeeping.is_empty() && what != CpusetKind::Job {
        return Err(none("housekeeping"));
    }
    let mut parts = Parts { compute: Some(format_cpu_list(compute)), ..Parts::default() };
    match what {
        CpusetKind::Isolated => {
            parts.partition = Some("isolated".into());
            parts.controller = partition::controller(root)?;
        }
        CpusetKind::Shield | CpusetKind::Job => {
            parts.mems = Some(sets::mems(root)?);
            if what == CpusetKind::Shield {
                parts.housekeeping = Some(format_cpu_list(housekeeping));
                parts.balance = Some("off".into());
            }
        }
    }
    Ok(parts.to_string())
}

/// Whether the kernel has suspended a partition: its CPUs are offline, or another group has them.
pub fn is_invalid(now: &str) -> bool {
    Parts::parse(now).is_ok_and(|parts| parts.partition.as_deref() == Some(INVALID))
}

/// Whether a value is another one less some CPUs or memory. Without any of its CPUs a partition is invalid until they return.
pub(super) fn has_lost(now: &str, before: &str) -> bool {
    let (Ok(now), Ok(before)) = (Parts::parse(now), Parts::parse(before)) else { return false };
    let list = |text: &Option<String>| {
        text.as_deref().map_or_else(Vec::new, |text| parse_cpu_list(text).unwrap_or_default())
    };
    let within = |now: &Option<String>, before: &Option<String>| {
        let before = list(before);
        list(now).iter().all(|cpu| before.contains(cpu))
    };
    let partition = |parts: &Parts| match parts.partition.as_deref() {
        Some(INVALID) => before.partition.clone(),
        _ => parts.partition.clone(),
    };
    let rest = |parts: &Parts| (parts.balance.clone(), partition(parts), parts.controller.clone());
    within(&now.compute, &before.compute)
        && within(&now.housekeeping, &before.housekeeping)
        && within(&now.mems, &before.mems)
        && rest(&now) == rest(&before)
}

/// The fields of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    compute: Option<String>,
    housekeeping: Option<String>,
    mems: Option<String>,
    /// Whether the scheduler balances load across the whole machine: the root set's `sched_load_balance`.
    balance: Option<String>,
    partition: Option<String>,
    /// `quell` if quell enabled the controller for the root's children.
    controller: Option<String>,
}

impl Parts {
    fn parse(text: &str) -> Result<Self, PlaceError> {
        let invalid = || PlaceError::Invalid(text.trim().to_owned());
        let mut parts = Self::default();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(invalid)?;
            let (part, good) = match key {
                "compute" => (&mut parts.compute, parse_cpu_list(value).is_ok()),
                "housekeeping" => (&mut parts.housekeeping, parse_cpu_list(value).is_ok()),
                "mems" => (&mut parts.mems, parse_cpu_list(value).is_ok()),
                "balance" => (&mut parts.balance, value == "off"),
                "partition" => (&mut parts.partition, value == "isolated" || value == INVALID),
                "controller" => (&mut parts.controller, value == "quell"),
                _ => return Err(invalid()),
            };
            if !good || part.replace(value.to_owned()).is_some() {
                return Err(invalid());
            }
        }
        Ok(parts)
    }
}

impl std::fmt::Display for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("compute", &self.compute),
            ("housekeeping", &self.housekeeping),
            ("mems", &self.mems),
            ("balance", &self.balance),
            ("partition", &self.partition),
            ("controller", &self.controller),
        ];
        let mut text = String::new();
        for (key, value) in parts {
            if let Some(value) = value {
                let space = if text.is_empty() { "" } else { " " };
                write!(text, "{space}{key}={value}")?;
            }
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests;
