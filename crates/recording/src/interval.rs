//! Activity of the kernel on a CPU as the kernel recorded it: intervals, and the noise of each observed thread.

use std::sync::Arc;

use crate::source::{Source, SourceKind};
use crate::{Cpu, Nanos};

/// One interval of kernel activity, or of another task, on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began, counted from the zero of its recording.
    pub start: Nanos,
    /// From its beginning to its end, including interruptions. For [`Source::Steal`] the window in which the
    /// hypervisor took [`Self::net`]; the position in the window is not known.
    pub duration: Nanos,
    /// The part of [`Self::duration`] that no nested interval took (NMI > interrupt > softirq > task).
    pub net: Nanos,
    /// Its source.
    pub source: Source,
    /// The task that ran, for [`Source::Task`]; 0 otherwise.
    pub pid: u32,
    /// The observed thread that had to wait; 0 if none was observed. In a recording of a command each interval has
    /// one, and those of [`Source::Task`] are the time in which the thread could have run and did not.
    pub victim: u32,
    /// What the source worked on, if the kernel reported it: the timer's callback, the work function, the function called.
    pub detail: Option<Arc<str>>,
    /// What caused it, if the kernel reported it: the sender of an IPI, what woke the task.
    pub cause: Option<Arc<str>>,
}

impl Interval {
    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}

/// The intervals of one CPU, ordered by start. They nest without crossing, except for steal windows and, in a
/// recording of a command, the waits of its threads, which are listed under the CPU that each had to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// The CPU.
    pub cpu: Cpu,
    /// Its intervals.
    pub intervals: Vec<Interval>,
}

/// Time and count of one kind of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Net time.
    pub time: Nanos,
    /// Number of intervals.
    pub count: u64,
}

/// The noise of one thread of a recorded command, from its first to its last instant under observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Process id (the kernel's thread group).
    pub pid: u32,
    /// Its last name.
    pub comm: Arc<str>,
    /// When it was first seen.
    pub start: Nanos,
    /// When it ended, or the end of the recording if it had not.
    pub end: Nanos,
    /// Time on a CPU, including interrupts.
    pub on_cpu: Nanos,
    /// Time in which it was runnable and waited, after a preemption or a wake-up, as the kernel accounts it.
    pub run_delay: Nanos,
    /// Time that each kind of source took from it, in the order of [`SourceKind::ALL`]. For `task`: preemptions.
    pub taken: [Taken; SourceKind::ALL.len()],
    /// Time off its CPU after it called `sched_yield`, while it could have run. It asked for it, so it is no noise.
    pub yielded: Taken,
    /// Time in which `sched_setaffinity` moved it to another CPU, at its own request.
    pub moved: Taken,
}
