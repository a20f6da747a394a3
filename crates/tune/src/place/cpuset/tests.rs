#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use proptest::prelude::*;

use super::super::trial;
use super::*;

fn cpus(list: &str) -> Vec<Cpu> {
    parse_cpu_list(list).unwrap()
}

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::at(folder.path()).unwrap();
    (folder, root)
}

fn v1() -> (tempfile::TempDir, Root) {
    tree(&[
        ("sys/fs/cgroup/cpuset/cpuset.cpus", "0-255\n"),
        ("sys/fs/cgroup/cpuset/cpuset.mems", "0-3\n"),
        ("sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1\n"),
        ("sys/fs/cgroup/cpuset/tasks", "1\n2\n"),
    ])
}

fn v2(subtree: &str) -> (tempfile::TempDir, Root) {
    tree(&[
        ("proc/mounts", "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"),
        ("sys/fs/cgroup/unified/cgroup.controllers", "cpuset cpu memory\n"),
        ("sys/fs/cgroup/unified/cgroup.subtree_control", subtree),
    ])
}

/// All files of a folder with their bytes, and its folders.
fn all(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let text = path.is_file().then(|| fs::read(&path).unwrap());
            found.insert(path.display().to_string(), text);
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

#[test]
fn what_is_made_in_a_tree_is_read_back_and_undone_to_the_byte() {
    let (compute, housekeeping) = (cpus("2-127,130-255"), cpus("0-1,128-129"));
    let cases = [
        (CpusetKind::Job, v1(), "compute=2-127,130-255 mems=0-3"),
        (CpusetKind::Shield, v1(), "compute=2-127,130-255 housekeeping=0-1,128-129 mems=0-3 balance=off"),
        (CpusetKind::Isolated, v2("\n"), "compute=2-127,130-255 partition=isolated controller=quell"),
        (
            CpusetKind::Isolated,
            v2("cpu memory\n"),
            "compute=2-127,130-255 partition=isolated controller=quell",
        ),
        (CpusetKind::Isolated, v2("cpuset cpu\n"), "compute=2-127,130-255 partition=isolated"),
    ];
    for (what, (folder, root), text) in cases {
        let before = all(folder.path());
        assert_eq!(read(&root, what).unwrap(), ABSENT);
        let value = wanted(what, &compute, &housekeeping, &root).unwrap();
        assert_eq!(value, text);
        for _ in 0..2 {
            write(&root, what, &value).unwrap();
            assert_eq!(read(&root, what).unwrap(), value);
            assert_eq!(wanted(what, &compute, &housekeeping, &root).unwrap(), value);
        }
        for _ in 0..2 {
            write(&root, what, ABSENT).unwrap();
            assert_eq!(all(folder.path()), before, "{value}");
        }
    }
}

#[test]
fn sets_of_others_are_not_touched() {
    let (_folder, root) = v1();
    let at = |path: &str| root.path(&format!("/sys/fs/cgroup/cpuset/{path}"));
    fs::create_dir(at("quell-job")).unwrap();
    fs::write(at("quell-job/cpuset.cpus"), "7\n").unwrap();
    let busy = |what, value: &str| matches!(write(&root, what, value), Err(PlaceError::Busy(_)));
    assert!(busy(CpusetKind::Job, "compute=1 mems=0"));
    assert!(busy(CpusetKind::Shield, "compute=1 housekeeping=0 mems=0 balance=off"));
    assert_eq!(fs::read_to_string(at("quell-job/cpuset.cpus")).unwrap(), "7\n");
    fs::remove_dir_all(at("quell-job")).unwrap();

    fs::write(at("cpuset.sched_load_balance"), "0\n").unwrap();
    assert!(busy(CpusetKind::Shield, "compute=1 housekeeping=0 mems=0 balance=off"));

    fs::write(at("cpuset.sched_load_balance"), "1\n").unwrap();
    write(&root, CpusetKind::Shield, "compute=1 housekeeping=0 mems=0 balance=off").unwrap();
    assert!(busy(CpusetKind::Job, "compute=1 mems=0"));
    assert!(busy(CpusetKind::Job, ABSENT));
}

#[test]
fn a_shield_that_a_killed_run_left_half_made_is_seen_and_undone() {
    let (folder, root) = v1();
    let before = all(folder.path());
    fs::create_dir(root.path("/sys/fs/cgroup/cpuset/quell-system")).unwrap();
    fs::write(root.path("/sys/fs/cgroup/cpuset/quell-system/cpuset.cpus"), "\n").unwrap();
    fs::write(root.path("/sys/fs/cgroup/cpuset/quell-system/cpuset.mems"), "0\n").unwrap();
    assert_eq!(read(&root, CpusetKind::Shield).unwrap(), "mems=0 balance=on");
    write(&root, CpusetKind::Shield, ABSENT).unwrap();
    assert_eq!(all(folder.path()), before);
}

#[test]
fn a_partition_that_became_invalid_is_seen_made_again_and_undone() {
    let (folder, root) = v2("\n");
    let before = all(folder.path());
    let value = wanted(CpusetKind::Isolated, &cpus("1"), &cpus("0"), &root).unwrap();
    write(&root, CpusetKind::Isolated, &value).unwrap();
    let state = root.path("/sys/fs/cgroup/unified/quell/cpuset.cpus.partition");
    fs::write(state, "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n").unwrap();
    let invalid = read(&root, CpusetKind::Isolated).unwrap();
    assert!(has_lost(&invalid, &value), "{invalid}");
    assert!(matches!(write(&root, CpusetKind::Isolated, &invalid), Err(PlaceError::Invalid(_))));
    write(&root, CpusetKind::Isolated, &value).unwrap();
    assert_eq!(read(&root, CpusetKind::Isolated).unwrap(), value);
    write(&root, CpusetKind::Isolated, ABSENT).unwrap();
    assert_eq!(all(folder.path()), before);
}

#[test]
fn a_controller_that_others_came_to_use_stays_handed_down() {
    let (_folder, root) = v2("\n");
    let value = wanted(CpusetKind::Isolated, &cpus("1"), &cpus("0"), &root).unwrap();
    write(&root, CpusetKind::Isolated, &value).unwrap();
    let top = root.path("/sys/fs/cgroup/unified");
    fs::create_dir(top.join("job.slice")).unwrap();
    fs::write(top.join("job.slice/cpuset.cpus"), "0\n").unwrap();
    write(&root, CpusetKind::Isolated, ABSENT).unwrap();
    assert_eq!(fs::read_to_string(top.join("cgroup.subtree_control")).unwrap(), "cpuset\n");
    assert!(!top.join("quell").exists());
}

#[test]
fn bindings_are_noted_once_for_each_set() {
    let (folder, root) = v2("cpuset\n");
    let thread = folder.path().join("proc/7/task/7");
    fs::create_dir_all(&thread).unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    let fields = ["0"; 49].join(" ");
    fs::write(thread.join("stat"), format!("7 (x) S {fields}\n")).unwrap();
    let bound_to = |list: &str| {
        fs::write(thread.join("status"), format!("Cpus_allowed_list:\t{list}\n")).unwrap();
        Bindings::now(&root)
    };
    let what = CpusetKind::Isolated;
    let (first, within) = (bound_to("0-3"), bound_to("0"));
    let parts = Parts::parse("compute=1-3 partition=isolated").unwrap();
    note_first(&root, what, &first, &parts).unwrap();
    assert_eq!(Bindings::noted(&root), first);
    assert_eq!(bound::noted_compute(&root), cpus("1-3"));
    fs::create_dir_all(folder.path().join("sys/devices/system/cpu")).unwrap();
    fs::write(folder.path().join("sys/devices/system/cpu/online"), "0-3\n").unwrap();
    let left = Left::by(&root, what);
    assert_eq!(
        (left.housekeeping, left.all),
        (cpus("0"), Some(cpus("0-3"))),
        "the set is not there yet, or gone"
    );
    partition::make(&root, &parts).unwrap();
    // Written again, as for a CPU that returns; and by someone who would be refused.
    note_first(&root, what, &within, &parts).unwrap();
    assert_eq!(Bindings::noted(&root), first);
    assert_eq!(Left::by(&root, what).all, None);
    // What an earlier set left does not count for a new one.
    partition::undo(&root).unwrap();
    note_first(&root, what, &within, &parts).unwrap();
    assert_eq!(Bindings::noted(&root), within);
    // Written once more after the end, as by a revert after a crash.
    write(&root, what, ABSENT).unwrap();
    assert_eq!(Bindings::noted(&root), Bindings::default());
}

#[test]
fn a_machine_without_cpusets_reports_what_is_missing() {
    let (_folder, root) = tree(&[
        (
            "proc/mounts",
            "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
        ),
        ("sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n"),
    ]);
    let text = read(&root, CpusetKind::Isolated).unwrap_err();
    assert_eq!(text, PlaceError::Unavailable("the cpuset controller is on cgroup v1 here".into()));
    assert!(matches!(read(&root, CpusetKind::Shield), Err(PlaceError::Unavailable(_))));
    let refused = wanted(CpusetKind::Shield, &cpus("1"), &[], &root);
    assert!(matches!(refused, Err(PlaceError::Unavailable(_))), "{refused:?}");
}

#[test]
fn a_link_out_of_the_tree_is_not_followed() {
    let (_folder, root) = v1();
    let outside = tempfile::tempdir().unwrap();
    let link = root.path("/sys/fs/cgroup/cpuset/quell-job");
    std::os::unix::fs::symlink(outside.path(), link).unwrap();
    assert!(write(&root, CpusetKind::Job, "compute=1 mems=0").is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// A cpuset for the test alone, with a task in it.
struct Trial {
    top: String,
    task: std::process::Child,
}

impl Trial {
    fn new() -> Option<Self> {
        let root = Root::system();
        if !trial::is_root() {
            trial::skip("it needs root");
            return None;
        }
        if sets::mems(&root).is_err() || !root.has("/sys/devices/system/cpu/cpu1") {
            trial::skip_for_hardware("it needs two CPUs and the cpuset controller on cgroup v1");
            return None;
        }
        let top = "/sys/fs/cgroup/cpuset/quell-trial".to_owned();
        let task = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        groups::make(&root, &top).unwrap();
        let trial = Self { top, task };
        groups::put(&root, &format!("{}/cpuset.mems", trial.top), &sets::mems(&root).unwrap()).unwrap();
        groups::put(&root, &format!("{}/cpuset.cpus", trial.top), "0-1").unwrap();
        groups::put(&root, &format!("{}/tasks", trial.top), &trial.task.id().to_string()).unwrap();
        Some(trial)
    }

    fn runs_on(&self) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.task.id())).unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.unwrap().trim().to_owned()
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let root = Root::system();
        let _ = self.task.kill();
        let _ = self.task.wait();
        let _ = sets::undo_at(&root, &self.top, CpusetKind::Shield);
        let _ = sets::undo_at(&root, &self.top, CpusetKind::Job);
        let _ = groups::remove(&root, &self.top);
    }
}

/// On the kernel that runs the tests.
mod on_this_machine {
    use super::*;

    #[test]
    fn a_shield_on_the_real_kernel_takes_tasks_and_gives_them_back() {
        let _alone = trial::alone();
        let Some(trial) = Trial::new() else { return };
        let root = Root::system();
        let mems = sets::mems(&root).unwrap();
        let value = format!("compute=1 housekeeping=0 mems={mems} balance=off");
        let parts = Parts::parse(&value).unwrap();
        sets::make_at(&root, &trial.top, CpusetKind::Shield, &parts).unwrap();
        let now = sets::read_at(&root, &trial.top, CpusetKind::Shield).unwrap().unwrap();
        assert_eq!((now.to_string(), trial.runs_on().as_str()), (value, "0"));
        sets::undo_at(&root, &trial.top, CpusetKind::Shield).unwrap();
        assert_eq!(sets::read_at(&root, &trial.top, CpusetKind::Shield).unwrap(), None);
        assert_eq!(trial.runs_on(), "0-1");
        let balance = format!("{}/cpuset.sched_load_balance", trial.top);
        assert_eq!(groups::get(&root, &balance).unwrap(), "1");
    }

    #[test]
    fn what_the_real_kernel_refuses_is_undone() {
        let _alone = trial::alone();
        let Some(trial) = Trial::new() else { return };
        let root = Root::system();
        // CPUs that the parent set does not have.
        let parts = Parts::parse("compute=4000 mems=0").unwrap();
        assert!(sets::make_at(&root, &trial.top, CpusetKind::Job, &parts).is_err());
        assert!(!root.has(&format!("{}/quell-job", trial.top)));
    }
}

#[test]
fn a_job_on_the_real_kernel_moves_no_process() {
    let _alone = trial::alone();
    let root = Root::system();
    if !trial::is_root() || !read(&root, CpusetKind::Job).is_ok_and(|now| now == ABSENT) {
        return trial::skip("it needs root, and cgroup v1 without a cpuset of quell's");
    }
    let place = super::super::Place::Cpuset { what: CpusetKind::Job };
    let _given_back = trial::GiveBack::new(&place).unwrap();
    let value = wanted(CpusetKind::Job, &cpus("0"), &[], &root).unwrap();
    place.write(&root, &value).unwrap();
    assert_eq!(place.read(&root).unwrap(), value);
}

#[test]
#[ignore = "it takes every task of the machine off all CPUs but 0 for a moment: run it by its name, with nothing else running"]
fn a_shield_of_the_whole_machine_gives_all_back() {
    let _alone = trial::alone();
    let root = Root::system();
    let (compute, housekeeping) = (cpus("1"), cpus("0"));
    if !trial::is_root() || !read(&root, CpusetKind::Shield).is_ok_and(|now| now == ABSENT) {
        return trial::skip("it needs root, and cgroup v1 without a shield of quell's");
    }
    let where_all_run = || -> BTreeMap<String, String> {
        let tasks = super::super::thread::kernel_threads(&root).into_iter();
        tasks.map(|task| (format!("{} {}", task.pid, task.comm), task.affinity)).collect()
    };
    let before = where_all_run();
    {
        let place = super::super::Place::Cpuset { what: CpusetKind::Shield };
        let _given_back = trial::GiveBack::new(&place).unwrap();
        let value = wanted(CpusetKind::Shield, &compute, &housekeeping, &root).unwrap();
        place.write(&root, &value).unwrap();
        assert_eq!(place.read(&root).unwrap(), value);
        let own = fs::read_to_string("/proc/thread-self/cpuset").unwrap();
        assert_eq!(own.trim(), "/quell-system");
    }
    let after = where_all_run();
    for (task, cpus) in before {
        assert!(
            after.get(&task).is_none_or(|now| *now == cpus),
            "{task}: {cpus} became {:?}",
            after.get(&task)
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_a_value_or_is_refused(text in "((compute|mems|housekeeping|balance|partition|x)=[0-9,a-z-]{0,8} ?){0,5}|.{0,60}") {
        if let Ok(parts) = Parts::parse(&text) {
            let again = Parts::parse(&parts.to_string());
            prop_assert_eq!(again, Ok(parts));
        }
    }
}

#[test]
fn a_set_without_cpus_that_went_offline_is_still_quells() {
    let before = "compute=1-3 housekeeping=0 mems=0-1 balance=off";
    for less in [before, "compute=1,3 housekeeping=0 mems=0 balance=off", "mems=0 balance=off"] {
        assert!(has_lost(less, before), "{less}");
    }
    let before = "compute=1-3 partition=isolated controller=quell";
    assert!(has_lost("compute=1-3 partition=invalid controller=quell", before));
    assert!(!has_lost("compute=1-3 partition=invalid", before));
    assert!(!has_lost("compute=1-3 partition=member controller=quell", before));
    let before = "compute=1-3 housekeeping=0 mems=0-1 balance=off";
    for other in ["compute=1-4 housekeeping=0 mems=0-1 balance=off", "compute=1 mems=0", ABSENT, "x", ""] {
        assert!(!has_lost(other, before), "{other}");
    }
}
