//! A kernel file.

use quell_recording::{Cpu, parse_cpu_list};

use super::PlaceError;
use crate::deny;
use crate::masks::parse_mask;
use crate::root::Root;

/// Files whose value is a CPU mask.
const MASKS: [&str; 12] = [
    "smp_affinity",
    "default_smp_affinity",
    "effective_affinity",
    "affinity_hint",
    "cpumask",
    "cpumask_requested",
    "cpumask_isolated",
    "tracing_cpumask",
    "rps_cpus",
    "xps_cpus",
    "rps_default_mask",
    "flow_limit_cpu_bitmap",
];

/// Files whose value is a list of numbers, whatever their name suggests.
const LISTS: [&str; 11] = [
    "watchdog_cpumask",
    "cpuset.cpus",
    "cpuset.cpus.exclusive",
    "cpuset.mems",
    "cpulist",
    "cpus",
    "mems",
    "online",
    "offline",
    "isolated",
    "nohz_full",
];

/// The only file that marks the chosen word by parentheses: `none voluntary (full) lazy`.
pub(crate) const PREEMPTION: &str = "/sys/kernel/debug/sched/preempt";

/// The kernel removes isolated CPUs from this mask by itself; where the kernel has it, a second file shows the requested mask.
const WORKERS: &str = "/workqueue/cpumask";

pub(super) fn read(root: &Root, path: &str) -> Result<String, PlaceError> {
    if path.ends_with(WORKERS)
        && let Ok(text) = root.read(&format!("{path}_requested"))
    {
        return Ok(text);
    }
    root.read(path).map_err(|e| PlaceError::from_io(&e, ""))
}

pub(super) fn write(root: &Root, path: &str, value: &str) -> Result<(), PlaceError> {
    deny::file(path).map_err(PlaceError::Denied)?;
    // In a copy, no kernel interprets what is written, so the complete original text is restored.
    let text = if root.is_system() { for_kernel(path, value) } else { value.to_owned() };
    root.write(path, &text).map_err(|e| PlaceError::from_io(&e, &text))
}

/// What the kernel reads: the chosen word, with an end of line. Some kernels take a word without one for the longer word that begins with
/// it: Linux 4.11 to 5.5 takes `defer` for `defer+madvise`. The kernel ignores an empty write, and takes an empty line.
fn for_kernel(path: &str, value: &str) -> String {
    let text = chosen(path, value).unwrap_or(value);
    format!("{}\n", text.strip_suffix('\n').unwrap_or(text))
}

/// The chosen word, in a file that shows all: in brackets, as in `always [madvise] never`, or in parentheses.
pub(crate) fn chosen<'a>(path: &str, text: &'a str) -> Option<&'a str> {
    let (open, close) = if path == PREEMPTION { ('(', ')') } else { ('[', ']') };
    text.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map(|(word, _)| word)
}

pub(super) fn same(path: &str, a: &str, b: &str) -> bool {
    let word = |text| chosen(path, text).unwrap_or(text).trim();
    let (a, b) = (word(a), word(b));
    let (mut left, mut right) = (a.split_whitespace(), b.split_whitespace());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if same_word(path, a, b) => {}
            _ => return false,
        }
    }
}

fn same_word(path: &str, a: &str, b: &str) -> bool {
    let equal = if holds_cpus(path) {
        both(cpus(path, a), cpus(path, b))
    } else if path.starts_with("/sys/module/") {
        both(switch(a), switch(b)).or_else(|| both(number(a), number(b)))
    } else {
        both(number(a), number(b))
    };
    equal.unwrap_or(a == b)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn holds_cpus(path: &str) -> bool {
    let name = name(path);
    MASKS.contains(&name) || LISTS.contains(&name) || name.ends_with("_list")
}

/// The CPUs (or memory nodes) in a file's text, if it has any.
pub(super) fn cpus(path: &str, text: &str) -> Option<Vec<Cpu>> {
    match text.trim() {
        text if MASKS.contains(&name(path)) => parse_mask(text).ok(),
        _ if !holds_cpus(path) => None,
        "" => Some(Vec::new()),
        text => parse_cpu_list(text).ok(),
    }
}

/// Whether two values are equal, if both texts can be parsed.
fn both<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<bool> {
    Some(a? == b?)
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with(['+', '-']) => i128::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// A module parameter that is a switch: written as 1 and shown as Y.
fn switch(text: &str) -> Option<bool> {
    match text {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_the_same_however_they_are_written() {
        for (path, a, b) in [
            ("/proc/sys/vm/stat_interval", "1\n", "1"),
            ("/proc/sys/vm/stat_interval", "010", "10"),
            ("/proc/sys/kernel/x", "4\t4 1\t7\n", "4 4 1 7"),
            ("/proc/irq/default_smp_affinity", "03\n", "3"),
            ("/proc/irq/7/smp_affinity", "00000000,00000003", "3"),
            ("/proc/irq/7/smp_affinity_list", "0-1", "0,1"),
            ("/proc/sys/kernel/watchdog_cpumask", "0-3", "0,1,2-3"),
            ("/sys/fs/cgroup/cpuset/x/cpuset.cpus", "0,1", "0-1\n"),
            ("/sys/devices/virtual/workqueue/cpumask", "0000000f", "f"),
            ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0", "00000000,00000000"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", "never"),
            (PREEMPTION, "none voluntary (full) lazy \n", "full"),
            ("/sys/module/block/parameters/x", "Y\n", "1"),
            ("/sys/x/flags", "0x10", "16"),
        ] {
            assert!(same(path, a, b), "{path}: {a} {b}");
            assert!(same(path, b, a), "{path}: {b} {a}");
        }
    }

    #[test]
    fn values_that_differ_are_not_the_same() {
        for (path, a, b) in [
            ("/proc/sys/vm/stat_interval", "1", "10"),
            ("/proc/irq/7/smp_affinity", "10", "16"),
            ("/proc/irq/7/smp_affinity", "3", "0-1"),
            ("/proc/irq/7/smp_affinity_list", "0-1", "0-2"),
            ("/proc/sys/kernel/x", "1 2", "1 2 3"),
            ("/sys/x/cpu0/power/pm_qos_resume_latency_us", "0", "n/a"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never", "always"),
            (PREEMPTION, "none voluntary (full) lazy \n", "lazy"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "(always) never", "always"),
            ("/sys/kernel/y", "Y", "1"),
            ("/proc/sys/vm/x", "", "0"),
        ] {
            assert!(!same(path, a, b), "{path}: {a} {b}");
        }
    }

    #[test]
    fn cpus_are_those_of_a_mask_or_a_list() {
        assert_eq!(cpus("/proc/irq/7/smp_affinity", "11\n"), Some(vec![Cpu(0), Cpu(4)]));
        assert_eq!(cpus("/x/watchdog_cpumask", "1,3\n"), Some(vec![Cpu(1), Cpu(3)]));
        assert_eq!(cpus("/x/cpuset.cpus", "\n"), Some(vec![]));
        assert_eq!(cpus("/x/cpuset.cpus", "all"), None);
        assert_eq!(cpus("/proc/sys/vm/stat_interval", "1"), None);
    }

    #[test]
    fn the_kernel_gets_the_chosen_word() {
        assert_eq!(chosen(PREEMPTION, "none voluntary (full) lazy \n"), Some("full"));
        assert_eq!(chosen(PREEMPTION, "lazy"), None);
        assert_eq!(chosen("/sys/block/sda/queue/scheduler", "[none] mq-deadline\n"), Some("none"));
        assert_eq!(chosen("/sys/x", "a (b) c"), None);
    }

    #[test]
    fn the_kernel_gets_a_line() {
        let defrag = "/sys/kernel/mm/transparent_hugepage/defrag";
        for (path, value, line) in [
            (defrag, "defer", "defer\n"),
            (defrag, "always [defer] defer+madvise never\n", "defer\n"),
            ("/proc/sys/kernel/printk", "4\t4\t1\t7\n", "4\t4\t1\t7\n"),
            ("/sys/x", "", "\n"),
            ("/sys/x", "\n", "\n"),
        ] {
            assert_eq!(for_kernel(path, value), line, "{value:?}");
        }
    }

    #[test]
    fn a_tree_gets_all_of_a_text_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = "/sys/kernel/mm/enabled";
        fs_err::create_dir_all(folder.path().join("sys/kernel/mm")).unwrap();
        fs_err::write(folder.path().join("sys/kernel/mm/enabled"), "always [madvise] never\n").unwrap();
        let root = Root::at(folder.path()).unwrap();
        let old = read(&root, path).unwrap();
        write(&root, path, "never").unwrap();
        assert_eq!(read(&root, path).unwrap(), "never");
        write(&root, path, &old).unwrap();
        assert_eq!(read(&root, path).unwrap(), old);
        assert!(matches!(write(&root, "/etc/passwd", "x"), Err(PlaceError::Denied(_))));
    }

    #[test]
    fn of_a_mask_that_the_kernel_narrows_what_was_asked_for_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let workers = folder.path().join("sys/devices/virtual/workqueue");
        fs_err::create_dir_all(&workers).unwrap();
        fs_err::write(workers.join("cpumask"), "3\n").unwrap();
        let root = Root::at(folder.path()).unwrap();
        let path = "/sys/devices/virtual/workqueue/cpumask";
        assert_eq!(read(&root, path).unwrap(), "3\n");
        fs_err::write(workers.join("cpumask_requested"), "f\n").unwrap();
        assert_eq!(read(&root, path).unwrap(), "f\n");
        write(&root, path, "7").unwrap();
        assert_eq!(fs_err::read_to_string(workers.join("cpumask")).unwrap(), "7");
        assert_eq!(fs_err::read_to_string(workers.join("cpumask_requested")).unwrap(), "f\n");
    }

    /// On the kernel that runs the tests.
    mod on_this_machine {
        use super::*;

        #[test]
        fn a_real_file_is_written_and_given_back() {
            use super::super::super::{Place, trial};
            let _alone = trial::alone();
            let place = Place::File { path: "/proc/sys/vm/stat_interval".into() };
            if !trial::is_root() {
                return trial::skip("only root may write kernel settings");
            }
            let Some(_given_back) = trial::GiveBack::new(&place) else {
                return trial::skip("there is no such file");
            };
            match place.write(&Root::system(), "7") {
                Ok(()) => assert!(place.same(&place.read(&Root::system()).unwrap(), "7")),
                Err(PlaceError::ReadOnly | PlaceError::Denied(_)) => {
                    return trial::skip("/proc/sys is not to be written here");
                }
                Err(other) => panic!("{other}"),
            }
            let refused = place.write(&Root::system(), "many");
            assert_eq!(refused, Err(PlaceError::Invalid("many".into())));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_the_same_as_itself(name in "smp_affinity|cpuset.cpus|x", text in ".{0,80}") {
            prop_assert!(same(&name, &text, &text));
            let longer = format!("{text}\n");
            prop_assert!(same(&name, &longer, &text));
        }
    }
}
