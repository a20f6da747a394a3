//! Places: the single things that a plan writes, each named precisely enough to find it, and only it, again.
//!
//! The value of a place is text: a kernel file's own bytes; a CPU list for a thread's affinity; see each file here.

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

pub(crate) use file::{PREEMPTION, chosen};
pub use held::take;
use quell_recording::Cpu;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use thread::{Task, started, successor};
pub use trouble::PlaceError;
pub use unit::Units;

use super::catalogue::{CpusetKind, Held, Property};
use super::root::Root;

/// The value of a place that does not exist: no such drop-in, no such cpuset, nothing held.
pub const ABSENT: &str = "absent";
const LINKS: &str = "/sys/class/net/";
const SAMPLE_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// One thing that can be read and written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Place {
    /// A kernel file. Its value is its text; a file that shows all words with the chosen one in brackets is written with the word.
    File {
        /// The path on the machine.
        path: String,
    },
    /// An interrupt's affinity. Its value is the mask, as in `smp_affinity`. Numbers are reused, so the name must match too.
    Irq {
        /// Its number.
        number: u32,
        /// The name that its driver chose.
        name: String,
    },
    /// A property of a thread. Pids are reused, so the start time must match too.
    Thread {
        /// Its id.
        pid: u32,
        /// When it started, in clock ticks after boot.
        start: u64,
        /// Its name.
        comm: String,
        /// The property. Its value is a CPU list, `POLICY:PRIORITY`, or nanoseconds.
        property: Property,
    },
    /// A systemd unit. Its value is the output of `is-active` and `is-enabled`: `active enabled`.
    Unit {
        /// Its name.
        name: String,
    },
    /// Something that a keeper (a process of quell) keeps open. Its value is the held one, or [`ABSENT`].
    Held {
        /// What is held.
        what: Held,
    },
    /// quell's cpuset. Its value is the CPUs of its parts, or [`ABSENT`].
    Cpuset {
        /// The kind of cpuset.
        what: CpusetKind,
    },
    /// A file of quell's own. Its value is its text, or [`ABSENT`].
    DropIn {
        /// The path on the machine.
        path: String,
    },
}

impl Place {
    /// The current value.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(&self, root: &Root) -> Result<String, PlaceError> {
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

    /// The device to which it belongs, as its folder below `/sys/devices`, where the path names the device by a class: `eth0` and `sda` are
    /// names that another device may have tomorrow.
    pub fn device(&self, root: &Root) -> Option<String> {
        let Self::File { path } = self else { return None };
        let by_name = ["/sys/class/", "/sys/block/", "/sys/bus/"].iter().any(|class| path.starts_with(class));
        let folder = root.path(path.rsplit_once('/')?.0).canonicalize().ok().filter(|_| by_name)?;
        let inside = folder.strip_prefix(root.path("/")).ok()?.to_string_lossy().into_owned();
        inside.starts_with("sys/devices/").then(|| format!("/{inside}"))
    }

    /// What distinguishes it from all others: a thread may have another name by now, and is still the same.
    pub fn identity(&self) -> String {
        match self {
            Self::Thread { pid, start, property, .. } => format!("{property:?} of {pid} since {start}"),
            other => other.to_string(),
        }
    }

    /// The number of its network device, which the device keeps under another name.
    pub fn link(&self, root: &Root) -> Option<u32> {
        let Self::File { path } = self else { return None };
        let (name, _) = path.strip_prefix(LINKS)?.split_once('/')?;
        root.read(&format!("{LINKS}{name}/ifindex")).ok()?.trim().parse().ok()
    }

    /// The same file of the network device with this number, under its current name.
    pub fn on_link(&self, root: &Root, link: u32) -> Option<Self> {
        let Self::File { path } = self else { return None };
        let (_, file) = path.strip_prefix(LINKS)?.split_once('/')?;
        let named = |name: String| Self::File { path: format!("{LINKS}{name}/{file}") };
        root.names(LINKS).into_iter().map(named).find(|place| place.link(root) == Some(link))
    }

    /// For the default of new interrupts, those that exist now.
    pub fn irqs_without(&self, root: &Root) -> Vec<u32> {
        if self.is_default_of_irqs() { irq::numbers(root) } else { Vec::new() }
    }

    /// Gives interrupts that came since then, and that have quell's default, the restored one.
    pub fn give_default(&self, root: &Root, known: &[u32], ours: &str, restored: &str) {
        if self.is_default_of_irqs() && !known.is_empty() {
            irq::give_default(root, known, ours, restored);
        }
    }

    fn is_default_of_irqs(&self) -> bool {
        matches!(self, Self::File { path } if path == irq::DEFAULT)
    }

    /// Sets the value: a wanted one, or one that [`Self::read`] returned.
    ///
    /// # Errors
    /// Why the value cannot be set.
    pub fn write(&self, root: &Root, value: &str) -> Result<(), PlaceError> {
        match self {
            Self::File { path } => file::write(root, path, value),
            Self::Irq { number, name } => irq::write(root, *number, name, value),
            Self::Thread { pid, start, comm, property } => {
                thread::write(root, *pid, *start, comm, *property, value)
            }
            Self::Unit { name } => unit::write(root, name, value),
            // The keeper holds it, not the process that applies the plan.
            Self::Held { .. } => Err(PlaceError::Unavailable("only a keeper can hold it".into())),
            Self::Cpuset { what } => cpuset::write(root, *what, value),
            Self::DropIn { path } => drop_in::write(root, path, value),
        }
    }

    /// Whether two texts are the same value of this place, in any notation: `0-1` and `0,1`, `03` and `3`, `always [never]` and
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

    /// Why the written value is not in force yet, if so: an interrupt moves only when it next fires.
    pub fn pending(&self, root: &Root) -> Option<String> {
        match self {
            Self::Irq { number, .. } => irq::pending(root, *number),
            _ => None,
        }
    }

    /// The CPUs in a value, for a place whose value is CPUs.
    pub fn cpus(&self, text: &str) -> Option<Vec<Cpu>> {
        match self {
            Self::File { path } => file::cpus(path, text),
            Self::Irq { .. } => file::cpus("smp_affinity", text),
            Self::Thread { property: Property::Affinity, .. } => file::cpus("cpulist", text),
            _ => None,
        }
    }

    /// Whether any part of what is written survives a reboot.
    pub fn survives_boot(&self) -> bool {
        matches!(self, Self::DropIn { .. } | Self::Unit { .. })
    }

    /// The value to restore after a reboot. Whether a unit runs is up to the boot; whether it starts at boot is restored.
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

    /// Whether the kernel itself made this of quell's value: it removes CPUs and memory from sets when they go offline, and lowers the rate of
    /// perf's samples when those take too long.
    pub fn is_changed_by_kernel(&self, now: &str, ours: &str) -> bool {
        match self {
            Self::Cpuset { .. } => cpuset::has_lost(now, ours),
            Self::File { path } if path == SAMPLE_RATE => {
                let rate = |text: &str| text.trim().parse::<u64>().ok();
                rate(now).zip(rate(ours)).is_some_and(|(now, ours)| now < ours)
            }
            _ => false,
        }
    }

    /// Whether it is changed in several steps, between which quell may be killed or fail.
    pub fn has_steps(&self) -> bool {
        matches!(self, Self::Unit { .. } | Self::Cpuset { .. })
    }

    /// Whether quell itself may have left this value on the way from one to the other, for places that are changed in several steps.
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
            // The name belongs to quell.
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
