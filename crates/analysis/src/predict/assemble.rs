//! Builds the document of a prediction, with the warnings about its limits.

use quell_recording::Nanos;
use quell_sim::Run;

use super::document::{MessageFacts, NoiseSource, Point, Prediction, SCHEMA};

use super::repeats::few_recordings;
use super::resample::Blocks;
use super::support::Support;
use super::{NodeNoise, Options, Sample};
use crate::Warning;

/// Number of runs on resampled traces.
#[derive(Clone, Copy)]
pub(super) struct Resampled {
    /// Runs whose traces left useful time.
    pub(super) done: u64,
    pub(super) tried: u64,
}

/// The document of a program without messages, from the runs of all scales and their replicates, some of which may have
/// failed.
pub(super) fn write(
    nodes: &[NodeNoise],
    options: &Options,
    (runs, samples): (&[Run], &[Sample]),
    (done, tried): (u64, u64),
) -> Prediction {
    let support = Support::from_nodes(nodes, options.quantum, options.sync);
    let point = |(&ranks, (run, sample)): (&u64, (&Run, &Sample))| Point {
        ranks,
        phases: run.phases,
        replicates: done,
        base_phase_ns: options.quantum.as_nanos(),
        mean_phase_ns: run.mean_ns(),
        slowdown_percent: sample.slowdown_percent(),
        ci95_percent: sample.slowdown_interval(),
        max_phase_ns: run.longest.as_nanos(),
        supported: support.holds(ranks),
    };
    let points = options.ranks.iter().zip(runs.iter().zip(samples)).map(point).collect();
    assemble(nodes, options, points, Resampled { done, tried })
}

/// The document for the given points.
pub(super) fn assemble(
    nodes: &[NodeNoise],
    options: &Options,
    points: Vec<Point>,
    resampled: Resampled,
) -> Prediction {
    let support = Support::from_nodes(nodes, options.quantum, options.sync);
    let messages = options.messages.as_ref();
    Prediction {
        schema: SCHEMA.to_owned(),
        quantum_ns: options.quantum.as_nanos(),
        op: messages.map_or_else(|| "max".to_owned(), |messages| messages.op.clone()),
        network: messages.map(|messages| MessageFacts {
            bytes: messages.bytes,
            net: (*messages.network).clone(),
            progress: messages.rules.into(),
        }),
        sync: options.sync.into(),
        phases: options.phases,
        seed: options.seed,
        skew_ns: options.sync.skew().as_nanos(),
        drift_ppm: options.sync.drift_ppm(),
        replicates: points.iter().map(|point| point.replicates).max().unwrap_or(0),
        what_if: Vec::new(),
        noise: nodes.iter().map(NoiseSource::from_node).collect(),
        supported_ranks: support.ranks,
        warnings: warnings(nodes, options, &support, &points, resampled),
        points,
    }
}

fn warnings(
    nodes: &[NodeNoise],
    options: &Options,
    support: &Support,
    points: &[Point],
    resampled: Resampled,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if points.iter().any(|point| !point.supported) {
        warnings.push(Warning::Extrapolated {
            supported_ranks: support.ranks,
            windows: support.windows,
            window_ns: support.window.as_nanos(),
            quantum_ns: options.quantum.as_nanos(),
        });
    }
    for node in nodes {
        warnings.extend(node.warnings());
        warnings.extend(warning_on(node, options.quantum));
    }
    let Resampled { done, tried } = resampled;
    if tried > 0 {
        warnings.extend(few_recordings(nodes));
    }
    if tried == 0 && options.replicates > 0 {
        warnings.push(Warning::NotResampled);
    }
    if done < tried {
        warnings.push(Warning::FewReplicates { done, tried });
    }
    warnings.extend(fewer(options, points));
    warnings
}

/// Warnings about what was reduced to bound the time.
fn fewer(options: &Options, points: &[Point]) -> Vec<Warning> {
    let first = |less: &dyn Fn(&Point) -> bool| points.iter().find(|point| less(point));
    let phases = first(&|point| point.phases < options.phases).map(|point| Warning::FewerPhases {
        phases: point.phases,
        requested: options.phases,
        ranks: point.ranks,
    });
    let some = points.iter().any(|point| point.replicates > 0);
    let none = first(&|point| point.replicates == 0).filter(|_| some && options.replicates > 0);
    let none = none.map(|point| Warning::NotResampledFrom { ranks: point.ranks });
    phases.into_iter().chain(none).collect()
}

/// A warning about what one node's traces cannot show.
fn warning_on(node: &NodeNoise, quantum: Nanos) -> Option<Warning> {
    let (recording, span) = (node.name.clone(), node.span().ok()?.length());
    let (span_ns, quantum_ns) = (span.as_nanos(), quantum.as_nanos());
    if node.detours() == 0 {
        return Some(Warning::NoDetours { recording });
    }
    let short = Blocks::from_node(node, quantum).ok()?.too_short_for(quantum);
    short.then_some(Warning::FewQuanta { recording, span_ns, quantum_ns })
}

#[cfg(test)]
mod tests;
