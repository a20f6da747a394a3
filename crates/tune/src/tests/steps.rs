//! Writes that the kernel refused, and reverts that stop in the middle of a place.

use super::units::{SYSTEMCTL, unit};
use super::*;
use crate::catalogue::{CpusetKind, Property};

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

/// Its mask is quell's default, or what quell replaced is.
#[test]
fn a_default_is_restored_after_the_interrupts_that_took_it() {
    let (default, mask) = ("/proc/irq/default_smp_affinity", "/proc/irq/3/smp_affinity");
    for (old, new, restored) in [("8\n", "1", "8"), ("1\n", "2", "f")] {
        let (folder, root) = tree(&[(default, "f\n"), ("/proc/irq/1/smp_affinity", "f\n")]);
        let first = run(&root, &plan(vec![write(default, "f\n", "1")])).unwrap().id.unwrap();
        put(folder.path(), mask, old);
        put(folder.path(), "/proc/irq/3/eth0/x", "");
        let place = Place::Irq { number: 3, name: "eth0".into() };
        run(&root, &plan(vec![Write { place, ..write(mask, old, new) }])).unwrap();
        assert!(matches!(undo(&root, Some(&first), Foreign::Keep), Err(RevertError::Below { .. })));
        assert!(back(&root).is_whole());
        assert_eq!(root.read(mask).unwrap().trim(), restored);
    }
}

#[test]
fn what_an_old_journal_calls_refused_is_not_closed_unseen() {
    for (foreign, value, is_whole) in
        [(Foreign::Keep, "y", false), (Foreign::Forget, "y", true), (Foreign::Keep, "x", true)]
    {
        let (folder, root) = tree(&[(A, "1\n"), (DENIED, "x")]);
        let refused = Write { may_fail: true, ..write(DENIED, "x", "y") };
        let id = run(&root, &plan(vec![write(A, "1\n", "2"), refused])).unwrap().id.unwrap();
        let store = Store::open(&root).unwrap();
        fs::write(store.path_of(&id), as_version_1(&store.read(&id).unwrap())).unwrap();
        put(folder.path(), DENIED, value);
        assert_eq!(undo(&root, None, foreign).unwrap().is_whole(), is_whole, "{foreign:?} {value}");
        assert_eq!((root.read(A).unwrap(), root.read(DENIED).unwrap()), ("1\n".into(), value.into()));
    }
}

#[test]
fn an_original_that_someone_restored_does_not_close_what_is_below() {
    let (folder, root) = tree(&[(A, "60\n")]);
    run(&root, &plan(vec![write(A, "60\n", "10")])).unwrap();
    run(&root, &plan(vec![write(A, "10", "1")])).unwrap();
    put(folder.path(), A, "60\n");
    assert!(!back(&root).is_whole());
    assert!(undo(&root, None, Foreign::Overwrite).unwrap().is_whole());
    assert_eq!(root.read(A).unwrap(), "60\n");
}

#[test]
fn a_recovery_leaves_what_a_later_one_stands_on() {
    let (_folder, root) = tree(&[(A, "60\n"), (B, "1\n")]);
    let first = run(&root, &plan(vec![write(A, "60\n", "10"), write(B, "1\n", "2")])).unwrap().id.unwrap();
    run(&root, &plan(vec![write(A, "10", "60")])).unwrap();
    // As if it had been interrupted before its last record.
    let store = Store::open(&root).unwrap();
    let text = String::from_utf8(store.read(&first).unwrap()).unwrap();
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(store.path_of(&first), sealed_again(&text.as_bytes()[..last])).unwrap();
    let locked = |e: &RevertError| matches!(e, RevertError::Store(StoreError::Locked(_)));
    let recovered = unlocked(|| crate::revert::recover(&root, "a test"), locked).unwrap();
    assert_eq!(recovered.ids, [first]);
    assert_eq!((root.read(A).unwrap(), root.read(B).unwrap()), ("60".into(), "1\n".into()));
    assert!(back(&root).is_whole());
    assert_eq!(root.read(A).unwrap(), "60\n");
}

#[test]
fn a_place_stays_verified_below_a_write_that_was_refused() {
    let (_folder, root) = tree(&[(A, "1\n"), (B, "1\n"), (DENIED, "x")]);
    let first = run(&root, &plan(vec![write(A, "1\n", "2")])).unwrap().id.unwrap();
    let refused = Write { may_fail: true, ..write(DENIED, "x", "y") };
    run(&root, &plan(vec![write(B, "1\n", "2"), refused])).unwrap();
    // As if the first had written what the second could not.
    let store = Store::open(&root).unwrap();
    let text = as_version_1(&store.read(&first).unwrap());
    fs::write(store.path_of(&first), text.replace(A, DENIED)).unwrap();
    let standings: Vec<SettingState> = verify(&root).unwrap().iter().map(|one| one.standing).collect();
    assert_eq!(standings, [SettingState::Ok, SettingState::Unavailable, SettingState::Foreign]);
}

/// A thread of the process 900.
fn begin(folder: &Path, pid: u32, start: u64, slack: &str) {
    let zeros = |count| vec!["0"; count].join(" ");
    let stat = format!("{pid} (app) S 2 0 0 0 -1 0 {} {start} {} 0 0 {}\n", zeros(12), zeros(17), zeros(11));
    for at in [format!("/proc/{pid}"), format!("/proc/900/task/{pid}")] {
        put(folder, &format!("{at}/stat"), &stat);
        put(folder, &format!("{at}/status"), "Name:\tapp\nCpus_allowed_list:\t0-1\n");
    }
    put(folder, &format!("/proc/{pid}/timerslack_ns"), slack);
}

#[test]
fn a_thread_with_another_name_is_still_the_same() {
    let (folder, root) = tree(&[("/proc/uptime", "10.07 9.00\n")]);
    begin(folder.path(), 900, 5, "50000\n");
    let [first, second] = [("sh", "50000", "1"), ("app", "1", "2")].map(|(comm, old, new)| {
        let place = Place::Thread { pid: 900, start: 5, comm: comm.into(), property: Property::TimerSlack };
        run(&root, &plan(vec![Write { place, ..write("slack", old, new) }])).unwrap().id.unwrap()
    });
    let standings: Vec<SettingState> = verify(&root).unwrap().iter().map(|one| one.standing).collect();
    assert_eq!(standings, [SettingState::Ok], "the second one covers the first");
    let refused = undo(&root, Some(&first), Foreign::Keep);
    assert!(matches!(&refused, Err(RevertError::Below { above, .. }) if *above == second), "{refused:?}");
    assert!(back(&root).is_whole());
    assert_eq!(root.read("/proc/900/timerslack_ns").unwrap().trim(), "50000");
}

#[test]
fn a_thread_that_began_since_then_gets_the_original_of_its_process() {
    let (folder, root) = tree(&[("/proc/uptime", "10.07 9.00\n")]);
    let begin = |pid: u32, start: u64, slack: &str| begin(folder.path(), pid, start, slack);
    begin(900, 5, "50000\n");
    begin(901, 6, "1\n");
    let place = Place::Thread { pid: 900, start: 5, comm: "app".into(), property: Property::TimerSlack };
    run(&root, &plan(vec![Write { place, ..write("slack", "50000", "1") }])).unwrap();
    begin(902, 1008, "1\n");
    begin(903, 1009, "7\n");
    let reverted = back(&root);
    assert!(reverted.is_whole() && reverted.places.len() == 2, "{reverted:?}");
    let slack = [900, 901, 902, 903].map(|pid| root.read(&format!("/proc/{pid}/timerslack_ns")).unwrap());
    let slack = slack.each_ref().map(|text| text.trim());
    assert_eq!(slack, ["50000", "1", "50000", "7"], "the second had that value before");
}

/// Another program has moved it.
#[test]
fn a_default_does_not_wait_for_an_interrupt_that_has_another_mask() {
    let (default, mask) = ("/proc/irq/default_smp_affinity", "/proc/irq/3/smp_affinity");
    let (folder, root) = tree(&[(default, "f\n"), ("/proc/irq/1/smp_affinity", "f\n")]);
    run(&root, &plan(vec![write(default, "f\n", "1")])).unwrap();
    put(folder.path(), mask, "8\n");
    put(folder.path(), "/proc/irq/3/eth0/x", "");
    let place = Place::Irq { number: 3, name: "eth0".into() };
    run(&root, &plan(vec![Write { place, ..write(mask, "8\n", "1") }])).unwrap();
    put(folder.path(), mask, "4\n");
    assert!(!back(&root).is_whole(), "someone else moved the interrupt");
    assert_eq!((root.read(default).unwrap(), root.read(mask).unwrap()), ("f\n".into(), "4\n".into()));
}
