#![allow(clippy::unwrap_used, reason = "a test may")]

use fs_err as fs;

use super::super::{Place, trial};
use super::*;

fn put(folder: &std::path::Path, at: &str, stat: &str) {
    let at = folder.join(at);
    fs::create_dir_all(&at).unwrap();
    fs::write(at.join("stat"), stat).unwrap();
    fs::write(at.join("status"), "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n").unwrap();
    fs::write(at.join("timerslack_ns"), "50000\n").unwrap();
}

fn line(pid: u32, comm: &str, flags: u64, start: u64) -> String {
    let zeros = |count| vec!["0"; count].join(" ");
    format!("{pid} ({comm}) S 2 0 0 0 -1 {flags} {} {start} {} 0 0 {}\n", zeros(12), zeros(17), zeros(11))
}

fn tree() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    put(at, "proc/2", &line(2, "kthreadd", 0x0020_8040, 1));
    put(at, "proc/31", &line(31, "khungtaskd", 0x0020_8040, 40));
    put(at, "proc/14", &line(14, "ksoftirqd/0", 0x0420_8040, 9));
    put(at, "proc/900", &line(900, "a) (b", 0x40_0000, 5000));
    put(at, "proc/900/task/900", &line(900, "a) (b", 0x40_0000, 5000));
    put(at, "proc/900/task/901", &line(901, "worker", 0x40_0000, 5001));
    put(at, "proc/77", "garbage");
    put(at, "proc/78", &line(79, "liar", 0, 1));
    let root = Root::at(at).unwrap();
    (folder, root)
}

#[test]
fn a_tree_has_its_threads() {
    let (_folder, root) = tree();
    let names: Vec<_> = kernel_threads(&root).into_iter().map(|task| (task.pid, task.bound)).collect();
    assert_eq!(names, [(2, false), (14, true), (31, false)]);
    assert_eq!(processes(&root), [Process { pid: 900, start: 5000, comm: "a) (b".into() }]);
    let threads: Vec<_> = threads_of(&root, 900).unwrap().into_iter().map(|task| task.comm).collect();
    assert_eq!(threads, ["a) (b", "worker"]);
    assert!(matches!(threads_of(&root, 5), Err(PlaceError::Gone(_))));
    assert_eq!(successor(&root, "khungtaskd").unwrap().pid, 31);
    assert_eq!(successor(&root, "worker"), None);
}

#[test]
fn a_thread_is_read_only_if_it_is_the_one_that_is_meant() {
    let (_folder, root) = tree();
    assert_eq!(read(&root, 900, 5000, "a) (b", Property::Affinity).unwrap(), "0-1");
    assert_eq!(read(&root, 901, 5001, "worker", Property::Policy).unwrap(), "other:0");
    assert_eq!(read(&root, 900, 5000, "before exec", Property::Affinity).unwrap(), "0-1");
    for (pid, start, comm) in [(900, 5001, "a) (b"), (5, 1, "x"), (77, 1, "x")] {
        let refused = read(&root, pid, start, comm, Property::Affinity);
        assert!(matches!(refused, Err(PlaceError::Gone(_))), "{refused:?}");
    }
}

#[test]
fn threads_of_a_tree_keep_all_but_their_slack() {
    let (_folder, root) = tree();
    let refused = write(&root, 31, 40, "khungtaskd", Property::Affinity, "0");
    assert!(matches!(refused, Err(PlaceError::Unavailable(_))), "{refused:?}");
    write(&root, 31, 40, "khungtaskd", Property::TimerSlack, "1000").unwrap();
    assert_eq!(read(&root, 31, 40, "khungtaskd", Property::TimerSlack).unwrap(), "1000");
}

fn place(task: &Task, property: Property) -> Place {
    Place::Thread { pid: task.pid, start: task.start, comm: task.comm.clone(), property }
}

/// On the kernel that runs the tests.
mod on_this_machine {
    use super::*;

    #[test]
    fn a_real_kernel_thread_is_moved_and_moved_back() {
        let _alone = trial::alone();
        let root = Root::system();
        let Some(task) = successor(&root, "khungtaskd").filter(|_| trial::is_root()) else {
            return trial::skip("no khungtaskd that this user may move");
        };
        let place = place(&task, Property::Affinity);
        let Some(_given_back) = trial::GiveBack::new(&place) else { return trial::skip("it cannot be read") };
        place.write(&root, "0").unwrap();
        assert_eq!(place.read(&root).unwrap(), "0");
    }

    #[test]
    fn a_real_bound_thread_says_so() {
        let root = Root::system();
        let Some(task) = kernel_threads(&root).into_iter().find(|task| task.bound) else {
            return trial::skip_for_hardware("no kernel thread is seen to be bound");
        };
        let refused = place(&task, Property::Affinity).write(&root, "0");
        assert!(matches!(refused, Err(PlaceError::Immovable(_))), "{refused:?}");
    }

    #[test]
    fn a_thread_that_others_would_be_starved_by_is_not_made() {
        let root = Root::system();
        let Some(task) = own_thread() else { return trial::skip("/proc does not show this thread") };
        for bad in ["fifo:3", "rr:50"] {
            let refused = place(&task, Property::Policy).write(&root, bad);
            assert!(matches!(refused, Err(PlaceError::Unavailable(_))), "{refused:?}");
        }
    }

    #[test]
    fn policy_and_slack_of_a_thread_of_this_process_are_set_and_given_back() {
        let root = Root::system();
        let Some(task) = own_thread() else { return trial::skip("/proc does not show this thread") };
        let slack = place(&task, Property::TimerSlack);
        let policy = place(&task, Property::Policy);
        let (_slack_back, _policy_back) = (trial::GiveBack::new(&slack), trial::GiveBack::new(&policy));
        slack.write(&root, "1000").unwrap();
        assert_eq!(slack.read(&root).unwrap(), "1000");
        policy.write(&root, "batch:0").unwrap();
        assert_eq!(policy.read(&root).unwrap(), "batch:0");
        if !trial::is_root() {
            return trial::skip("only root may ask for real-time priority");
        }
        policy.write(&root, "fifo:1").unwrap();
        assert_eq!(policy.read(&root).unwrap(), "fifo:1");
        // SAFETY: the call has no arguments and cannot fail.
        let me = unsafe { libc::gettid() };
        let parameters = libc::sched_param { sched_priority: 1 };
        let keeps = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
        // SAFETY: the parameters live through the call, and the calls change this thread alone.
        unsafe {
            assert_eq!(libc::sched_setscheduler(me, keeps, &raw const parameters), 0);
            policy.write(&root, "idle:0").unwrap();
            assert_eq!(libc::sched_getscheduler(me), libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK);
        }
    }
}

fn own_thread() -> Option<Task> {
    // SAFETY: the call has no arguments and cannot fail.
    let me = unsafe { libc::gettid() } as u32;
    threads_of(&Root::system(), std::process::id()).ok()?.into_iter().find(|task| task.pid == me)
}
