//! The noise of a prediction: a recorded node's, or a model's.

use quell_recording::{Detour, Nanos, Span, Trace, warning as recording};
use quell_sim::{BspError, Model, ModelError, Node};

use super::Origin;
use super::tail::Tail;
use crate::Warning;

/// The noise of one node: the traces of its CPUs, recorded together.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeNoise {
    /// Its name: that of the recording or the model.
    pub name: String,
    /// Where it was recorded, if that is known: several recordings may be of one node.
    pub origin: Option<Origin>,
    /// One trace per CPU; a job's ranks on such a node take them in this order.
    pub traces: Vec<Trace>,
    /// Warnings about the traces, such as lost rows; they are added to the prediction's warnings.
    pub limits: Vec<recording::Warning>,
}

/// Number of windows that the traces must hold for each rank. A phase of N ranks lasts as long as the worst of N quanta, which is about
/// the worst one in N. With ten windows of each rank's own in the trace, its length is known to about a third; with one, a mean over the
/// tail is mostly luck, and no resampling of the trace can show this (the bootstrap of a maximum fails: Bickel & Freedman, Annals of
/// Statistics 9, 1981).
pub(crate) const WINDOWS_PER_RANK: u64 = 10;

/// See [`longest_to_expect`].
const RECORDINGS: f64 = 30.0;

/// Minimum length of the trace of a model without a span of its own …
const SHORTEST: Nanos = Nanos::from_secs(60);
/// … and maximum number of detours in it, over all CPUs.
const MOST_DETOURS: f64 = 4e6;

impl NodeNoise {
    /// A node of a model's noise.
    ///
    /// The trace is as long as the model specifies. Without a specified span it is long enough to support the largest scale, at least a
    /// minute, as long as that stays below four million detours.
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
        let span = Self::span_of_model(model, quantum, most_ranks, seed)?;
        let traces = model.node(span, seed)?;
        Ok(Self { name: name.to_owned(), origin: None, traces, limits: Vec::new() })
    }

    /// Its limits, in the form for a document about several recordings.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        let named = |limit: &recording::Warning| Warning::OfRecording {
            recording: self.name.clone(),
            warning: limit.clone(),
        };
        self.limits.iter().map(named)
    }

    /// The length of a model's trace, see [`Self::from_model`].
    pub(crate) fn span_of_model(
        model: &Model,
        quantum: Nanos,
        most_ranks: u64,
        seed: u64,
    ) -> Result<Nanos, ModelError> {
        if let Some(span) = model.span() {
            return Ok(span);
        }
        let cpus = f64::from(model.cpus());
        let per_ns = model.expected_detours(SHORTEST) * cpus / SHORTEST.as_nanos() as f64;
        let affordable = Nanos::from_nanos_f64(MOST_DETOURS / per_ns).unwrap_or(Nanos::MAX);
        // A month is the upper limit for a model with hardly any noise.
        let most = affordable.min(Nanos::from_secs(30 * 86_400));
        let windows = WINDOWS_PER_RANK.saturating_mul(most_ranks) as f64 / cpus;
        let mut span = SHORTEST.min(most);
        // A longer trace may hold a longer detour, which makes the windows wider.
        for _ in 0..8 {
            let traces = model.node(span, seed)?;
            let width = (quantum + longest_to_expect(&traces)).as_nanos() as f64;
            let wanted = Nanos::from_nanos_f64(windows * width).unwrap_or(Nanos::MAX);
            if wanted <= span || span >= most {
                break;
            }
            span = Nanos::from_nanos_f64(1.25 * wanted.as_nanos() as f64).unwrap_or(Nanos::MAX).min(most);
        }
        Ok(span)
    }

    /// Joins several recordings of the same CPUs to one node, one after the other; `None` if the CPUs differ.
    pub fn joined(name: &str, parts: &[Self]) -> Option<Self> {
        let first = parts.first()?;
        let mut traces: Vec<Trace> =
            first.traces.iter().map(|trace| Trace { detours: Vec::new(), ..trace.clone() }).collect();
        let mut end = Nanos::ZERO;
        for part in parts {
            let span = part.span().ok()?;
            if part.traces.len() != traces.len()
                || part.traces.iter().zip(&traces).any(|(a, b)| a.cpu != b.cpu)
            {
                return None;
            }
            for (joined, trace) in traces.iter_mut().zip(&part.traces) {
                let inside =
                    trace.noise().filter(|detour| detour.start >= span.start && detour.end() <= span.end);
                joined.detours.extend(
                    inside.map(|detour| Detour { start: end + (detour.start - span.start), ..*detour }),
                );
            }
            end += span.length();
        }
        traces.iter_mut().for_each(|trace| trace.span = Span { start: Nanos::ZERO, end });
        let mut limits = Vec::new();
        for limit in parts.iter().flat_map(|part| &part.limits) {
            if !limits.contains(limit) {
                limits.push(limit.clone());
            }
        }
        Some(Self { name: name.to_owned(), origin: None, traces, limits })
    }

    /// The time in which all CPUs were observed.
    pub(super) fn span(&self) -> Result<Span, BspError> {
        Node::shared_span(&self.traces)
    }

    /// Number of detours that are noise, over all CPUs.
    pub(super) fn detours(&self) -> u64 {
        self.traces.iter().map(|trace| trace.noise().count() as u64).sum()
    }

    /// Number of independent windows of this width in its traces, see [`Self::window`].
    pub(crate) fn windows(&self, width: Nanos) -> u64 {
        let span = self.span().map_or(0, |span| span.length().as_nanos());
        (span / width.as_nanos().max(1)).saturating_mul(self.traces.len() as u64)
    }

    /// The time that decides how long a quantum takes: the quantum itself, and before it as long as a detour that began there can
    /// reach into it. Two quanta whose windows overlap may meet the same detour, so they are not two observations. Sorts all detours.
    pub(crate) fn window(&self, quantum: Nanos) -> Nanos {
        quantum + longest_to_expect(&self.traces)
    }

    /// Time lost to noise over time observed, of all CPUs, in percent.
    pub(super) fn overhead_percent(&self) -> f64 {
        let lost: f64 = self.traces.iter().flat_map(Trace::noise).map(|d| d.duration.as_nanos() as f64).sum();
        let observed: f64 = self.traces.iter().map(|trace| trace.observed().as_nanos() as f64).sum();
        if observed > 0.0 { 100.0 * lost / observed } else { 0.0 }
    }
}

/// The longest time for which a CPU may be taken without a break: the longest recorded, or a detour that one in [`RECORDINGS`] such
/// recordings holds, if the longest detours have a tail that tells. The longest detour of a trace is a matter of luck. Without this, of
/// many traces of one noise those with a short one would be the ones that support large scales, and predict too little there.
fn longest_to_expect(traces: &[Trace]) -> Nanos {
    let expected = Tail::from_traces(traces).map(|tail| tail.longest_in(RECORDINGS));
    longest_busy(traces).max(expected.unwrap_or(Nanos::ZERO))
}

/// The longest time for which one of the CPUs was taken without a break.
fn longest_busy(traces: &[Trace]) -> Nanos {
    let of_trace = |trace: &Trace| {
        let (mut longest, mut begun, mut end) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        for detour in trace.noise() {
            if detour.start > end {
                begun = detour.start;
            }
            end = end.max(detour.end());
            longest = longest.max(end - begun);
        }
        longest
    };
    traces.iter().map(of_trace).max().unwrap_or(Nanos::ZERO)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_recording::Cpu;

    use super::*;

    fn node(cpu: u32, start: u64, detours: &[u64]) -> NodeNoise {
        let ns = Nanos::from_nanos;
        let detour = |&at: &u64| Detour { start: ns(start + at), duration: ns(5), own: false };
        let span = Span { start: ns(start), end: ns(start + 100) };
        let trace = Trace { cpu: Cpu(cpu), span, detours: detours.iter().map(detour).collect() };
        let limits = vec![recording::Warning::VirtualMachine];
        NodeNoise { name: "n".into(), origin: None, traces: vec![trace], limits }
    }

    #[test]
    fn a_window_reaches_back_as_far_as_a_detour_can() {
        let ns = Nanos::from_nanos;
        // Detours of 5 ns; the second and the third follow one another without a break.
        let node = node(0, 1_000, &[10, 40, 45]);
        assert_eq!((node.window(ns(10)), node.windows(node.window(ns(10)))), (ns(20), 5));
        assert_eq!(node.windows(node.window(ns(1_000))), 0);
    }

    /// A trace of exponential durations that happens to lack the longest ones expects those that it lacks.
    #[test]
    fn a_lucky_trace_expects_the_detours_that_it_lacks() {
        let duration = |i: u64| (-50_000.0 * ((i as f64 + 0.5) / 1_000.0).ln()) as u64;
        let node = |from: u64| {
            let detour = |i: u64| Detour {
                start: Nanos::from_nanos((i * 7_919 % 1_000) * 1_000_000),
                duration: Nanos::from_nanos(duration(i)),
                own: false,
            };
            let mut detours: Vec<Detour> = (from..1_000).map(detour).collect();
            detours.sort_by_key(|detour| detour.start);
            let span = Span { start: Nanos::ZERO, end: Nanos::from_secs(1) };
            let traces = vec![Trace { cpu: Cpu(0), span, detours }];
            NodeNoise { name: "n".into(), origin: None, traces, limits: Vec::new() }
        };
        let longest = |node: &NodeNoise| node.window(Nanos::ZERO).as_nanos() as f64;
        let (all, lucky) = (node(0), node(3));
        let recorded = |node: &NodeNoise| longest_busy(&node.traces).as_nanos() as f64;
        assert!(recorded(&all) > 1.25 * recorded(&lucky));
        assert!(longest(&lucky) > recorded(&all), "{} {}", longest(&lucky), recorded(&all));
        // One in 30 × 1,000 is longer than mean × ln 30,000.
        let expected = 50_000.0 * 30_000f64.ln();
        assert!((longest(&all) / expected - 1.0).abs() < 0.1, "{} {expected}", longest(&all));
    }

    #[test]
    fn recordings_of_the_same_cpus_follow_one_another() {
        let joined = NodeNoise::joined("all", &[node(1, 1_000, &[10, 98]), node(1, 50, &[20])]).unwrap();
        let starts: Vec<u64> =
            joined.traces[0].detours.iter().map(|detour| detour.start.as_nanos()).collect();
        assert_eq!(starts, [10, 120], "one that outlasts its recording is left out");
        assert_eq!(joined.traces[0].span.length(), Nanos::from_nanos(200));
        assert_eq!(joined.limits, [recording::Warning::VirtualMachine]);
        assert_eq!(NodeNoise::joined("all", &[node(1, 0, &[]), node(2, 0, &[])]), None);
        assert_eq!(NodeNoise::joined("all", &[]), None);
    }
}
