//! The engine on a tree: hand-made plans, truncated journals, values that change behind its back.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod boots;
mod dependents;
pub(super) mod keepers;
mod steps;
pub(super) mod units;

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;

use super::Root;
use super::apply::{Applied, ApplyError, Applying, apply};
use super::audit::State;
use super::catalogue::Risk;
use super::journal::lines::{self, sealed_again};
use super::journal::{Outcome, Transaction};
use super::place::Place;
use super::plan::{Chosen, Plan, SCHEMA, Write};
use super::revert::{Foreign, How, RevertError, Reverted, revert};
use super::status::{Stage, status};
use super::store::{Store, StoreError};
use super::verify::{SettingState, verify};

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A tree with some files, each `name → text`.
pub(super) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files.iter().chain(&[(BOOT, "boot-1\n")]) {
        put(folder.path(), path, text);
    }
    let root = Root::at(folder.path()).unwrap();
    (folder, root)
}

pub(super) fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Everything below `/proc` and `/sys`, with its text.
fn image(root: &Root, paths: &[&str]) -> BTreeMap<String, String> {
    paths.iter().map(|path| ((*path).to_owned(), root.read(path).unwrap())).collect()
}

pub(super) fn write(path: &str, old: &str, new: &str) -> Write {
    let place = Place::File { path: path.into() };
    Write {
        id: format!("test:{path}"),
        mitigation: "test".into(),
        place,
        old: old.into(),
        new: new.into(),
        group: Vec::new(),
        dependents: Vec::new(),
        may_fail: false,
        staged: false,
    }
}

pub(super) fn plan(writes: Vec<Write>) -> Plan {
    let chosen = Chosen {
        id: "test".into(),
        title: "a test".into(),
        risk: Risk::Low,
        disruptive: false,
        state: State::NotApplied,
    };
    Plan {
        schema: SCHEMA.into(),
        hash: String::new(),
        host: String::new(),
        kernel: String::new(),
        compute: String::new(),
        housekeeping: String::new(),
        mitigations: vec![chosen],
        writes,
        left: Vec::new(),
    }
}

/// Retries while the lock is taken: a parallel test that starts a program also holds this one's lock, from its fork to its exec.
pub(super) fn unlocked<T, E>(
    mut does: impl FnMut() -> Result<T, E>,
    locked: impl Fn(&E) -> bool,
) -> Result<T, E> {
    loop {
        match does() {
            Err(error) if locked(&error) => std::thread::yield_now(),
            other => return other,
        }
    }
}

fn run(root: &Root, plan: &Plan) -> Result<Applied, ApplyError> {
    let applying = Applying {
        program: "/nonexistent".into(),
        until: None,
        keepers: Vec::new(),
        holds: Vec::new(),
        stopped: &|| false,
    };
    unlocked(|| apply(root, plan, &applying), |e| matches!(e, ApplyError::Store(StoreError::Locked(_))))
}

fn undo(root: &Root, id: Option<&str>, foreign: Foreign) -> Result<Reverted, RevertError> {
    unlocked(
        || revert(root, id, foreign, "a test"),
        |e| matches!(e, RevertError::Store(StoreError::Locked(_))),
    )
}

fn back(root: &Root) -> Reverted {
    undo(root, None, Foreign::Keep).unwrap()
}

const A: &str = "/proc/sys/vm/a";
const B: &str = "/sys/kernel/mm/b";

fn two() -> (tempfile::TempDir, Root, Plan) {
    let (folder, root) = tree(&[(A, "1\n"), (B, "always [madvise] never\n")]);
    let plan = plan(vec![write(A, "1\n", "20"), write(B, "always [madvise] never\n", "never")]);
    (folder, root, plan)
}

#[test]
fn what_is_applied_stands_and_is_given_back_byte_by_byte() {
    let (_folder, root, plan) = two();
    let before = image(&root, &[A, B]);
    let applied = run(&root, &plan).unwrap();
    assert_eq!(applied.written.len(), 2);
    assert_eq!(root.read(A).unwrap().trim(), "20");
    assert!(verify(&root).unwrap().iter().all(|one| one.standing == SettingState::Ok));
    assert_eq!(status(&root).unwrap().0[0].stage, Stage::Applied);
    assert!(back(&root).is_whole());
    assert_eq!(image(&root, &[A, B]), before);
    let (open, closed) = status(&root).unwrap();
    assert!(open.is_empty());
    assert_eq!(closed.unwrap().stage, Stage::Closed);
    assert!(back(&root).ids.is_empty(), "the second revert finds nothing");
}

#[test]
fn applied_twice_the_first_original_wins() {
    let (_folder, root, first) = two();
    let before = image(&root, &[A, B]);
    run(&root, &first).unwrap();
    let again = run(&root, &first).unwrap();
    assert_eq!((again.id, again.already.len()), (None, 2));
    // Another plan that writes the same place.
    run(&root, &plan(vec![write(A, "20", "30")])).unwrap();
    let below = status(&root).unwrap().0[0].id.clone();
    assert!(undo(&root, Some(&below), Foreign::Keep).is_err(), "a later one stands on it");
    assert!(back(&root).is_whole());
    assert_eq!(image(&root, &[A, B]), before);
}

#[test]
fn a_plan_that_no_longer_fits_is_refused_before_anything_is_written() {
    let (folder, root, plan) = two();
    put(folder.path(), B, "[always] madvise never\n");
    assert!(matches!(run(&root, &plan), Err(ApplyError::Stale(_))));
    assert_eq!(root.read(A).unwrap(), "1\n");
    assert!(Store::open(&root).unwrap().ids().unwrap().is_empty());
}

#[test]
fn foreign_changes_are_kept_reported_and_overwritten_only_on_request() {
    for (foreign, text) in [(Foreign::Overwrite, "1\n"), (Foreign::Forget, "7\n")] {
        let (folder, root, plan) = two();
        run(&root, &plan).unwrap();
        put(folder.path(), A, "7\n");
        let standing = verify(&root).unwrap();
        assert_eq!(
            standing.iter().map(|one| one.standing).collect::<Vec<_>>(),
            [SettingState::Foreign, SettingState::Ok]
        );
        for _ in 0..2 {
            let reverted = back(&root);
            assert!(matches!(reverted.places.last().unwrap().how, How::Foreign(_)));
            assert_eq!(root.read(A).unwrap(), "7\n");
            assert_eq!(root.read(B).unwrap(), "always [madvise] never\n");
        }
        assert_eq!(status(&root).unwrap().0[0].stage, Stage::PartlyReverted);
        assert!(undo(&root, None, foreign).unwrap().is_whole());
        assert_eq!(root.read(A).unwrap(), text);
        assert!(status(&root).unwrap().0.is_empty());
    }
}

#[test]
fn a_journal_that_ends_anywhere_gives_everything_back() {
    let (_folder, root, plan) = two();
    let before = image(&root, &[A, B]);
    let id = run(&root, &plan).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let whole = store.read(&id).unwrap();
    let after = image(&root, &[A, B]);
    back(&root);
    // The seal and the first record are on disk before the journal has its name.
    for cut in cuts(&whole).filter(|cut| *cut >= length_of_lines(&whole, 2)) {
        // A journal that ends here is from a crash, before which no more was changed than the journal says.
        let ends_here = sealed_again(&whole[..cut]);
        let steps: Vec<String> =
            lines::read(&ends_here).0.iter().map(|line| String::from_utf8_lossy(line.json).into()).collect();
        let intents = steps.iter().filter(|line| line.contains("\"intent\"")).count();
        for (n, path) in [A, B].into_iter().enumerate() {
            let image = if n < intents { &after } else { &before };
            fs::write(root.path(path), &image[path]).unwrap();
        }
        fs::write(store.path_of(&id), &ends_here).unwrap();
        let interrupted = !steps.iter().any(|line| line.contains("\"commit\""));
        assert_eq!(
            matches!(run(&root, &plan), Err(ApplyError::Interrupted { .. })),
            interrupted,
            "cut at {cut}"
        );
        let reverted = back(&root);
        assert!(reverted.is_whole(), "cut at {cut}: {reverted:?}");
        assert_eq!(image(&root, &[A, B]), before, "cut at {cut}");
        assert!(store.ids().unwrap().is_empty(), "cut at {cut}");
    }
}

fn cuts(whole: &[u8]) -> impl Iterator<Item = usize> {
    (0..=whole.len()).filter(|cut| cut % 7 == 0 || whole.get(*cut).is_some_and(|byte| *byte == b'\n'))
}

fn length_of_lines(whole: &[u8], count: usize) -> usize {
    whole.split_inclusive(|byte| *byte == b'\n').take(count).map(<[u8]>::len).sum()
}

/// Unlike a crash, a file that lost its end leaves changes that no line records.
#[test]
fn a_journal_that_lost_its_end_is_never_whole() {
    let (_folder, root, plan) = two();
    let id = run(&root, &plan).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let whole = store.read(&id).unwrap();
    let after = image(&root, &[A, B]);
    for cut in cuts(&whole).filter(|cut| *cut < whole.len() - 1) {
        for path in [A, B] {
            fs::write(root.path(path), &after[path]).unwrap();
        }
        fs::write(store.path_of(&id), &whole[..cut]).unwrap();
        assert!(!status(&root).unwrap().0[0].damaged_lines.is_empty(), "cut at {cut}");
        let first = back(&root);
        assert!(!first.is_whole(), "cut at {cut}: {first:?}");
        let again = back(&root);
        assert!(!again.is_whole() && again.places.is_empty(), "cut at {cut}: {again:?}");
        let recorded = first.places.len();
        let lost: Vec<&str> = first.damaged[0].unrecorded.iter().map(|one| one.place.as_str()).collect();
        if cut >= length_of_lines(&whole, 2) {
            assert_eq!(lost, [A, B][recorded..], "cut at {cut}");
        }
        assert_eq!(store.ids().unwrap(), std::slice::from_ref(&id), "cut at {cut}");
    }
    undo(&root, None, Foreign::Forget).unwrap();
    assert!(store.ids().unwrap().is_empty());
}

#[test]
fn a_damaged_line_is_reported_and_the_rest_given_back() {
    let (_folder, root, plan) = two();
    let id = run(&root, &plan).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let text = String::from_utf8(store.read(&id).unwrap()).unwrap();
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(i, line)| if i == 2 { "garbage}".into() } else { line.to_owned() })
        .collect();
    fs::write(store.path_of(&id), lines.join("\n") + "\n").unwrap();
    for _ in 0..2 {
        let reverted = back(&root);
        assert!(!reverted.is_whole());
        assert_eq!(reverted.damaged[0].lines[0], 3);
        assert_eq!(reverted.damaged[0].unrecorded[0].old, "1\n");
        assert_eq!(root.read(B).unwrap(), "always [madvise] never\n");
    }
    assert!(!status(&root).unwrap().0[0].damaged_lines.is_empty(), "it stays until it is forgotten");
    undo(&root, None, Foreign::Forget).unwrap();
    assert!(status(&root).unwrap().0.is_empty());
}

/// A journal as version 1 was, without seal and chain.
fn as_version_1(journal: &[u8]) -> String {
    let line = |line: &str| line.split(",\"line\":").next().unwrap().to_owned() + "}\n";
    let old: String = std::str::from_utf8(journal).unwrap().lines().skip(1).map(line).collect();
    old.replace(&format!("\"version\":{}", crate::journal::VERSION), "\"version\":1")
}

#[test]
fn a_journal_of_version_1_is_read_and_ended() {
    let (_folder, root, plan) = two();
    let before = image(&root, &[A, B]);
    let id = run(&root, &plan).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let old = as_version_1(&store.read(&id).unwrap());
    fs::write(store.path_of(&id), &old).unwrap();
    assert!(back(&root).is_whole());
    assert_eq!(image(&root, &[A, B]), before);
    let closed = store.last_closed().unwrap().unwrap().1;
    assert!(closed.starts_with(old.as_bytes()) && !closed.ends_with(old.as_bytes()));
    assert!(!String::from_utf8(closed).unwrap().contains("\"sum\""), "it goes on as it began");
}

#[test]
fn a_name_that_another_device_has_now_is_left_alone() {
    let (folder, root, mut plan) = two();
    let by_name = "/sys/class/net/eth0/mtu";
    for port in ["a", "b"] {
        put(folder.path(), &format!("/sys/devices/pci/{port}/net/eth0/mtu"), "1500\n");
    }
    let link = folder.path().join("sys/class/net/eth0");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    let plugged = |port: &str| {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(format!("../../devices/pci/{port}/net/eth0"), &link).unwrap();
    };
    plugged("a");
    plan.writes = vec![write(by_name, "1500\n", "9000")];
    run(&root, &plan).unwrap();
    plugged("b");
    put(folder.path(), "/sys/devices/pci/b/net/eth0/mtu", "9000\n");
    let reverted = back(&root);
    assert_eq!(reverted.places[0].how, How::Closed(Outcome::Gone));
    assert_eq!(root.read(by_name).unwrap(), "9000\n");
}

#[test]
fn a_network_device_with_another_name_gets_its_value_back() {
    let at = |port: &str, name: &str| format!("/sys/devices/pci/{port}/net/{name}");
    let file = |name: &str| format!("/sys/class/net/{name}/mtu");
    for (boot, how, mtu) in [("boot-1\n", Outcome::Restored, "1500\n"), ("boot-2\n", Outcome::Gone, "9000")] {
        let (folder, root) = tree(&[]);
        let class = folder.path().join("sys/class/net");
        fs::create_dir_all(&class).unwrap();
        let link = |port: &str, name: &str| {
            let target = format!("../../devices/pci/{port}/net/{name}");
            std::os::unix::fs::symlink(target, class.join(name)).unwrap();
        };
        for (port, name, index) in [("a", "eth0", "2\n"), ("b", "eth1", "3\n")] {
            put(folder.path(), &format!("{}/mtu", at(port, name)), "1500\n");
            put(folder.path(), &format!("{}/ifindex", at(port, name)), index);
            link(port, name);
        }
        run(&root, &plan(vec![write(&file("eth0"), "1500\n", "9000")])).unwrap();
        for (port, old, new) in [("a", "eth0", "lan0"), ("b", "eth1", "eth0")] {
            fs::rename(root.path(&at(port, old)), root.path(&at(port, new))).unwrap();
            fs::remove_file(class.join(old)).unwrap();
            link(port, new);
        }
        if boot == "boot-1\n" {
            assert_eq!(verify(&root).unwrap()[0].standing, SettingState::Ok);
        }
        put(folder.path(), BOOT, boot);
        assert_eq!(back(&root).places[0].how, How::Closed(how));
        assert_eq!(root.read(&file("lan0")).unwrap(), mtu);
        assert_eq!(root.read(&file("eth0")).unwrap(), "1500\n");
    }
}

#[test]
fn what_is_gone_is_reported() {
    let (_folder, root, both) = two();
    let mut plan = plan(vec![both.writes[0].clone(), write("/proc/irq/77/smp_affinity", "f\n", "1")]);
    plan.writes[1].may_fail = true;
    let applied = run(&root, &plan).unwrap();
    assert_eq!(applied.refused.iter().map(|one| &one.0).collect::<Vec<_>>(), [&plan.writes[1].id]);
    assert_eq!(run(&root, &plan).unwrap().refused.len(), 1, "also where nothing is to be written");
    assert!(back(&root).is_whole());
}

#[test]
fn a_plan_of_another_machine_is_refused() {
    let (folder, root, mut plan) = two();
    put(folder.path(), "/proc/sys/kernel/hostname", "here\n");
    plan.host = "there".into();
    assert!(matches!(run(&root, &plan), Err(ApplyError::Stale(_))));
    plan.host = "here".into();
    run(&root, &plan).unwrap();
}

#[test]
fn a_group_of_two_plans_is_reverted_in_order() {
    let dog =
        ["/proc/sys/kernel/watchdog", "/proc/sys/kernel/soft_watchdog", "/proc/sys/kernel/nmi_watchdog"];
    let (_folder, root) = tree(&[(dog[0], "1\n"), (dog[1], "1\n"), (dog[2], "1\n")]);
    let group: Vec<String> = dog.iter().map(|path| (*path).to_owned()).collect();
    let before = image(&root, &dog);
    let plan_of = |path: &str| plan(vec![Write { group: group.clone(), ..write(path, "1\n", "0") }]);
    let first = run(&root, &plan_of(dog[1])).unwrap().id.unwrap();
    run(&root, &plan_of(dog[2])).unwrap();
    assert!(undo(&root, Some(&first), Foreign::Keep).is_err(), "they share files");
    assert!(back(&root).is_whole());
    assert_eq!(image(&root, &dog), before);
}

#[test]
fn files_that_change_together_are_given_back_together() {
    let dirty = ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"];
    let (folder, root) = tree(&[(dirty[0], "0\n"), (dirty[1], "20\n")]);
    let group: Vec<String> = dirty.iter().map(|path| (*path).to_owned()).collect();
    let plan = plan(vec![Write { group, ..write(dirty[1], "20\n", "10") }]);
    let before = image(&root, &dirty);
    run(&root, &plan).unwrap();
    assert!(back(&root).is_whole());
    assert_eq!(image(&root, &dirty), before);
    // Someone else set the bytes: the pair is theirs.
    run(&root, &plan).unwrap();
    put(folder.path(), dirty[0], "3000000\n");
    put(folder.path(), dirty[1], "0\n");
    let reverted = back(&root);
    assert!(matches!(reverted.places[0].how, How::Foreign(_)), "{reverted:?}");
    assert_eq!(root.read(dirty[0]).unwrap(), "3000000\n");
    // The other direction, where the original is not in bytes any more.
    let (folder, root) = tree(&[(dirty[0], "3000000\n"), (dirty[1], "0\n")]);
    let plan = self::plan(vec![Write {
        group: dirty.iter().map(|path| (*path).to_owned()).collect(),
        ..write(dirty[1], "0\n", "10")
    }]);
    run(&root, &plan).unwrap();
    put(folder.path(), dirty[1], "30\n");
    back(&root);
    assert_eq!(
        (root.read(dirty[1]).unwrap(), root.read(dirty[0]).unwrap()),
        ("30\n".into(), "3000000\n".into())
    );
}

#[test]
fn a_place_that_goes_while_a_plan_is_applied_does_not_end_it() {
    const C: &str = "/proc/sys/vm/c";
    let (folder, root, mut plan) = two();
    put(folder.path(), C, "1\n");
    plan.writes[1].may_fail = true;
    plan.writes.push(write(C, "1\n", "2"));
    let stopped = || fs::remove_dir_all(root.path("/sys/kernel/mm")).is_err_and(|_| false);
    let applying = Applying {
        program: "/none".into(),
        until: None,
        keepers: Vec::new(),
        holds: Vec::new(),
        stopped: &stopped,
    };
    let locked = |e: &ApplyError| matches!(e, ApplyError::Store(StoreError::Locked(_)));
    let applied = unlocked(|| apply(&root, &plan, &applying), locked).unwrap();
    let of = |path: &str| format!("test:{path}");
    assert_eq!(applied.written, [of(A), of(C)]);
    assert_eq!(applied.refused[0].0, of(B));
    assert_eq!(status(&root).unwrap().0[0].stage, Stage::Applied);
    assert!(back(&root).is_whole());
    assert_eq!((root.read(A).unwrap(), root.read(C).unwrap()), ("1\n".into(), "1\n".into()));
}

#[test]
fn what_fails_half_way_is_taken_back() {
    let (folder, root, mut plan) = two();
    let before = image(&root, &[A, B]);
    // Readable, but not writable: the drop-in's folder is a file.
    put(folder.path(), "/etc/sysctl.d", "a file");
    let path = "/etc/sysctl.d/90-quell-test.conf";
    plan.writes
        .push(Write { place: Place::DropIn { path: path.into() }, ..write(path, "absent", "# quell: x\n") });
    let error = run(&root, &plan).unwrap_err();
    assert!(matches!(error, ApplyError::Failed { .. } | ApplyError::Stale(_)), "{error}");
    assert_eq!(image(&root, &[A, B]), before);
    assert!(Store::open(&root).unwrap().ids().unwrap().is_empty());
    // Interrupted in the middle.
    plan.writes.pop();
    let asked = std::cell::Cell::new(0);
    let stopped = || asked.replace(asked.get() + 1) == 1;
    let error = apply(
        &root,
        &plan,
        &Applying {
            program: "/none".into(),
            until: None,
            keepers: Vec::new(),
            holds: Vec::new(),
            stopped: &stopped,
        },
    )
    .unwrap_err();
    assert!(matches!(error, ApplyError::Failed { .. }), "{error}");
    assert_eq!(asked.get(), 2);
    assert_eq!(image(&root, &[A, B]), before);
    assert!(Store::open(&root).unwrap().ids().unwrap().is_empty());
}
