//! Writes that the kernel refused, and reverts that stop in the middle of a place.

use super::units::{SYSTEMCTL, unit};
use super::*;
use crate::catalogue::CpusetKind;

/// Readable, and denied.
const DENIED: &str = "/etc/passwd";

#[test]
fn what_the_kernel_refused_is_not_quells_whatever_it_becomes() {
    for value in ["y", "z"] {
        let (folder, root) = tree(&[(A, "1\n"), (DENIED, "x")]);
        let refused = Write { may_fail: true, ..write(DENIED, "x", "y") };
        assert_eq!(run(&root, &plan(vec![write(A, "1\n", "2"), refused])).unwrap().refused.len(), 1);
        put(folder.path(), DENIED, value);
        for foreign in [Foreign::Keep, Foreign::Overwrite] {
            let reverted = undo(&root, None, foreign).unwrap();
            assert!(reverted.is_whole(), "{reverted:?}");
            assert_eq!(root.read(DENIED).unwrap(), value);
        }
        assert_eq!(root.read(A).unwrap(), "1\n");
    }
}

#[test]
fn one_below_a_later_one_that_is_partly_reverted_ends_in_time() {
    let [x, y, z] = ["x", "y", "z"].map(|name| format!("/proc/sys/vm/{name}"));
    let (folder, root) = tree(&[(&x, "1\n"), (&y, "1\n"), (&z, "1\n")]);
    let first = run(&root, &plan(vec![write(&x, "1\n", "2"), write(&y, "1\n", "2")])).unwrap().id.unwrap();
    let second = run(&root, &plan(vec![write(&x, "2", "3"), write(&z, "1\n", "3")])).unwrap().id.unwrap();
    assert!(undo(&root, Some(&first), Foreign::Keep).is_err(), "the second stands on it");
    put(folder.path(), &z, "7\n");
    assert!(!undo(&root, Some(&second), Foreign::Keep).unwrap().is_whole());
    assert!(undo(&root, Some(&first), Foreign::Keep).unwrap().is_whole());
    assert_eq!([x, y, z].map(|path| root.read(&path).unwrap()), ["1\n", "1\n", "7\n"]);
}

#[test]
fn a_unit_that_could_be_started_and_not_enabled_is_enabled_later() {
    let (folder, root, plan) = unit();
    run(&root, &plan).unwrap();
    put(folder.path(), "/usr/bin/systemctl", &SYSTEMCTL.replace("enable) echo", "enable) exit 1; echo"));
    for _ in 0..2 {
        assert!(back(&root).has_failed());
        assert_eq!(root.read("/run/unit").unwrap(), "active disabled\n");
    }
    put(folder.path(), "/usr/bin/systemctl", SYSTEMCTL);
    let reverted = back(&root);
    assert!(reverted.is_whole(), "{reverted:?}");
    assert_eq!(root.read("/run/unit").unwrap(), "active enabled\n");
}

#[test]
fn a_partition_with_a_group_of_someone_else_in_it_goes_with_that_group() {
    let top = "/sys/fs/cgroup";
    let at = |file: &str| format!("{top}/{file}");
    let (control, state) = (at("cgroup.subtree_control"), at("quell/cpuset.cpus.partition"));
    let (_folder, root) = tree(&[(&at("cgroup.controllers"), "cpuset cpu\n"), (&control, "cpu\n")]);
    let place = Place::Cpuset { what: CpusetKind::Isolated };
    let new = "compute=1-3 partition=isolated controller=quell";
    run(&root, &plan(vec![Write { place, ..write("set", "absent", new) }])).unwrap();
    fs::create_dir(root.path(&at("quell/job"))).unwrap();
    assert!(back(&root).has_failed());
    assert!(root.has(&at("quell/handed-down")), "quell still has to disable the controller");
    // What the kernel shows after the first step.
    fs::write(root.path(&state), "member\n").unwrap();
    assert!(back(&root).has_failed());
    fs::remove_dir(root.path(&at("quell/job"))).unwrap();
    let reverted = back(&root);
    assert!(reverted.is_whole(), "{reverted:?}");
    assert!(!root.has(&at("quell")));
    assert_eq!(root.read(&control).unwrap(), "cpu\n");
}

#[test]
fn a_cpuset_that_is_gone_already_leaves_no_note_of_threads() {
    let note = "/run/quell/bound-threads";
    let controllers = "/sys/fs/cgroup/cgroup.controllers";
    let (folder, root) =
        tree(&[(controllers, "cpuset cpu\n"), ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset\n")]);
    let place = Place::Cpuset { what: CpusetKind::Isolated };
    let write = Write { place: place.clone(), ..write("set", "absent", "compute=1-3 partition=isolated") };
    run(&root, &plan(vec![write])).unwrap();
    // Killed within the revert: the set is gone, and threads are not bound again.
    place.write(&root, "absent").unwrap();
    put(folder.path(), note, "compute 1-3\n1 1 0\n");
    assert!(back(&root).is_whole());
    assert!(!root.has(note));
}

#[test]
fn an_interrupt_that_took_quells_default_gets_the_restored_one() {
    let default = "/proc/irq/default_smp_affinity";
    let mask = |number: u32| format!("/proc/irq/{number}/smp_affinity");
    let (folder, root) = tree(&[(default, "f\n"), (&mask(1), "1\n"), (&mask(2), "f\n")]);
    run(&root, &plan(vec![write(default, "f\n", "1")])).unwrap();
    put(folder.path(), &mask(3), "01\n");
    put(folder.path(), &mask(4), "4\n");
    assert!(back(&root).is_whole());
    let masks = [1, 2, 3, 4].map(|number| root.read(&mask(number)).unwrap().trim().to_owned());
    assert_eq!(masks, ["1", "f", "f", "4"], "the first was there before, and someone else has set the last");
}
