//! Classes of sources.

use quell_recording::columns::{AsValue, Value, ValueKind};
use quell_recording::{Source, SourceKind};
use schemars::JsonSchema;
use serde::Serialize;

/// Kinds of noise, after Jones, Brenner & Fier, "Impacts of Operating Systems on the Scalability of Parallel
/// Applications", LLNL 2003, sections 4.2 and 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Short periodic interrupts.
    Type1,
    /// Daemons and other tasks that the kernel scheduled.
    Type2,
    /// Interrupts without a period.
    Interrupt,
    /// Time that the hypervisor took.
    Hypervisor,
    /// Time that is not attributed.
    Unattributed,
    /// quell itself, which is not noise of the node.
    Own,
}

impl Class {
    /// That of a source; `own` is quell itself. Whether an interrupt has a period is not known here.
    pub(crate) fn from_source(source: &Source, own: bool) -> Self {
        if own {
            return Self::Own;
        }
        match source.kind() {
            SourceKind::Task => Self::Type2,
            SourceKind::Steal => Self::Hypervisor,
            SourceKind::Nmi
            | SourceKind::Tick
            | SourceKind::Irq
            | SourceKind::Ipi
            | SourceKind::Softirq
            | SourceKind::Fault => Self::Interrupt,
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Type1 => "type1",
            Self::Type2 => "type2",
            Self::Interrupt => "interrupt",
            Self::Hypervisor => "hypervisor",
            Self::Unattributed => "unattributed",
            Self::Own => "own",
        }
    }

    pub(super) fn meaning(&self) -> &'static str {
        match self {
            Self::Type1 => "short interrupts with a period",
            Self::Type2 => "daemons and other tasks",
            Self::Interrupt => "interrupts without a period",
            Self::Hypervisor => "time that the hypervisor took",
            Self::Unattributed => "what nothing explains",
            Self::Own => "quell itself",
        }
    }
}

impl AsValue for Class {
    const KIND: ValueKind = ValueKind::Text;

    fn value(&self) -> Value {
        Value::Text(self.name().to_owned())
    }
}
