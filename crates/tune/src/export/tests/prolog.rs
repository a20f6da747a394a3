//! The prolog and the epilog, run with stand-ins for quell and logger that only record how they were called.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use fs_err as fs;

use super::super::slurm;
use super::{each, text};

/// A folder with the scripts and the stand-ins.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let quell = "#!/bin/sh\necho \"$*\" >>\"${0%/*}/called\"\ncase $2 in\napply) echo '{\"schema\":\"x\",\"transaction\":\"2026-1\"}'\n\
                 exit \"${APPLY:-0}\" ;;\nverify) exit 3 ;;\n\
                 status) cat \"${0%/*}/status\" ;;\nrevert) case $3 in --forget) exit 0 ;; esac; exit \"${REVERT:-0}\" ;;\nesac\n";
    let export = slurm(&each());
    let (prolog, epilog) = (text(&export, "prolog.sh"), text(&export, "epilog.sh"));
    let path =
        |script: &str| script.replace("PATH=/usr/local/sbin:", &format!("PATH={}:", folder.path().display()));
    for (name, script) in [
        ("quell", quell.to_owned()),
        ("logger", "#!/bin/sh\n:\n".to_owned()),
        ("prolog.sh", path(prolog)),
        ("epilog.sh", path(epilog)),
    ] {
        let at = folder.path().join(name);
        fs::write(&at, script).unwrap();
        fs::set_permissions(&at, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Runs a script; its exit code, and how quell was called.
fn run(folder: &Path, name: &str, codes: &[(&str, &str)]) -> (Option<i32>, Vec<String>) {
    let mut command = Command::new(folder.join(name));
    command.env("QUELL_STATE", folder.join("state")).envs(codes.iter().copied());
    let ended = command.status().unwrap().code();
    let called = fs::read_to_string(folder.join("called")).unwrap_or_default();
    let _ = fs::remove_file(folder.join("called"));
    (ended, called.lines().map(str::to_owned).collect())
}

const APPLY: &str = "tune apply /etc/quell/quell.plan --yes --max-risk low --allow-users --json";

#[test]
fn a_job_is_tuned_and_its_own_transaction_given_back() {
    let site = site();
    assert_eq!(run(site.path(), "prolog.sh", &[]), (Some(0), vec![APPLY.into()]));
    let calls = vec!["tune verify".to_owned(), "tune revert 2026-1".into()];
    assert_eq!(run(site.path(), "epilog.sh", &[]), (Some(0), calls));
    assert_eq!(run(site.path(), "epilog.sh", &[]), (Some(0), vec![]));
}

#[test]
fn a_refusal_keeps_the_node_and_a_failed_revert_drains_it() {
    let site = site();
    for code in ["1", "3"] {
        assert_eq!(run(site.path(), "prolog.sh", &[("APPLY", code)]).0, Some(0));
        assert_eq!(run(site.path(), "epilog.sh", &[]), (Some(0), vec![]));
    }
    assert_eq!(run(site.path(), "prolog.sh", &[]).0, Some(0));
    assert_eq!(run(site.path(), "epilog.sh", &[("REVERT", "1")]).0, Some(1));
    // The next prolog retries it before it applies.
    let calls = vec!["tune revert 2026-1".to_owned(), APPLY.into()];
    assert_eq!(run(site.path(), "prolog.sh", &[]), (Some(0), calls));
    let (ended, calls) = run(site.path(), "epilog.sh", &[("REVERT", "3")]);
    assert_eq!((ended, calls.last().map(String::as_str)), (Some(0), Some("tune revert --forget 2026-1")));
}

#[test]
fn a_prolog_that_was_killed_leaves_an_operators_settings_alone() {
    let site = site();
    let plan = text(&slurm(&each()), "quell.plan").to_owned();
    fs::write(site.path().join("quell.plan"), &plan).unwrap();
    let hash = serde_json::from_str::<crate::plan::Plan>(&plan).unwrap().hash;
    let plan_path = site.path().join("quell.plan");
    let codes = [("QUELL_PLAN", plan_path.to_str().unwrap())];
    let apply = APPLY.replace("/etc/quell/quell.plan", codes[0].1);
    let killed = |open: &str| {
        fs::create_dir_all(site.path().join("state")).unwrap();
        fs::write(site.path().join("state/transaction"), "").unwrap();
        fs::write(site.path().join("status"), open).unwrap();
    };
    let transaction = |id: &str, stage: &str, hash: &str| {
        format!(
            "{{\n  \"id\": \"{id}\",\n  \"journal\": \"/x/{id}\",\n  \"stage\": \"{stage}\",\n  \"began\": \"2026-11-29T02:00:00Z\",\n  \"plan\": \"{hash}\"\n}}"
        )
    };
    let (other, ours) = (transaction("1-other", "applied", "abc"), transaction("2-ours", "applied", &hash));
    let closed = transaction("3-closed", "closed", &hash);
    let document = |open: &str| format!("{{\"open\": [{open}], \"last_closed\": {closed}}}");
    let (status, revert) = ("tune status --json".to_owned(), "tune revert 2-ours".to_owned());
    for script in ["prolog.sh", "epilog.sh"] {
        let is_prolog = script == "prolog.sh";
        killed(&document(&other));
        let calls = if is_prolog { vec![status.clone(), apply.clone()] } else { vec![status.clone()] };
        assert_eq!(run(site.path(), script, &codes), (Some(0), calls), "{script}");
        killed(&document(&format!("{ours}, {other}")));
        let (_, calls) = run(site.path(), script, &codes);
        let own = |call: &&String| !call.starts_with("tune apply") && *call != "tune verify";
        let calls: Vec<&String> = calls.iter().filter(own).collect();
        assert_eq!(calls, [&status, &revert], "{script}");
        let _ = fs::remove_dir_all(site.path().join("state"));
    }
}
