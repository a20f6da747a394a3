//! Advice: which source of noise costs a job how much at scale, and what to do about it.

mod best;
mod document;
mod leave;
mod proposals;
#[cfg(test)]
mod tests;

use quell_recording::{Cpu, SourcePattern};

use crate::predict::PredictError;
use crate::whatif::{AttributedNoise, Chosen, Job, Ran, costs, run_with, switches};

pub use best::Best;
pub use document::{Advice, JobFacts, NodeFacts, SCHEMA};
pub use leave::{Leave, LeaveScale};
pub use proposals::{Effect, Proposal, Standing};

/// Something that may be done about noise, as a catalogue and the machine tell.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its id.
    pub id: String,
    /// One line.
    pub title: String,
    /// How much can go wrong, in a word.
    pub risk: String,
    /// Whether it can be done here.
    pub standing: Standing,
    /// Why, where that alone does not say.
    pub why: Option<String>,
    /// What it takes away.
    pub patterns: Vec<SourcePattern>,
    /// Whether it helps only the CPUs that compute, since the noise goes to the others.
    pub moves: bool,
    /// Whether it only works from the next boot on.
    pub reboot: bool,
    /// Mitigations that cannot be done beside it.
    pub conflicts: Vec<String>,
}

/// What advice is asked for.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The nodes, which a job's nodes take in turn.
    pub nodes: &'a [AttributedNoise],
    /// The job.
    pub job: &'a Job<'a>,
    /// What could be done.
    pub candidates: &'a [Candidate],
    /// The CPUs that compute where some are left to the system; empty where that is not possible.
    pub compute: &'a [Cpu],
    /// So many sources stand alone; the others are summed up.
    pub most_sources: usize,
}

/// Nodes and the job on them as they are: what every change is held against.
pub(crate) struct Base<'a> {
    pub nodes: &'a [AttributedNoise],
    pub job: &'a Job<'a>,
    pub ran: Ran,
}

impl Base<'_> {
    /// The same without some sources.
    pub(crate) fn without(&self, chosen: &[Chosen]) -> Result<Ran, PredictError> {
        run_with(self.nodes, self.job, chosen, false)
    }

    /// What a run gains, at each scale.
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

/// Advises. `progress` is told how much of the work is done.
///
/// # Errors
/// As for a prediction.
pub fn advise(question: &Question<'_>, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Advice, PredictError> {
    let &Question { nodes, job, candidates, compute, most_sources } = question;
    // Of a hundred parts: what costs are asked for, what proposals do, the rest.
    let costs = costs(nodes, job, most_sources, &|done, all| progress(done * 50 / all.max(1), 100))?;
    let base = Base { nodes, job, ran: costs.whole.clone() };
    let fewer: Vec<AttributedNoise> = nodes.iter().map(|node| node.on(compute)).collect();
    let apart = nodes.iter().all(|node| node.cpus().any(|cpu| !compute.contains(&cpu)));
    let leaving = match apart && fewer.iter().all(|node| node.cpus().next().is_some()) {
        true => {
            let noise: Vec<_> = fewer.iter().map(AttributedNoise::noise).collect();
            Some(Base { nodes: &fewer, job, ran: job.run(&noise, None, crate::GO_ON)? })
        }
        // All that was recorded computes already: what moves, moves away.
        false if !compute.is_empty() && !apart => Some(Base { nodes, job, ran: base.ran.clone() }),
        false => None,
    };
    progress(55, 100);
    let proposals =
        proposals::proposals(&base, leaving.as_ref(), candidates, &costs.sources, &|done, all| {
            progress(55 + done * 25 / all.max(1), 100);
        })?;
    // Where all that was recorded computes, noise that moves is gone for all of it.
    let best = best::best(&base, &proposals, candidates, !apart && leaving.is_some())?;
    let best_leaving = match (&leaving, apart) {
        // Without anything that moves it is the other set.
        (Some(leaving), true) => {
            best::best(leaving, &proposals, candidates, true)?.filter(|best| best.on_cpus.is_some())
        }
        _ => None,
    };
    progress(90, 100);
    // A larger share of work for each rank may be more than can be played; the rest of the advice stands.
    let leave = leave::leave(nodes, job, &base.ran).unwrap_or(None);
    let what_if = switches(nodes, job, &costs.sources)?;
    progress(100, 100);
    Ok(document::write(question, costs, proposals, (best, best_leaving), (leave, what_if)))
}
