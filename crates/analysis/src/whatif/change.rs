//! Changes to a node's noise.

use quell_recording::{Cpu, Nanos};

use super::attributed_noise::{AttributedNoise, AttributedTrace};
use super::source_selector::SelectedSources;
use crate::attribution::AttributedSegment;

/// A change to the selected sources of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// They are removed. The rest of a detour stays where the detour began.
    Without,
    /// All other sources are removed.
    Only,
    /// Their times are multiplied by this factor.
    Scaled(f64),
    /// They all move to this CPU, at the same times.
    OnCpu(Cpu),
    /// On each CPU they come later than on the previous one, by their mean distance divided by the number of CPUs.
    Staggered,
    /// On all CPUs they come at the times of the CPU that has most of them: the k-th of n with the k-th of n.
    Aligned,
    /// They come on all nodes of the job at the same time.
    Coscheduled,
}

/// Noise after a change.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The noise of each node on its own.
    pub node: AttributedNoise,
    /// The noise of all nodes at the same time.
    pub common: Option<AttributedNoise>,
}

impl Change {
    /// Applies the change to the noise of a node.
    ///
    /// # Errors
    /// For a CPU that was not recorded.
    pub fn apply(self, node: &AttributedNoise, chosen: &SelectedSources) -> Result<Changed, String> {
        let without = || node.weighed(|kind| if chosen.has(kind) { 0.0 } else { 1.0 });
        let only = || node.weighed(|kind| if chosen.has(kind) { 1.0 } else { 0.0 });
        let joined = |of: &dyn Fn(&AttributedNoise, usize) -> Vec<AttributedSegment>| {
            let (rest, moved) = (without(), only());
            let place = |trace: &AttributedTrace| rest.cpus().position(|cpu| cpu == trace.cpu).unwrap_or(0);
            rest.with_traces(|trace| trace.queued([&trace.segments[..], &of(&moved, place(trace))].concat()))
        };
        let node = match self {
            Self::Without => without(),
            Self::Only => only(),
            Self::Scaled(factor) => node
                .weighed(|kind| if chosen.has(kind) { factor } else { 1.0 })
                .with_traces(|trace| trace.queued(trace.segments.clone())),
            Self::OnCpu(cpu) => {
                let place = node.cpus().position(|one| one == cpu);
                let place = place.ok_or_else(|| not_recorded(node, cpu))?;
                let all = |only: &AttributedNoise| {
                    only.traces().iter().flat_map(|trace| trace.segments.clone()).collect()
                };
                joined(&|only, at| if at == place { all(only) } else { Vec::new() })
            }
            Self::Staggered => joined(&later),
            Self::Aligned => joined(&with_most),
            Self::Coscheduled => return Ok(Changed { node: without(), common: Some(only()) }),
        };
        Ok(Changed { node, common: None })
    }
}

fn not_recorded(node: &AttributedNoise, cpu: Cpu) -> String {
    let cpus: Vec<Cpu> = node.cpus().collect();
    let cpus = quell_recording::format_cpu_list(&cpus);
    format!("CPU {cpu} is not in {}, which has CPUs {cpus}: name one of those", node.name)
}

/// The detours of a CPU, shifted by its share of their mean distance; past the end they wrap around to the start.
fn later(moved: &AttributedNoise, at: usize) -> Vec<AttributedSegment> {
    let trace = &moved.traces()[at];
    let (length, cpus) = (trace.span.length().as_nanos(), moved.traces().len() as u128);
    let distance = length / (trace.detours().count() as u64).max(1);
    let way = (u128::from(distance) * at as u128 / cpus) as u64;
    let late = |segment: &AttributedSegment| {
        let from = segment.start.saturating_sub(trace.span.start).as_nanos();
        let start = trace.span.start + Nanos::from_nanos(from.saturating_add(way) % length.max(1));
        AttributedSegment { start, ..*segment }
    };
    trace.segments.iter().map(late).collect()
}

/// The detours of a CPU, at the times of the CPU that has most of them.
fn with_most(moved: &AttributedNoise, at: usize) -> Vec<AttributedSegment> {
    let starts =
        |trace: &AttributedTrace| trace.detours().map(|segments| segments[0].start).collect::<Vec<_>>();
    let most = moved.traces().iter().map(starts).max_by_key(Vec::len).unwrap_or_default();
    let count = moved.traces()[at].detours().count();
    let with = |(k, segments): (usize, &[AttributedSegment])| {
        let start = most.get(k * most.len() / count).copied().unwrap_or(segments[0].start);
        segments
            .iter()
            .map(|segment| AttributedSegment {
                start: start + (segment.start - segments[0].start),
                ..*segment
            })
            .collect::<Vec<_>>()
    };
    moved.traces()[at].detours().enumerate().flat_map(with).collect()
}
