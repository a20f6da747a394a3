//! Advice: the cost of each source of noise for a job at scale, and what to do about it.

mod best;
mod document;
mod leave;
mod proposals;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use quell_recording::{Cpu, SourcePattern};

use crate::predict::{JobNoise, PredictError};
use crate::whatif::{AttributedNoise, Job, Ran, SelectedSources, costs, run_with, switches};

pub use best::Best;
pub use document::{Advice, JobFacts, NodeFacts, SCHEMA};
pub use leave::{Leave, LeaveScale};
pub use proposals::{Applicability, Effect, Proposal};

/// A mitigation from the catalogue, with its state on the machine.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its id.
    pub id: String,
    /// A one-line title.
    pub title: String,
    /// The risk, in one word.
    pub risk: String,
    /// Whether it can be applied here.
    pub standing: Applicability,
    /// The reason, if the standing alone does not give it.
    pub why: Option<String>,
    /// The sources that it removes.
    pub patterns: Vec<SourcePattern>,
    /// Whether it helps only the CPUs that compute, because it moves the noise to the others.
    pub moves: bool,
    /// Whether it takes effect only at the next boot.
    pub reboot: bool,
    /// Ids of mitigations that cannot be combined with it.
    pub conflicts: Vec<String>,
}

/// A request for advice.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The recorded nodes; the job's nodes take their noise round-robin.
    pub nodes: &'a [AttributedNoise],
    /// The job.
    pub job: &'a Job<'a>,
    /// The mitigations to consider.
    pub candidates: &'a [Candidate],
    /// The CPUs that compute if some are left to the system; empty if that is not possible.
    pub compute: &'a [Cpu],
    /// Number of sources that are listed individually; the others are summed up.
    pub most_sources: usize,
}

/// Nodes and job as they are: the baseline for every change.
pub(crate) struct Base<'a> {
    pub nodes: &'a [AttributedNoise],
    pub job: &'a Job<'a>,
    pub ran: Ran,
    /// The runs without some sources so far: many mitigations remove the same ones.
    without: Mutex<Vec<(Vec<SelectedSources>, Ran)>>,
}

impl<'a> Base<'a> {
    fn new(nodes: &'a [AttributedNoise], job: &'a Job<'a>, ran: Ran) -> Self {
        Self { nodes, job, ran, without: Mutex::new(Vec::new()) }
    }

    /// The same run without some sources.
    pub(crate) fn without(&self, chosen: &[SelectedSources]) -> Result<Ran, PredictError> {
        let mut known = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ran)) = known.iter().find(|(other, _)| other == chosen) {
            return Ok(ran.clone());
        }
        let ran = run_with(self.nodes, self.job, chosen, false)?;
        known.push((chosen.to_vec(), ran.clone()));
        Ok(ran)
    }

    /// The gain of a run over this one at each scale.
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

/// Gives advice. Calls `progress` with the work that is done and the total.
///
/// # Errors
/// As for a prediction.
pub fn advise(question: &Question<'_>, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Advice, PredictError> {
    let &Question { nodes, job, candidates, compute, most_sources } = question;
    // No mitigation of the system removes what its users run.
    let candidates = if nodes.iter().any(|node| node.load().is_some()) { &[] } else { candidates };
    // Progress is in percent: 50 for the costs of sources, then the proposals, then the rest.
    let costs = costs(nodes, job, most_sources, &|done, all| progress(done * 50 / all.max(1), 100))?;
    let base =
        Base { without: Mutex::new(costs.without.clone()), ..Base::new(nodes, job, costs.whole.clone()) };
    let fewer: Vec<AttributedNoise> = nodes.iter().map(|node| node.on(compute)).collect();
    let apart = nodes.iter().all(|node| node.cpus().any(|cpu| !compute.contains(&cpu)));
    let leaving = match apart && fewer.iter().all(|node| node.cpus().next().is_some()) {
        true => {
            let noise: Vec<_> = fewer.iter().map(AttributedNoise::noise).collect();
            Some(Base::new(&fewer, job, job.run(JobNoise::from_nodes(&noise))?))
        }
        // All recorded CPUs compute already, so noise that moves leaves all of them.
        false if !compute.is_empty() && !apart => Some(Base::new(nodes, job, base.ran.clone())),
        false => None,
    };
    progress(55, 100);
    let proposals =
        proposals::proposals(&base, leaving.as_ref(), candidates, &costs.sources, &|done, all| {
            progress(55 + done * 25 / all.max(1), 100);
        })?;
    // If all recorded CPUs compute, noise that moves is gone from all of them.
    let best = best::best(&base, &proposals, candidates, !apart && leaving.is_some())?;
    let best_leaving = match (&leaving, apart) {
        // Without a mitigation that moves noise, this set would equal the other.
        (Some(leaving), true) => {
            best::best(leaving, &proposals, candidates, true)?.filter(|best| best.on_cpus.is_some())
        }
        _ => None,
    };
    progress(90, 100);
    // The larger share of work per rank may exceed what can be simulated; the rest of the advice still holds.
    let leave = leave::leave(nodes, job, &base.ran).unwrap_or(None);
    let what_if = switches(nodes, job, &costs.sources)?;
    progress(100, 100);
    Ok(document::write(question, costs, proposals, (best, best_leaving), (leave, what_if)))
}
