//! cgroup v2: an isolated partition, the group `quell` at the root.

use quell_recording::format_cpu_list;

use super::super::PlaceError;
use super::groups::{self, Kind, get, put};
use super::tasks::list;
use super::{INVALID, Parts};
use crate::root::Root;

const V2: Kind =
    Kind { system: "cgroup2", option: "", usual: "/sys/fs/cgroup", shown_by: "cgroup.controllers" };

const GROUP: &str = "quell";

/// A marker group within ours: quell enabled the controller for the root's children, and has to disable it again.
const HANDED: &str = "handed-down";

fn top(root: &Root) -> Result<String, PlaceError> {
    let unavailable = |why: &str| PlaceError::Unavailable(why.into());
    let top =
        groups::mounted(root, &V2).ok_or_else(|| unavailable("cgroup v2 is not mounted on this machine"))?;
    let controllers = get(root, &format!("{top}/cgroup.controllers"))?;
    if has_word(&controllers, "cpuset") {
        return Ok(top);
    }
    let v1 = root.read("/proc/mounts").is_ok_and(|table| {
        table.lines().any(|line| line.contains(" cgroup ") && has_word(&line.replace(',', " "), "cpuset"))
    });
    Err(unavailable(if v1 {
        "the cpuset controller is on cgroup v1 here"
    } else {
        "cgroup v2 has no cpuset controller here: this kernel was built without it, or it is switched off"
    }))
}

/// `quell` if the controller is not yet enabled for the root's children, or was enabled by quell.
pub fn controller(root: &Root) -> Result<Option<String>, PlaceError> {
    let top = top(root)?;
    let handed = has_word(&get(root, &format!("{top}/cgroup.subtree_control"))?, "cpuset");
    let ours = !handed || root.has(&format!("{top}/{GROUP}/{HANDED}"));
    Ok(ours.then(|| "quell".to_owned()))
}

pub fn read(root: &Root) -> Result<Option<Parts>, PlaceError> {
    let top = top(root)?;
    let group = format!("{top}/{GROUP}");
    if !root.has(&group) {
        return Ok(None);
    }
    let ours = root.has(&format!("{group}/{HANDED}"));
    let mut parts = Parts { controller: ours.then(|| "quell".to_owned()), ..Parts::default() };
    // Without the controller the group does not have these files.
    if root.has(&format!("{group}/cpuset.cpus")) {
        let cpus = format_cpu_list(&list(root, &format!("{group}/cpuset.cpus"))?);
        parts.compute = Some(cpus).filter(|cpus| !cpus.is_empty());
        let state = get(root, &format!("{group}/cpuset.cpus.partition")).unwrap_or_default();
        parts.partition = Some(match state.split_once(' ') {
            Some((_, rest)) if rest.starts_with(INVALID) => INVALID.to_owned(),
            _ if state.is_empty() => "member".to_owned(),
            _ => state,
        });
    }
    Ok(Some(parts))
}

pub fn make(root: &Root, parts: &Parts) -> Result<(), PlaceError> {
    let top = top(root)?;
    let group = format!("{top}/{GROUP}");
    if let Some(now) =
        read(root)?.and_then(|parts| parts.compute).filter(|now| Some(now) != parts.compute.as_ref())
    {
        return Err(PlaceError::Busy(format!("{group} exists already, with CPUs {now}")));
    }
    let compute = parts.compute.as_deref().ok_or_else(|| PlaceError::Invalid(parts.to_string()))?;
    make_partition(root, &top, &group, compute).map_err(|trouble| match undo(root) {
        Ok(()) => trouble,
        Err(left) => PlaceError::Other(format!("{trouble}; the cpuset is left incomplete: {left}")),
    })
}

fn make_partition(root: &Root, top: &str, group: &str, compute: &str) -> Result<(), PlaceError> {
    let ours = controller(root)?.is_some();
    groups::make(root, group)?;
    if ours {
        // The marker comes first: if quell is killed in between, the next revert knows that it has to disable the controller.
        groups::make(root, &format!("{group}/{HANDED}"))?;
        hand_down(root, top, true)?;
    }
    put(root, &format!("{group}/cpuset.cpus"), compute)?;
    let state = format!("{group}/cpuset.cpus.partition");
    put(root, &state, "isolated")?;
    match get(root, &state)?.as_str() {
        "isolated" => Ok(()),
        // For instance `isolated invalid (Parent is not a partition root)`.
        refused => Err(PlaceError::Other(format!(
            "the kernel refuses an isolated partition of CPUs {compute}: {refused}"
        ))),
    }
}

pub fn undo(root: &Root) -> Result<(), PlaceError> {
    let top = top(root)?;
    let group = format!("{top}/{GROUP}");
    if !root.has(&group) {
        return Ok(());
    }
    let handed = format!("{group}/{HANDED}");
    let ours = root.has(&handed);
    let state = format!("{group}/cpuset.cpus.partition");
    if root.is_system() && root.has(&state) {
        put(root, &state, "member")?;
    }
    move_back(root, &top, &group)?;
    // Before the marker goes: the next attempt needs it.
    groups::refuse_others(root, &group, &[HANDED])?;
    if ours {
        if !others_use(root, &top) {
            match hand_down(root, &top, false) {
                // Other groups need the controller by now, so it stays enabled.
                Ok(()) | Err(PlaceError::Busy(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        groups::remove(root, &handed)?;
    }
    groups::remove(root, &group)
}

/// Whether another group was given CPUs since the controller was enabled, which it would lose.
fn others_use(root: &Root, top: &str) -> bool {
    let groups = root.names(top).into_iter().filter(|name| name != GROUP);
    groups.into_iter().any(|name| {
        ["cpuset.cpus", "cpuset.mems"]
            .iter()
            .any(|file| get(root, &format!("{top}/{name}/{file}")).is_ok_and(|text| !text.is_empty()))
    })
}

/// Moves the job's remaining processes back to the root.
fn move_back(root: &Root, top: &str, group: &str) -> Result<(), PlaceError> {
    if !root.is_system() {
        return Ok(());
    }
    for _ in 0..20 {
        let processes = get(root, &format!("{group}/cgroup.procs"))?;
        if processes.is_empty() {
            return Ok(());
        }
        for id in processes.lines().filter(|id| *id != "0") {
            match root.write(&format!("{top}/cgroup.procs"), id) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                other => other.map_err(|e| PlaceError::from_io(&e, id))?,
            }
        }
    }
    Err(PlaceError::Busy(format!("processes start in {group} faster than quell can move them: try again")))
}

/// Enables the controller for the root's children, or disables it. A copy keeps the list as text.
fn hand_down(root: &Root, top: &str, down: bool) -> Result<(), PlaceError> {
    let path = format!("{top}/cgroup.subtree_control");
    let text = root.read(&path).map_err(|e| PlaceError::from_io(&e, ""))?;
    if has_word(&text, "cpuset") == down {
        return Ok(());
    }
    let value = match (root.is_system(), down) {
        (true, true) => "+cpuset".to_owned(),
        (true, false) => "-cpuset".to_owned(),
        (false, true) => added(&text),
        (false, false) => taken(&text),
    };
    root.write(&path, &value).map_err(|e| PlaceError::from_io(&e, &value))
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|one| one == word)
}

/// Adds the word to the end of the line; [`taken`] restores the original bytes.
fn added(text: &str) -> String {
    let words = text.trim_end();
    let (space, end) = (if words.is_empty() { "" } else { " " }, &text[words.len()..]);
    format!("{words}{space}cpuset{end}")
}

fn taken(text: &str) -> String {
    let words = text.trim_end();
    let end = &text[words.len()..];
    let rest = words.strip_suffix("cpuset").unwrap_or(words);
    format!("{}{end}", rest.strip_suffix(' ').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gets_its_list_of_controllers_back() {
        for text in ["", "\n", "cpu memory\n", "cpu"] {
            assert!(has_word(&added(text), "cpuset"), "{text:?}");
            assert_eq!(taken(&added(text)), text);
        }
    }
}
