//! The events on a timeline, and their tracks.

use super::schema::DebugAnnotation;
use crate::display_text::one_line;
use crate::{
    Cpu, CpuFacts, Detour, Interval, MemoryName, Nanos, Quantum, Source, SourceKind, SourceLevel, Thread,
};

/// The tracks of a CPU or a thread, from top to bottom. Below the detours, each level can interrupt all levels that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Watched,
    Detours,
    Quanta,
    Nmi,
    Hardirq,
    Softirq,
    Tasks,
    Faults,
    Steal,
}

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Watched => "watched",
            Self::Detours => "detours",
            Self::Quanta => "quanta",
            Self::Nmi => "nmi",
            Self::Hardirq => "hardirq",
            Self::Softirq => "softirq",
            Self::Tasks => "tasks",
            Self::Faults => "faults",
            Self::Steal => "steal (windows)",
        }
    }

    /// The description of the track for the reader.
    pub(super) fn description(self) -> Option<&'static str> {
        match self {
            Self::Detours => Some("What the program on this CPU felt."),
            Self::Steal => Some(
                "Windows in each of which the hypervisor took net_ns from this CPU; where in the window is not known.",
            ),
            _ => None,
        }
    }
}

/// One slice.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    Cpu(&'a CpuFacts),
    Thread(&'a Thread),
    Detour(&'a Detour),
    Quantum(&'a Quantum, Option<MemoryName>),
    Interval(Cpu, &'a Interval),
}

impl Event<'_> {
    pub(super) fn start(&self) -> Nanos {
        match self {
            Self::Cpu(facts) => facts.start_ns,
            Self::Thread(thread) => thread.start,
            Self::Detour(detour) => detour.start,
            Self::Quantum(quantum, _) => quantum.start,
            Self::Interval(_, interval) => interval.start,
        }
    }

    /// Its end; never before its start, whatever the file contains.
    pub(super) fn end(&self) -> Nanos {
        match self {
            Self::Cpu(facts) => facts.end_ns.max(facts.start_ns),
            Self::Thread(thread) => thread.end.max(thread.start),
            Self::Detour(detour) => detour.end(),
            Self::Quantum(quantum, _) => quantum.start + quantum.duration,
            Self::Interval(_, interval) => interval.end(),
        }
    }

    pub(super) fn level(&self) -> Level {
        match self {
            Self::Cpu(_) | Self::Thread(_) => Level::Watched,
            Self::Detour(_) => Level::Detours,
            Self::Quantum(..) => Level::Quanta,
            Self::Interval(_, interval) => match interval.source.kind() {
                SourceKind::Fault => Level::Faults,
                SourceKind::Steal => Level::Steal,
                other => match other.level() {
                    SourceLevel::Nmi => Level::Nmi,
                    SourceLevel::Hardirq => Level::Hardirq,
                    SourceLevel::Softirq => Level::Softirq,
                    SourceLevel::Task => Level::Tasks,
                },
            },
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Cpu(_) | Self::Thread(_) => "watched".to_owned(),
            Self::Detour(Detour { own: true, .. }) => "detour (quell's own)".to_owned(),
            Self::Detour(_) => "detour".to_owned(),
            Self::Quantum(_, level) => level.map_or("quantum", MemoryName::slice).to_owned(),
            Self::Interval(_, Interval { source: Source::Steal, .. }) => "steal window".to_owned(),
            Self::Interval(_, interval) => one_line(&interval.source.to_string()),
        }
    }

    pub(super) fn category(&self) -> &'static str {
        match self {
            Self::Interval(_, interval) => interval.source.kind().name(),
            _ => self.level().name(),
        }
    }

    pub(super) fn annotations(&self) -> Vec<DebugAnnotation> {
        let number = DebugAnnotation::number;
        match self {
            Self::Cpu(facts) => vec![number("lost", facts.lost)],
            Self::Thread(thread) => vec![
                number("pid", thread.pid.into()),
                number("tid", thread.tid.into()),
                number("on_cpu_ns", thread.on_cpu.as_nanos()),
                number("run_delay_ns", thread.run_delay.as_nanos()),
                number("yielded_ns", thread.yielded.time.as_nanos()),
                number("moved_ns", thread.moved.time.as_nanos()),
            ],
            Self::Detour(_) => Vec::new(),
            Self::Quantum(_, Some(_)) => Vec::new(),
            Self::Quantum(quantum, None) => vec![number("work", quantum.work)],
            Self::Interval(cpu, interval) => annotations_of(*cpu, interval),
        }
    }
}

fn annotations_of(cpu: Cpu, interval: &Interval) -> Vec<DebugAnnotation> {
    let number = |name, value: u32| (value != 0).then(|| DebugAnnotation::number(name, value.into()));
    let text = |name, value: &Option<_>| {
        value.as_ref().map(|value: &std::sync::Arc<str>| DebugAnnotation::text(name, one_line(value)))
    };
    let always = [
        DebugAnnotation::number("net_ns", interval.net.as_nanos()),
        DebugAnnotation::number("cpu", cpu.0.into()),
    ];
    let optional = [
        number("pid", interval.pid),
        number("victim", interval.victim),
        text("detail", &interval.detail),
        text("cause", &interval.cause),
    ];
    always.into_iter().chain(optional.into_iter().flatten()).collect()
}
