//! The cost of each source for a job: its share of the critical path, the gain if it is removed, and its cost alone.
//!
//! The three differ because noise overlaps: if two sources strike different ranks in one phase, the longer hides the shorter.
//! Nataraj et al. ("The Ghost in the Machine", SC 2007, section 4) compose noise from its sources as measured; here each source is actually
//! removed, and run alone, under the same draws, at any scale.

use std::collections::{BTreeMap, HashSet};

use quell_recording::Nanos;
use quell_recording::columns::{Columns, describe};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::alone::Lengths;
use super::attributed_noise::AttributedNoise;
use super::job::{Cost, Job, Ran};
use super::source_selector::SelectedSources;
use crate::Warning;
use crate::predict::{Difference, JobNoise, NodeNoise, PredictError};

/// The name of all sources together that are too small to be listed individually.
pub const OTHERS: &str = "all others";

/// The time that one source took on the CPUs of the nodes, whatever it costs a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct OnNode {
    /// Time that it took, in percent of the time that all CPUs were observed.
    #[column(title = "% of node", percent, precision = 4)]
    pub percent: f64,
    /// Number of detours that it took a part of; `show` counts its intervals.
    #[column(title = "detours")]
    pub count: u64,
    /// The longest time that it took in one detour.
    #[column(title = "longest")]
    pub max_ns: u64,
    /// Sum of the times that it took, in nanoseconds.
    pub total_ns: u64,
}

/// A table row at one scale: a source, its time on the node, and its cost.
#[derive(Debug, Columns)]
pub struct CostRow<'a> {
    /// The source.
    #[column(name)]
    pub source: &'a str,
    /// Its time on the node.
    #[column(flatten)]
    pub node: OnNode,
    /// Its cost at the scale.
    #[column(flatten)]
    pub cost: SourceCost,
}

/// The cost of one source at one scale. All percentages are points of the slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SourceCost {
    /// Percentage points of the slowdown that it accounts for, by its time in the slowest ranks' detours; all sources add up to the slowdown.
    #[column(title = "share, points", points)]
    pub part_percent: f64,
    /// Reduction of the slowdown if it is removed.
    #[column(title = "gain if removed, points", points)]
    pub gain_percent: f64,
    /// 95 % confidence interval of the gain, from pairs of runs.
    #[column(title = "95 % interval", points)]
    pub gain_ci95_percent: Option<[f64; 2]>,
    /// The slowdown if there were no other noise.
    #[column(title = "alone, points", points)]
    pub alone_percent: f64,
    /// 95 % confidence interval of that slowdown.
    #[column(title = "95 % interval", points, page)]
    pub alone_ci95_percent: Option<[f64; 2]>,
    /// The slowdown without it.
    pub without_percent: f64,
    /// 95 % confidence interval of that slowdown.
    pub without_ci95_percent: Option<[f64; 2]>,
}

/// A source, on the nodes and at every scale.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Source {
    /// Its name, which a process or a driver chose: untrusted text.
    pub source: String,
    /// Its time on the nodes.
    pub node: OnNode,
    /// One entry for each scale, in their order.
    pub costs: Vec<SourceCost>,
}

/// One scale with all noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scale {
    /// Number of ranks.
    pub ranks: u64,
    /// The job's time without noise, in nanoseconds: of a phase, or of a whole application.
    pub base_ns: u64,
    /// The slowdown.
    pub slowdown_percent: f64,
    /// 95 % confidence interval of the slowdown.
    pub ci95_percent: Option<[f64; 2]>,
    /// Whether the traces support this number of ranks.
    pub supported: bool,
    /// The part of the slowdown that no single removal gains, in points: it takes the removal of several sources. If it is negative, the gains
    /// add up to more than the slowdown, because some noise is only late enough to matter after other noise.
    pub overlap_percent: f64,
}

/// The costs at all scales.
#[derive(Clone, Debug)]
pub struct Costs {
    /// The scales, in their order.
    pub scales: Vec<Scale>,
    /// The sources, the costliest at the last scale first.
    pub sources: Vec<Source>,
    /// What limits the figures.
    pub warnings: Vec<Warning>,
    pub(crate) whole: Ran,
    /// The run without each source.
    pub(crate) without: Vec<(Vec<SelectedSources>, Ran)>,
}

/// A source as it is selected from the nodes.
struct Group {
    name: String,
    chosen: Vec<SelectedSources>,
}

/// Runs a job with only the selected noise of its nodes, or with all other noise.
pub(crate) fn run_with(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    chosen: &[SelectedSources],
    keep: bool,
) -> Result<Ran, PredictError> {
    let left = |(node, chosen): (&AttributedNoise, &SelectedSources)| {
        let gone = |kind| if chosen.has(kind) == keep { 1.0 } else { 0.0 };
        node.weighed(gone).noise()
    };
    let changed: Vec<NodeNoise> = nodes.par_iter().zip(chosen).map(left).collect();
    let recorded: Vec<NodeNoise> = nodes.par_iter().map(AttributedNoise::noise).collect();
    job.run(JobNoise { nodes: &changed, common: None, recorded: &recorded })
}

/// The cost of each source of some nodes for a job, for at most `most` sources individually; the others count as one source.
///
/// `progress` is called with the number of predictions that are done and the total.
///
/// # Errors
/// As for a prediction.
pub fn costs(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    most: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Costs, PredictError> {
    let noise: Vec<NodeNoise> = nodes.iter().map(AttributedNoise::noise).collect();
    let whole = job.run(JobNoise::from_nodes(&noise))?;
    drop(noise);
    let split = job.split(nodes)?;
    let groups = groups(nodes, job, (&split, &whole), most);
    let all = 2 * groups.len() as u64 + 2;
    progress(2, all);
    let (mut sources, mut all_without) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let without = run_with(nodes, job, &group.chosen, false)?;
        progress(2 * number as u64 + 3, all);
        let alone = run_with(nodes, job, &group.chosen, true)?;
        progress(2 * number as u64 + 4, all);
        let cost = |scale: usize| {
            let part = part(&split[scale], &groups, number) * whole.costs[scale].slowdown_percent;
            let gain = whole.samples[scale].gain(&without.samples[scale]);
            source_cost(part, gain, &without.costs[scale], &alone.costs[scale])
        };
        let costs = (0..whole.costs.len()).map(cost).collect();
        sources.push(Source { source: group.name.clone(), node: on_node(nodes, &group.chosen), costs });
        all_without.push((group.chosen.clone(), without));
    }
    let scales = (0..whole.costs.len()).map(|scale| sum_up(job, &whole, &sources, scale)).collect();
    let last = |source: &Source| source.costs.last().map_or(0.0, |cost| cost.part_percent);
    sources.sort_by(|a, b| last(b).total_cmp(&last(a)).then(b.node.total_ns.cmp(&a.node.total_ns)));
    Ok(Costs { scales, sources, warnings: whole.warnings.clone(), whole, without: all_without })
}

fn source_cost(part_percent: f64, gain: Difference, without: &Cost, alone: &Cost) -> SourceCost {
    SourceCost {
        part_percent,
        without_percent: without.slowdown_percent,
        without_ci95_percent: without.ci95_percent,
        gain_percent: gain.value,
        gain_ci95_percent: gain.ci95,
        alone_percent: alone.slowdown_percent,
        alone_ci95_percent: alone.ci95_percent,
    }
}

fn sum_up(job: &Job<'_>, whole: &Ran, sources: &[Source], scale: usize) -> Scale {
    let cost = whole.costs[scale];
    let gains: f64 = sources.iter().map(|source| source.costs[scale].gain_percent).sum();
    Scale {
        ranks: job.ranks()[scale],
        base_ns: whole.samples[scale].silent_ns.round() as u64,
        slowdown_percent: cost.slowdown_percent,
        ci95_percent: cost.ci95_percent,
        supported: cost.supported,
        overlap_percent: cost.slowdown_percent - gains,
    }
}

/// The weight of a family that comes first by share or by time: it is listed whatever others would cost alone.
const FIRST: f64 = 2.0;

/// The families of sources that are listed individually, and one group of the others. Families count by their share of the critical path, by
/// their time on the nodes, and by what they would cost alone: a daemon that other noise hides is the next culprit once that is gone.
fn groups(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    (split, whole): (&[BTreeMap<String, f64>], &Ran),
    most: usize,
) -> Vec<Group> {
    let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
    let mut raise = |family, weight: f64| {
        let known = weights.entry(family).or_insert(0.0);
        *known = known.max(weight);
    };
    for of_scale in split {
        let all: f64 = of_scale.values().sum();
        of_scale.iter().for_each(|(family, ns)| raise(family, ns / all.max(1.0)));
        let first = of_scale.iter().filter(|(_, ns)| **ns > 0.0).max_by(|a, b| a.1.total_cmp(b.1));
        first.into_iter().for_each(|(family, _)| raise(family, FIRST));
    }
    let times = times(nodes);
    let all: f64 = times.values().sum();
    times.iter().for_each(|(family, ns)| raise(family, ns / all.max(1.0)));
    let first = times.iter().max_by(|a, b| a.1.total_cmp(b.1));
    first.into_iter().for_each(|(family, _)| raise(family, FIRST));
    let lengths = Lengths::from_nodes(nodes);
    for (ranks, sample) in job.ranks().iter().zip(&whole.samples) {
        let work_ns = match job {
            Job::Phases(options) => options.quantum.as_nanos() as f64,
            // A schedule waits somewhere within its run.
            Job::Schedule(_) => sample.silent_ns,
        };
        let alone = lengths.alone_ns(work_ns, *ranks);
        let most = alone.values().copied().fold(0.0, f64::max);
        alone.iter().for_each(|(family, ns)| raise(family, ns / most.max(1.0)));
    }
    let mut ranked: Vec<(&str, f64)> = weights.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    // A single source that would remain is listed individually.
    let kept = if ranked.len() == most + 1 { ranked.len() } else { ranked.len().min(most) };
    let (alone, rest) = ranked.split_at(kept);
    let choose = |meant: &(dyn Fn(&str) -> bool + Sync)| {
        nodes.iter().map(|node| SelectedSources::by(node, |kind| meant(&kind.family))).collect()
    };
    let of =
        |&(name, _): &(&str, f64)| Group { name: name.to_owned(), chosen: choose(&|family| family == name) };
    let mut groups: Vec<Group> = alone.iter().map(of).collect();
    if !rest.is_empty() {
        let names: HashSet<&str> = rest.iter().map(|one| one.0).collect();
        let chosen = choose(&|family| names.contains(family));
        groups.push(Group { name: OTHERS.to_owned(), chosen });
    }
    groups
}

/// The share of a group in all noise on the critical path.
fn part(split: &BTreeMap<String, f64>, groups: &[Group], number: usize) -> f64 {
    let all: f64 = split.values().sum();
    let mine: f64 = match groups[number].name.as_str() {
        OTHERS => {
            let alone = |family: &String| groups.iter().any(|group| group.name == *family);
            split.iter().filter(|(family, _)| !alone(family)).map(|one| one.1).sum()
        }
        name => split.get(name).copied().unwrap_or(0.0),
    };
    if all > 0.0 { mine / all } else { 0.0 }
}

/// The time that each family took on all nodes, in nanoseconds.
fn times(nodes: &[AttributedNoise]) -> BTreeMap<&str, f64> {
    let mut times = BTreeMap::new();
    for node in nodes {
        for segment in node.traces().iter().flat_map(|trace| &trace.segments) {
            *times.entry(&*node.kinds()[segment.kind as usize].family).or_insert(0.0) += segment.ns as f64;
        }
    }
    times
}

/// The time that the selected sources took on the nodes.
pub(crate) fn on_node(nodes: &[AttributedNoise], chosen: &[SelectedSources]) -> OnNode {
    let per_node = |(node, chosen): (&AttributedNoise, &SelectedSources)| {
        let mut sum = OnNode::default();
        let mut watched = Nanos::ZERO;
        for trace in node.traces() {
            watched += trace.span.length();
            for segments in trace.detours() {
                let mine = segments.iter().filter(|segment| chosen.has(segment.kind as usize));
                let ns = mine.fold(0u64, |sum, segment| sum.saturating_add(segment.ns));
                sum.count += u64::from(ns > 0);
                sum.total_ns = sum.total_ns.saturating_add(ns);
                sum.max_ns = sum.max_ns.max(ns);
            }
        }
        (sum, watched.as_nanos())
    };
    let each: Vec<(OnNode, u64)> = nodes.par_iter().zip(chosen).map(per_node).collect();
    let watched: f64 = each.iter().map(|one| one.1 as f64).sum();
    let mut all = each.iter().fold(OnNode::default(), |all, (one, _)| OnNode {
        count: all.count + one.count,
        total_ns: all.total_ns.saturating_add(one.total_ns),
        max_ns: all.max_ns.max(one.max_ns),
        percent: 0.0,
    });
    all.percent = if watched > 0.0 { 100.0 * all.total_ns as f64 / watched } else { 0.0 };
    all
}
