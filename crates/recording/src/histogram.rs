//! How often a CPU was held up for how long, where the tool that looked kept no trace: order and starts are not known.

use std::fmt;
use std::str::FromStr;

use crate::{Cpu, Nanos};

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistogramKind {
    /// A gap between two clock readings of a loop that does nothing else; undisturbed turns are among them where the tool counts them.
    Gap,
    /// How much later than asked for a timer woke a thread.
    Latency,
    /// How much later than asked for the timer's interrupt came.
    IrqLatency,
    /// How much later than asked for a kernel thread ran.
    ThreadLatency,
    /// How much later than asked for a thread was back in user space.
    UserLatency,
    /// The noise of one period of observation, summed up.
    Noise,
}

impl HistogramKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Gap, Self::Latency, Self::IrqLatency, Self::ThreadLatency, Self::UserLatency, Self::Noise];

    /// The word in files: `gap`, `latency`, `irq_latency`, `thread_latency`, `user_latency`, `noise`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Latency => "latency",
            Self::IrqLatency => "irq_latency",
            Self::ThreadLatency => "thread_latency",
            Self::UserLatency => "user_latency",
            Self::Noise => "noise",
        }
    }
}

impl fmt::Display for HistogramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for HistogramKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("`{}` is not a kind of histogram", crate::one_line(text)))
    }
}

/// So many times of about one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// The thread of the tool that timed them, from 0.
    pub thread: u32,
    /// What was timed.
    pub kind: HistogramKind,
    /// The shortest that falls in here.
    pub from: Nanos,
    /// The longest.
    pub to: Nanos,
    /// How many there were; not 0.
    pub count: u64,
}

/// The buckets of one CPU, ordered by thread, kind and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The CPU.
    pub cpu: Cpu,
    /// What was counted on it.
    pub buckets: Vec<Bucket>,
}

impl Histogram {
    /// The buckets that belong together, one thread and kind after the other.
    pub fn series(&self) -> impl Iterator<Item = &[Bucket]> {
        self.buckets.chunk_by(|a, b| (a.thread, a.kind) == (b.thread, b.kind))
    }
}

/// What every user of buckets relies on.
pub(crate) fn check_buckets(cpu: Cpu, buckets: &[Bucket]) -> Result<(), String> {
    let bad = |bucket: &&Bucket| bucket.from > bucket.to || bucket.count == 0;
    match buckets.iter().find(bad) {
        Some(bucket) => Err(format!(
            "a bucket of CPU {cpu} from {} ns to {} ns with {} times is none",
            bucket.from.as_nanos(),
            bucket.to.as_nanos(),
            bucket.count
        )),
        None => Ok(()),
    }
}
