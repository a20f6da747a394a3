//! The load that others put on a node while it was recorded: tasks of users, which no mitigation of the system removes.

use std::collections::BTreeMap;

use quell_recording::{Cpu, Source, SourceKind, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::{AttributedSegment, Kind, family};
use crate::overview::BUSY_PERCENT;

/// The tasks that had a CPU for more of the time than any system takes for itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// The CPU that they had longest.
    pub cpu: u32,
    /// The share of its time that they had, in percent.
    pub percent: f64,
    /// The task that had most of that.
    pub task: String,
}

/// How names of kernel threads begin. Names with a `/`, such as `kworker/0:1`, are kernel threads' too.
const KERNEL_THREADS: [&str; 21] = [
    "btrfs-",
    "dm-",
    "dm_",
    "dmcrypt_",
    "kauditd",
    "kblockd",
    "kcompactd",
    "kdamond",
    "kdevtmpfs",
    "khugepaged",
    "khungtaskd",
    "ksmd",
    "ksoftirqd",
    "kswapd",
    "kthreadd",
    "ldlm_",
    "oom_reaper",
    "ptlrpcd",
    "rcu_",
    "txg_",
    "watchdogd",
];

/// A CPU, the time that it was watched, and the parts of its detours.
pub(super) type Watched<'a> = (Cpu, Span, &'a [AttributedSegment]);

/// The load of the CPU that has most; `None` if no CPU has more than a system may take.
pub(super) fn load<'a>(kinds: &[Kind], cpus: impl Iterator<Item = Watched<'a>>) -> Option<Load> {
    let of_users: Vec<Option<String>> = kinds
        .iter()
        .map(|kind| kind.source.as_ref().filter(|source| is_of_user(source)).map(family))
        .collect();
    cpus.filter_map(|watched| on_cpu(&of_users, watched))
        .max_by(|one, other| one.percent.total_cmp(&other.percent))
        .filter(|load| load.percent > BUSY_PERCENT)
}

fn on_cpu(of_users: &[Option<String>], (cpu, span, segments): Watched<'_>) -> Option<Load> {
    let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
    for segment in segments {
        if let Some(task) = &of_users[segment.kind as usize] {
            *tasks.entry(task).or_default() += segment.ns;
        }
    }
    let task = tasks.iter().max_by_key(|(_, ns)| **ns)?.0.trim_start_matches("task:").to_owned();
    let percent = 100.0 * tasks.values().sum::<u64>() as f64 / span.length().as_nanos() as f64;
    Some(Load { cpu: cpu.0, percent, task })
}

/// Whether the source is a task of a user, by its name: no kernel thread.
pub(crate) fn is_of_user(source: &Source) -> bool {
    source.kind() == SourceKind::Task && source.name().is_some_and(|name| !is_kernel_thread(name))
}

fn is_kernel_thread(name: &str) -> bool {
    // `md127_raid1` and `md_home_raid1`, and not `md5sum`.
    let is_raid =
        |rest: &str| rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with('_');
    name.contains('/')
        || name == "nfsd"
        || name.strip_prefix("md").is_some_and(is_raid)
        || KERNEL_THREADS.iter().any(|thread| name.starts_with(thread))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_recording::Nanos;

    use super::*;

    fn of_tasks(tasks: &[(&str, u64)]) -> Option<Load> {
        let kinds: Vec<Kind> = tasks.iter().map(|(name, _)| Kind::named(name)).collect();
        let segment = |(kind, (_, ns)): (usize, &(&str, u64))| AttributedSegment {
            start: Nanos::from_nanos(100 * kind as u64),
            ns: *ns,
            kind: kind as u32,
            under: None,
        };
        let segments: Vec<_> = tasks.iter().enumerate().map(segment).collect();
        let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(1_000) };
        load(&kinds, std::iter::once((Cpu(3), span, segments.as_slice())))
    }

    #[test]
    fn tasks_of_users_are_load_and_the_kernels_are_not() {
        let found = of_tasks(&[("task:cc1", 90), ("task:make", 20), ("task:kswapd0", 300)]).unwrap();
        assert_eq!((found.cpu, found.task.as_str()), (3, "cc1"));
        assert!((found.percent - 11.0).abs() < 1e-9);
        assert_eq!(of_tasks(&[("task:kworker/0:1", 400), ("irq:24", 300), ("task:sshd", 50)]), None);
    }

    #[test]
    fn programs_that_begin_like_kernel_threads_are_of_users() {
        let is = |names: &[&str]| names.iter().map(|name| is_kernel_thread(name)).collect::<Vec<bool>>();
        assert_eq!(
            is(&["md127_raid1", "md_home_raid1", "dm-3", "rcu_preempt", "kswapd0", "xfsaild/dm-0", "nfsd"]),
            [true; 7]
        );
        assert_eq!(
            is(&["md5sum", "mdadm", "dmesg", "rcutorture", "xfsdump", "nfsdcld", "btrfs"]),
            [false; 7]
        );
    }
}
