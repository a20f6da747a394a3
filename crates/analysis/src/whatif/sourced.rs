//! The noise of a node with each detour shared out among its sources: what every what-if starts from.

use std::collections::HashMap;
use std::sync::Arc;

use quell_recording::{Cpu, Detour, Interval, Nanos, Recording, Source, SourceKind, Span, Trace};
use quell_sim::{Model, ModelError};

use crate::attribution::{By, Laid, laid_out};
use crate::predict::NodeNoise;

/// What nothing explains, and noise whose sources nobody recorded.
pub const UNATTRIBUTED: &str = "unattributed";

/// What took part of a detour: a source at work on something, a model's component, or nobody known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The source, where it is known.
    pub source: Option<Source>,
    /// What it worked at, where that is known.
    pub detail: Option<Arc<str>>,
    /// The name under which it is summed up; see [`family`].
    pub family: Arc<str>,
}

impl Kind {
    fn of(interval: &Interval) -> Self {
        let family = family(&interval.source).into();
        Self {
            source: Some(interval.source.clone()),
            detail: interval.detail.as_deref().map(Arc::from),
            family,
        }
    }

    /// One that has but a name; a name of a source's form is that source.
    fn named(name: &str) -> Self {
        let source: Option<Source> = name.parse().ok();
        let family = source.as_ref().map_or_else(|| name.to_owned(), family);
        Self { source, detail: None, family: family.into() }
    }
}

/// The name of a source without the numbers that tell one CPU's worker from another's: `task:kworker/1:2` is `task:kworker`.
pub fn family(source: &Source) -> String {
    match (source.kind(), source.name()) {
        (SourceKind::Task, Some(name)) => {
            format!("task:{}", name.split_once('/').map_or(name, |(first, _)| first))
        }
        _ => source.to_string(),
    }
}

/// A part of a detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: Nanos,
    pub ns: u64,
    /// The number of a kind.
    pub kind: u32,
    /// Which kind would have this time, were that not there.
    pub under: Option<u32>,
}

impl Piece {
    pub(crate) fn end(self) -> Nanos {
        self.start + Nanos::from_nanos(self.ns)
    }
}

/// One CPU: the parts of its detours, in order. Those that touch are one detour.
#[derive(Clone, Debug)]
pub(crate) struct SourcedTrace {
    pub cpu: Cpu,
    pub span: Span,
    pub pieces: Vec<Piece>,
}

impl SourcedTrace {
    /// The parts of each detour.
    pub(crate) fn detours(&self) -> impl Iterator<Item = &[Piece]> {
        self.pieces.chunk_by(|one, next| next.start <= one.end())
    }

    /// The same CPU with other parts, each behind the one before it: a CPU has one at a time.
    pub(crate) fn queued(&self, mut pieces: Vec<Piece>) -> Self {
        pieces.sort_by_key(|piece| piece.start);
        let mut free = Nanos::ZERO;
        for piece in &mut pieces {
            piece.start = piece.start.max(free);
            free = piece.end();
        }
        Self { pieces, ..self.clone_empty() }
    }

    fn clone_empty(&self) -> Self {
        Self { cpu: self.cpu, span: self.span, pieces: Vec::new() }
    }

    /// The trace as a probe would have seen it.
    fn trace(&self) -> Trace {
        let detour = |pieces: &[Piece]| {
            let start = pieces[0].start;
            let end = pieces.iter().map(|piece| piece.end()).max().unwrap_or(start);
            Detour { start, duration: end - start, own: false }
        };
        Trace { cpu: self.cpu, span: self.span, detours: self.detours().map(detour).collect() }
    }
}

/// The noise of one node, with its sources.
#[derive(Clone, Debug)]
pub struct Sourced {
    /// The recording's or the model's name.
    pub name: String,
    /// What a reader must know, as for [`NodeNoise`].
    pub limits: Vec<String>,
    kinds: Vec<Kind>,
    traces: Vec<SourcedTrace>,
}

/// Numbers kinds in order of appearance.
#[derive(Default)]
struct Kinds {
    all: Vec<Kind>,
    numbers: HashMap<Kind, u32>,
}

impl Kinds {
    fn number(&mut self, kind: Kind) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(kind).or_insert_with_key(|kind| {
            self.all.push(kind.clone());
            next
        })
    }
}

impl Sourced {
    /// Of a recording, by its attribution. Where its sources are not known, all is [`UNATTRIBUTED`].
    pub fn of_recording(recording: &Recording, limits: Vec<String>) -> Self {
        let mut kinds = Kinds::default();
        let nameless = [Source::Steal.to_string().as_str(), UNATTRIBUTED].map(Kind::named);
        let [steal, left] = nameless.map(|kind| kinds.number(kind));
        let mut sides = laid_out(recording);
        let mut of_trace = |trace: &Trace| {
            let intervals = recording.intervals.iter().find(|side| side.cpu == trace.cpu);
            let intervals = intervals.map_or(&[][..], |side| &side.intervals);
            let mut numbers: Vec<Option<u32>> = vec![None; intervals.len()];
            let mut number = |by: By| match by {
                By::Interval(at) => {
                    *numbers[at].get_or_insert_with(|| kinds.number(Kind::of(&intervals[at])))
                }
                By::Steal => steal,
                By::Nobody => left,
            };
            let laid =
                sides.iter_mut().find(|side| side.0 == trace.cpu).map(|side| std::mem::take(&mut side.1));
            let laid = laid.unwrap_or_default().into_iter();
            let piece = |Laid { start, ns, by, under }| {
                let kind = number(by);
                Piece { start, ns, kind, under: under.map(|at| number(By::Interval(at))) }
            };
            let pieces = laid.map(piece).collect();
            SourcedTrace { cpu: trace.cpu, span: trace.span, pieces }
        };
        let traces = recording.traces.iter().map(&mut of_trace).collect();
        Self { name: recording.name(), limits, kinds: kinds.all, traces }
    }

    /// Noise of which only the detours are known.
    pub fn unknown(noise: &NodeNoise) -> Self {
        let of_trace = |trace: &Trace| {
            let piece = |detour: &Detour| Piece {
                start: detour.start,
                ns: detour.duration.as_nanos(),
                kind: 0,
                under: None,
            };
            SourcedTrace { cpu: trace.cpu, span: trace.span, pieces: trace.noise().map(piece).collect() }
        };
        Self {
            name: noise.name.clone(),
            limits: noise.limits.clone(),
            kinds: vec![Kind::named(UNATTRIBUTED)],
            traces: noise.traces.iter().map(of_trace).collect(),
        }
    }

    /// A node of a model's noise, whose components are its sources; as long as that of [`NodeNoise::from_model`], and the same.
    ///
    /// # Errors
    /// When the model's own span would hold too many detours.
    pub fn from_model(
        name: &str,
        model: &Model,
        quantum: Nanos,
        most_ranks: u64,
        seed: u64,
    ) -> Result<Self, ModelError> {
        let span = NodeNoise::span_of_model(model, quantum, most_ranks);
        let mut kinds = Kinds::default();
        let numbers: Vec<u32> = model.components().map(|name| kinds.number(Kind::named(name))).collect();
        let mut traces = Vec::new();
        for (trace, components) in model.node_by_component(span, seed)? {
            let piece = |(detour, component): (&Detour, u32)| {
                let kind = numbers[component as usize];
                Piece { start: detour.start, ns: detour.duration.as_nanos(), kind, under: None }
            };
            let pieces = trace.detours.iter().zip(components).map(piece).collect();
            traces.push(SourcedTrace { cpu: trace.cpu, span: trace.span, pieces });
        }
        Ok(Self { name: name.to_owned(), limits: Vec::new(), kinds: kinds.all, traces })
    }

    /// What its detours are shared out among.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Its CPUs, in the order of the traces.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> {
        self.traces.iter().map(|trace| trace.cpu)
    }

    /// How many detours its CPUs had, or parts of some where several sources share one.
    pub fn parts(&self) -> u64 {
        self.traces.iter().map(|trace| trace.pieces.len() as u64).sum()
    }

    /// The same of some of its CPUs; those that it does not have are ignored.
    #[must_use]
    pub fn on(&self, cpus: &[Cpu]) -> Self {
        let traces = self.traces.iter().filter(|trace| cpus.contains(&trace.cpu)).cloned().collect();
        Self { name: self.name.clone(), limits: self.limits.clone(), kinds: self.kinds.clone(), traces }
    }

    /// Without its first `count` CPUs.
    #[must_use]
    pub fn leaving_first(&self, count: usize) -> Self {
        let cpus: Vec<Cpu> = self.cpus().skip(count).collect();
        self.on(&cpus)
    }

    pub(crate) fn traces(&self) -> &[SourcedTrace] {
        &self.traces
    }

    /// The noise as it is, for a prediction.
    pub fn noise(&self) -> NodeNoise {
        let traces = self.traces.iter().map(SourcedTrace::trace).collect();
        NodeNoise { name: self.name.clone(), traces, limits: self.limits.clone() }
    }

    /// The same with what each kind took multiplied by a weight. What is left of a detour stays where it was.
    pub(crate) fn weighed(&self, weight: impl Fn(usize) -> f64) -> Self {
        let weights: Vec<f64> = (0..self.kinds.len()).map(weight).collect();
        let part = |piece: &Piece| {
            let of = |kind: u32| (kind, weights[kind as usize]);
            let (kind, weight) = match (of(piece.kind), piece.under) {
                ((_, 0.0), Some(under)) => of(under),
                (known, _) => known,
            };
            Piece { ns: (piece.ns as f64 * weight).round() as u64, kind, ..*piece }
        };
        self.with_traces(|trace| {
            let pieces = trace.pieces.iter().map(part).filter(|piece| piece.ns > 0).collect();
            SourcedTrace { pieces, ..trace.clone_empty() }
        })
    }

    /// The same with other detours on each CPU.
    pub(crate) fn with_traces(&self, of: impl Fn(&SourcedTrace) -> SourcedTrace) -> Self {
        let (name, limits, kinds) = (self.name.clone(), self.limits.clone(), self.kinds.clone());
        Self { name, limits, kinds, traces: self.traces.iter().map(of).collect() }
    }
}
