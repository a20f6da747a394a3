//! Audits of this machine: without privileges, and of a copy.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::tuned::alone;
use serde_json::Value;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A command line that runs quell without privileges, from a folder that any user may write to.
fn unprivileged(folder: &Path) -> Vec<String> {
    let binary = folder.join("quell");
    fs_err::copy(env!("CARGO_BIN_EXE_quell"), &binary).unwrap();
    fs_err::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    setpriv.map(str::to_owned).into_iter().chain([binary.to_str().unwrap().to_owned()]).collect()
}

#[test]
fn an_audit_without_root_reports_what_it_could_not_read() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let line = unprivileged(folder.path());
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).args(["tune", "audit", "--json"]);
    let output = command.current_dir("/").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(audit["unprivileged"], true);
    assert!(audit["mitigations"].as_array().unwrap().len() >= 109);
    assert!(!audit["unseen"].as_array().unwrap().is_empty());
}

/// Except what only a running kernel has: settings that last as long as a file is open.
fn is_audited_like_its_machine(line: &[String], folder: &Path) {
    let run = |args: &[&str]| {
        Command::new(&line[0]).args(&line[1..]).args(args).current_dir(folder).output().unwrap()
    };
    let copied = run(&["tune", "copy", "copy"]);
    assert_eq!(copied.status.code(), Some(0), "{}", text(&copied));
    let states = |args: &[&str]| -> Vec<(String, String, bool)> {
        let document =
            serde_json::from_slice::<Value>(&run(&[&["tune", "audit", "--json"], args].concat()).stdout)
                .unwrap();
        let of = |one: &Value| {
            let only_here = one["why"].as_str().unwrap_or("").contains("works only on a running machine");
            (one["id"].as_str().unwrap().to_owned(), one["state"].as_str().unwrap().to_owned(), only_here)
        };
        document["mitigations"].as_array().unwrap().iter().map(of).collect()
    };
    let (machine, copy) = (states(&[]), states(&["--sysroot", "copy"]));
    assert_eq!(machine.len(), copy.len(), "{line:?}");
    let is_alike = |(machine, copy): &(_, (String, String, bool))| {
        let (id, state, _): &(String, String, bool) = machine;
        let off = copy.2 && ["not-applied", "not-readable"].contains(&state.as_str());
        *id == copy.0 && (off || *state == copy.1)
    };
    let differ: Vec<_> = machine.into_iter().zip(copy).filter(|both| !is_alike(both)).collect();
    assert!(differ.is_empty(), "{line:?}: {differ:?}");
}

#[test]
fn a_copy_of_this_machine_is_audited_like_the_machine() {
    let Some(_alone) = alone() else { return };
    let quell = env!("CARGO_BIN_EXE_quell");
    // Kernels that are locked down refuse most of debugfs, to root too.
    let mount = "mount -t debugfs none /sys/kernel/debug; exec \"$0\" \"$@\"";
    let with_debugfs = ["unshare", "--mount", "sh", "-c", mount, quell];
    for line in [&[quell][..], &with_debugfs] {
        let folder = tempfile::tempdir().unwrap();
        let line: Vec<String> = line.iter().map(|&part| part.to_owned()).collect();
        is_audited_like_its_machine(&line, folder.path());
    }
    let folder = tempfile::tempdir().unwrap();
    is_audited_like_its_machine(&unprivileged(folder.path()), folder.path());
}
