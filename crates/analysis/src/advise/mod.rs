//! Advice: the cost of each source of noise for a job at scale, and what to do about it.

mod base;
mod best;
mod document;
mod leave;
mod proof;
mod proposals;
#[cfg(test)]
mod tests;

use quell_recording::{Cpu, SourcePattern};

use crate::predict::PredictError;
use crate::whatif::{AttributedNoise, Job, costs, switches};

use base::Base;
pub use best::Best;
pub use document::{Advice, JobFacts, NodeFacts, SCHEMA};
pub use leave::{Leave, LeaveChoice, LeaveScale, Leaving};
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
    /// Seconds until it has taken effect.
    pub settle_s: u64,
    /// Ids of mitigations that cannot be combined with it.
    pub conflicts: Vec<String>,
}

/// What the command that tests a recommendation repeats of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The CPUs that compute, if they were given.
    pub cpus: Option<String>,
    /// The folder with the site's own mitigations, if it is not the usual one.
    pub site: Option<String>,
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
    /// The CPUs of a node to consider leaving to the system.
    pub leave: Leaving,
    /// What the printed command repeats.
    pub given: &'a Given,
}

/// Gives advice. Calls `progress` with the work that is done and the total.
///
/// # Errors
/// As for a prediction.
pub fn advise(question: &Question<'_>, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Advice, PredictError> {
    let &Question { nodes, job, candidates, compute, most_sources, .. } = question;
    // No mitigation of the system removes what its users run.
    let candidates = if nodes.iter().any(|node| node.load().is_some()) { &[] } else { candidates };
    // Launchers put the ranks of a node on its first CPUs.
    let per_node = question.leave.ranks_per_node.map_or(usize::MAX, |ranks| ranks as usize);
    let first = |node: &AttributedNoise| node.on(&node.cpus().take(per_node).collect::<Vec<_>>());
    let used: Vec<AttributedNoise> = nodes.iter().map(first).collect();
    let on_compute = |node: &AttributedNoise| first(&node.on(compute));
    // Progress is in percent: 50 for the costs of sources, then the proposals, then the rest.
    let costs = costs(&used, job, most_sources, &|done, all| progress(done * 50 / all.max(1), 100))?;
    let base = Base::on_all(&used, job, &costs);
    let fewer: Vec<AttributedNoise> = nodes.iter().map(on_compute).collect();
    let apart = nodes.iter().all(|node| node.cpus().any(|cpu| !compute.contains(&cpu)));
    let leaving = match apart && fewer.iter().all(|node| node.cpus().next().is_some()) {
        true => Some(Base::on_fewer(&used, &fewer, job, &costs.whole)),
        // All recorded CPUs compute already, so noise that moves leaves all of them.
        false if !compute.is_empty() && !apart => Some(Base::on_all(&used, job, &costs)),
        false => None,
    };
    progress(55, 100);
    let proposals =
        proposals::proposals(&base, leaving.as_ref(), candidates, &costs.sources, &|done, all| {
            progress(55 + done * 25 / all.max(1), 100);
        })?;
    let best = best::best(&base, leaving.as_ref(), &proposals, candidates)?;
    progress(90, 100);
    // The larger share of work per rank may exceed what can be simulated; the rest of the advice still holds.
    let leave = leave::leave(nodes, job, &base.ran, &question.leave).unwrap_or(None);
    let what_if = switches(&used, job, &costs.sources)?;
    progress(100, 100);
    let mut advice = document::write(question, costs, proposals, best, (leave, what_if));
    advice.try_it = proof::command(&advice, document::watched(&used), question);
    Ok(advice)
}
