//! Trees that were made to do harm: nothing hangs, nothing panics, and nothing outside is read.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::ffi::CString;
use std::os::unix::fs::symlink;
use std::path::Path;

use fs_err as fs;
use proptest::prelude::*;

use super::{Place, cpuset, irq, thread};
use crate::catalogue::{CpusetKind, Held, Property};
use crate::root::Root;

/// Every file that the readers open.
const FILES: [&str; 16] = [
    "proc/mounts",
    "proc/interrupts",
    "proc/irq/7/smp_affinity",
    "proc/irq/7/effective_affinity",
    "proc/7/stat",
    "proc/7/status",
    "proc/7/timerslack_ns",
    "proc/7/task/7/stat",
    "proc/sys/vm/stat_interval",
    "etc/sysctl.d/90-quell.conf",
    "sys/fs/cgroup/cpuset/cpuset.cpus",
    "sys/fs/cgroup/cpuset/cpuset.mems",
    "sys/fs/cgroup/cpuset/quell-job/cpuset.cpus",
    "sys/fs/cgroup/cpuset/quell-system/cpuset.cpus",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/fs/cgroup/quell/cpuset.cpus",
];

fn places() -> Vec<Place> {
    let file = |path: &str| Place::File { path: path.into() };
    let mut places = vec![
        file("/proc/sys/vm/stat_interval"),
        file("/nothing"),
        Place::Irq { number: 7, name: "x".into() },
        Place::Held { what: Held::CpuDmaLatency },
        Place::Held { what: Held::TimestampSocket },
        Place::DropIn { path: "/etc/sysctl.d/90-quell.conf".into() },
    ];
    for property in [Property::Affinity, Property::Policy, Property::TimerSlack] {
        places.push(Place::Thread { pid: 7, start: 1, comm: "x".into(), property });
    }
    for what in [CpusetKind::Job, CpusetKind::Shield, CpusetKind::Isolated] {
        places.push(Place::Cpuset { what });
    }
    places
}

/// Reads everything that can be read, and returns the results.
fn read_all(root: &Root) -> String {
    let mut seen = String::new();
    for place in places() {
        seen += &format!("{:?}\n", place.read(root));
    }
    seen += &format!("{:?} {:?}\n", irq::list(root), irq::effective(root, 7));
    seen += &format!("{:?} {:?}\n", thread::kernel_threads(root), thread::processes(root));
    seen += &format!("{:?} {:?}\n", thread::threads_of(root, 7), thread::successor(root, "x"));
    for what in [CpusetKind::Job, CpusetKind::Shield, CpusetKind::Isolated] {
        let cpu = [quell_recording::Cpu(0)];
        seen += &format!("{:?}\n", cpuset::wanted(what, &cpu, &cpu, root));
    }
    seen
}

fn tree(make: impl Fn(&Path)) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make(&path);
    }
    let root = Root::at(folder.path()).unwrap();
    (folder, root)
}

#[test]
fn pipes_do_not_make_a_reader_wait() {
    let (_folder, root) = tree(|path| {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the name lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    });
    read_all(&root);
    for place in places() {
        assert!(place.write(&root, "1").is_err(), "{place}");
    }
}

#[test]
fn loops_of_links_and_folders_are_no_files() {
    let (_folder, root) = tree(|path| symlink(path, path).unwrap());
    read_all(&root);
    let (_folder, root) = tree(|path| fs::create_dir(path).unwrap());
    read_all(&root);
    let folder = tempfile::tempdir().unwrap();
    for name in ["proc", "sys", "etc"] {
        symlink(".", folder.path().join(name)).unwrap();
    }
    read_all(&Root::at(folder.path()).unwrap());
}

#[test]
fn links_out_of_the_tree_tell_nothing() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    let text = "7 (tellnothing) S 2 0 0 0 -1 2097152 0 0\n";
    fs::write(secret.path(), text).unwrap();
    let (_folder, root) = tree(|path| symlink(secret.path(), path).unwrap());
    assert!(!read_all(&root).contains("tellnothing"));
    for place in places() {
        assert!(place.write(&root, "absent").is_err() || matches!(place, Place::Cpuset { .. }), "{place}");
    }
    assert_eq!(fs::read_to_string(secret.path()).unwrap(), text);
}

#[test]
fn files_that_never_end_are_not_read_to_the_end() {
    // 1 TiB of zeros that take no space.
    let (_folder, root) = tree(|path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap());
    read_all(&root);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn garbage_is_reported_or_left_out(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in "[0-9a-z,= ()/-]{0,40}") {
        for content in [bytes, text.into_bytes()] {
            let (_folder, root) = tree(|path| fs::write(path, &content).unwrap());
            read_all(&root);
        }
    }
}
