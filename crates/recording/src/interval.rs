//! What the kernel did on a CPU, as the kernel saw it: intervals, and what each watched thread had to bear.

use std::sync::Arc;

use crate::source::{Source, SourceKind};
use crate::{Cpu, Nanos};

/// One interval of kernel activity, or of another task, on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began, counted from the zero of its recording.
    pub start: Nanos,
    /// From its begin to its end, whatever came in between. For [`Source::Steal`] the window in which the
    /// hypervisor took [`Self::net`]; where in the window is not known.
    pub duration: Nanos,
    /// The part of [`Self::duration`] that no nested interval took (NMI > interrupt > softirq > task).
    pub net: Nanos,
    /// What it was.
    pub source: Source,
    /// The task that ran, for [`Source::Task`]; 0 otherwise.
    pub pid: u32,
    /// The watched thread that had to wait; 0 where none was watched. In a recording of a command each interval has
    /// one, and those of [`Source::Task`] are the time in which the thread could have run and did not.
    pub victim: u32,
    /// What the source worked at, where the kernel told: the timer's callback, the work function, the function called.
    pub detail: Option<Arc<str>>,
    /// Who caused it, where the kernel told: the sender of an IPI, what woke the task.
    pub cause: Option<Arc<str>>,
}

impl Interval {
    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}

/// The intervals of one CPU, ordered by their start. They nest; none cuts through another, but for steal windows and, in a
/// recording of a command, the waits of its threads, which stand under the CPU that each had to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// The CPU.
    pub cpu: Cpu,
    /// What happened on it.
    pub intervals: Vec<Interval>,
}

/// Time and count of one kind of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Net time.
    pub time: Nanos,
    /// How often.
    pub count: u64,
}

/// What one thread of a recorded command had to bear, from its first to its last instant under watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Process id (the kernel's thread group).
    pub pid: u32,
    /// Its name at the end.
    pub comm: Arc<str>,
    /// When it was first seen.
    pub start: Nanos,
    /// When it ended, or the recording did.
    pub end: Nanos,
    /// Time on a CPU, interrupts included.
    pub on_cpu: Nanos,
    /// Time in which it was runnable and waited, after a preemption or a wake-up, by the kernel's own account.
    pub run_delay: Nanos,
    /// What each kind of source took from it, in the order of [`SourceKind::ALL`]. Under `task`: preemptions.
    pub taken: [Taken; SourceKind::ALL.len()],
}
