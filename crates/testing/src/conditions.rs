//! How much of the machine other processes used while a test measured, and how slow the machine itself is.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// If other programs used more CPUs than this, a measurement is not judged.
const OTHERS: f64 = 0.10;

/// If the hypervisor took more of any CPU's time than this, a measurement is not judged.
const STEAL: f64 = 0.02;

/// If reading the clock takes longer than this, in ns, a measurement is not judged: some hypervisors emulate the counter.
const CLOCK_READ_NS: u64 = 200;

/// If interrupts take a larger share of a CPU than this, a measurement is not judged: a tick takes 100 us and more under some hypervisors.
const INTERRUPTED: f64 = 0.02;

/// If a sleep ends later than this, in ns, a measurement is not judged.
const LATE_NS: u64 = 400_000;

/// How fast the machine is by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// The median time of reading the clock, in ns.
    pub clock_read_ns: u64,
    /// The share of time that a loop loses, in the part of it that loses least.
    pub interrupted: f64,
    /// The median time by which a sleep ends late, in ns.
    pub late_ns: u64,
}

impl Pace {
    /// Measures it for about 0.2 s.
    #[must_use]
    pub fn measure() -> Self {
        let parts: Vec<(u64, f64)> = (0..4).map(|_| loop_for(Duration::from_millis(40))).collect();
        let late = (0..20).map(|_| {
            let (begun, length) = (Instant::now(), Duration::from_millis(2));
            std::thread::sleep(length);
            (begun.elapsed() - length).as_nanos() as u64
        });
        Self {
            clock_read_ns: median(parts.iter().map(|part| part.0).collect()),
            // Other programs are judged by themselves, so the best part counts.
            interrupted: parts.iter().map(|part| part.1).fold(1.0, f64::min),
            late_ns: median(late.collect()),
        }
    }

    fn is_normal(&self) -> bool {
        self.clock_read_ns <= CLOCK_READ_NS && self.interrupted <= INTERRUPTED && self.late_ns <= LATE_NS
    }
}

/// The median time of a turn of a loop that reads the clock, in ns, and the share of time in longer turns.
fn loop_for(length: Duration) -> (u64, f64) {
    let begun = Instant::now();
    let (mut last, mut turns) = (begun, Vec::new());
    while last - begun < length {
        let now = Instant::now();
        turns.push((now - last).as_nanos() as u64);
        last = now;
    }
    let turn = median(turns.clone());
    let lost: u64 = turns.iter().filter(|one| **one > 2 * turn + 1_000).sum();
    (turn, lost as f64 / length.as_nanos() as f64)
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// The conditions in a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Number of CPUs used by processes other than this test's and the kernel's own threads.
    pub others: f64,
    /// The hypervisor's share of the CPU from which it took most.
    pub steal: f64,
    /// The machine's own pace before the first span.
    pub pace: Pace,
}

impl Conditions {
    /// Whether a figure measured in this span says something about quell.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.others <= OTHERS && self.steal <= STEAL && self.pace.is_normal()
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        write!(
            f,
            "others used {:.0} % of a CPU (limit {:.0}), the hypervisor took {:.1} % (limit {:.0}), a clock read {} ns (limit {CLOCK_READ_NS}), \
             interrupts {:.1} % (limit {:.0}), a sleep was {} us late (limit {})",
            percent(self.others),
            percent(OTHERS),
            percent(self.steal),
            percent(STEAL),
            self.pace.clock_read_ns,
            percent(self.pace.interrupted),
            percent(INTERRUPTED),
            self.pace.late_ns / 1_000,
            LATE_NS / 1_000,
        )
    }
}

/// Observes the machine from its start on.
#[derive(Debug)]
pub struct Watch {
    since: Instant,
    others_ticks: u64,
    steal_ticks: Vec<u64>,
    pace: Pace,
}

impl Watch {
    /// Begins to observe.
    #[must_use]
    pub fn start() -> Self {
        // What a measurement leaves behind must not make the machine look slow, so the pace is that before the first one.
        static PACE: OnceLock<Pace> = OnceLock::new();
        let pace = *PACE.get_or_init(Pace::measure);
        Self { others_ticks: others_ticks(), steal_ticks: steal_ticks(), pace, since: Instant::now() }
    }

    /// The conditions since the start.
    #[must_use]
    pub fn end(&self) -> Conditions {
        // SAFETY: the call has no preconditions.
        let hertz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        // Counts have a resolution of one tick, so a shorter span has no result.
        let ticks = (self.since.elapsed().as_secs_f64() * hertz).max(1.0);
        let stolen = steal_ticks();
        let most = stolen.iter().zip(&self.steal_ticks).map(|(now, then)| now.saturating_sub(*then)).max();
        Conditions {
            others: others_ticks().saturating_sub(self.others_ticks) as f64 / ticks,
            steal: most.unwrap_or(0) as f64 / ticks,
            pace: self.pace,
        }
    }
}

/// CPU time of this process so far. In contrast to wall time, a busy machine hardly makes it longer.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Ticks that a hypervisor took from each CPU; empty if the kernel does not report them.
fn steal_ticks() -> Vec<u64> {
    let text = fs_err::read_to_string("/proc/stat").unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    lines.filter_map(|line| line.split_whitespace().nth(8)?.parse().ok()).collect()
}

/// A process, as in `/proc/PID/stat`.
struct Process {
    parent: u32,
    /// Its ticks of CPU time, and those of children that it waited for: a child's time is not lost when it ends.
    ticks: u64,
    is_kernel: bool,
}

/// The flag of the kernel's own threads (PF_KTHREAD of include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Ticks of all processes except this one, its descendants, and the kernel's threads, which tests keep busy too.
fn others_ticks() -> u64 {
    let processes = processes();
    let mut ours: HashSet<u32> = HashSet::from([std::process::id()]);
    loop {
        let born = |(pid, one): (&u32, &Process)| ours.contains(&one.parent).then_some(*pid);
        let children: Vec<u32> =
            processes.iter().filter_map(born).filter(|pid| !ours.contains(pid)).collect();
        if children.is_empty() {
            break;
        }
        ours.extend(children);
    }
    let others = processes.iter().filter(|(pid, one)| !one.is_kernel && !ours.contains(pid));
    others.map(|(_, one)| one.ticks).sum()
}

fn processes() -> HashMap<u32, Process> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, process(&stat)?))
    })
    .collect()
}

/// Parses the line; the name in brackets may contain anything.
fn process(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let ticks = [11, 12, 13, 14].map(|place| number(place).unwrap_or(0)).iter().sum();
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks, is_kernel: number(6)? & KERNEL_THREAD != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read() {
        let one = process("7 (a) b) (c) S 3 7 7 0 -1 2097152 1 2 3 4 10 20 30 40 20 0 1 0").unwrap();
        assert_eq!((one.parent, one.ticks, one.is_kernel), (3, 100, true));
        assert!(process("7 (a").is_none() && process("").is_none());
    }

    #[test]
    fn a_busy_machine_is_not_quiet() {
        let at = |others, steal| Conditions { others, steal, pace: Pace::default() }.quiet();
        assert!(at(0.05, 0.01) && !at(0.2, 0.0) && !at(0.0, 0.05));
    }

    #[test]
    fn a_slow_machine_is_not_quiet() {
        let quiet = |pace: Pace| Conditions { others: 0.0, steal: 0.0, pace }.quiet();
        let pace = Pace { clock_read_ns: 40, interrupted: 0.005, late_ns: 60_000 };
        assert!(quiet(pace));
        assert!(!quiet(Pace { clock_read_ns: 1_000, ..pace }));
        assert!(!quiet(Pace { interrupted: 0.03, ..pace }));
        assert!(!quiet(Pace { late_ns: 3_000_000, ..pace }));
    }

    #[test]
    fn the_pace_of_this_machine_is_measured() {
        let pace = Pace::measure();
        assert!(pace.clock_read_ns > 0 && (0.0..=1.0).contains(&pace.interrupted), "{pace:?}");
    }
}
