//! The document that a prediction is, and the sentences that keep it honest.

use quell_recording::Nanos;
use quell_sim::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resample::Blocks;
use super::{NodeNoise, Options};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.predict/1";

/// So many quanta a trace must hold for each rank. A phase of N ranks lasts as long as the worst of N quanta: what one
/// in N is like. With ten such in the trace that is known to about a third; with one, a mean over the tail is mostly
/// luck, and no resampling of the trace can tell (the bootstrap of a maximum fails: Bickel & Freedman, Annals of
/// Statistics 9, 1981).
const QUANTA_PER_RANK: u64 = 10;

/// A predicted curve: what the noise costs at each scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Always `quell.predict/1`.
    pub schema: String,
    /// Noise-free work per phase and rank, in nanoseconds.
    pub quantum_ns: u64,
    /// How a phase's length follows from its ranks'.
    pub op: Operation,
    /// How the nodes' noise lines up.
    pub sync: Mode,
    /// Phases simulated per scale.
    pub phases: u64,
    /// Run again with it for the same bits.
    pub seed: u64,
    /// Nodes start up to this many nanoseconds later than the first.
    pub skew_ns: u64,
    /// Node clocks run fast or slow by up to this many parts per million.
    pub drift_ppm: f64,
    /// Resampled runs behind each confidence interval; huge traces and scales get fewer.
    pub replicates: u64,
    /// The traces that the noise is drawn from, in the order in which nodes take them.
    pub noise: Vec<NoiseSource>,
    /// Up to so many ranks the traces hold ten quanta for each; beyond, the prediction extrapolates.
    pub supported_ranks: u64,
    /// The curve, in the order of the scales asked for.
    pub points: Vec<Point>,
    /// What limits the prediction, in sentences.
    pub warnings: Vec<String>,
}

/// What a phase's length is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// The longest compute time of all ranks (De et al. 2008, eq. 3).
    Max,
}

/// How the nodes' noise lines up; the CPUs of one node always stay as they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Each node starts at its own place in the trace.
    None,
    /// All nodes start at the same place; skew and drift then part them.
    Start,
    /// All nodes are at the same place, a new one in every phase.
    Phase,
}

/// One node's traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseSource {
    /// The recording's or the model's name.
    pub name: String,
    /// How many CPUs were recorded together.
    pub cpus: u64,
    /// How long all of them were observed, in nanoseconds.
    pub span_ns: u64,
    /// Detours of all its CPUs, quell's own left out.
    pub detours: u64,
    /// Time lost to detours over time observed, in percent, over all its CPUs.
    pub overhead_percent: f64,
}

/// The prediction for one scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Ranks, one per CPU.
    pub ranks: u64,
    /// A phase without noise: the quantum, in nanoseconds.
    pub base_phase_ns: u64,
    /// The mean phase, in nanoseconds.
    pub mean_phase_ns: f64,
    /// 100 × (mean phase − base) / base (De et al. 2008, eq. 3).
    pub slowdown_percent: f64,
    /// 95 % confidence interval of the slowdown, low and high, in percent.
    pub ci95_percent: Option<[f64; 2]>,
    /// The longest phase, in nanoseconds.
    pub max_phase_ns: u64,
    /// Whether the traces speak for so many ranks.
    pub supported: bool,
}

/// Puts the document together from the runs of all scales and their replicates, of which some may have come to
/// nothing.
pub(super) fn write(
    nodes: &[NodeNoise],
    options: &Options,
    runs: &[Run],
    replicates: &[Option<Vec<Run>>],
) -> Prediction {
    let quanta = nodes.iter().map(|node| node.quanta(options.quantum)).fold(0, u64::saturating_add);
    let supported_ranks = quanta / QUANTA_PER_RANK;
    // Nodes in step are one node, however many there are: each phase draws one quantum per CPU.
    let in_step = nodes.iter().map(|node| node.traces.len() as u64).sum();
    let drawn = |ranks: u64| if options.mode == Mode::Phase { ranks.min(in_step) } else { ranks };
    let most_ranks = options.ranks.iter().copied().max().unwrap_or(0);
    let base = options.quantum.as_nanos();
    let tried = replicates.len();
    let replicates: Vec<&Vec<Run>> = replicates.iter().flatten().collect();
    let slowdown = |run: &Run| 100.0 * (run.mean_ns() - base as f64) / base as f64;
    let point = |(scale, (&ranks, run)): (usize, (&u64, &Run))| {
        let slowdown_percent = slowdown(run);
        Point {
            ranks,
            base_phase_ns: base,
            mean_phase_ns: run.mean_ns(),
            slowdown_percent,
            ci95_percent: interval(
                slowdown_percent,
                replicates.iter().map(|runs| slowdown(&runs[scale])).collect(),
            ),
            max_phase_ns: run.longest.as_nanos(),
            supported: drawn(ranks) <= supported_ranks,
        }
    };
    Prediction {
        schema: SCHEMA.to_owned(),
        quantum_ns: base,
        op: Operation::Max,
        sync: options.mode,
        phases: options.phases,
        seed: options.seed,
        skew_ns: options.skew.as_nanos(),
        drift_ppm: options.drift_ppm,
        replicates: replicates.len() as u64,
        noise: nodes.iter().map(NoiseSource::of).collect(),
        supported_ranks,
        points: options.ranks.iter().zip(runs).enumerate().map(point).collect(),
        warnings: warnings(nodes, options, (quanta, drawn(most_ranks)), (replicates.len(), tried)),
    }
}

impl NoiseSource {
    /// What there is to say of a node's noise.
    pub fn of(node: &NodeNoise) -> Self {
        Self {
            name: node.name.clone(),
            cpus: node.traces.len() as u64,
            span_ns: node.span().map_or(0, |span| span.length().as_nanos()),
            detours: node.detours(),
            overhead_percent: node.overhead_percent(),
        }
    }
}

/// The 2.5 % and 97.5 % points of the replicates (nearest rank), moved so that their median is the point: where
/// detours are long and many, those that meet at the seams of blocks queue up, which shifts all replicates alike.
fn interval(point: f64, mut replicates: Vec<f64>) -> Option<[f64; 2]> {
    replicates.sort_by(f64::total_cmp);
    let last = replicates.len().checked_sub(1)?;
    let low = (last as f64 * 0.025).floor() as usize;
    let at = |rank: usize| (point + replicates[rank] - replicates[last / 2]).max(0.0);
    Some([at(low).min(point), at(last - low).max(point)])
}

fn warnings(
    nodes: &[NodeNoise],
    options: &Options,
    (quanta, most_drawn): (u64, u64),
    (replicates, tried): (usize, usize),
) -> Vec<String> {
    let mut warnings = Vec::new();
    let supported_ranks = quanta / QUANTA_PER_RANK;
    if most_drawn > supported_ranks {
        warnings.push(format!(
            "beyond {supported_ranks} ranks the prediction extrapolates, and is rather too low: the traces hold {quanta} \
             quanta of {}, of which each phase meets the worst, and no detour longer than the longest recorded; record \
             for longer to support more",
            options.quantum
        ));
    }
    for node in nodes {
        warnings.extend(node.limits.iter().map(|limit| format!("{}: {limit}", node.name)));
        warnings.extend(warning_on(node, options.quantum));
    }
    if tried == 0 && options.replicates > 0 {
        warnings.push(
            "this is too large to resample, so there are no confidence intervals; ask for fewer ranks or phases".to_owned(),
        );
    }
    if replicates < tried {
        warnings.push(format!(
            "only {replicates} of {tried} resampled traces left any useful time, so the confidence intervals say \
             little; record for longer"
        ));
    }
    warnings
}

/// What one node's traces cannot tell.
fn warning_on(node: &NodeNoise, quantum: Nanos) -> Option<String> {
    let (name, span) = (&node.name, node.span().ok()?.length());
    if node.detours() == 0 {
        return Some(format!("{name} holds no detours, so its nodes are predicted as free of noise"));
    }
    if quantum > span {
        return Some(format!(
            "the quantum, {quantum}, is longer than {name}, {span}, which therefore repeats within each phase; \
             record for longer than one quantum"
        ));
    }
    Blocks::of(node, quantum).ok()?.too_short_for(quantum).then(|| {
        format!(
            "{name} spans {span}, fewer than forty quanta of {quantum}: the confidence intervals are too narrow; \
             record for longer"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_their_point() {
        assert_eq!(interval(5.0, vec![]), None);
        assert_eq!(interval(5.0, vec![6.0, 7.0]), Some([5.0, 6.0]));
        let hundred = || (0..100).map(f64::from).collect();
        assert_eq!(interval(80.0, hundred()), Some([33.0, 128.0]));
        assert_eq!(interval(5.0, hundred()), Some([0.0, 53.0]), "a slowdown is not negative");
    }
}
