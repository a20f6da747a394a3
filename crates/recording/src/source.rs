//! What an interval of kernel activity is: the names of noise sources.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What took a CPU from a program, as the kernel names it. As text: `nmi`, `irq:NAME`, `softirq:NAME`, `tick`,
/// `ipi:KIND`, `task:COMM`, `fault`, `steal`. A name may hold any character: it comes from processes and drivers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A non-maskable interrupt.
    Nmi,
    /// The local timer's interrupt, whichever timers it ran.
    Tick,
    /// A device's interrupt, by the name that its driver registered.
    Irq(Arc<str>),
    /// Another CPU's interrupt: `reschedule`, `call_function`, `irq_work`, and so on.
    Ipi(Arc<str>),
    /// Deferred kernel work, by its vector: `TIMER`, `NET_RX`, `SCHED`, `RCU`, and so on.
    Softirq(Arc<str>),
    /// Another task that ran, by its comm.
    Task(Arc<str>),
    /// A page fault.
    Fault,
    /// Time that the hypervisor gave to others.
    Steal,
}

/// The kinds of source, in the order in which one interrupts another: an NMI interrupts all that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// [`Source::Nmi`].
    Nmi,
    /// [`Source::Tick`].
    Tick,
    /// [`Source::Irq`].
    Irq,
    /// [`Source::Ipi`].
    Ipi,
    /// [`Source::Softirq`].
    Softirq,
    /// [`Source::Task`].
    Task,
    /// [`Source::Fault`].
    Fault,
    /// [`Source::Steal`].
    Steal,
}

impl SourceKind {
    /// All of them, in their order.
    pub const ALL: [Self; 8] =
        [Self::Nmi, Self::Tick, Self::Irq, Self::Ipi, Self::Softirq, Self::Task, Self::Fault, Self::Steal];

    /// The word for it: `nmi`, `tick`, `irq`, `ipi`, `softirq`, `task`, `fault`, `steal`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nmi => "nmi",
            Self::Tick => "tick",
            Self::Irq => "irq",
            Self::Ipi => "ipi",
            Self::Softirq => "softirq",
            Self::Task => "task",
            Self::Fault => "fault",
            Self::Steal => "steal",
        }
    }
}

impl Source {
    /// Which kind it is.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Nmi => SourceKind::Nmi,
            Self::Tick => SourceKind::Tick,
            Self::Irq(_) => SourceKind::Irq,
            Self::Ipi(_) => SourceKind::Ipi,
            Self::Softirq(_) => SourceKind::Softirq,
            Self::Task(_) => SourceKind::Task,
            Self::Fault => SourceKind::Fault,
            Self::Steal => SourceKind::Steal,
        }
    }

    /// Its own name, for the kinds that have one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Irq(name) | Self::Ipi(name) | Self::Softirq(name) | Self::Task(name) => Some(name),
            _ => None,
        }
    }

    fn parts(&self) -> (&'static str, Option<&str>) {
        (self.kind().name(), self.name())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (kind, None) => f.pad(kind),
            (kind, Some(name)) if f.width().is_none() && f.precision().is_none() => {
                write!(f, "{kind}:{name}")
            }
            (kind, Some(name)) => f.pad(&format!("{kind}:{name}")),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').map_or((text, None), |(kind, name)| (kind, Some(name)));
        Ok(match (kind, name) {
            ("nmi", None) => Self::Nmi,
            ("tick", None) => Self::Tick,
            ("fault", None) => Self::Fault,
            ("steal", None) => Self::Steal,
            ("irq", Some(name)) => Self::Irq(name.into()),
            ("ipi", Some(name)) => Self::Ipi(name.into()),
            ("softirq", Some(name)) => Self::Softirq(name.into()),
            ("task", Some(name)) => Self::Task(name.into()),
            _ => return Err(format!("`{text}` is not the name of a noise source")),
        })
    }
}
