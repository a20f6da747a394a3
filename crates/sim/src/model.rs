//! Noise from a description, where there is no recording or a published one is to be rebuilt.
//!
//! A model is a sum of components. Each defines when its detours start, periodically or at random, and how long
//! they last:
//!
//! ```toml
//! name = "tick and a daemon"
//! span = "60s"                # how long a trace to make
//! cpus = 4                    # traces of one node
//!
//! [[component]]
//! name = "tick"
//! periodic = { period = "4ms", jitter = "20us", phase = "random" }
//! duration = { uniform = { min = "5us", max = "14us" } }
//!
//! [[component]]
//! name = "daemon"
//! poisson = { rate = "0.5/s" }
//! duration = { exponential = { mean = "250us", min = "14us" } }
//! ```

mod arrival;
mod document;
mod duration;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use rand_pcg::Pcg64;

use crate::draws::Draws;
use arrival::Arrival;
use duration::Duration;

/// Maximum number of detours that one trace of a model may be expected to hold.
pub const MAX_DETOURS: u64 = 50_000_000;
/// Maximum number of CPUs of a model's node.
const MAX_CPUS: u32 = 4_096;

/// A synthetic source of noise: the detours of its components, queued one after another where they overlap.
#[derive(Clone, Debug)]
pub struct Model {
    name: Option<String>,
    span: Option<Nanos>,
    cpus: u32,
    components: Vec<Component>,
}

/// One component of a model.
#[derive(Clone, Debug)]
struct Component {
    name: String,
    arrival: Arrival,
    duration: Duration,
}

/// Why a text is not a model, or a model makes no trace.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Not TOML, or not of the model's shape.
    #[error("cannot read the noise model")]
    Toml(#[from] toml::de::Error),
    /// A field has an invalid value.
    #[error("{place}: {field}: {reason}")]
    Field {
        /// The component, or `the noise model` for a field of its own.
        place: String,
        /// The field, as written in the file.
        field: &'static str,
        /// What is wrong, and what to write.
        reason: String,
    },
    /// The trace would hold too many detours to fit in memory.
    #[error(
        "a trace of {span} would hold about {expected:.0} detours, and {MAX_DETOURS} is the limit; ask for a shorter span or lower rates"
    )]
    TooMany {
        /// The requested span.
        span: Nanos,
        /// The expected number of detours in it.
        expected: f64,
    },
}

impl Model {
    /// Reads a model from the text of its TOML file.
    ///
    /// # Errors
    /// When the text is not TOML, has an unknown or missing field, or an invalid value: the error names
    /// the component and the field.
    pub fn from_toml(text: &str) -> Result<Self, ModelError> {
        toml::from_str::<document::Document>(text)?.check()
    }

    /// The model's own name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The length of the traces that the model asks for.
    pub fn span(&self) -> Option<Nanos> {
        self.span
    }

    /// Number of CPUs of its node.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// The names of its components, in their order.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.components.iter().map(|component| component.name.as_str())
    }

    /// Expected number of detours on one CPU in `span`.
    pub fn expected_detours(&self, span: Nanos) -> f64 {
        self.components.iter().map(|component| component.arrival.expected(span)).sum()
    }

    /// The traces of one node, all CPUs over the same `span`.
    ///
    /// # Errors
    /// When a trace would hold more than [`MAX_DETOURS`].
    pub fn node(&self, span: Nanos, seed: u64) -> Result<Vec<Trace>, ModelError> {
        (0..self.cpus).map(|cpu| self.trace(Cpu(cpu), span, seed)).collect()
    }

    /// As [`Model::node`], with the index of the component that each detour comes from.
    ///
    /// # Errors
    /// As for [`Model::node`].
    pub fn node_by_component(&self, span: Nanos, seed: u64) -> Result<Vec<(Trace, Vec<u32>)>, ModelError> {
        (0..self.cpus).map(|cpu| self.trace_by_component(Cpu(cpu), span, seed)).collect()
    }

    /// The trace of one CPU. It depends only on the arguments.
    ///
    /// A detour that would begin within another begins when that one ends, as in a queue, so no noise is lost;
    /// detours that the queue pushes past the end of the span are cut off.
    ///
    /// # Errors
    /// When the trace would hold more than [`MAX_DETOURS`].
    pub fn trace(&self, cpu: Cpu, span: Nanos, seed: u64) -> Result<Trace, ModelError> {
        Ok(self.trace_by_component(cpu, span, seed)?.0)
    }

    fn trace_by_component(&self, cpu: Cpu, span: Nanos, seed: u64) -> Result<(Trace, Vec<u32>), ModelError> {
        let expected = self.expected_detours(span);
        if expected > MAX_DETOURS as f64 {
            return Err(ModelError::TooMany { span, expected });
        }
        let mut detours = Vec::with_capacity(expected as usize);
        for (number, component) in self.components.iter().enumerate() {
            let mut rng = stream(seed, cpu, number);
            component.arrival.each(span, &mut rng, |start, rng| {
                let duration = component.duration.draw(rng);
                detours.push((Detour { start, duration, own: false }, number as u32));
            });
        }
        detours.sort_by_key(|(detour, _)| detour.start);
        let span = Span { start: Nanos::ZERO, end: span };
        let (detours, components) = queued(detours, span.end).into_iter().unzip();
        Ok((Trace { cpu, span, detours }, components))
    }
}

/// The random numbers of one component on one CPU.
fn stream(seed: u64, cpu: Cpu, component: usize) -> Pcg64 {
    let draws = Draws::new(seed, &[u64::from(cpu.0), component as u64]);
    let wide = |index| u128::from(draws.at(index)) << 64 | u128::from(draws.at(index + 1));
    Pcg64::new(wide(0), wide(2))
}

/// Moves each detour after the one before it and cuts at `end`.
fn queued(mut detours: Vec<(Detour, u32)>, end: Nanos) -> Vec<(Detour, u32)> {
    let mut free = Nanos::ZERO;
    for (detour, _) in &mut detours {
        detour.start = detour.start.max(free);
        detour.duration = detour.duration.min(end - detour.start);
        free = detour.end();
    }
    detours.retain(|(detour, _)| detour.duration > Nanos::ZERO);
    detours
}

#[cfg(test)]
mod tests;
