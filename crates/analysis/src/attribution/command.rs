//! The noise that the threads of a recorded command suffered, and their actual share of a CPU.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Interval, Recording, Source, SourceKind, SourceLevel, Thread};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

use super::groups::Tally;

/// The recorded command as a whole: the sum of its threads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommandRow {
    /// The process that was followed with its children.
    pub pid: u32,
    /// The command's own exit code.
    pub exit_code: Option<i32>,
    /// Number of threads that were followed.
    pub threads: u64,
    /// The sum of the threads' shares.
    #[serde(flatten)]
    pub share: Share,
}

/// The actual share of a CPU that a thread had (Jones, Brenner & Fier, LLNL 2003, Table 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Share {
    /// Time on a CPU, including interrupts.
    #[column(title = "on CPU")]
    pub on_cpu_ns: u64,
    /// Time that interrupts, softirqs and the hypervisor took while it was on a CPU.
    #[column]
    pub interrupted_ns: u64,
    /// Time that other tasks took while it was runnable, against its will.
    #[column]
    pub preempted_ns: u64,
    /// Time off the CPU after it called sched_yield while it was runnable.
    #[column]
    pub yielded_ns: u64,
    /// Time off the CPU while it moved itself to another CPU (sched_setaffinity).
    #[column(title = "moved itself")]
    pub moved_ns: u64,
    /// Time in which it was runnable and waited, as the kernel accounts it.
    #[column]
    pub run_delay_ns: u64,
    /// (on CPU − interrupted) / (on CPU + preempted), in percent; null if it never ran.
    #[column(title = "CPU share", suffix = " %")]
    pub had_percent: Option<f64>,
}

/// One thread of a recorded command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct ThreadRow {
    /// Thread id.
    #[column(id)]
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// Its name: untrusted text.
    #[column(title = "thread", name)]
    pub name: String,
    /// When it was first seen.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its share of a CPU.
    #[serde(flatten)]
    #[column(flatten)]
    pub share: Share,
    /// The sources that took the rest, most time first.
    pub sources: Vec<ThreadSource>,
}

/// What one source took from one thread.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct ThreadSource {
    /// The source.
    #[column(title = "taken by", name)]
    pub source: String,
    /// Number of intervals.
    #[column]
    pub count: u64,
    /// Sum of their net times.
    #[column(title = "total")]
    pub total_ns: u64,
    /// The shortest net time.
    #[column(title = "min")]
    pub min_ns: u64,
    /// The longest net time.
    #[column(title = "max")]
    pub max_ns: u64,
    /// The mean net time.
    #[column(title = "mean")]
    pub mean_ns: f64,
}

/// The command and its threads; `None` if no command was recorded.
pub(super) fn command(recording: &Recording) -> Option<(CommandRow, Vec<ThreadRow>)> {
    let facts = recording.manifest.sources.as_ref()?;
    let pid = facts.command_pid?;
    // Threads are ordered by their start.
    let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, thread) in recording.threads.iter().enumerate() {
        places.entry(thread.tid).or_default().push(place);
    }
    let mut of_thread: BTreeMap<usize, BTreeMap<&Source, Tally>> = BTreeMap::new();
    for one in recording.intervals.iter().flat_map(|side| &side.intervals) {
        if let Some(thread) = thread_of(&places, &recording.threads, one) {
            of_thread.entry(thread).or_default().entry(&one.source).or_default().add(one.net.as_nanos());
        }
    }
    let row = |(place, thread): (usize, &Thread)| ThreadRow {
        tid: thread.tid,
        pid: thread.pid,
        name: thread.comm.to_string(),
        start_ns: thread.start.as_nanos(),
        end_ns: thread.end.as_nanos(),
        share: Share::from_thread(thread),
        sources: of_thread.get(&place).map(thread_sources).unwrap_or_default(),
    };
    let rows: Vec<ThreadRow> = recording.threads.iter().enumerate().map(row).collect();
    let share = rows.iter().fold(Share::default(), |sum, row| sum.with(row.share));
    let exit_code = facts.command_exit_code;
    Some((CommandRow { pid, exit_code, threads: rows.len() as u64, share }, rows))
}

/// The thread that an interval struck. Ids are reused: it is the last thread with that id that had begun by then.
fn thread_of(places: &BTreeMap<u32, Vec<usize>>, threads: &[Thread], one: &Interval) -> Option<usize> {
    let of_id = places.get(&one.victim)?;
    let begun = of_id.partition_point(|&place| threads[place].start <= one.start);
    of_id.get(begun.saturating_sub(1)).copied()
}

impl Share {
    fn from_thread(thread: &Thread) -> Self {
        let taken = |kind: SourceKind| {
            let place = SourceKind::ALL.iter().position(|one| *one == kind);
            place.map_or(0, |place| thread.taken[place].time.as_nanos())
        };
        // Intervals at the level of tasks are other tasks, or the thread's own work such as a page fault.
        let interrupts = SourceKind::ALL.into_iter().filter(|kind| kind.level() != SourceLevel::Task);
        let share = Self {
            on_cpu_ns: thread.on_cpu.as_nanos(),
            run_delay_ns: thread.run_delay.as_nanos(),
            interrupted_ns: interrupts.map(taken).fold(0, u64::saturating_add),
            preempted_ns: taken(SourceKind::Task),
            yielded_ns: thread.yielded.time.as_nanos(),
            moved_ns: thread.moved.time.as_nanos(),
            had_percent: None,
        };
        share.with(Self::default())
    }

    fn with(self, other: Self) -> Self {
        let mut sum = Self {
            on_cpu_ns: self.on_cpu_ns.saturating_add(other.on_cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_add(other.run_delay_ns),
            interrupted_ns: self.interrupted_ns.saturating_add(other.interrupted_ns),
            preempted_ns: self.preempted_ns.saturating_add(other.preempted_ns),
            yielded_ns: self.yielded_ns.saturating_add(other.yielded_ns),
            moved_ns: self.moved_ns.saturating_add(other.moved_ns),
            had_percent: None,
        };
        let had = sum.on_cpu_ns.saturating_sub(sum.interrupted_ns);
        sum.had_percent = super::figures::percent(had, sum.on_cpu_ns.saturating_add(sum.preempted_ns));
        sum
    }
}

fn thread_sources(of_source: &BTreeMap<&Source, Tally>) -> Vec<ThreadSource> {
    let row = |(source, tally): (&&Source, &Tally)| ThreadSource {
        source: source.to_string(),
        count: tally.count,
        total_ns: tally.total_ns,
        min_ns: tally.min_ns,
        max_ns: tally.max_ns,
        mean_ns: tally.mean_ns(),
    };
    let mut rows: Vec<ThreadSource> = of_source.iter().map(row).collect();
    rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.source.cmp(&b.source)));
    rows
}
