//! A service on a tree whose CPUs come and go.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

use super::*;
use crate::revert::How;
use crate::tests::{keepers, plan, put, tree, units, unlocked, write};

const MASK: &str = "/proc/irq/default_smp_affinity";
const DEVICE: &str = "/sys/devices/x/power";

/// A service that has applied `1` in place of `f`, after which CPU 3 came or went, and the kernel wrote `e`.
fn disturbed<'a>(folder: &Path, root: &'a Root) -> Served<'a> {
    let until = Until { after: None, process: None };
    let mut served = Served::new(root, "/nonexistent".into(), until);
    // Keepers that live: no program is started.
    let me = std::process::id();
    let start = crate::place::started(me).unwrap();
    served.keepers = vec![KeeperRecord { pid: me, start, until: None }];
    let look = served.look(&plan(vec![write(MASK, "f", "1")])).unwrap();
    apply_due(&mut served, &look.due).unwrap();
    served.disturb(&Device::parse(b"offline@/devices/system/cpu/cpu3\0SUBSYSTEM=cpu").unwrap());
    put(folder, MASK, "e");
    served
}

fn is_locked(error: &ApplyError) -> bool {
    matches!(error, ApplyError::Store(StoreError::Locked(_)))
}

fn apply_due(served: &mut Served<'_>, due: &Plan) -> Result<Applied, ApplyError> {
    unlocked(|| served.apply(due, &|| false), is_locked)
}

fn write_again(served: &mut Served<'_>, write: &Write) -> bool {
    unlocked(|| served.write_again(write), |trouble| trouble.contains("lock")).unwrap()
}

/// The value after the service has ended, and the values that were left because another program wrote them.
fn ended(served: &Served<'_>) -> (String, Vec<How>) {
    let locked = |error: &RevertError| matches!(error, RevertError::Store(StoreError::Locked(_)));
    let reverted = unlocked(|| served.end(), locked).unwrap();
    let left = reverted.places.into_iter().map(|one| one.how).filter(|how| matches!(how, How::Foreign(_)));
    (served.root.read(MASK).unwrap(), left.collect())
}

#[test]
fn what_the_kernel_and_then_the_plan_change_is_reverted() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let look = served.look(&plan(vec![write(MASK, "e", "2")])).unwrap();
    assert!(look.again.is_empty() && look.foreign.is_empty(), "{look:?}");
    apply_due(&mut served, &look.due).unwrap();
    assert_eq!(root.read(MASK).unwrap(), "2");
    assert_eq!(ended(&served), ("f".into(), vec![]));
}

#[test]
fn a_plan_that_could_not_be_applied_is_tried_again() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let wanted = plan(vec![write(MASK, "e", "2")]);
    let due = served.look(&wanted).unwrap().due;
    put(folder.path(), MASK, "c");
    assert!(matches!(apply_due(&mut served, &due), Err(ApplyError::Stale(_))));
    put(folder.path(), MASK, "e");
    let due = served.look(&wanted).unwrap().due;
    apply_due(&mut served, &due).unwrap();
    assert_eq!(ended(&served), ("f".into(), vec![]));
}

/// Applies another write to a device's file, in a transaction of its own.
fn with_device(folder: &Path, served: &mut Served<'_>) {
    put(folder, DEVICE, "1");
    let due = served.look(&plan(vec![write(DEVICE, "1", "2")])).unwrap().due;
    apply_due(served, &due).unwrap();
}

#[test]
fn a_transaction_whose_places_are_gone_is_closed() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    with_device(folder.path(), &mut served);
    let open = || Store::open(&root).unwrap().ids().unwrap();
    assert_eq!(served.transactions, open());
    fs_err::remove_dir_all(folder.path().join("sys/devices/x")).unwrap();
    let locked = |error: &StoreError| matches!(error, StoreError::Locked(_));
    unlocked(|| served.close_gone(), locked).unwrap();
    assert_eq!((open().len(), served.transactions.clone()), (1, open()));
    // The last one stays, because its keepers are needed.
    fs_err::remove_dir_all(folder.path().join("proc/irq")).unwrap();
    unlocked(|| served.close_gone(), locked).unwrap();
    assert_eq!((open().len(), served.transactions.clone()), (1, open()));
}

#[test]
fn keepers_end_with_the_last_transaction_that_names_them() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let start = crate::place::started(child.id()).unwrap();
    let keepers = vec![KeeperRecord { pid: child.id(), start, until: None }];
    served.keepers.clone_from(&keepers);
    with_device(folder.path(), &mut served);
    put(folder.path(), "/proc/sys/vm/a", "1");
    let due = served.look(&plan(vec![write("/proc/sys/vm/a", "1", "2")])).unwrap().due;
    apply_due(&mut served, &due).unwrap();
    let locked = |error: &RevertError| matches!(error, RevertError::Store(StoreError::Locked(_)));
    let last = served.transactions.pop().unwrap();
    unlocked(|| revert_together(&root, std::slice::from_ref(&last), "a test"), locked).unwrap();
    assert!(crate::keeper_process::lives(&keepers[0]));
    unlocked(|| served.end(), locked).unwrap();
    let ended = child.try_wait().unwrap();
    let _ = child.kill();
    child.wait().unwrap();
    assert!(ended.is_some());
}

#[test]
fn only_the_write_that_failed_is_not_tried_again() {
    // Readable, and denied.
    let denied = "/etc/passwd";
    let (folder, root) = tree(&[(MASK, "f"), (denied, "x")]);
    let mut served = disturbed(folder.path(), &root);
    put(folder.path(), "/proc/sys/vm/a", "1");
    let wanted = plan(vec![write("/proc/sys/vm/a", "1", "2"), write(denied, "x", "y")]);
    let due = served.look(&wanted).unwrap().due;
    assert!(matches!(apply_due(&mut served, &due), Err(ApplyError::Failed { .. })));
    assert_eq!(root.read("/proc/sys/vm/a").unwrap(), "1");
    let due = served.look(&wanted).unwrap().due;
    assert_eq!(due.writes, [wanted.writes[0].clone()]);
    apply_due(&mut served, &due).unwrap();
    assert_eq!(root.read("/proc/sys/vm/a").unwrap(), "2");
}

#[test]
fn a_change_of_the_kernel_stays_its_own_until_the_plan_is_applied() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let wanted = plan(vec![write(MASK, "e", "2")]);
    served.look(&wanted).unwrap();
    let look = served.look(&wanted).unwrap();
    assert!(look.foreign.is_empty(), "{look:?}");
    apply_due(&mut served, &look.due).unwrap();
    assert_eq!(ended(&served), ("f".into(), vec![]));
}

#[test]
fn what_the_kernel_changed_is_written_again_once_that_succeeds() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let wanted = plan(vec![write(MASK, "e", "1")]);
    let again = served.look(&wanted).unwrap().again;
    assert_eq!(again.len(), 1);
    // A failure leaves it due.
    let lock = unlocked(|| Lock::take(&root), |error| matches!(error, StoreError::Locked(_))).unwrap();
    assert!(served.write_again(&again[0]).is_err());
    drop(lock);
    let look = served.look(&wanted).unwrap();
    assert!(look.foreign.is_empty() && look.again.len() == 1, "{look:?}");
    assert!(write_again(&mut served, &look.again[0]));
    assert_eq!(root.read(MASK).unwrap(), "1");
    assert_eq!(ended(&served), ("f".into(), vec![]));
}

#[test]
fn what_another_program_changes_is_left_to_it() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let again = served.look(&plan(vec![write(MASK, "e", "1")])).unwrap().again;
    write_again(&mut served, &again[0]);
    put(folder.path(), MASK, "8");
    let look = served.look(&plan(vec![write(MASK, "8", "1")])).unwrap();
    assert_eq!((look.due.writes.len(), look.foreign.len()), (0, 1));
    assert_eq!(ended(&served), ("8".into(), vec![How::Foreign("8".into())]));
}

#[test]
fn what_another_program_changes_after_the_look_is_left_to_it() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let again = served.look(&plan(vec![write(MASK, "e", "1")])).unwrap().again;
    put(folder.path(), MASK, "8");
    assert!(!write_again(&mut served, &again[0]));
    assert_eq!(root.read(MASK).unwrap(), "8");
    let look = served.look(&plan(vec![write(MASK, "8", "1")])).unwrap();
    assert_eq!((look.due.writes.len(), look.again.len(), look.foreign.len()), (0, 0, 1));
}

#[test]
fn a_look_that_cannot_see_a_unit_does_not_forget_whose_it_is() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    units::make(folder.path(), "active enabled");
    let place = Place::Unit { name: "cron.service".into() };
    let unit = |old: &str| Write { place: place.clone(), ..write("unit", old, "inactive disabled") };
    let due = served.look(&plan(vec![unit("active enabled")])).unwrap().due;
    apply_due(&mut served, &due).unwrap();
    // An administrator starts it, which the service leaves alone.
    put(folder.path(), "/run/unit", "active disabled\n");
    assert_eq!(served.look(&plan(vec![unit("active disabled")])).unwrap().foreign.len(), 1);
    // systemd does not answer for the time of one look.
    put(folder.path(), "/run/unit", "\n");
    served.look(&plan(vec![])).unwrap();
    put(folder.path(), "/run/unit", "active disabled\n");
    let look = served.look(&plan(vec![unit("active disabled")])).unwrap();
    assert_eq!((look.due.writes.len(), look.again.len()), (0, 0), "{look:?}");
}

/// The kernel refuses the value at first, and takes it once a CPU has come back.
#[test]
fn what_was_refused_and_is_tried_again_counts_as_begun() {
    let denied = "/etc/passwd";
    let (folder, root) = tree(&[(MASK, "f"), (denied, "x")]);
    let mut served = disturbed(folder.path(), &root);
    let refused = Write { may_fail: true, ..write(denied, "x", "y") };
    let due = served.look(&plan(vec![refused.clone()])).unwrap().due;
    assert_eq!(apply_due(&mut served, &due).unwrap().refused.len(), 1);
    let place = refused.place.clone();
    let (id, entry) = served.last_open(&place).unwrap().unwrap();
    assert!(entry.is_untouched());
    assert!(unlocked(|| served.write_again(&refused), |trouble| trouble.contains("lock")).is_err());
    // On disk before the write.
    assert!(!served.last_open(&place).unwrap().unwrap().1.is_untouched(), "{id}");
}

#[test]
fn keepers_that_replace_others_revert_what_those_kept() {
    let (folder, root) = tree(&[(MASK, "f")]);
    let mut served = disturbed(folder.path(), &root);
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let start = crate::place::started(child.id()).unwrap();
    served.keepers = vec![KeeperRecord { pid: child.id(), start, until: Some("later".into()) }];
    with_device(folder.path(), &mut served);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(served.is_unguarded());
    (served.program, served.until) = (keepers::program(folder.path()), keepers::later());
    put(folder.path(), "/proc/sys/vm/a", "1");
    let due = served.look(&plan(vec![write("/proc/sys/vm/a", "1", "2")])).unwrap().due;
    apply_due(&mut served, &due).unwrap();
    let locked = |error: &StoreError| matches!(error, StoreError::Locked(_));
    unlocked(|| served.name_keepers(), locked).unwrap();
    assert!(!served.is_unguarded() && !served.unnamed);
    let store = Store::open(&root).unwrap();
    for id in store.ids().unwrap() {
        let named = Transaction::read(&id, &store.read(&id).unwrap()).keepers;
        assert!(served.keepers.iter().all(|keeper| named.contains(keeper)), "{id}");
    }
    assert_eq!(ended(&served).0, "e");
    assert!(keepers::exited(&served.keepers, std::time::Duration::from_secs(20)));
}

/// systemd does not answer for a moment, while the second of two writes fails.
#[test]
fn what_could_not_be_reverted_is_tried_again_before_anything_else_is_applied() {
    let denied = "/etc/passwd";
    let (folder, root) = tree(&[(MASK, "f"), (denied, "x")]);
    let mut served = disturbed(folder.path(), &root);
    units::make(folder.path(), "active enabled");
    let place = Place::Unit { name: "cron.service".into() };
    let unit = Write { place, ..write("unit", "active enabled", "inactive enabled") };
    let broken = units::SYSTEMCTL.replace("start) echo", "start) exit 1; echo");
    put(folder.path(), "/usr/bin/systemctl", &broken);
    let due = served.look(&plan(vec![unit, write(denied, "x", "y")])).unwrap().due;
    assert!(matches!(apply_due(&mut served, &due), Err(ApplyError::Failed { .. })));
    assert_eq!(root.read("/run/unit").unwrap(), "inactive enabled\n");
    put(folder.path(), "/usr/bin/systemctl", units::SYSTEMCTL);
    put(folder.path(), DEVICE, "1");
    let wanted = plan(vec![write(DEVICE, "1", "2")]);
    let due = served.look(&wanted).unwrap().due;
    assert!(matches!(apply_due(&mut served, &due), Err(ApplyError::Interrupted { .. })));
    unlocked(|| served.revert_failed(), |error| matches!(error, StoreError::Locked(_))).unwrap();
    assert_eq!(root.read("/run/unit").unwrap(), "active enabled\n");
    let due = served.look(&wanted).unwrap().due;
    apply_due(&mut served, &due).unwrap();
    assert_eq!(root.read(DEVICE).unwrap().trim(), "2");
}
