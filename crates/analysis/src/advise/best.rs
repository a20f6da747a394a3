//! The best set of mitigations: greedily, as long as the next one is worth it.

use schemars::JsonSchema;
use serde::Serialize;

use super::proposals::{Applicability, Effect, Weighed, is_worth_adding};
use super::{Base, Candidate};
use crate::predict::PredictError;
use crate::whatif::{Ran, SelectedSources};

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
/// as one of them moves noise away, the job leaves the CPUs that it goes to. Sources that hide each other cost next to nothing one by one, so
/// all that are possible are then tried together, and those that add nothing are left out again.
pub(super) fn best(
    base: &Base<'_>,
    leaving: Option<&Base<'_>>,
    proposals: &[Weighed],
    candidates: &[Candidate],
) -> Result<Option<Best>, PredictError> {
    let search = Search { base, leaving, candidates };
    let is_choice = |one: &&Weighed| {
        one.proposal.standing <= Applicability::ByHand
            && one.proposal.effects.is_some()
            && (leaving.is_some() || !one.moves)
    };
    // In the order of the proposals, whose first is the one to try first.
    let choices: Vec<&Weighed> = proposals.iter().filter(is_choice).take(MOST_TRIED).collect();
    let mut found = Found { picked: Vec::new(), ran: base.ran.clone() };
    for one in choices.iter().filter(|one| one.proposal.worth_it) {
        let set: Vec<&Weighed> = found.picked.iter().copied().chain([*one]).collect();
        if !search.conflicts(one, &found.picked)
            && let Some(more) = search.run(set)?
            && search.is_worth_adding(&found, &more)?
        {
            found = more;
        }
    }
    for with_movers in [false, true] {
        let mut set = found.picked.clone();
        for one in choices.iter().filter(|one| with_movers || !one.moves) {
            let known = set.iter().any(|other| other.proposal.id == one.proposal.id);
            if !known && !search.conflicts(one, &set) {
                set.push(one);
            }
        }
        if set.len() > found.picked.len()
            && let Some(all) = search.run(set)?
            && search.is_worth_adding(&found, &all)?
        {
            found = search.without_idle(all)?;
        }
    }
    let Found { picked, ran } = found;
    if picked.is_empty() {
        return Ok(None);
    }
    let on_cpus = picked.iter().find_map(|one| one.proposal.on_cpus.clone());
    let ids = picked.iter().map(|one| one.proposal.id.clone()).collect();
    Ok(Some(Best { ids, on_cpus, effects: base.effects(&ran) }))
}

/// A set of mitigations, and the job with them.
#[derive(Clone)]
struct Found<'a> {
    picked: Vec<&'a Weighed>,
    ran: Ran,
}

impl Found<'_> {
    fn moves(&self) -> bool {
        self.picked.iter().any(|one| one.moves)
    }
}

struct Search<'a> {
    base: &'a Base<'a>,
    leaving: Option<&'a Base<'a>>,
    candidates: &'a [Candidate],
}

impl Search<'_> {
    /// The job with a set of mitigations, on the CPUs that they leave it. `None` if its larger share of work cannot be simulated.
    fn run<'w>(&self, picked: Vec<&'w Weighed>) -> Result<Option<Found<'w>>, PredictError> {
        let moves = picked.iter().any(|one| one.moves);
        let side = if moves { self.leaving.unwrap_or(self.base) } else { self.base };
        match side.without(&self.selected(&picked, side)) {
            Err(_) if moves => Ok(None),
            ran => Ok(Some(Found { picked, ran: ran? })),
        }
    }

    /// Whether a job certainly saves more with the larger set. CPUs that a set leaves can be left without it: what that alone saves is no
    /// gain of the set.
    fn is_worth_adding(&self, before: &Found<'_>, after: &Found<'_>) -> Result<bool, PredictError> {
        if !is_worth_adding(&before.ran, &after.ran) {
            return Ok(false);
        }
        let Some(leaving) = self.leaving.filter(|_| after.moves() && !before.moves()) else {
            return Ok(true);
        };
        let left = leaving.without(&self.selected(&before.picked, leaving));
        Ok(left.is_ok_and(|left| is_worth_adding(&left, &after.ran)))
    }

    /// The set without those that add nothing to the others, of which the last is left out first.
    fn without_idle<'w>(&self, mut found: Found<'w>) -> Result<Found<'w>, PredictError> {
        for at in (0..found.picked.len()).rev() {
            let mut fewer = found.picked.clone();
            fewer.remove(at);
            if let Some(fewer) = self.run(fewer)?
                && !self.is_worth_adding(&fewer, &found)?
            {
                found = fewer;
            }
        }
        Ok(found)
    }

    fn conflicts(&self, one: &Weighed, picked: &[&Weighed]) -> bool {
        let names = |id: &str, other: &str| {
            self.candidates
                .iter()
                .any(|candidate| candidate.id == id && candidate.conflicts.iter().any(|it| it == other))
        };
        let id = &one.proposal.id;
        picked.iter().any(|other| names(id, &other.proposal.id) || names(&other.proposal.id, id))
    }

    /// What all of them together select on the nodes of one side, which may have fewer CPUs than the nodes they were proposed for.
    fn selected(&self, picked: &[&Weighed], side: &Base<'_>) -> Vec<SelectedSources> {
        let ids: Vec<&str> = picked.iter().map(|one| one.proposal.id.as_str()).collect();
        let patterns: Vec<_> = self
            .candidates
            .iter()
            .filter(|candidate| ids.contains(&candidate.id.as_str()))
            .flat_map(|candidate| candidate.patterns.iter().cloned())
            .collect();
        side.nodes.iter().map(|node| SelectedSources::addressed(node, &patterns)).collect()
    }
}
