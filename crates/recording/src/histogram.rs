//! Histograms of delays on a CPU, from tools that keep no trace: order and starts are not known.

use std::fmt;
use std::str::FromStr;

use crate::{Cpu, Nanos};

/// The quantity that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistogramKind {
    /// A gap between two clock readings of a loop that does nothing else; it includes undisturbed turns if the tool counts them.
    Gap,
    /// Delay from the requested time until a timer woke a thread.
    Latency,
    /// Delay from the requested time until the timer's interrupt.
    IrqLatency,
    /// Delay from the requested time until a kernel thread ran.
    ThreadLatency,
    /// Delay from the requested time until a thread was back in user space.
    UserLatency,
    /// The total noise of one period of observation.
    Noise,
}

impl HistogramKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Gap, Self::Latency, Self::IrqLatency, Self::ThreadLatency, Self::UserLatency, Self::Noise];

    /// The name in files: `gap`, `latency`, `irq_latency`, `thread_latency`, `user_latency`, `noise`.
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

/// A number of times in one range of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// The thread of the tool that timed them, from 0.
    pub thread: u32,
    /// The quantity that was timed.
    pub kind: HistogramKind,
    /// The lower end of the range, inclusive.
    pub from: Nanos,
    /// The upper end of the range, inclusive.
    pub to: Nanos,
    /// Number of times; not 0.
    pub count: u64,
}

/// The buckets of one CPU, ordered by thread, kind and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The CPU.
    pub cpu: Cpu,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

impl Histogram {
    /// The series of buckets, one per thread and kind.
    pub fn series(&self) -> impl Iterator<Item = &[Bucket]> {
        self.buckets.chunk_by(|a, b| (a.thread, a.kind) == (b.thread, b.kind))
    }
}

/// Checks what every user of buckets relies on.
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
