//! The catalogue: what is known to remove or move noise, one TOML file a mitigation (`crates/tune/catalogue`), and a site's own
//! beside them (`/etc/quell/mitigations.d`).

mod load;
mod profile;
#[cfg(test)]
mod tests;
mod want;

pub use load::{Catalogue, CatalogueError};
pub use profile::Profile;
use quell_recording::SourcePattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use want::{Fills, Part, Want};

/// In a knob's path: the folder of each CPU that is meant.
pub(super) const EACH_CPU: &str = "/cpu*/";

/// A change that removes or moves noise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mitigation {
    /// Its name: lower case and hyphens; the file's name too.
    pub id: String,
    /// One line, for tables.
    pub title: String,
    /// What of the machine it is about.
    pub category: Category,
    /// What it does and why that helps.
    pub what: String,
    /// What it costs, and what else to know before.
    pub caveat: String,
    /// How much can go wrong.
    pub risk: Risk,
    /// Processors (`x86_64`, `aarch64`, `powerpc64`, …) that have it; all, if empty.
    #[serde(default)]
    pub arch: Vec<String>,
    /// Kernels that have it, in words. A hint: what is there is looked for.
    pub kernel: String,
    /// For one that no current kernel has: what happened to it.
    pub gone: Option<String>,
    /// The entry that does today what this one did.
    pub successor: Option<String>,
    /// Whether it only works from the next boot on.
    #[serde(default)]
    pub reboot: bool,
    /// Whether programs on the node notice (CPUs vanish, a network card resets): never part of a plan with others.
    #[serde(default)]
    pub disruptive: bool,
    /// The row of IBM's page that it comes from.
    pub ibm: Option<String>,
    /// Where its facts come from.
    pub provenance: Vec<String>,
    /// What it takes away.
    pub noise: Vec<SourcePattern>,
    /// Noise that no recording can name, in words.
    #[serde(default)]
    pub noise_in_words: Vec<String>,
    /// Mitigations that come before this one in a plan.
    #[serde(default)]
    pub after: Vec<String>,
    /// Mitigations that may not be in one plan with it.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Mitigations without which it does less, and those that make it pointless, in words by id.
    #[serde(default)]
    pub see_also: Vec<String>,
    /// What it touches.
    #[serde(default)]
    pub knob: Vec<Knob>,
}

impl Mitigation {
    /// Whether it only does something for a job that is placed by hand.
    pub fn is_the_jobs(&self) -> bool {
        !self.knob.is_empty()
            && self.knob.iter().all(|knob| match knob {
                Knob::Process(_) | Knob::ByHand(_) => true,
                Knob::Cpuset(cpuset) => cpuset.what == CpusetKind::Job,
                _ => false,
            })
    }

    /// Whether it keeps noise from some CPUs by giving it to others, so that it helps only a job that leaves those alone.
    pub fn moves(&self) -> bool {
        self.knob.iter().any(|knob| match knob {
            Knob::Irq(_) | Knob::KernelThread(_) | Knob::Cpuset(_) => true,
            Knob::File(file) => file.want.needs_parts() || file.cpus != Part::All,
            Knob::Boot(boot) => boot.want.needs_parts(),
            Knob::DropIn(drop_in) => drop_in.content.needs_parts(),
            Knob::Process(process) => process.what == Property::Affinity,
            Knob::Unit(_) | Knob::Hold(_) | Knob::ByHand(_) => false,
        })
    }
}

/// What of a machine a mitigation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the words are the field's own")]
pub enum Category {
    Application,
    Boot,
    Firmware,
    Irq,
    Memory,
    Placement,
    Power,
    Rcu,
    Scheduler,
    Service,
    Smt,
    Timer,
    Watchdog,
    Workqueue,
}

/// How much can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing that a user of the node would notice but less noise.
    Low,
    /// A function of the node is missed by somebody.
    Medium,
    /// The node can hang, lose work or lose a protection.
    High,
    /// Not this machine's to change.
    External,
}

impl Risk {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::External => "external",
        }
    }
}

/// One thing that a mitigation touches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Knob {
    /// A file of the kernel's: below `/proc/sys`, `/proc/irq` or `/sys`.
    File(FileKnob),
    /// The affinity of interrupts.
    Irq(IrqKnob),
    /// The affinity of kernel threads.
    KernelThread(KernelThreadKnob),
    /// Affinity, policy or timer slack of a process that the plan is made for.
    Process(ProcessKnob),
    /// A unit of systemd that should not run.
    Unit(UnitKnob),
    /// Something that works while a file stays open.
    Hold(HoldKnob),
    /// A set of CPUs for the job, and one for the rest.
    Cpuset(CpusetKnob),
    /// An option on the kernel's command line: staged, in force after the next boot.
    Boot(BootKnob),
    /// A file of our own, in a folder that is made for such.
    DropIn(DropInKnob),
    /// Nothing that quell does: what to do by hand.
    ByHand(ByHandKnob),
}

/// See [`Knob::File`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileKnob {
    /// The file; `*` stands for any one part of a name. In `…/cpu*/…` it stands for the CPUs of [`Self::cpus`].
    pub path: String,
    /// What to write.
    pub want: Want,
    /// When it counts as done.
    #[serde(default)]
    pub compare: Compare,
    /// The CPUs whose files are meant, for a path with `/cpu*/`.
    #[serde(default)]
    pub cpus: Part,
    /// Files that the kernel changes with this one: they are kept and given back together.
    #[serde(default)]
    pub group: Vec<String>,
    /// Only where a file beside it says so: its name, and a regular expression for its text.
    pub r#where: Option<Where>,
    /// Whether nothing is missed where the file is not there.
    #[serde(default)]
    pub optional: bool,
}

/// A condition on a file in the same folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Where {
    /// Its name.
    pub file: String,
    /// A regular expression that its trimmed text must match.
    pub matches: String,
}

/// When a value counts as the wanted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The same word, number, list or mask, however it is written.
    #[default]
    Equal,
    /// A number that is not smaller.
    AtLeast,
    /// A number that is not larger.
    AtMost,
    /// A number that is not smaller, or 0, which stands for never.
    AtLeastOrZero,
    /// A number of µs that is not larger, but for 0, which stands for no limit; or `n/a`, which stands for no time at all.
    LatencyAtMost,
    /// CPUs, none of them outside the wanted ones.
    Within,
}

/// See [`Knob::Irq`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IrqKnob {
    /// A regular expression for the name that a driver gave its interrupt.
    pub matches: String,
    /// The CPUs.
    pub want: Part,
}

/// See [`Knob::KernelThread`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KernelThreadKnob {
    /// A regular expression for the thread's name.
    pub matches: String,
    /// The CPUs.
    pub want: Part,
}

/// See [`Knob::Process`]. Needs `--pid`, or a command under `apply --with`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProcessKnob {
    /// Which property.
    pub what: Property,
    /// CPUs as a list (`${compute}`), a policy (`fifo:1`, `other:0`), or nanoseconds.
    pub want: Want,
}

/// A property of a process and all its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// The CPUs that it may run on.
    Affinity,
    /// Scheduling policy and priority.
    Policy,
    /// How late its timers may be, ns.
    TimerSlack,
}

/// See [`Knob::Unit`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UnitKnob {
    /// Its name, with its type: `cron.service`.
    pub name: String,
    /// Processes that do the same work without systemd's knowing: a regular expression for their names.
    pub process: Option<String>,
}

/// See [`Knob::Hold`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HoldKnob {
    /// What is held.
    pub what: Held,
    /// The value that it is held at.
    pub want: Want,
}

/// What works while somebody keeps it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// `/dev/cpu_dma_latency`: the longest time, µs, that waking from an idle state may take.
    CpuDmaLatency,
    /// A datagram socket with time stamps on: it keeps the kernel from patching itself when others come and go.
    TimestampSocket,
}

/// See [`Knob::Cpuset`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CpusetKnob {
    /// How it is made.
    pub what: CpusetKind,
}

/// How CPUs are kept for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpusetKind {
    /// cgroup v1: a set with the compute CPUs, without load balancing, and one with the housekeeping CPUs that takes the root's tasks.
    Shield,
    /// cgroup v1: a set with the compute CPUs that a job may join; nobody is moved.
    Job,
    /// cgroup v2: an isolated partition of the compute CPUs.
    Isolated,
}

/// See [`Knob::Boot`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BootKnob {
    /// The option's name: `nohz_full`.
    pub option: String,
    /// Its value; empty for an option without one.
    pub want: Want,
    /// A kernel built without this (`CONFIG_…` in /proc/config.gz or /boot/config-RELEASE) does not know the option.
    pub config: Option<String>,
}

/// See [`Knob::DropIn`]. In force when what reads it next starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DropInKnob {
    /// `/etc/…/90-quell….conf`.
    pub path: String,
    /// What is in it.
    pub content: Want,
    /// A program that must be there for it to matter.
    pub r#if: Option<String>,
}

/// See [`Knob::ByHand`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ByHandKnob {
    /// What to do, as an instruction.
    pub r#do: String,
    /// How its state is seen, where it can be.
    pub look: Option<Look>,
}

/// What quell can see of what it does not change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "what")]
pub enum Look {
    /// Time that the hypervisor took, in `/proc/stat`. On: a machine without a hypervisor.
    Steal,
    /// A file: done if its text matches, not here if it is not there.
    File {
        /// The file.
        path: String,
        /// A regular expression for its trimmed text.
        matches: String,
    },
    /// Processes: done if none has such a name.
    NoProcess {
        /// A regular expression for their names.
        matches: String,
    },
    /// Interrupts: not here if none has such a name; else cannot tell.
    Irq {
        /// A regular expression for their names.
        matches: String,
    },
    /// Whether cores were given to the system by Slurm (`CpuSpecList`, `CoreSpecCount` in slurm.conf).
    SlurmCores,
}
