//! cgroup v1: `quell-job` with the compute CPUs and, for a shield, `quell-system` with the others.
//!
//! According to cpuset(7), disabling load balancing in a set has an effect only if the root set has it disabled too: the set's CPUs are a
//! subset of the root's, across which the scheduler would balance. A shield disables both, and leaves it enabled in `quell-system`.

use quell_recording::{format_cpu_list, parse_cpu_list};

use super::super::PlaceError;
use super::groups::{self, Kind, get, put};
use super::tasks::{keeps_its_own, list, move_all};
use super::{CpusetKind, Parts};
use crate::root::Root;

const V1: Kind =
    Kind { system: "cgroup", option: "cpuset", usual: "/sys/fs/cgroup/cpuset", shown_by: "cpuset.cpus" };

const JOB: &str = "quell-job";
const SYSTEM: &str = "quell-system";
const BALANCE: &str = "cpuset.sched_load_balance";

fn top(root: &Root) -> Result<String, PlaceError> {
    groups::mounted(root, &V1).ok_or_else(|| {
        PlaceError::Unavailable("the cpuset controller is not mounted as cgroup v1 here".into())
    })
}

/// The memory nodes of the whole machine.
pub fn mems(root: &Root) -> Result<String, PlaceError> {
    let path = format!("{}/cpuset.mems", top(root)?);
    Ok(format_cpu_list(&list(root, &path)?))
}

pub fn read(root: &Root, what: CpusetKind) -> Result<Option<Parts>, PlaceError> {
    read_at(root, &top(root)?, what)
}

pub fn make(root: &Root, what: CpusetKind, parts: &Parts) -> Result<(), PlaceError> {
    make_at(root, &top(root)?, what, parts)
}

pub fn undo(root: &Root, what: CpusetKind) -> Result<(), PlaceError> {
    undo_at(root, &top(root)?, what)
}

/// Reads the sets below `top`, which need not be the root: a test uses a set of its own.
pub fn read_at(root: &Root, top: &str, what: CpusetKind) -> Result<Option<Parts>, PlaceError> {
    let (job, system) = (format!("{top}/{JOB}"), format!("{top}/{SYSTEM}"));
    let marker = if what == CpusetKind::Shield { &system } else { &job };
    if !root.has(marker) {
        return Ok(None);
    }
    let text = |set: &str, file: &str| -> Result<Option<String>, PlaceError> {
        if !root.has(set) {
            return Ok(None);
        }
        let path = format!("{set}/{file}");
        Ok(Some(format_cpu_list(&list(root, &path)?)).filter(|text| !text.is_empty()))
    };
    let mut parts =
        Parts { compute: text(&job, "cpuset.cpus")?, mems: text(marker, "cpuset.mems")?, ..Parts::default() };
    if what == CpusetKind::Shield {
        parts.housekeeping = text(&system, "cpuset.cpus")?;
        let balanced = get(root, &format!("{top}/{BALANCE}"))? != "0";
        parts.balance = Some(if balanced { "on" } else { "off" }.into());
    }
    Ok(Some(parts))
}

pub fn make_at(root: &Root, top: &str, what: CpusetKind, parts: &Parts) -> Result<(), PlaceError> {
    let (job, system) = (format!("{top}/{JOB}"), format!("{top}/{SYSTEM}"));
    let shield = what == CpusetKind::Shield;
    if shield && !root.has(&system) && get(root, &format!("{top}/{BALANCE}"))? == "0" {
        // Otherwise quell would not know the previous state when the shield is removed.
        return Err(PlaceError::Busy(
            "another program has turned the scheduler's load balancing off in the root cpuset".into(),
        ));
    }
    free(root, &job, parts.compute.as_deref())?;
    if shield {
        free(root, &system, parts.housekeeping.as_deref())?;
    } else if root.has(&system) {
        return Err(PlaceError::Busy(format!("{job} is part of quell's shield: revert that first")));
    }
    let made =
        if shield { make_shield(root, top, parts) } else { make_set(root, &job, &parts.compute, parts) };
    made.map_err(|trouble| match undo_at(root, top, what) {
        Ok(()) => trouble,
        Err(left) => PlaceError::Other(format!("{trouble}; the cpuset is left incomplete: {left}")),
    })
}

/// Checks that no one else uses a set of that name: it does not exist, has no CPUs yet (quell was killed), or has some of these (others went
/// offline and came back).
fn free(root: &Root, set: &str, cpus: Option<&str>) -> Result<(), PlaceError> {
    if !root.has(set) || !root.has(&format!("{set}/cpuset.cpus")) {
        return Ok(());
    }
    let now = list(root, &format!("{set}/cpuset.cpus"))?;
    let wanted = cpus.map_or_else(Vec::new, |cpus| parse_cpu_list(cpus).unwrap_or_default());
    if now.iter().all(|cpu| wanted.contains(cpu)) {
        return Ok(());
    }
    Err(PlaceError::Busy(format!("{set} exists already, with CPUs {}", format_cpu_list(&now))))
}

fn make_set(root: &Root, set: &str, cpus: &Option<String>, parts: &Parts) -> Result<(), PlaceError> {
    let (Some(cpus), Some(mems)) = (cpus, &parts.mems) else {
        return Err(PlaceError::Invalid(parts.to_string()));
    };
    groups::make(root, set)?;
    put(root, &format!("{set}/cpuset.mems"), mems)?;
    put(root, &format!("{set}/cpuset.cpus"), cpus)
}

fn make_shield(root: &Root, top: &str, parts: &Parts) -> Result<(), PlaceError> {
    let (job, system) = (format!("{top}/{JOB}"), format!("{top}/{SYSTEM}"));
    make_set(root, &system, &parts.housekeeping, parts)?;
    make_set(root, &job, &parts.compute, parts)?;
    put(root, &format!("{job}/{BALANCE}"), "0")?;
    let housekeeping = list(root, &format!("{system}/cpuset.cpus"))?;
    let effective = format!("{top}/cpuset.effective_cpus");
    let all = list(root, &effective).or_else(|_| list(root, &format!("{top}/cpuset.cpus")))?;
    if move_all(root, top, &system, |id| keeps_its_own(root, id, &all, &housekeeping))? {
        return Err(PlaceError::Busy("tasks start faster than quell can move them: try again".into()));
    }
    balance(root, top, ('1', '0'))
}

/// Removes the sets in such an order that, if quell is killed in between, the next attempt can continue: `quell-system` goes last.
pub fn undo_at(root: &Root, top: &str, what: CpusetKind) -> Result<(), PlaceError> {
    let (job, system) = (format!("{top}/{JOB}"), format!("{top}/{SYSTEM}"));
    if what == CpusetKind::Shield {
        if !root.has(&system) {
            return Ok(());
        }
        balance(root, top, ('0', '1'))?;
    } else if root.has(&system) {
        return Err(PlaceError::Busy(format!("{job} is part of quell's shield: revert that first")));
    }
    let sets = if what == CpusetKind::Shield { vec![job, system] } else { vec![job] };
    for set in sets.iter().filter(|set| root.has(set)) {
        if move_all(root, set, top, |_| false)? {
            return Err(PlaceError::Busy(format!(
                "tasks start in {set} faster than quell can move them: try again"
            )));
        }
        groups::remove(root, set)?;
    }
    Ok(())
}

/// Changes only the digit, so that a copy keeps its other bytes.
fn balance(root: &Root, top: &str, (from, to): (char, char)) -> Result<(), PlaceError> {
    let path = format!("{top}/{BALANCE}");
    let text = root.read(&path).map_err(|e| PlaceError::from_io(&e, ""))?;
    if !text.contains(from) {
        return Ok(());
    }
    let text = text.replace(from, &to.to_string());
    root.write(&path, &text).map_err(|e| PlaceError::from_io(&e, &text))
}
