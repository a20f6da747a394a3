//! Keepers as processes: this test program is the one that is started.

use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::units::{SYSTEMCTL, unit};
use super::*;
use crate::journal::KeeperRecord;
use crate::keeper::{self, Until};
use crate::keeper_process::lives;
use crate::status::timed_places;

const VARIABLE: &str = "QUELL_TEST_IS_KEEPER";

/// Not a test of its own: what [`program`] runs.
#[test]
fn this_process_is_a_keeper() {
    let Ok(step) = std::env::var(VARIABLE) else { return };
    if step == "1" {
        // Of the tests' other threads, too, for which the mask must be there when they start.
        // SAFETY: the set is initialised before use.
        unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        panic!("{}", again.args(std::env::args_os().skip(1)).env(VARIABLE, "2").exec());
    } else {
        // SAFETY: the script opened it, and nothing closes it.
        rustix::stdio::dup2_stdout(unsafe { BorrowedFd::borrow_raw(3) }).unwrap();
        let ended = keeper::keep();
        // SAFETY: this process has no state whose destructor must run.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
}

/// A program that is a keeper. What the tests' main function prints must not reach the one that starts it.
pub fn program(folder: &Path) -> PathBuf {
    let path = folder.join("keeper");
    let tests = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nexec 3>&1 >/dev/null\n{VARIABLE}=1 exec '{}' --exact tests::keepers::this_process_is_a_keeper --test-threads=1\n",
        tests.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Far beyond the end of any test.
pub fn later() -> Until {
    Until { after: Some(Duration::from_secs(3600)), process: None }
}

/// Waits until keepers have exited; they are children of this process.
pub fn exited(keepers: &[KeeperRecord], longest: Duration) -> bool {
    let end = Instant::now() + longest;
    let is_over = |keeper: &KeeperRecord| {
        // SAFETY: waitpid has no precondition.
        unsafe { libc::waitpid(keeper.pid.cast_signed(), std::ptr::null_mut(), libc::WNOHANG) };
        !lives(keeper)
    };
    while !keepers.iter().all(is_over) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn kept(root: &Root, plan: &Plan, stopped: &dyn Fn() -> bool) -> Applied {
    kept_until(root, plan, later(), stopped)
}

fn kept_until(root: &Root, plan: &Plan, until: Until, stopped: &dyn Fn() -> bool) -> Applied {
    let program = program(&root.path("/"));
    let applying = Applying { program, until: Some(until), keepers: Vec::new(), holds: Vec::new(), stopped };
    let locked = |e: &ApplyError| matches!(e, ApplyError::Store(StoreError::Locked(_)));
    unlocked(|| apply(root, plan, &applying), locked).unwrap()
}

#[test]
fn keepers_run_before_the_first_write() {
    let (_folder, root, plan) = two();
    let calls = std::cell::Cell::new(0);
    let stopped = || {
        if calls.replace(calls.get() + 1) == 0 {
            let store = Store::open(&root).unwrap();
            let id = store.ids().unwrap().remove(0);
            let keepers = Transaction::read(&id, &store.read(&id).unwrap()).keepers;
            assert_eq!(keepers.iter().filter(|keeper| lives(keeper)).count(), 2);
            assert_eq!(root.read(A).unwrap(), "1\n");
        }
        false
    };
    let keepers = kept(&root, &plan, &stopped).keepers;
    assert!(calls.get() > 0);
    assert!(back(&root).is_whole());
    assert!(exited(&keepers, Duration::from_secs(20)));
}

#[test]
fn keepers_outlive_a_revert_that_failed() {
    let (folder, root, plan) = unit();
    let keepers = kept(&root, &plan, &|| false).keepers;
    put(folder.path(), "/usr/bin/systemctl", "#!/bin/sh\nexit 1\n");
    assert!(back(&root).has_failed());
    assert!(!exited(&keepers[..1], Duration::from_millis(300)) && !exited(&keepers[1..], Duration::ZERO));
    put(folder.path(), "/usr/bin/systemctl", SYSTEMCTL);
    assert!(back(&root).is_whole());
    assert!(exited(&keepers, Duration::from_secs(20)));
}

#[test]
fn a_keeper_that_is_asked_to_end_does_so_though_a_revert_fails() {
    let (folder, root, plan) = unit();
    let keepers = kept(&root, &plan, &|| false).keepers;
    put(folder.path(), "/usr/bin/systemctl", "#!/bin/sh\nexit 1\n");
    for keeper in &keepers {
        // SAFETY: kill has no precondition; the child is not reaped yet, so its pid is its own.
        unsafe { libc::kill(keeper.pid.cast_signed(), libc::SIGTERM) };
    }
    assert!(exited(&keepers, Duration::from_secs(60)));
    assert_eq!(Store::open(&root).unwrap().ids().unwrap().len(), 1, "the journal has what is left");
    put(folder.path(), "/usr/bin/systemctl", SYSTEMCTL);
    assert!(back(&root).is_whole());
}

#[test]
fn a_keeper_that_is_asked_to_end_reverts_first() {
    let (_folder, root, plan) = two();
    let keepers = kept(&root, &plan, &|| false).keepers;
    // SAFETY: as above.
    unsafe { libc::kill(keepers[0].pid.cast_signed(), libc::SIGTERM) };
    assert!(exited(&keepers, Duration::from_secs(60)));
    assert_eq!(root.read(A).unwrap(), "1\n");
    assert!(status(&root).unwrap().0.is_empty());
}

#[test]
fn what_another_plan_has_set_for_a_time_is_reported() {
    let (_folder, root, both) = two();
    let first = kept(&root, &plan(vec![both.writes[0].clone()]), &|| false).id.unwrap();
    let passing = [(both.writes[0].id.clone(), first)];
    assert_eq!(kept(&root, &both, &|| false).passing, passing);
    // Also where there is nothing else to write.
    assert_eq!(run(&root, &both).unwrap().passing.len(), 2);
    assert!(back(&root).is_whole());
    run(&root, &plan(vec![both.writes[0].clone()])).unwrap();
    assert_eq!(run(&root, &both).unwrap().passing, [], "without a time it stays");
    assert!(back(&root).is_whole());
}

#[test]
fn a_plan_notes_what_is_set_only_for_a_time() {
    let (_folder, root, both) = two();
    let first = kept(&root, &plan(vec![both.writes[0].clone()]), &|| false).id.unwrap();
    let timed = timed_places(&root).unwrap();
    assert_eq!(timed.keys().map(String::as_str).collect::<Vec<_>>(), [A]);
    let note = |place: &Place| timed.get(&place.identity()).map(|(id, _)| format!("set by {id}"));
    let over = plan(vec![write(A, "20", "30"), both.writes[1].clone()]);
    let text = over.diff_with(&note);
    assert!(text.contains(&format!("- {A}: 20  (set by {first})\n+ {A}: 30\n")), "{text}");
    assert_eq!(text.matches("set by").count(), 1, "{text}");
    run(&root, &over).unwrap();
    assert!(timed_places(&root).unwrap().is_empty(), "the last value has no time");
    assert!(back(&root).is_whole());
}

#[test]
fn a_wait_for_what_someone_else_changed_needs_no_keeper() {
    let (folder, root, both) = two();
    let first = kept(&root, &both, &|| false).keepers;
    run(&root, &plan(vec![write(A, "20", "30")])).unwrap();
    put(folder.path(), A, "40\n");
    let reverted = back(&root);
    assert!(
        reverted.places.iter().any(|one| one.how == How::Waits) && !reverted.has_failed(),
        "{reverted:?}"
    );
    assert!(exited(&first, Duration::from_secs(20)));
}

#[test]
fn a_keeper_of_what_waits_for_a_later_plan_goes_on() {
    let (folder, root, mut plan) = unit();
    let first = kept(&root, &plan, &|| false).keepers;
    plan.writes[0].old = std::mem::replace(&mut plan.writes[0].new, "inactive enabled".into());
    kept(&root, &plan, &|| false);
    let broken = SYSTEMCTL.replace("disable) echo", "disable) exit 1; echo");
    assert_ne!(broken, SYSTEMCTL);
    put(folder.path(), "/usr/bin/systemctl", &broken);
    let reverted = back(&root);
    assert!(reverted.places.iter().any(|one| one.how == How::Waits), "{reverted:?}");
    assert!(!exited(&first[..1], Duration::from_millis(300)));
    put(folder.path(), "/usr/bin/systemctl", SYSTEMCTL);
    assert!(back(&root).is_whole());
    assert!(exited(&first, Duration::from_secs(20)));
}

#[test]
fn a_keeper_reverts_once_the_later_plan_above_is_gone() {
    let (_folder, root, both) = two();
    let soon = Until { after: Some(Duration::from_millis(500)), process: None };
    let first = kept_until(&root, &plan(vec![both.writes[0].clone()]), soon, &|| false).keepers;
    let second = run(&root, &plan(vec![write(A, "20", "30")])).unwrap().id.unwrap();
    assert!(!exited(&first, Duration::from_secs(2)), "it waits for the second");
    let shown = status(&root).unwrap().0.remove(0).keeper.unwrap();
    let expected = format!("reverts once {second}, which came later, is reverted: its time is over");
    assert!(shown.ends_with(&expected), "{shown}");
    assert!(undo(&root, Some(&second), Foreign::Keep).unwrap().is_whole());
    assert!(exited(&first, Duration::from_secs(60)));
    assert_eq!(root.read(A).unwrap(), "1\n");
    assert!(status(&root).unwrap().0.is_empty());
}
