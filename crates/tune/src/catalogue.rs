//! The catalogue: known ways to remove or move noise, one TOML file per mitigation (`crates/tune/catalogue`), and a site's own
//! files in addition (`/etc/quell/mitigations.d`).

mod load;
mod site;
#[cfg(test)]
mod tests;
mod values;
mod want;

use std::collections::BTreeMap;

pub use load::{Catalogue, CatalogueError};
use quell_recording::SourcePattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub(crate) use site::read_site;
pub use want::{Fills, Part, Want};

/// In a knob's path: the folder of each selected CPU.
pub(super) const EACH_CPU: &str = "/cpu*/";

/// A change that removes or moves noise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mitigation {
    /// Its id: lower case and hyphens; also the file's name.
    pub id: String,
    /// One line, for tables.
    pub title: String,
    /// The part of the machine that it changes.
    pub category: Category,
    /// What it does and why that helps.
    pub what: String,
    /// Its cost, and what else to know before applying it.
    pub caveat: String,
    /// How much can go wrong.
    pub risk: Risk,
    /// Processors (`x86_64`, `aarch64`, `powerpc64`, …) to which it applies; all, if empty.
    #[serde(default)]
    pub arch: Vec<String>,
    /// Kernel versions to which it applies, as text. Only a hint: quell checks what the machine has.
    pub kernel: String,
    /// For a mitigation that no current kernel offers: what happened to it.
    pub gone: Option<String>,
    /// The mitigation that has the same effect today.
    pub successor: Option<String>,
    /// Whether it takes effect only from the next boot on.
    #[serde(default)]
    pub reboot: bool,
    /// Whether programs on the node notice (CPUs vanish, a network card resets): it must be alone in a plan.
    #[serde(default)]
    pub disruptive: bool,
    /// Seconds until it has taken effect, or lost it, after its settings were written; `tune try` waits for that.
    #[serde(default)]
    pub settle_s: u64,
    /// The row of IBM's page from which it comes.
    pub ibm: Option<String>,
    /// Sources of its facts.
    pub provenance: Vec<String>,
    /// The noise sources that it removes.
    pub noise: Vec<SourcePattern>,
    /// Noise that no recording can name, as text.
    #[serde(default)]
    pub noise_in_words: Vec<String>,
    /// Mitigations that precede this one in a plan.
    #[serde(default)]
    pub after: Vec<String>,
    /// Mitigations of which one must be done, or a program of the node changes this one's settings back. The first stops the program.
    #[serde(default)]
    pub undone_without: Vec<String>,
    /// Mitigations that must not be in one plan with it.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Ids of mitigations without which it has less effect, and of those that make it pointless.
    #[serde(default)]
    pub see_also: Vec<String>,
    /// What it touches.
    #[serde(default)]
    pub knob: Vec<Knob>,
}

impl Mitigation {
    /// Whether it only helps a job whose processes are placed explicitly.
    pub fn affects_only_job_processes(&self) -> bool {
        !self.knob.is_empty()
            && self.knob.iter().all(|knob| match knob {
                Knob::Process(_) | Knob::ByHand(_) => true,
                Knob::Cpuset(cpuset) => cpuset.what == CpusetKind::Job,
                _ => false,
            })
    }

    /// Whether it moves noise from some CPUs to others, so that it helps only a job that does not use those.
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

/// The part of the machine that a mitigation changes.
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

/// The worst that applying it can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Users of the node notice nothing except less noise.
    Low,
    /// May disable a feature that someone uses.
    Medium,
    /// The node can hang, lose work or lose a protection.
    High,
    /// Must be changed outside of this machine.
    External,
}

impl Risk {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::External => "external",
        }
    }
}

/// One kind of thing that a mitigation changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Knob {
    /// A kernel file: below `/proc/sys`, `/proc/irq` or `/sys`.
    File(FileKnob),
    /// The affinity of interrupts.
    Irq(IrqKnob),
    /// The affinity of kernel threads.
    KernelThread(KernelThreadKnob),
    /// Affinity, policy or timer slack of the process for which the plan is made.
    Process(ProcessKnob),
    /// A systemd unit that should not run.
    Unit(UnitKnob),
    /// Something that has an effect while a file stays open.
    Hold(HoldKnob),
    /// A cpuset for the job, and one for the rest.
    Cpuset(CpusetKnob),
    /// An option on the kernel's command line: staged, takes effect after the next boot.
    Boot(BootKnob),
    /// A file of quell's own, in a drop-in folder.
    DropIn(DropInKnob),
    /// A step that quell does not do: an instruction for the user.
    ByHand(ByHandKnob),
}

/// See [`Knob::File`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileKnob {
    /// The file; `*` matches any part of a name. In `…/cpu*/…` it stands for the CPUs of [`Self::cpus`].
    pub path: String,
    /// The value to write.
    pub want: Want,
    /// When the current value counts as the wanted one.
    #[serde(default)]
    pub compare: Compare,
    /// Values that are stricter than the wanted one, and count as it: a site that has one of them is not made worse.
    #[serde(default)]
    pub stricter: Vec<String>,
    /// The CPUs whose files are changed, for a path with `/cpu*/`.
    #[serde(default)]
    pub cpus: Part,
    /// Files that the kernel changes together with this one: they are saved and restored together.
    #[serde(default)]
    pub group: Vec<String>,
    /// Other settings that the kernel may change when this one is written: they are restored after it. Paths as [`Self::path`], or relative to
    /// the folder of the file.
    #[serde(default)]
    pub dependents: Vec<String>,
    /// A condition on a file in the same folder: its name, and a regular expression for its text.
    pub r#where: Option<Where>,
    /// The same limit in bytes, for a limit in percent of memory. If that file is not 0, the kernel ignores this one.
    pub in_bytes: Option<String>,
    /// Whether the file may be absent without anything missing.
    #[serde(default)]
    pub optional: bool,
}

impl FileKnob {
    /// The patterns of the dependents of one of its files.
    pub(crate) fn dependents_of(&self, path: &str) -> impl Iterator<Item = String> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.dependents.iter().map(move |pattern| match pattern.starts_with('/') {
            true => pattern.clone(),
            false => format!("{folder}/{pattern}"),
        })
    }
}

/// A condition on a file in the same folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Where {
    /// The file's name.
    pub file: String,
    /// A regular expression that its trimmed text must match.
    pub matches: String,
}

/// When a value counts as the wanted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The same word, number, list or mask, in any notation.
    #[default]
    Equal,
    /// A number that is not smaller.
    AtLeast,
    /// A number that is not larger.
    AtMost,
    /// A number that is not larger, except 0, which means that there is no limit or that another file has it. Of an array, each number.
    AtMostNotZero,
    /// Numbers, of which the first is not larger.
    FirstAtMost,
    /// A number that is not smaller, or 0, which means never.
    AtLeastOrZero,
    /// A number of µs that is not larger, except 0, which means no limit; or `n/a`, which means no latency at all.
    LatencyAtMost,
    /// CPUs, all of them among the wanted ones.
    Within,
    /// CPUs, the wanted ones among them.
    Covers,
}

/// See [`Knob::Irq`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IrqKnob {
    /// A regular expression for the interrupt's name, which its driver chose.
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

/// See [`Knob::Process`]. Requires `--pid`, or a command under `apply --with`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProcessKnob {
    /// The property to change.
    pub what: Property,
    /// CPUs as a list (`${compute}`), a policy (`fifo:1`, `other:0`), or nanoseconds.
    pub want: Want,
}

/// A property of a process and all its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// The CPUs on which it may run.
    Affinity,
    /// Scheduling policy and priority.
    Policy,
    /// Timer slack, ns: how late its timers may expire.
    TimerSlack,
}

/// See [`Knob::Unit`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UnitKnob {
    /// Its name, with its type: `cron.service`.
    pub name: String,
    /// Processes that do the same work without systemd: a regular expression for their names.
    pub process: Option<String>,
}

/// See [`Knob::Hold`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HoldKnob {
    /// What to hold.
    pub what: Held,
    /// The value to hold it at.
    pub want: Want,
}

/// Settings that last only while a file descriptor is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// `/dev/cpu_dma_latency`: the maximum latency, µs, of waking from an idle state.
    CpuDmaLatency,
    /// A datagram socket with time stamps enabled: it keeps the kernel from patching its code each time the first such socket is opened
    /// and the last one closed.
    TimestampSocket,
}

/// See [`Knob::Cpuset`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CpusetKnob {
    /// The kind of cpuset.
    pub what: CpusetKind,
}

/// How CPUs are reserved for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpusetKind {
    /// cgroup v1: a set with the compute CPUs, without load balancing, and one with the housekeeping CPUs for the root set's tasks.
    Shield,
    /// cgroup v1: a set with the compute CPUs that a job may join; no task is moved.
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
    /// Its value; empty for an option without a value.
    pub want: Want,
    /// When the value of this boot counts as the wanted one. Flags before a CPU list must be there in any case.
    #[serde(default)]
    pub compare: Compare,
    /// Values that are stricter than the wanted one, or another notation of it, and count as it.
    #[serde(default)]
    pub stricter: Vec<String>,
    /// A kernel built without this (`CONFIG_…` in /proc/config.gz or /boot/config-RELEASE) ignores the option.
    pub config: Option<String>,
    /// The first version that has `config`; an older one knows the option without it.
    pub config_since: Option<String>,
    /// A kernel built with this does it without the option.
    pub built_in: Option<String>,
    /// Flags of the value that not all kernels know, each with the first version. An older kernel is not asked for them.
    #[serde(default)]
    pub flags_since: BTreeMap<String, String>,
}

/// See [`Knob::DropIn`]. Takes effect when the program that reads it next starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DropInKnob {
    /// `/etc/…/90-quell….conf`.
    pub path: String,
    /// Its text.
    pub content: Want,
    /// A program that must be installed for the file to matter.
    pub r#if: Option<String>,
}

/// See [`Knob::ByHand`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ByHandKnob {
    /// The instruction.
    pub r#do: String,
    /// How to see its state, if that is possible.
    pub look: Option<ManualCheck>,
}

/// Ways to see the state of something that quell does not change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "what")]
pub enum ManualCheck {
    /// Time stolen by the hypervisor, in `/proc/stat`. On: a machine without a hypervisor.
    Steal,
    /// A file: done if its text matches, not here if the file does not exist.
    File {
        /// The file.
        path: String,
        /// A regular expression for its trimmed text.
        matches: String,
    },
    /// Processes: done if none has a matching name.
    NoProcess {
        /// A regular expression for their names.
        matches: String,
    },
    /// Processes and kernel threads: not here if none has a matching name; otherwise the state is not visible.
    Process {
        /// A regular expression for their names.
        matches: String,
    },
    /// Interrupts: not here if none has a matching name; otherwise the state is not visible.
    Irq {
        /// A regular expression for their names.
        matches: String,
    },
    /// Whether Slurm reserves cores of this node for the system (`CpuSpecList`, `CoreSpecCount` in slurm.conf).
    SlurmCores,
    /// Whether irqbalance leaves the compute CPUs alone: not here if the file does not exist.
    BannedCpus {
        /// The file of its environment.
        path: String,
    },
}
