//! The noise of a node with each detour divided among its sources: the starting point of every what-if.

use std::collections::BTreeMap;

use quell_recording::{Cpu, Detour, Nanos, Recording, Span, Trace, Warning};
use quell_sim::{Model, ModelError};

use super::load::{Load, load};
use crate::attribution::{AttributedSegment, JoinedRecording, Kind, Kinds, UNATTRIBUTED};
use crate::predict::{NodeNoise, Origin};

/// The parts of one CPU's detours, in order. Parts that touch belong to one detour.
#[derive(Clone, Debug)]
pub(crate) struct AttributedTrace {
    pub cpu: Cpu,
    pub span: Span,
    pub segments: Vec<AttributedSegment>,
}

impl AttributedTrace {
    /// The parts of each detour.
    pub(crate) fn detours(&self) -> impl Iterator<Item = &[AttributedSegment]> {
        self.segments.chunk_by(|one, next| next.start <= one.end())
    }

    /// The same CPU with other parts, queued one after another, because a CPU has one at a time.
    pub(crate) fn queued(&self, mut segments: Vec<AttributedSegment>) -> Self {
        segments.sort_by_key(|segment| segment.start);
        let mut free = Nanos::ZERO;
        for segment in &mut segments {
            segment.start = segment.start.max(free);
            free = segment.end();
        }
        Self { segments, ..self.clone_empty() }
    }

    fn clone_empty(&self) -> Self {
        Self { cpu: self.cpu, span: self.span, segments: Vec::new() }
    }

    /// The trace as a probe would see it.
    fn trace(&self) -> Trace {
        let detour = |segments: &[AttributedSegment]| {
            let start = segments[0].start;
            let end = segments.iter().map(|segment| segment.end()).max().unwrap_or(start);
            Detour { start, duration: end - start, own: false }
        };
        Trace { cpu: self.cpu, span: self.span, detours: self.detours().map(detour).collect() }
    }
}

/// The noise of one node, with its sources.
#[derive(Clone, Debug)]
pub struct AttributedNoise {
    /// The recording's or the model's name.
    pub name: String,
    /// Where it was recorded, as for [`NodeNoise`].
    pub origin: Option<Origin>,
    /// Warnings for the reader, as for [`NodeNoise`].
    pub limits: Vec<Warning>,
    kinds: Vec<Kind>,
    traces: Vec<AttributedTrace>,
    load: Option<Load>,
}

/// The source that took most of each detour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MainSources {
    /// The families of sources, the one that took most time first; untrusted text.
    pub families: Vec<String>,
    /// For each CPU, in the order of the traces: the start of each detour, ascending, and the index of its family.
    pub detours: Vec<Vec<(Nanos, usize)>>,
}

impl AttributedNoise {
    /// The source that took most of each detour; of equals the first.
    pub fn main_sources(&self) -> MainSources {
        let family = |segment: &AttributedSegment| &*self.kinds[segment.kind as usize].family;
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for segment in self.traces.iter().flat_map(|trace| &trace.segments) {
            let time = times.entry(family(segment)).or_default();
            *time = time.saturating_add(segment.ns);
        }
        let mut families: Vec<&str> = times.keys().copied().collect();
        families.sort_by_key(|family| std::cmp::Reverse(times[family]));
        let numbers: BTreeMap<&str, usize> = families.iter().copied().zip(0..).collect();
        let main = |segments: &[AttributedSegment]| {
            let of = |one: &AttributedSegment| -> u64 {
                segments.iter().filter(|other| family(other) == family(one)).map(|other| other.ns).sum()
            };
            let most = segments.iter().rev().max_by_key(|one| of(one)).unwrap_or(&segments[0]);
            (segments[0].start, numbers[family(most)])
        };
        let detours = self.traces.iter().map(|trace| trace.detours().map(main).collect()).collect();
        MainSources { families: families.into_iter().map(str::to_owned).collect(), detours }
    }

    /// The noise of a recording, by its attribution. If its sources are not known, all of it is [`UNATTRIBUTED`].
    pub fn from_recording(recording: &Recording, limits: Vec<Warning>) -> Self {
        Self::from_joined(JoinedRecording::new(recording), limits)
    }

    /// The noise of a recording that is already joined.
    pub fn from_joined(joined: JoinedRecording<'_>, limits: Vec<Warning>) -> Self {
        let recording = joined.recording();
        let (kinds, segments) = joined.attributed_segments();
        let attributed = |(trace, segments): (&Trace, Vec<AttributedSegment>)| AttributedTrace {
            cpu: trace.cpu,
            span: trace.span,
            segments,
        };
        let traces: Vec<AttributedTrace> = recording.traces.iter().zip(segments).map(attributed).collect();
        let load = load(&kinds, traces.iter().map(|one| (one.cpu, one.span, one.segments.as_slice())));
        let origin = Origin::from_recording(recording);
        Self { name: recording.name(), origin, limits, kinds, traces, load }
    }

    /// Noise of which only the detours are known, without sources.
    pub fn unknown(noise: &NodeNoise) -> Self {
        let attributed = |trace: &Trace| {
            let segment = |detour: &Detour| AttributedSegment {
                start: detour.start,
                ns: detour.duration.as_nanos(),
                kind: 0,
                under: None,
            };
            AttributedTrace {
                cpu: trace.cpu,
                span: trace.span,
                segments: trace.noise().map(segment).collect(),
            }
        };
        Self {
            name: noise.name.clone(),
            origin: noise.origin.clone(),
            limits: noise.limits.clone(),
            kinds: vec![Kind::named(UNATTRIBUTED)],
            traces: noise.traces.iter().map(attributed).collect(),
            load: None,
        }
    }

    /// The noise of a model's node, whose components are its sources. It equals that of [`NodeNoise::from_model`] in length and detours.
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
        let span = NodeNoise::span_of_model(model, quantum, most_ranks, seed)?;
        let mut kinds = Kinds::default();
        let numbers: Vec<u32> = model.components().map(|name| kinds.number(Kind::named(name))).collect();
        let mut traces = Vec::new();
        for (trace, components) in model.node_by_component(span, seed)? {
            let segment = |(detour, component): (&Detour, u32)| {
                let kind = numbers[component as usize];
                AttributedSegment { start: detour.start, ns: detour.duration.as_nanos(), kind, under: None }
            };
            let segments = trace.detours.iter().zip(components).map(segment).collect();
            traces.push(AttributedTrace { cpu: trace.cpu, span: trace.span, segments });
        }
        Ok(Self {
            name: name.to_owned(),
            origin: None,
            limits: Vec::new(),
            kinds: kinds.into_vec(),
            traces,
            load: None,
        })
    }

    /// The kinds that its detours are divided among.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Its CPUs, in the order of the traces.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> {
        self.traces.iter().map(|trace| trace.cpu)
    }

    /// Number of parts of its detours; a detour of one source is one part.
    pub fn parts(&self) -> u64 {
        self.traces.iter().map(|trace| trace.segments.len() as u64).sum()
    }

    /// The noise of some of its CPUs; CPUs that it does not have are ignored.
    #[must_use]
    pub fn on(&self, cpus: &[Cpu]) -> Self {
        let traces = self.traces.iter().filter(|trace| cpus.contains(&trace.cpu)).cloned().collect();
        Self { traces, ..self.without_traces() }
    }

    /// The noise without its first `count` CPUs.
    #[must_use]
    pub fn leaving_first(&self, count: usize) -> Self {
        let cpus: Vec<Cpu> = self.cpus().skip(count).collect();
        self.on(&cpus)
    }

    /// The load of others, if it was recorded under one.
    pub fn load(&self) -> Option<&Load> {
        self.load.as_ref()
    }

    #[cfg(test)]
    pub(crate) fn under(self, load: Load) -> Self {
        Self { load: Some(load), ..self }
    }

    fn without_traces(&self) -> Self {
        Self {
            name: self.name.clone(),
            origin: self.origin.clone(),
            limits: self.limits.clone(),
            kinds: self.kinds.clone(),
            traces: Vec::new(),
            load: self.load.clone(),
        }
    }

    pub(crate) fn traces(&self) -> &[AttributedTrace] {
        &self.traces
    }

    /// The noise without changes, for a prediction.
    pub fn noise(&self) -> NodeNoise {
        let traces = self.traces.iter().map(AttributedTrace::trace).collect();
        NodeNoise {
            name: self.name.clone(),
            origin: self.origin.clone(),
            traces,
            limits: self.limits.clone(),
        }
    }

    /// The noise with the time of each kind multiplied by a weight. The rest of a detour stays where it was.
    pub(crate) fn weighed(&self, weight: impl Fn(usize) -> f64) -> Self {
        let weights: Vec<f64> = (0..self.kinds.len()).map(weight).collect();
        let part = |segment: &AttributedSegment| {
            let of = |kind: u32| (kind, weights[kind as usize]);
            let (kind, weight) = match (of(segment.kind), segment.under) {
                ((_, 0.0), Some(under)) => of(under),
                (known, _) => known,
            };
            AttributedSegment { ns: (segment.ns as f64 * weight).round() as u64, kind, ..*segment }
        };
        self.with_traces(|trace| {
            let segments = trace.segments.iter().map(part).filter(|segment| segment.ns > 0).collect();
            AttributedTrace { segments, ..trace.clone_empty() }
        })
    }

    /// The noise with other detours on each CPU.
    pub(crate) fn with_traces(&self, of: impl Fn(&AttributedTrace) -> AttributedTrace) -> Self {
        Self { traces: self.traces.iter().map(of).collect(), ..self.without_traces() }
    }
}
