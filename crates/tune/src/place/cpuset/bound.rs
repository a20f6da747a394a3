//! The CPUs that threads are bound to. A kernel before 6.2 forgets them where a cpuset changes: it sets all threads of the set to the set's CPUs.
//!
//! quell notes them in a file before, binds the threads again within what is left to them, and restores them at the end. A thread that someone else
//! has bound since keeps that.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use quell_recording::{Cpu, format_cpu_list, parse_cpu_list};

use super::super::PlaceError;
use super::super::thread::{self, affinity, stat};
use super::Left;
use crate::root::Root;

const FOLDER: &str = "/run/quell";
/// A line with the CPUs of the set, and one for each thread: its id, when it started (in clock ticks after boot), and its CPUs.
const FILE: &str = "/run/quell/bound-threads";
/// The word before the CPUs of the set.
const COMPUTE: &str = "compute";
/// Maximum size of the file.
const LONGEST: u64 = 64 << 20;

/// The CPUs on which each thread may run, by id and start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bindings(BTreeMap<(u32, u64), Vec<Cpu>>);

impl Bindings {
    /// Those of all threads.
    pub(super) fn now(root: &Root) -> Self {
        let mut all = BTreeMap::new();
        for process in root.names("/proc").iter().filter(|name| name.parse::<u32>().is_ok()) {
            for name in root.names(&format!("/proc/{process}/task")) {
                let folder = format!("/proc/{process}/task/{name}");
                let (Ok(id), Some(stat)) = (name.parse(), stat(root, &folder)) else { continue };
                if let Some(cpus) = affinity(root, &folder).ok().and_then(|list| parse_cpu_list(&list).ok()) {
                    all.insert((id, stat.start), cpus);
                }
            }
        }
        Self(all)
    }

    /// Notes these in the file, in place of what an earlier set may have left there, and the CPUs of the new set.
    pub(super) fn note(&self, root: &Root, compute: &str) -> Result<(), PlaceError> {
        let mut text = format!("{COMPUTE} {compute}\n");
        for ((id, start), cpus) in &self.0 {
            text += &format!("{id} {start} {}\n", format_cpu_list(cpus));
        }
        let write = || {
            match std::fs::DirBuilder::new().mode(0o755).create(root.path(FOLDER)) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let aside = root.path(&format!("{FILE}.new"));
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
                .open(&aside)?;
            file.write_all(text.as_bytes())?;
            fs_err::rename(aside, root.path(FILE))
        };
        write().map_err(|error| PlaceError::Other(format!("{FILE} cannot be written: {error}")))
    }

    /// What the file has.
    pub(super) fn noted(root: &Root) -> Self {
        let bytes = root.read_bytes(FILE, LONGEST).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (id, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(((id, start), parse_cpu_list(words.next()?).ok()?))
        };
        Self(String::from_utf8_lossy(&bytes).lines().filter_map(line).collect())
    }

    /// Binds threads again to those of their CPUs that the kernel still permits.
    pub(super) fn narrow(&self, root: &Root) {
        let now = Self::now(root);
        for (key, cpus) in &now.0 {
            let Some(before) = self.0.get(key) else { continue };
            let kept = common(before, cpus);
            if !kept.is_empty() && kept != *cpus {
                bind(root, key.0, &kept);
            }
        }
    }

    /// Binds threads as they were before quell's set was made, and removes the note. `self`: how they were bound last.
    pub(super) fn restore(&self, root: &Root, left: &Left) {
        self.restore_to(&Self::noted(root), root, left);
        forget(root);
    }

    fn restore_to(&self, noted: &Self, root: &Root, left: &Left) {
        let now = Self::now(root);
        for (key, last) in &self.0 {
            let wanted = wanted(noted.0.get(key), last, left);
            if let Some(wanted) = wanted.filter(|wanted| now.0.get(key).is_some_and(|cpus| cpus != *wanted)) {
                bind(root, key.0, wanted);
            }
        }
    }
}

/// Removes the note.
pub(super) fn forget(root: &Root) {
    let _ = fs_err::remove_file(root.path(FILE));
}

/// The CPUs of the set for which there is a note.
pub(super) fn noted_compute(root: &Root) -> Vec<Cpu> {
    let bytes = root.read_bytes(FILE, LONGEST).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let list = text.lines().find_map(|line| line.strip_prefix(COMPUTE)?.strip_prefix(' '));
    list.and_then(|list| parse_cpu_list(list).ok()).unwrap_or_default()
}

/// What to bind a thread to; none if it stays as the kernel leaves it.
fn wanted<'a>(noted: Option<&'a Vec<Cpu>>, last: &'a Vec<Cpu>, left: &Left) -> Option<&'a Vec<Cpu>> {
    let housekeeping = &left.housekeeping;
    let is_reset = last == housekeeping || left.all.as_ref() == Some(last);
    let left = |noted: &Vec<Cpu>| {
        let left = common(noted, housekeeping);
        if left.is_empty() { housekeeping.clone() } else { left }
    };
    match noted {
        // quell may have been killed before it bound the thread to what is left: it then has all of that.
        Some(noted) if left(noted) == *last || is_reset => Some(noted),
        // A thread of the job is bound to the set that goes, and not by anyone else.
        _ if last == housekeeping || common(last, housekeeping).is_empty() => None,
        _ => Some(last),
    }
}

fn common(one: &[Cpu], other: &[Cpu]) -> Vec<Cpu> {
    one.iter().filter(|cpu| other.contains(cpu)).copied().collect()
}

/// Threads that ended or cannot be moved stay as they are.
fn bind(root: &Root, id: u32, cpus: &[Cpu]) {
    if let Some(stat) = stat(root, &format!("/proc/{id}")) {
        let _ = thread::move_to(id, &stat, &format_cpu_list(cpus));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Vec<Cpu> {
        parse_cpu_list(list).unwrap()
    }

    #[test]
    fn a_binding_returns_unless_another_one_was_made_since() {
        let (set, gone) = (
            Left { housekeeping: cpus("0-1"), all: None },
            Left { housekeeping: cpus("0-1"), all: Some(cpus("0-3")) },
        );
        for (noted, last, expected) in [
            // Bound to a housekeeping CPU, to a compute CPU, to some of both, to none.
            (Some("0"), "0", Some("0")),
            (Some("3"), "0-1", Some("3")),
            (Some("1-2"), "1", Some("1-2")),
            (Some("0-3"), "0-1", Some("0-3")),
            (Some("0"), "0-1", Some("0")),
            // Someone else bound it since: one that was noted, and one that started since.
            (Some("0"), "1", Some("1")),
            (None, "1", Some("1")),
            // Started since, on all that is left; and a thread of the job.
            (None, "0-1", None),
            (None, "2-3", None),
        ] {
            let (noted, last) = (noted.map(cpus), cpus(last));
            for left in [&set, &gone] {
                assert_eq!(wanted(noted.as_ref(), &last, left), expected.map(cpus).as_ref(), "{last:?}");
            }
        }
        // Without its set, a kernel before 6.2 has set the thread to all CPUs.
        let (noted, all) = (cpus("3"), cpus("0-3"));
        assert_eq!(wanted(Some(&noted), &all, &gone), Some(&noted));
        assert_eq!(wanted(Some(&noted), &all, &set), Some(&all));
    }

    /// quell was killed after its set was gone, and before it bound the threads again.
    #[test]
    fn threads_whose_set_went_before_a_crash_are_bound_again() {
        let root = Root::system();
        let online = cpus(root.read("/sys/devices/system/cpu/online").unwrap().trim());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = child.id();
        let key = (id, stat(&root, &format!("/proc/{id}")).unwrap().start);
        let now = || Bindings::now(&root).0.get(&key).cloned();
        let all = now().unwrap();
        if all.len() > 1 && all == online {
            let noted = Bindings([(key, vec![all[1]])].into());
            let left = Left { housekeeping: vec![all[0]], all: Some(online) };
            Bindings([(key, all)].into()).restore_to(&noted, &root, &left);
            assert_eq!(now().as_ref(), noted.0.get(&key));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
