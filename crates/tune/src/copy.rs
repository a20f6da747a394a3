//! Copies what the other modules read of a machine to a folder, so that it can be audited and planned for elsewhere (`--sysroot`).
//!
//! Which files that are is not listed anywhere: the machine is audited, planned for and guarded once, and each path that was looked at is copied.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use super::audit::{AuditOptions, audit};
use super::catalogue::{Catalogue, Knob};
use super::guard::{self, Allowed};
use super::place::{Place, PlaceError};
use super::plan::{Choice, plan};
use super::root::{LONGEST, NOT_READABLE, Root};

/// What is looked at only in a copy.
const ALSO: [&str; 4] = ["/proc/cpuinfo", "/proc/mounts", "/run", "/etc/kubernetes/kubelet.conf"];
/// Only this part of the environment of process 1 is read: it says that this is a container. The rest may hold secrets.
const ENVIRONMENT: (&str, &str) = ("/proc/1/environ", "container=");
/// Programs are not copied.
const PROGRAMS: [&str; 4] = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"];
/// Folders whose links lead to devices; those of `/proc` are different for each process.
const LINKED: [&str; 2] = ["/sys/", "/etc/"];

/// The result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Number of files.
    pub files: usize,
    /// Files and folders that this user may not read. They are empty in the copy, and the copy refuses to read them too.
    pub refused: BTreeSet<String>,
    /// Files that could not be read for another reason, which are empty in the copy.
    pub unread: BTreeSet<String>,
}

/// Copies a machine to a folder, which must be empty.
///
/// # Errors
/// Why the machine cannot be audited, or the folder not be written.
pub fn copy(machine: &Root, catalogue: &Catalogue, to: &Path) -> Result<Copied, CopyError> {
    let machine = machine.recorded();
    look(&machine, catalogue).map_err(CopyError::Audit)?;
    let mut copied = Copied::default();
    let mut paths = machine.seen();
    paths.extend(ALSO.map(str::to_owned));
    let is_program = |path: &String| PROGRAMS.iter().any(|folder| path.starts_with(folder));
    for path in paths.iter().filter(|path| !is_program(path)) {
        one(&machine, path, to, &mut copied)
            .map_err(|source| CopyError::Write { path: path.clone(), source })?;
    }
    if !copied.refused.is_empty() {
        let text: String = copied.refused.iter().map(|path| format!("{path}\n")).collect();
        put(&to.join(NOT_READABLE), text.as_bytes(), 0o644)
            .map_err(|source| CopyError::Write { path: NOT_READABLE.into(), source })?;
    }
    let path = "/usr/bin/systemctl";
    systemctl(&machine, catalogue, &to.join(&path[1..]))
        .map_err(|source| CopyError::Write { path: path.into(), source })?;
    Ok(copied)
}

/// Why a machine was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The machine cannot be audited.
    #[error("this machine cannot be audited: {0}")]
    Audit(String),
    /// A file cannot be written.
    #[error("{path} cannot be copied: {source}")]
    Write {
        /// The path on the machine.
        path: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Looks at everything that an audit, a plan and the guard rails look at.
fn look(machine: &Root, catalogue: &Catalogue) -> Result<(), String> {
    let audit = audit(machine, catalogue, &AuditOptions::default(), None)?;
    for persist in [false, true] {
        for mitigation in catalogue.iter() {
            // What cannot be planned here is looked at all the same.
            if let Ok(plan) = plan(&audit, &Choice { ids: vec![mitigation.id.clone()], persist }) {
                guard::refusals(machine, &plan, Allowed::BY_DEFAULT, catalogue);
            }
        }
    }
    Ok(())
}

/// Copies one path. What has vanished since is left out.
fn one(machine: &Root, path: &str, to: &Path, copied: &mut Copied) -> io::Result<()> {
    let real = if LINKED.iter().any(|folder| path.starts_with(folder)) {
        match links(machine, path, to)? {
            Some(real) => real,
            None => return Ok(()),
        }
    } else {
        path.to_owned()
    };
    let Ok(facts) = fs::metadata(machine.path(&real)) else { return Ok(()) };
    let spot = to.join(real.trim_start_matches('/'));
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    if facts.is_dir() {
        if machine.entries(&real).is_err_and(|error| is_refused(&error)) {
            copied.refused.insert(real);
        }
        return fs_err::create_dir_all(&spot);
    }
    if !facts.is_file() || spot.symlink_metadata().is_ok() {
        return Ok(());
    }
    make_parent(&spot)?;
    let content = match machine.read_bytes(&real, LONGEST) {
        Ok(bytes) if real == ENVIRONMENT.0 => {
            let shown =
                bytes.split(|byte| *byte == 0).filter(|one| one.starts_with(ENVIRONMENT.1.as_bytes()));
            shown.collect::<Vec<_>>().join(&0)
        }
        Ok(bytes) => bytes,
        Err(error) => {
            let list = if is_refused(&error) { &mut copied.refused } else { &mut copied.unread };
            list.insert(real);
            Vec::new()
        }
    };
    put(&spot, &content, facts.permissions().mode() & 0o777)?;
    copied.files += 1;
    Ok(())
}

/// Makes a file of the copy.
fn put(spot: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode | 0o200).open(spot)?;
    file.write_all(content)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Makes the folder in which a file of the copy lies.
fn make_parent(spot: &Path) -> io::Result<()> {
    spot.parent().map_or(Ok(()), fs_err::create_dir_all)
}

/// Makes the links on a path's way in the copy; returns the path without them, or none if it leads nowhere.
fn links(machine: &Root, path: &str, to: &Path) -> io::Result<Option<String>> {
    let Ok(end) = fs::canonicalize(machine.path(path)) else { return Ok(None) };
    let top = machine.path("/");
    let mut at = PathBuf::new();
    for part in Path::new(path.trim_start_matches('/')).components() {
        at.push(part);
        if fs::read_link(top.join(&at)).is_err() {
            continue;
        }
        let Ok(full) = fs::canonicalize(top.join(&at)) else { return Ok(None) };
        let Ok(inside) = full.strip_prefix(&top) else { return Ok(None) };
        let spot = to.join(&at);
        if spot.symlink_metadata().is_err() {
            make_parent(&spot)?;
            symlink(relative(&at, inside), &spot)?;
        }
        at = inside.to_owned();
    }
    Ok(end.strip_prefix(&top).ok().map(|inside| format!("/{}", inside.display())))
}

/// The target of a link at `link`, as a path from its folder.
fn relative(link: &Path, target: &Path) -> PathBuf {
    let depth = link.components().filter(|part| matches!(part, Component::Normal(_))).count();
    let up: PathBuf = std::iter::repeat_n("..", depth.saturating_sub(1)).collect();
    up.join(target)
}

/// Writes a `systemctl` that answers as the machine's does, for the units of the catalogue; none where systemd does not run.
fn systemctl(machine: &Root, catalogue: &Catalogue, to: &Path) -> io::Result<()> {
    let knobs = catalogue.iter().flat_map(|mitigation| &mitigation.knob);
    let units: BTreeSet<&String> =
        knobs.filter_map(|knob| if let Knob::Unit(unit) = knob { Some(&unit.name) } else { None }).collect();
    let states: Vec<(&String, Result<String, PlaceError>)> =
        units.into_iter().map(|name| (name, Place::Unit { name: name.clone() }.read(machine))).collect();
    if !states.iter().any(|(_, state)| matches!(state, Ok(_) | Err(PlaceError::Missing))) {
        return Ok(());
    }
    let mut text = String::from("#!/bin/sh\n# Answers as the copied machine did.\ncase \"$1 $2\" in\n");
    for (name, state) in states {
        if let Some((active, enabled)) = state.as_deref().ok().and_then(|state| state.split_once(' ')) {
            text += &format!(
                "    \"is-active {name}\") echo {active} ;;\n    \"is-enabled {name}\") echo {enabled} ;;\n"
            );
        }
    }
    text += "    \"is-active \"*) echo inactive ;;\n    \"is-enabled \"*) echo not-found ;;\n";
    text += "    *) echo \"nothing runs in a copy\" >&2; exit 1 ;;\nesac\n";
    make_parent(to)?;
    put(to, text.as_bytes(), 0o755)
}
