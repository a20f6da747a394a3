//! The content of another tool's file, and its conversion to a recording.

use std::collections::BTreeMap;
use std::path::Path;

use crate::histogram::check_buckets;
use crate::read::check_detours;
use crate::{
    Cpu, CpuFacts, Detour, Histogram, Interval, Intervals, Manifest, Method, Nanos, Phase, Quanta, Quantum,
    Recording, Span, State, Trace,
};

/// The result of a reader: rows, and a manifest without the CPUs.
#[derive(Debug)]
pub(super) struct Content {
    pub manifest: Manifest,
    pub rows: Rows,
}

/// The rows of one kind.
#[derive(Debug)]
pub(super) enum Rows {
    Detours(Vec<Trace>),
    Quanta(Vec<Quanta>),
    Phases(Vec<(Cpu, Phase)>),
    Kernel(Vec<KernelCpu>),
    Histograms(Vec<(Histogram, Span)>),
}

/// The kernel's intervals on a CPU, and the gaps that a loop there saw.
#[derive(Debug)]
pub(super) struct KernelCpu {
    pub cpu: Cpu,
    pub span: Span,
    pub detours: Vec<Detour>,
    pub intervals: Vec<Interval>,
}

/// Another tool's file as a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// As [`Recording::open`] would read it.
    pub recording: Recording,
    /// As [`crate::read_phases`] would read them; empty unless the method is [`Method::Phases`].
    pub phases: Vec<(Cpu, Phase)>,
}

impl Content {
    pub fn new(method: Method, note: &str, rows: Rows) -> Self {
        let mut manifest = Manifest::new(method, State::Imported);
        manifest.note = Some(format!("imported from {note}"));
        Self { manifest, rows }
    }

    /// Checks the rows for what every user of them relies on.
    pub fn finish(self, path: &Path) -> Result<Imported, String> {
        let Self { mut manifest, rows } = self;
        let (mut traces, mut quanta, mut phases) = (Vec::new(), Vec::new(), Vec::new());
        let (mut intervals, mut counted) = (Vec::new(), Vec::new());
        match rows {
            Rows::Detours(found) => traces = found,
            Rows::Quanta(found) => quanta = found,
            Rows::Phases(found) => phases = found,
            Rows::Kernel(found) => {
                for KernelCpu { cpu, span, detours, intervals: of_cpu } in found {
                    traces.push(Trace { cpu, span, detours });
                    intervals.push(Intervals { cpu, intervals: of_cpu });
                }
                manifest.sources.get_or_insert_default();
            }
            Rows::Histograms(found) => counted = found,
        }
        for trace in &traces {
            check_detours(trace.cpu, trace.span, &trace.detours)?;
        }
        if !phases.is_empty() {
            phases.sort_by_key(|(_, phase)| (phase.rank, phase.index));
            quanta = quanta_of(&phases);
        }
        manifest.cpus = traces.iter().map(|trace| CpuFacts::from_span(trace.cpu, trace.span)).collect();
        for series in &quanta {
            manifest.cpus.push(CpuFacts::from_span(series.cpu, span_of(series)?));
        }
        let mut histograms = Vec::new();
        for (histogram, span) in counted {
            check_buckets(histogram.cpu, &histogram.buckets)?;
            manifest.cpus.push(CpuFacts::from_span(histogram.cpu, span));
            histograms.push(histogram);
        }
        let recording = Recording::from_traces(path, manifest, traces);
        let recording = Recording { quanta, intervals, histograms, ..recording };
        Ok(Imported { recording, phases })
    }
}

/// Phases as a reader of quanta sees them.
fn quanta_of(phases: &[(Cpu, Phase)]) -> Vec<Quanta> {
    let mut of_cpu: BTreeMap<Cpu, Vec<Quantum>> = BTreeMap::new();
    for (cpu, phase) in phases {
        let quantum = Quantum { start: phase.start, duration: phase.compute, work: phase.work };
        of_cpu.entry(*cpu).or_default().push(quantum);
    }
    let in_order = |(cpu, mut quanta): (Cpu, Vec<Quantum>)| {
        quanta.sort_by_key(|quantum| quantum.start);
        Quanta { cpu, quanta }
    };
    of_cpu.into_iter().map(in_order).collect()
}

fn span_of(series: &Quanta) -> Result<Span, String> {
    let mut end = Nanos::ZERO;
    for quantum in &series.quanta {
        let until = quantum.start.checked_add(quantum.duration).ok_or("a quantum ends beyond all time")?;
        end = end.max(until);
    }
    Ok(Span { start: Nanos::ZERO, end })
}

/// Consecutive quanta, for formats that do not record when each began.
#[derive(Debug, Default)]
pub(super) struct Row {
    end: Nanos,
    pub quanta: Vec<Quantum>,
}

impl Row {
    pub fn push(&mut self, duration: Nanos, work: u64, line: usize) -> Result<(), String> {
        let start = self.end;
        self.end = start
            .checked_add(duration)
            .ok_or_else(|| format!("line {line}: the quanta together last beyond all time"))?;
        self.quanta.push(Quantum { start, duration, work });
        Ok(())
    }
}

/// A span from zero to the last detour's end.
pub(super) fn span_to_last(detours: &[Detour]) -> Span {
    Span { start: Nanos::ZERO, end: detours.last().map_or(Nanos::ZERO, Detour::end) }
}

pub(super) fn trace_of(cpu: Cpu, mut detours: Vec<Detour>, span: Option<Span>) -> Trace {
    detours.sort_by_key(|d| d.start);
    let span = span.unwrap_or_else(|| span_to_last(&detours));
    Trace { cpu, span, detours }
}
