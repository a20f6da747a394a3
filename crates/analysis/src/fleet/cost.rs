//! The cost of a mixture of nodes: a phase takes as long as its slowest node.
//!
//! Nodes that are not synchronised are late independently, so the probability that a phase is delayed by no more than a given time is
//! the product of the nodes' probabilities (the order statistics of De et al. 2008, §VI, with one distribution per node); its mean
//! follows by integration.

use quell_recording::Nanos;

use super::NodeSummary;
use super::curve::{at, mean_ns};
use super::document::{Cost, Scale, SlowNode, WorstShare};
use crate::stats::median_low;

/// Replaces a probability of zero: smaller than any recording could measure.
const NO_CHANCE: f64 = 1e-12;
/// Maximum number of nodes in the list of the slowest.
const MOST_SLOWEST: usize = 20;

/// The job whose cost is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetJob {
    /// The scales, in ranks (one per CPU); if empty, that of the whole fleet.
    pub ranks: Vec<u64>,
    /// Noise-free work per phase and rank.
    pub quantum: Nanos,
    /// Equal seeds give equal findings, bit for bit.
    pub seed: u64,
}

/// The nodes with a curve: logarithms of the probabilities to be in time.
struct Mixture<'a> {
    nodes: Vec<&'a NodeSummary>,
    logs: Vec<Vec<f64>>,
    quantum_ns: f64,
}

/// The cost of a fleet, and the share of each of `nodes` in the loss; `unlike` marks the outliers.
pub(super) fn cost(
    nodes: &[NodeSummary],
    unlike: &[bool],
    job: FleetJob,
) -> Option<(Cost, Vec<Option<f64>>)> {
    let known: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].curve.is_some()).collect();
    let mixture = Mixture::from_nodes(known.iter().map(|&at| &nodes[at]).collect(), job.quantum);
    let (&first, _) = known.split_first()?;
    let cpus: usize = mixture.nodes.iter().map(|node| node.cpus).sum();
    let blame = mixture.blame();
    let own: Vec<f64> = mixture.logs.iter().map(|log| mean_ns(&chances(log))).collect();
    let median = middle(&own).unwrap_or(first);
    let ill: Vec<bool> = known.iter().map(|&at| unlike[at]).collect();
    let cured = mixture.cured(&ill);
    let scale = |ranks: u64| {
        let jobs = (u128::from(ranks) * known.len() as u128).div_ceil(cpus.max(1) as u128) as u64;
        let size = jobs.max(1);
        let percent = |logs: &[Vec<f64>]| mixture.percent(mean_over_places(logs, size));
        Scale {
            ranks,
            nodes: size,
            mixture_percent: percent(&mixture.logs),
            median_percent: mixture.percent(powered(&mixture.logs[median], size as f64)),
            without_unlike_percent: percent(&cured),
        }
    };
    let ranks = if job.ranks.is_empty() { vec![cpus as u64] } else { job.ranks };
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.sort_by(|&a, &b| blame[b].delay.total_cmp(&blame[a].delay).then(a.cmp(&b)));
    let slow = |&at: &usize| SlowNode {
        node: mixture.nodes[at].name.clone(),
        host: mixture.nodes[at].host.clone(),
        own_percent: mixture.percent(own[at]),
        holds_up_percent: 100.0 * blame[at].phases,
        delay_share_percent: 100.0 * blame[at].delay,
    };
    let cost = Cost {
        quantum_ns: job.quantum.as_nanos(),
        seed: job.seed,
        nodes: known.len() as u64,
        ranks: cpus as u64,
        median_node: mixture.nodes[median].name.clone(),
        scales: ranks.into_iter().map(scale).collect(),
        worst_share: mixture.worst_share(&order, median),
        slowest: order.iter().take(MOST_SLOWEST).map(slow).collect(),
    };
    let mut shares = vec![None; nodes.len()];
    for (&at, blame) in known.iter().zip(&blame) {
        shares[at] = Some(100.0 * blame.delay);
    }
    Some((cost, shares))
}

/// The index of the low median.
fn middle(values: &[f64]) -> Option<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
    median_low(&order)
}

fn chances(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| log.exp()).collect()
}

/// The mean delay of the slowest of `size` nodes that are all alike.
fn powered(log: &[f64], size: f64) -> f64 {
    mean_ns(&log.iter().map(|log| (log * size).exp()).collect::<Vec<f64>>())
}

/// The mean delay of the slowest of `size` neighbouring nodes, over all places at which they may begin. The nodes are repeated cyclically
/// if there are fewer.
fn mean_over_places(logs: &[Vec<f64>], size: u64) -> f64 {
    let count = logs.len();
    let (rounds, rest) = ((size / count as u64) as f64, (size % count as u64) as usize);
    let in_time = |point: usize| {
        let log = |at: usize| logs[at % count][point];
        let whole: f64 = (0..count).map(log).sum();
        let mut window: f64 = (0..rest).map(log).sum();
        let mut sum = 0.0;
        for place in 0..count {
            sum += (rounds * whole + window).min(0.0).exp();
            window += log(place + rest) - log(place);
        }
        sum / count as f64
    };
    mean_ns(&(0..logs[0].len()).map(in_time).collect::<Vec<f64>>())
}

/// The loss in the phases in which one node is the last.
#[derive(Clone, Copy, Debug, Default)]
struct Blame {
    /// Share of phases.
    phases: f64,
    /// Share of the time lost.
    delay: f64,
}

impl<'a> Mixture<'a> {
    fn from_nodes(nodes: Vec<&'a NodeSummary>, quantum: Nanos) -> Self {
        let logs = nodes
            .iter()
            .filter_map(|node| node.curve.as_ref())
            .map(|curve| curve.in_time().map(|chance| chance.max(NO_CHANCE).ln()).collect())
            .collect();
        Self { nodes, logs, quantum_ns: quantum.as_nanos().max(1) as f64 }
    }

    fn percent(&self, delay_ns: f64) -> f64 {
        100.0 * delay_ns / self.quantum_ns
    }

    fn points(&self) -> usize {
        self.logs.first().map_or(0, Vec::len)
    }

    /// The probabilities of all nodes together, each once.
    fn whole(&self) -> Vec<f64> {
        (0..self.points()).map(|point| self.logs.iter().map(|log| log[point]).sum()).collect()
    }

    /// The share of each node in being last, and in the delay: the mean delay is the integral of the delay over the phase's distribution, and
    /// each step of it is divided among the nodes in proportion to the steps of their logarithms.
    fn blame(&self) -> Vec<Blame> {
        let whole = self.whole();
        let mut all = vec![Blame::default(); self.logs.len()];
        let mut lost = 0.0;
        for point in 1..self.points() {
            let step = whole[point] - whole[point - 1];
            if step <= 0.0 {
                continue;
            }
            let phases = whole[point].exp() - whole[point - 1].exp();
            let delay = phases * f64::midpoint(at(point - 1), if point > 1 { at(point - 2) } else { 0.0 });
            lost += delay;
            for (blame, log) in all.iter_mut().zip(&self.logs) {
                let share = (log[point] - log[point - 1]) / step;
                blame.phases += phases * share;
                blame.delay += delay * share;
            }
        }
        for blame in &mut all {
            blame.delay /= if lost > 0.0 { lost } else { 1.0 };
        }
        all
    }

    /// The nodes with the outliers (`ill`) replaced by the mean of the others.
    fn cured(&self, ill: &[bool]) -> Vec<Vec<f64>> {
        let healthy = ill.iter().filter(|ill| !**ill).count();
        if healthy == 0 || healthy == ill.len() {
            return self.logs.clone();
        }
        let mean = |point: usize| {
            let sum: f64 =
                self.logs.iter().zip(ill).filter(|(_, ill)| !**ill).map(|(log, _)| log[point].exp()).sum();
            (sum / healthy as f64).max(NO_CHANCE).ln()
        };
        let mean: Vec<f64> = (0..self.points()).map(mean).collect();
        self.logs.iter().zip(ill).map(|(log, ill)| if *ill { mean.clone() } else { log.clone() }).collect()
    }

    fn worst_share(&self, order: &[usize], median: usize) -> Vec<WorstShare> {
        let mut whole = self.whole();
        let all = mean_ns(&chances(&whole));
        let steps = [1, 2, 5].into_iter().flat_map(|step| (0..8).map(move |power| step * 10usize.pow(power)));
        let mut counts: Vec<usize> = steps.filter(|&count| count != 2 && count <= order.len() / 2).collect();
        counts.sort_unstable();
        let mut shares = Vec::new();
        let mut replaced = 0;
        for count in counts {
            for &at in &order[replaced..count] {
                for (point, sum) in whole.iter_mut().enumerate() {
                    *sum += self.logs[median][point] - self.logs[at][point];
                }
            }
            replaced = count;
            let left = mean_ns(&whole.iter().map(|log| log.min(0.0).exp()).collect::<Vec<f64>>());
            let share_percent = if all > 0.0 { 100.0 * (all - left) / all } else { 0.0 };
            shares.push(WorstShare { nodes: count as u64, share_percent });
        }
        shares
    }
}
