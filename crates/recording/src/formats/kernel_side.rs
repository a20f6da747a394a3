//! Converts the kernel's tracepoints, from any tool that records them, to intervals.

mod cpu;
mod dump;
mod events;
mod text;
pub(super) mod trace_dat;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use self::cpu::OneCpu;
pub(super) use self::dump::ANCHORS;
pub(super) use self::dump::{read_detours as read_detour_list, read_events as read_event_list};
pub(super) use self::text::{Line, read_ftrace, read_perf};
use super::content::{Content, KernelCpu, Rows};
use super::histograms::Counts;
use crate::{Cpu, HistogramKind, Method, Nanos, Quanta, Source, SourcesFacts, Span, Warning};

/// What the begin and the end of an interval have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// An interrupt's vector.
    Vector(u32),
    /// A device's interrupt.
    Irq(u32),
    Softirq(u32),
    /// An IPI on machines where the kernel does not number them.
    Ipi,
}

/// An event, in the terms of this crate. Times are ns on the trace's clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Enter(Key, Source),
    Exit(Key),
    /// A switch to a task.
    Switch {
        pid: u32,
        comm: Arc<str>,
    },
    /// Something has ended, with its start and the time that it took net of interruptions.
    Ended {
        source: Source,
        pid: u32,
        start: u64,
        net: u64,
    },
    /// Something has ended, with its duration.
    Took {
        source: Source,
        ns: u64,
    },
    /// A gap that a loop saw.
    Gap {
        start: u64,
        duration: u64,
    },
    /// A period of observation has ended, with the noise in it.
    Period {
        watched: u64,
        noise: u64,
    },
    /// A timer was late.
    Late {
        kind: HistogramKind,
        ns: u64,
    },
    /// An event that is not noise.
    Other,
}

/// Keeps one copy of each name.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Arc<str>>);

impl Names {
    pub fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.0.insert(name.to_owned(), Arc::clone(&new));
        new
    }
}

/// Collects events, each CPU's in order of time.
#[derive(Debug, Default)]
pub(super) struct Events {
    cpus: BTreeMap<Cpu, OneCpu>,
    pub names: Names,
    /// Number of events that the tool lost.
    pub lost: u64,
    pub warnings: Vec<Warning>,
    /// Number of events of each kind that does not concern noise.
    others: BTreeMap<String, u64>,
    seen: Seen,
}

/// The kinds of event that occur. Nothing is known about the others.
#[derive(Debug, Default)]
struct Seen {
    vectors: bool,
    irqs: bool,
    softirqs: bool,
    switches: bool,
    nmis: bool,
    /// Events of the osnoise tracer, which cover all kinds.
    osnoise: bool,
}

impl Seen {
    fn see(&mut self, what: &What) {
        match what {
            What::Enter(Key::Vector(_) | Key::Ipi, _) => self.vectors = true,
            What::Enter(Key::Irq(_), _) => self.irqs = true,
            What::Enter(Key::Softirq(_), _) => self.softirqs = true,
            What::Switch { .. } => self.switches = true,
            What::Took { .. } => self.nmis = true,
            What::Ended { .. } => self.osnoise = true,
            _ => {}
        }
    }

    fn missing(&self) -> Vec<String> {
        let all = [
            (
                self.vectors,
                "the timer's and other CPUs' interrupts: the trace has no events of `irq_vectors`",
            ),
            (self.irqs, "interrupts of devices: the trace has no `irq_handler_entry`"),
            (self.softirqs, "softirqs: the trace has no `softirq_entry`"),
            (self.switches, "tasks: the trace has no `sched_switch`"),
            (self.nmis, "NMIs: the trace has no `nmi_handler`"),
        ];
        let none = |(seen, what): (bool, &str)| (!seen && !self.osnoise).then(|| what.to_owned());
        let faults = "page faults and stolen time: traces do not record how long they took".to_owned();
        all.into_iter().filter_map(none).chain([faults]).collect()
    }
}

/// The usable content of a trace.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    gaps: usize,
    intervals: usize,
    periods: usize,
    late: usize,
    cut: u64,
}

impl Events {
    /// Adds one event; `name` is the tool's name for it.
    pub fn push(&mut self, cpu: Cpu, now: u64, name: &str, what: What) -> Result<(), String> {
        self.seen.see(&what);
        if what == What::Other {
            match self.others.get_mut(name) {
                Some(count) => *count += 1,
                None => {
                    self.others.insert(name.to_owned(), 1);
                }
            }
        }
        self.cpus.entry(cpu).or_insert_with(|| OneCpu::new(now)).push(now, what)
    }

    /// Events of a CPU were lost at this place.
    fn lose(&mut self, cpu: Cpu) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.lose();
        }
    }

    /// Converts to a recording's content; `zero_is_monotonic` states that the clock is CLOCK_MONOTONIC.
    pub fn content(mut self, note: &str, zero_is_monotonic: bool) -> Result<Content, String> {
        self.cpus.values_mut().for_each(OneCpu::prefer_osnoise);
        let held = self.held();
        let zero = self.cpus.values().map(OneCpu::first).min().unwrap_or(0);
        let mut content = if held.gaps + held.intervals > 0 {
            self.intervals(note, zero, held)
        } else if held.periods > 0 {
            self.periods(note, zero)
        } else if held.late > 0 {
            self.late(note)
        } else {
            return Err(self.nothing());
        };
        if zero_is_monotonic {
            content.manifest.zero_monotonic_ns = Some(zero);
        }
        self.left_out(held);
        content.manifest.warnings.append(&mut self.warnings);
        Ok(content)
    }

    fn held(&self) -> Held {
        self.cpus.values().fold(Held::default(), |sum, cpu| Held {
            gaps: sum.gaps + cpu.gaps.len(),
            intervals: sum.intervals + cpu.intervals.len(),
            periods: sum.periods + cpu.periods.len(),
            late: sum.late + cpu.late.len(),
            cut: sum.cut + cpu.cut,
        })
    }

    fn nothing(&self) -> String {
        let mut seen: Vec<(&String, &u64)> = self.others.iter().collect();
        seen.sort_by(|a, b| b.1.cmp(a.1));
        let seen: Vec<String> =
            seen.iter().take(4).map(|(name, count)| format!("{count} {}", super::printable(name))).collect();
        let seen = if seen.is_empty() { "no event".into() } else { seen.join(", ") };
        format!(
            "the trace says nothing of noise (it has {seen}): record irq_vectors, irq, nmi and sched:sched_switch, or the osnoise tracer"
        )
    }

    fn left_out(&mut self, held: Held) {
        let used = held.gaps + held.intervals;
        let left = |out: bool, count: usize| if out { count as u64 } else { 0 };
        let cut = held.cut;
        let (periods, latencies) = (left(used > 0, held.periods), left(used + held.periods > 0, held.late));
        if cut + periods + latencies > 0 {
            self.warnings.push(Warning::EventsLeftOut { cut, periods, latencies });
        }
        if self.lost > 0 {
            self.warnings.push(Warning::EventsLost { events: self.lost });
        }
    }

    fn intervals(&mut self, note: &str, zero: u64, held: Held) -> Content {
        let mut sides = Vec::new();
        for (cpu, mut one) in std::mem::take(&mut self.cpus) {
            let (intervals, detours) = (one.take_intervals(zero), one.take_gaps(zero));
            let [start, end] = [one.first() - zero, one.last - zero].map(Nanos::from_nanos);
            let ends =
                intervals.iter().map(crate::Interval::end).chain(detours.iter().map(crate::Detour::end));
            let span = Span { start, end: ends.max().unwrap_or(end).max(end) };
            sides.push(KernelCpu { cpu, span, detours, intervals });
        }
        let method = if held.gaps > 0 { Method::Detour } else { Method::Kernel };
        let mut content = Content::new(method, note, Rows::Kernel(sides));
        content.manifest.sources =
            Some(SourcesFacts { missing: self.seen.missing(), lost: self.lost, ..SourcesFacts::default() });
        content
    }

    fn periods(&mut self, note: &str, zero: u64) -> Content {
        let quanta = |(cpu, one): (&Cpu, &OneCpu)| Quanta { cpu: *cpu, quanta: one.quanta(zero) };
        let rows = self.cpus.iter().map(quanta).filter(|series| !series.quanta.is_empty()).collect();
        self.warnings.push(Warning::QuantaArePeriods);
        Content::new(Method::Ftq, note, Rows::Quanta(rows))
    }

    fn late(&mut self, note: &str) -> Content {
        let mut counts = Counts::default();
        for (cpu, one) in &self.cpus {
            counts.watch(*cpu, Nanos::from_nanos(one.last - one.first()));
            for (kind, ns) in &one.late {
                // A count of one cannot overflow.
                let _ = counts.add((*cpu, 0, *kind), *ns, *ns, 1);
            }
        }
        counts.content(note)
    }
}

#[cfg(test)]
mod tests;
