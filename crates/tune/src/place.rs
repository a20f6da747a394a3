//! Places: the single things that a plan writes, each named so that it is found again, and only it.
//!
//! What a place holds is text: a kernel file's own bytes; a CPU list for a thread's affinity; see each file here.

pub mod cpuset;
mod drop_in;
mod file;
pub mod held;
#[cfg(test)]
mod hostile;
pub mod irq;
pub mod thread;
#[cfg(test)]
mod trial;
mod trouble;
mod unit;

use std::fmt;

pub use held::take;
use quell_recording::Cpu;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use thread::{Task, started, successor};
pub use trouble::Trouble;

use super::catalogue::{CpusetKind, Held, Property};
use super::root::Root;

/// What a place holds when there is nothing: no such drop-in, no such cpuset, nothing held.
pub const ABSENT: &str = "absent";

/// One thing that can be read and written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Place {
    /// A file of the kernel's. Holds its text; a file that shows all words and the chosen one in brackets is written with the word.
    File {
        /// The path on the machine.
        path: String,
    },
    /// An interrupt's affinity. Holds the mask, as in `smp_affinity`. Numbers are reused, so its name counts too.
    Irq {
        /// Its number.
        number: u32,
        /// The name that its driver gave it.
        name: String,
    },
    /// A property of a thread. Pids are reused, so when it started counts too.
    Thread {
        /// Its id.
        pid: u32,
        /// When it started, in clock ticks after boot.
        start: u64,
        /// Its name.
        comm: String,
        /// What of it. Holds a CPU list, `POLICY:PRIORITY`, or nanoseconds.
        property: Property,
    },
    /// A unit of systemd. Holds what `is-active` and `is-enabled` say: `active enabled`.
    Unit {
        /// Its name.
        name: String,
    },
    /// Something kept open by a keeper (a process of quell's). Holds the value, or [`ABSENT`].
    Held {
        /// What.
        what: Held,
    },
    /// quell's cpuset. Holds the CPUs of its parts, or [`ABSENT`].
    Cpuset {
        /// How it is made.
        what: CpusetKind,
    },
    /// A file of quell's own. Holds its text, or [`ABSENT`].
    DropIn {
        /// The path on the machine.
        path: String,
    },
}

impl Place {
    /// What it holds.
    ///
    /// # Errors
    /// Why that cannot be seen.
    pub fn read(&self, root: &Root) -> Result<String, Trouble> {
        match self {
            Self::File { path } => file::read(root, path),
            Self::Irq { number, name } => irq::read(root, *number, name),
            Self::Thread { pid, start, comm, property } => thread::read(root, *pid, *start, comm, *property),
            Self::Unit { name } => unit::read(root, name),
            Self::Held { what } => held::read(root, *what),
            Self::Cpuset { what } => cpuset::read(root, *what),
            Self::DropIn { path } => drop_in::read(root, path),
        }
    }

    /// Makes it hold a value: one to be, or one that [`Self::read`] gave.
    ///
    /// # Errors
    /// Why it does not take it.
    pub fn write(&self, root: &Root, value: &str) -> Result<(), Trouble> {
        match self {
            Self::File { path } => file::write(root, path, value),
            Self::Irq { number, name } => irq::write(root, *number, name, value),
            Self::Thread { pid, start, comm, property } => {
                thread::write(root, *pid, *start, comm, *property, value)
            }
            Self::Unit { name } => unit::write(root, name, value),
            // A keeper holds it, not the process that applies the plan.
            Self::Held { .. } => Err(Trouble::Unavailable("only a keeper can hold it".into())),
            Self::Cpuset { what } => cpuset::write(root, *what, value),
            Self::DropIn { path } => drop_in::write(root, path, value),
        }
    }

    /// Whether two texts are the same value for it, however they are written: `0-1` and `0,1`, `03` and `3`, `always [never]` and
    /// `never`.
    pub fn same(&self, a: &str, b: &str) -> bool {
        match self {
            Self::File { path } => file::same(path, a, b),
            Self::Irq { .. } => file::same("smp_affinity", a, b),
            Self::Thread { property: Property::Affinity, .. } => file::same("cpulist", a, b),
            Self::Unit { .. } => unit::same(a, b),
            Self::DropIn { .. } => a == b,
            _ => a.split_whitespace().eq(b.split_whitespace()),
        }
    }

    /// Why what was written is not in force yet, where that is so: an interrupt moves when it next comes.
    pub fn pending(&self, root: &Root) -> Option<String> {
        match self {
            Self::Irq { number, .. } => irq::pending(root, *number),
            _ => None,
        }
    }

    /// The CPUs that a text stands for, in a place that holds CPUs.
    pub fn cpus(&self, text: &str) -> Option<Vec<Cpu>> {
        match self {
            Self::File { path } => file::cpus(path, text),
            Self::Irq { .. } => file::cpus("smp_affinity", text),
            Self::Thread { property: Property::Affinity, .. } => file::cpus("cpulist", text),
            _ => None,
        }
    }

    /// Whether some of what is written stays over a boot.
    pub fn survives_boot(&self) -> bool {
        matches!(self, Self::DropIn { .. } | Self::Unit { .. })
    }

    /// What to give back after a boot: whether a unit runs is the boot's own matter, whether it starts with the machine is not.
    pub fn after_boot(&self, original: &str, now: &str) -> Option<String> {
        match self {
            Self::DropIn { .. } => Some(original.to_owned()),
            Self::Unit { .. } => {
                let (runs, _) = now.trim().split_once(' ')?;
                let (_, starts) = original.trim().split_once(' ')?;
                Some(format!("{runs} {starts}"))
            }
            _ => None,
        }
    }

    /// Whether quell itself may have left this, on the way from one value to the other: for places that take several steps.
    pub fn half_way(&self, now: &str, original: &str, new: &str) -> bool {
        match self {
            Self::Unit { .. } => {
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                let (from, to) = (words(original), words(new));
                words(now)
                    .iter()
                    .enumerate()
                    .all(|(i, word)| from.get(i) == Some(word) || to.get(i) == Some(word))
            }
            // Its name is quell's.
            Self::Cpuset { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path } | Self::DropIn { path } => f.write_str(path),
            Self::Irq { number, name } => write!(f, "irq {number} ({name})"),
            Self::Thread { pid, comm, property, .. } => {
                let property = match property {
                    Property::Affinity => "affinity",
                    Property::Policy => "policy",
                    Property::TimerSlack => "timer slack",
                };
                write!(f, "{property} of {comm} ({pid})")
            }
            Self::Unit { name } => write!(f, "unit {name}"),
            Self::Held { what: Held::CpuDmaLatency } => f.write_str("/dev/cpu_dma_latency, held"),
            Self::Held { what: Held::TimestampSocket } => f.write_str("a socket with time stamps, held"),
            Self::Cpuset { what: CpusetKind::Isolated } => f.write_str("cpuset partition quell"),
            Self::Cpuset { what: CpusetKind::Shield } => f.write_str("cpuset shield quell"),
            Self::Cpuset { what: CpusetKind::Job } => f.write_str("cpuset quell-job"),
        }
    }
}
