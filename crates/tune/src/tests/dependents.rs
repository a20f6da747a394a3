//! Settings that change along with those of a plan. A unit stands for any setting: its `systemctl` does what the kernel does for a file.

use super::*;
use crate::revert::Returned;

const WEIGHT: &str = "/sys/block/x/queue/weight";
const DEPTH: &str = "/sys/block/x/queue/depth";
/// Each change gives both dependents other values.
const SYSTEMCTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")/../.." || exit 9
queue=sys/block/x/queue
case $1 in
is-active) cat run/active ;;
is-enabled) echo static ;;
stop) echo inactive >run/active && echo 60 >$queue/weight && echo 600 >$queue/depth ;;
start) echo active >run/active && echo 10 >$queue/weight && echo 100 >$queue/depth ;;
esac
"#;

fn machine(weight: &str) -> (tempfile::TempDir, Root, Write) {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, root) = tree(&[
        ("/run/active", "active\n"),
        ("/usr/bin/systemctl", SYSTEMCTL),
        (WEIGHT, &format!("{weight}\n")),
        (DEPTH, "777\n"),
    ]);
    fs::set_permissions(root.path("/usr/bin/systemctl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = Place::Unit { name: "x.service".into() };
    let dependents = [WEIGHT, DEPTH].map(str::to_owned).to_vec();
    (folder, root, Write { place, dependents, ..write("unit", "active static", "inactive static") })
}

fn now(root: &Root) -> [String; 3] {
    ["/run/active", WEIGHT, DEPTH].map(|path| root.read(path).unwrap().trim().to_owned())
}

#[test]
fn what_changed_along_is_restored_after_the_setting() {
    let (_folder, root, unit) = machine("80");
    run(&root, &plan(vec![unit])).unwrap();
    assert_eq!(now(&root), ["inactive", "60", "600"]);
    let reverted = back(&root);
    assert!(reverted.is_whole(), "{reverted:?}");
    assert_eq!(now(&root), ["active", "80", "777"]);
    let places: Vec<&str> = reverted.places.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(places, ["unit x.service", DEPTH, WEIGHT]);
    assert!(reverted.places.iter().all(|one| one.mitigation == "test"));
}

#[test]
fn what_someone_else_set_since_then_stays_also_if_the_setting_changes_it_again() {
    for (foreign, depth) in [(Foreign::Keep, "5"), (Foreign::Forget, "5"), (Foreign::Overwrite, "777")] {
        let (folder, root, unit) = machine("80");
        run(&root, &plan(vec![unit])).unwrap();
        put(folder.path(), DEPTH, "5\n");
        assert!(undo(&root, None, foreign).unwrap().is_whole());
        assert_eq!(now(&root), ["active", "80", depth], "{foreign:?}");
    }
}

#[test]
fn a_value_that_the_plan_wants_too_is_set_again_and_has_its_first_original() {
    // Before the plan it is what the plan wants, or another value; after the unit it is neither.
    for weight in ["100", "80"] {
        let (_folder, root, unit) = machine(weight);
        let wanted = write(WEIGHT, weight, "100");
        let applied = run(&root, &plan(vec![unit, wanted])).unwrap();
        assert_eq!(now(&root), ["inactive", "100", "600"]);
        assert_eq!(applied.written.len(), 2, "{applied:?}");
        assert!(applied.already.is_empty(), "{applied:?}");
        assert!(verify(&root).unwrap().iter().all(|one| one.standing == SettingState::Ok));
        let reverted = back(&root);
        assert!(reverted.is_whole(), "{reverted:?}");
        assert_eq!(now(&root), ["active", weight, "777"]);
    }
}

#[test]
fn a_journal_that_ends_anywhere_restores_them() {
    let (folder, root, unit) = machine("80");
    let id = run(&root, &plan(vec![unit])).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let applied = String::from_utf8(store.read(&id).unwrap()).unwrap();
    back(&root);
    let reverted = String::from_utf8(store.last_closed().unwrap().unwrap().1).unwrap();
    let lines: Vec<&str> = reverted.split_inclusive('\n').collect();
    assert!(reverted.contains("\"target\"") && reverted.contains("\"restored\""));
    let first = lines.iter().position(|line| line.contains("\"intent\"")).unwrap();
    for end in first + 1..lines.len() {
        // A revert may have been interrupted at any of its steps.
        let states: &[[&str; 3]] = match end > applied.lines().count() {
            true => &[["inactive", "60", "600"], ["active", "10", "100"], ["active", "80", "100"]],
            false => &[["inactive", "60", "600"]],
        };
        let is_restored = lines[..end].concat().contains("\"restored\"");
        for [active, weight, depth] in states.iter().filter(|_| !is_restored) {
            put(folder.path(), "/run/active", active);
            put(folder.path(), WEIGHT, weight);
            put(folder.path(), DEPTH, depth);
            fs::write(store.path_of(&id), sealed_again(lines[..end].concat().as_bytes())).unwrap();
            let reverted = back(&root);
            assert!(reverted.is_whole(), "{end}: {reverted:?}");
            assert_eq!(now(&root), ["active", "80", "777"], "{end}");
        }
    }
}

#[test]
fn one_that_cannot_be_restored_stays_open_until_it_can() {
    let (folder, root, unit) = machine("80");
    run(&root, &plan(vec![unit])).unwrap();
    let away = folder.path().join("away");
    fs::rename(root.path(DEPTH), &away).unwrap();
    fs::create_dir(root.path(DEPTH)).unwrap();
    let reverted = back(&root);
    assert!(reverted.has_failed(), "{reverted:?}");
    assert_eq!(status(&root).unwrap().0[0].stage, Stage::PartlyReverted);
    let store = Store::open(&root).unwrap();
    let id = store.ids().unwrap().remove(0);
    let left = store.read(&id).unwrap();
    assert!(back(&root).has_failed());
    assert_eq!(store.read(&id).unwrap(), left, "an attempt that restores nothing leaves no line");
    fs::remove_dir(root.path(DEPTH)).unwrap();
    fs::rename(&away, root.path(DEPTH)).unwrap();
    assert!(back(&root).is_whole());
    assert_eq!(now(&root), ["active", "80", "777"]);
}

#[test]
fn after_a_boot_or_with_another_device_they_are_left_alone() {
    let (folder, root, unit) = machine("80");
    run(&root, &plan(vec![unit.clone()])).unwrap();
    put(folder.path(), BOOT, "boot-2\n");
    assert!(back(&root).is_whole());
    assert_eq!(now(&root), ["inactive", "60", "600"]);
    // A disk of the same name.
    let (folder, root, unit) = machine("80");
    let link = root.path("/sys/block/x");
    let plugged = |port: &str| {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(format!("../devices/{port}"), &link).unwrap();
    };
    fs::create_dir_all(root.path("/sys/devices")).unwrap();
    fs::rename(&link, root.path("/sys/devices/a")).unwrap();
    plugged("a");
    run(&root, &plan(vec![unit])).unwrap();
    for path in [WEIGHT, DEPTH] {
        put(folder.path(), &path.replace("block/x", "devices/b"), "33\n");
    }
    plugged("b");
    back(&root);
    assert_eq!(now(&root), ["active", "10", "100"], "the unit's own effect on the new disk");
}

#[test]
fn a_setting_that_a_boot_sets_again_has_its_dependents_restored() {
    // A file that stands for the setting, and what the boot makes of it by the plan's drop-in.
    const SETTING: &str = "/sys/block/x/queue/scheduler";
    let (folder, root, _) = machine("80");
    put(folder.path(), SETTING, "deadline\n");
    fs::create_dir_all(root.path("/etc/tmpfiles.d")).unwrap();
    let drop_in = "/etc/tmpfiles.d/90-quell-test.conf";
    let text = format!("# quell: test\nw {SETTING} - - - - none\n");
    let kept = Write {
        place: Place::DropIn { path: drop_in.into() },
        ..write(drop_in, crate::place::ABSENT, &text)
    };
    let dependents = [WEIGHT, DEPTH].map(str::to_owned).to_vec();
    let setting = Write { dependents, ..write(SETTING, "deadline\n", "none") };
    run(&root, &plan(vec![setting, kept])).unwrap();
    put(folder.path(), BOOT, "boot-2\n");
    put(folder.path(), WEIGHT, "60\n");
    let reverted = back(&root);
    assert!(reverted.is_whole(), "{reverted:?}");
    assert_eq!(root.read(SETTING).unwrap(), "deadline\n");
    assert_eq!((root.read(WEIGHT).unwrap(), root.read(DEPTH).unwrap()), ("80\n".into(), "777\n".into()));
}

#[test]
fn one_without_a_value_under_the_new_setting_gets_its_own_back() {
    let (folder, root, unit) = machine("80");
    run(&root, &plan(vec![unit])).unwrap();
    let store = Store::open(&root).unwrap();
    let id = store.ids().unwrap().remove(0);
    put(folder.path(), DEPTH, "<unsupported>\n");
    assert!(back(&root).is_whole());
    assert_eq!(now(&root), ["active", "80", "777"]);
    let journal = String::from_utf8(store.last_closed().unwrap().unwrap().1).unwrap();
    assert!(!journal.contains("unsupported"), "{id}: {journal}");
}

#[test]
fn they_wait_for_a_setting_that_someone_else_changed() {
    const SETTING: &str = "/sys/block/x/queue/scheduler";
    let (folder, root, _) = machine("80");
    put(folder.path(), SETTING, "deadline\n");
    let dependents = [WEIGHT, DEPTH].map(str::to_owned).to_vec();
    run(&root, &plan(vec![Write { dependents, ..write(SETTING, "deadline\n", "none") }])).unwrap();
    put(folder.path(), SETTING, "kyber\n");
    put(folder.path(), DEPTH, "600\n");
    for _ in 0..2 {
        let reverted = back(&root);
        assert!(matches!(reverted.places[..], [Returned { how: How::Foreign(_), .. }]), "{reverted:?}");
        assert_eq!(now(&root)[1..], ["80", "600"]);
    }
    assert!(undo(&root, None, Foreign::Overwrite).unwrap().is_whole());
    assert_eq!(root.read(SETTING).unwrap(), "deadline\n");
    assert_eq!(now(&root)[1..], ["80", "777"]);
}

#[test]
fn a_value_that_a_later_write_changes_is_written_again() {
    let (_folder, root, unit) = machine("80");
    let applied = run(&root, &plan(vec![write(WEIGHT, "80", "100"), unit])).unwrap();
    assert_eq!(now(&root), ["inactive", "100", "600"]);
    assert_eq!(applied.written.len(), 2, "{applied:?}");
    assert!(back(&root).is_whole());
    assert_eq!(now(&root), ["active", "80", "777"]);
}

#[test]
fn what_was_not_written_yet_has_no_dependents_to_restore() {
    let (folder, root, unit) = machine("80");
    let id = run(&root, &plan(vec![unit])).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let text = String::from_utf8(store.read(&id).unwrap()).unwrap();
    back(&root);
    let begun: String = text.split_inclusive('\n').take_while(|line| !line.contains("\"intent\"")).collect();
    assert!(begun.contains("\"before\""));
    fs::write(store.path_of(&id), sealed_again(begun.as_bytes())).unwrap();
    put(folder.path(), DEPTH, "5\n");
    assert!(back(&root).is_whole());
    assert_eq!(now(&root), ["active", "80", "5"]);
}

#[test]
fn a_setting_is_reverted_after_those_that_depend_on_it() {
    let (_folder, root, unit) = machine("80");
    let first = run(&root, &plan(vec![unit])).unwrap().id.unwrap();
    run(&root, &plan(vec![write(WEIGHT, "60", "100")])).unwrap();
    assert!(undo(&root, Some(&first), Foreign::Keep).is_err(), "its revert would change the weight");
    assert!(back(&root).is_whole());
    assert_eq!(now(&root), ["active", "80", "777"]);
}

#[test]
fn what_a_later_one_wrote_stays_though_the_setting_below_it_is_reverted() {
    let (folder, root, unit) = machine("80");
    run(&root, &plan(vec![unit])).unwrap();
    run(&root, &plan(vec![write(DEPTH, "600", "50")])).unwrap();
    put(folder.path(), DEPTH, "5\n");
    let reverted = back(&root);
    let waits = reverted.places.iter().filter(|one| one.how == How::Waits).map(|one| one.place.as_str());
    assert_eq!(waits.collect::<Vec<_>>(), [DEPTH], "{reverted:?}");
    assert_eq!(now(&root), ["active", "80", "5"]);
    assert!(undo(&root, None, Foreign::Overwrite).unwrap().is_whole());
    assert_eq!(now(&root), ["active", "80", "777"]);
}
