//! The job as it is, and on fewer CPUs of the same nodes: every effect is a difference to the same baseline.

use std::sync::{Mutex, PoisonError};

use quell_recording::Nanos;

use super::proposals::Effect;
use crate::predict::{Options, PredictError};
use crate::whatif::{AttributedNoise, Cost, Costs, Job, Ran, SelectedSources, run_with};

/// Where the job runs.
pub(crate) struct Base<'a> {
    pub nodes: &'a [AttributedNoise],
    job: &'a Job<'a>,
    /// The jobs to run in place of the given one, each with the scales that it is for; none to run that one.
    places: Vec<(Vec<usize>, Job<'a>)>,
    /// The job with all noise on all CPUs.
    pub ran: Ran,
    /// The runs without some sources so far: many mitigations remove the same ones.
    without: Mutex<Vec<(Vec<SelectedSources>, Ran)>>,
}

/// A job of some ranks on some CPUs of its nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Number of ranks.
    pub ranks: u64,
    /// The work of a rank, in multiples of that on all CPUs.
    pub work: f64,
}

/// The job of `ranks` ranks, of which `per_node` share a node, on the same nodes with at most `fewer` ranks each: the same work, by fewer
/// ranks where they do not all fit.
pub(super) fn share(ranks: u64, per_node: u64, fewer: u64) -> Share {
    let nodes = ranks.div_ceil(per_node.max(1));
    let left = ranks.min(nodes.saturating_mul(fewer)).max(1);
    Share { ranks: left, work: ranks as f64 / left as f64 }
}

impl<'a> Base<'a> {
    /// On all CPUs of the nodes.
    pub(super) fn on_all(nodes: &'a [AttributedNoise], job: &'a Job<'a>, costs: &Costs) -> Self {
        let without = Mutex::new(costs.without.clone());
        Self { nodes, job, places: Vec::new(), ran: costs.whole.clone(), without }
    }

    /// On some CPUs of the same nodes, with the same work; `whole` is the job on all of them. A schedule has its ranks and work in itself, and
    /// runs on more nodes.
    pub(super) fn on_fewer(
        nodes: &[AttributedNoise],
        fewer: &'a [AttributedNoise],
        job: &'a Job<'a>,
        whole: &Ran,
    ) -> Self {
        let places = match job {
            Job::Phases(options) => places(options, smallest(nodes), smallest(fewer)),
            Job::Schedule(_) => Vec::new(),
        };
        Self { nodes: fewer, job, places, ran: whole.clone(), without: Mutex::new(Vec::new()) }
    }

    /// The same work without some sources.
    pub(crate) fn without(&self, chosen: &[SelectedSources]) -> Result<Ran, PredictError> {
        let mut known = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ran)) = known.iter().find(|(other, _)| other == chosen) {
            return Ok(ran.clone());
        }
        let ran = if self.places.is_empty() {
            run_with(self.nodes, self.job, chosen, false)?
        } else {
            self.run_in_places(chosen)?
        };
        known.push((chosen.to_vec(), ran.clone()));
        Ok(ran)
    }

    fn run_in_places(&self, chosen: &[SelectedSources]) -> Result<Ran, PredictError> {
        let mut ran = self.ran.clone();
        for (scales, job) in &self.places {
            let part = run_with(self.nodes, job, chosen, false)?;
            for ((&scale, sample), cost) in scales.iter().zip(part.samples).zip(&part.costs) {
                // In percent of the same time without noise as on all CPUs.
                let sample = sample.against(self.ran.samples[scale].silent_ns);
                ran.costs[scale] = Cost {
                    slowdown_percent: sample.slowdown_percent(),
                    ci95_percent: sample.slowdown_interval(),
                    supported: cost.supported,
                };
                ran.samples[scale] = sample;
            }
        }
        Ok(ran)
    }

    /// The gain of a run over the baseline at each scale.
    pub(crate) fn effects(&self, other: &Ran) -> Vec<Effect> {
        let ranks = self.job.ranks();
        let effect = |scale: usize| {
            let gain = self.ran.samples[scale].gain(&other.samples[scale]);
            Effect {
                ranks: ranks[scale],
                before_percent: self.ran.costs[scale].slowdown_percent,
                after_percent: other.costs[scale].slowdown_percent,
                after_ci95_percent: other.costs[scale].ci95_percent,
                gain_percent: gain.value,
                gain_ci95_percent: gain.ci95,
            }
        };
        (0..ranks.len()).map(effect).collect()
    }
}

fn smallest(nodes: &[AttributedNoise]) -> u64 {
    nodes.iter().map(|node| node.cpus().count() as u64).min().unwrap_or(1)
}

/// The scales of a job on fewer CPUs, those together whose ranks have equal work.
fn places<'a>(options: &Options, per_node: u64, fewer: u64) -> Vec<(Vec<usize>, Job<'a>)> {
    let mut groups: Vec<(f64, Vec<usize>, Vec<u64>)> = Vec::new();
    for (at, ranks) in options.ranks.iter().enumerate() {
        let Share { ranks, work } = share(*ranks, per_node, fewer);
        // Two scales with the same ranks left must not share a run, whose scales are distinct.
        match groups.iter_mut().find(|group| group.0.total_cmp(&work).is_eq() && !group.2.contains(&ranks)) {
            Some((_, scales, left)) => (scales.push(at), left.push(ranks)).0,
            None => groups.push((work, vec![at], vec![ranks])),
        }
    }
    let job = |(work, scales, ranks): (f64, Vec<usize>, Vec<u64>)| {
        let quantum = Nanos::from_nanos_f64(options.quantum.as_nanos() as f64 * work);
        (
            scales,
            Job::Phases(Options { ranks, quantum: quantum.unwrap_or(options.quantum), ..options.clone() }),
        )
    };
    groups.into_iter().map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_only_where_ranks_do_not_fit() {
        let work = |ranks, per_node, fewer| {
            let share = share(ranks, per_node, fewer);
            (share.ranks, share.work)
        };
        assert_eq!(work(4_096, 16, 15), (3_840, 4_096.0 / 3_840.0));
        assert_eq!(work(4_096, 8, 15), (4_096, 1.0), "half-full nodes have free CPUs");
        assert_eq!(work(2, 256, 240), (2, 1.0));
        assert_eq!(work(1, 1, 1), (1, 1.0));
    }
}
