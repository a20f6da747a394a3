//! The best set of mitigations: greedily, as long as the next one is worth it.

use schemars::JsonSchema;
use serde::Serialize;

use super::proposals::{Applicability, Effect, Weighed};
use super::{Base, Candidate};
use crate::predict::PredictError;
use crate::whatif::Ran;

/// Maximum number of mitigations that are tried.
const MOST_TRIED: usize = 12;

/// Mitigations that are worth it in combination.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Best {
    /// Their ids, in the order in which they were chosen.
    pub ids: Vec<String>,
    /// The CPUs of the job, if the other CPUs are left to the system.
    pub on_cpus: Option<String>,
    /// Their combined effect at each scale.
    pub effects: Vec<Effect>,
}

/// Selects greedily by gain at the last scale: a mitigation is added if the job then certainly saves more. Manual ones may be added. As soon
/// as one of them moves noise away, the job leaves the CPUs that it goes to.
pub(super) fn best(
    base: &Base<'_>,
    leaving: Option<&Base<'_>>,
    proposals: &[Weighed],
    candidates: &[Candidate],
) -> Result<Option<Best>, PredictError> {
    let is_choice = |one: &&Weighed| {
        one.proposal.standing <= Applicability::ByHand
            && one.proposal.worth_it
            && (leaving.is_some() || !one.moves)
    };
    // In the order of the proposals, whose first is the one to try first.
    let order = proposals.iter().filter(is_choice);
    let mut picked: Vec<&Weighed> = Vec::new();
    let mut so_far = base.ran.clone();
    for one in order.take(MOST_TRIED) {
        if conflicts(one, &picked, candidates) {
            continue;
        }
        let moves = picked.iter().chain([&one]).any(|one| one.moves);
        let side = if moves { leaving.unwrap_or(base) } else { base };
        let ran = match side.without(&joined(&picked, one, side, candidates)) {
            // As for a proposal: the larger share of work may exceed what can be simulated.
            Err(_) if moves => continue,
            other => other?,
        };
        if is_worth_adding(&so_far, &ran) {
            (so_far, picked) = (ran, picked.into_iter().chain([one]).collect());
        }
    }
    if picked.is_empty() {
        return Ok(None);
    }
    let on_cpus = picked.iter().find_map(|one| one.proposal.on_cpus.clone());
    let ids = picked.iter().map(|one| one.proposal.id.clone()).collect();
    Ok(Some(Best { ids, on_cpus, effects: base.effects(&so_far) }))
}

fn conflicts(one: &Weighed, picked: &[&Weighed], candidates: &[Candidate]) -> bool {
    let names = |id: &str, other: &str| {
        candidates
            .iter()
            .any(|candidate| candidate.id == id && candidate.conflicts.iter().any(|it| it == other))
    };
    let id = &one.proposal.id;
    picked.iter().any(|other| names(id, &other.proposal.id) || names(&other.proposal.id, id))
}

/// What all of them together select on the base's nodes, which may have fewer CPUs than the nodes they were proposed for.
fn joined(
    picked: &[&Weighed],
    one: &Weighed,
    base: &Base<'_>,
    candidates: &[Candidate],
) -> Vec<crate::whatif::SelectedSources> {
    let ids: Vec<&str> = picked.iter().chain([&one]).map(|one| one.proposal.id.as_str()).collect();
    let patterns: Vec<_> = candidates
        .iter()
        .filter(|candidate| ids.contains(&candidate.id.as_str()))
        .flat_map(|candidate| candidate.patterns.iter().cloned())
        .collect();
    base.nodes.iter().map(|node| crate::whatif::SelectedSources::addressed(node, &patterns)).collect()
}

fn is_worth_adding(so_far: &Ran, ran: &Ran) -> bool {
    let (Some(before), Some(after)) = (so_far.samples.last(), ran.samples.last()) else { return false };
    let gain = before.gain(after);
    let effect = Effect {
        ranks: 0,
        before_percent: before.slowdown_percent(),
        after_percent: after.slowdown_percent(),
        after_ci95_percent: None,
        gain_percent: gain.value,
        gain_ci95_percent: gain.ci95,
    };
    effect.is_worth_it()
}
