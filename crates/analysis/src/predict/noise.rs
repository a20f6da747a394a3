//! Where a prediction's noise comes from: a recorded node, or a model's.

use quell_recording::{Nanos, Span, Trace};
use quell_sim::{BspError, Model, ModelError, Node};

/// The noise of one node: the traces of its CPUs, recorded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeNoise {
    /// What to call it: the recording's or the model's name.
    pub name: String,
    /// One trace per CPU; a job's ranks on such a node take them in this order.
    pub traces: Vec<Trace>,
    /// What a reader must know of them, such as lost rows; these end up among the prediction's warnings.
    pub limits: Vec<String>,
}

/// A model without a span of its own makes at least this much trace …
const SHORTEST: Nanos = Nanos::from_secs(60);
/// … but no more detours than this, over all its CPUs.
const MOST_DETOURS: f64 = 4e6;

impl NodeNoise {
    /// A node of a model's noise.
    ///
    /// The trace is as long as the model says; where it says nothing, a minute, or four quanta for each rank of
    /// the largest scale, as long as that stays under four million detours.
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
        let span = model.span().unwrap_or_else(|| {
            let wanted = quantum.as_nanos().saturating_mul(most_ranks).saturating_mul(4);
            let per_ns =
                model.expected_detours(SHORTEST) * f64::from(model.cpus()) / SHORTEST.as_nanos() as f64;
            let affordable = Nanos::from_nanos_f64(MOST_DETOURS / per_ns).unwrap_or(Nanos::MAX);
            // A day bounds what a model that is nearly silent may ask for.
            SHORTEST.max(Nanos::from_nanos(wanted)).min(affordable).min(Nanos::from_secs(86_400))
        });
        Ok(Self { name: name.to_owned(), traces: model.node(span, seed)?, limits: Vec::new() })
    }

    /// The time in which all CPUs were observed.
    pub(super) fn span(&self) -> Result<Span, BspError> {
        Node::shared_span(&self.traces)
    }

    /// How many detours are noise, over all CPUs.
    pub(super) fn detours(&self) -> u64 {
        self.traces.iter().map(|trace| trace.noise().count() as u64).sum()
    }

    /// How many quanta its CPUs were observed for: as many ranks can draw a different one each.
    pub(super) fn quanta(&self, quantum: Nanos) -> u64 {
        let span = self.span().map_or(0, |span| span.length().as_nanos());
        (span / quantum.as_nanos().max(1)).saturating_mul(self.traces.len() as u64)
    }

    /// Time lost to noise over time observed, of all CPUs, in percent.
    pub(super) fn overhead_percent(&self) -> f64 {
        let lost: f64 = self.traces.iter().flat_map(Trace::noise).map(|d| d.duration.as_nanos() as f64).sum();
        let observed: f64 = self.traces.iter().map(|trace| trace.observed().as_nanos() as f64).sum();
        if observed > 0.0 { 100.0 * lost / observed } else { 0.0 }
    }
}
