//! Compares mitigations with the cost of the noise that they address.

use std::collections::BTreeSet;

use quell_recording::columns::{Columns, describe};
use quell_recording::format_cpu_list;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Base, Candidate};
use crate::predict::{PredictError, Sample};
use crate::whatif::{OnNode, Ran, SelectedSources, Source, SourceCost, on_node};

/// Maximum number of mitigations whose effect is predicted: those that address the most noise.
const MOST_EFFECTS: usize = 24;
/// A mitigation that addresses less than this share of all noise, and no costly source, gets no prediction.
const LEAST_SHARE: f64 = 1e-3;
/// Gains from this share of the highest on count as equal.
const NEARLY: f64 = 0.8;
/// Minimum saving of a job's time that is worth the effort, in percent.
const LEAST_SAVING_PERCENT: f64 = 0.5;

/// Whether a mitigation can be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// It can be applied by quell.
    Possible,
    /// It can be applied, but only by hand.
    ByHand,
    /// It is applied already; the noise that it removes is no longer in the recording.
    On,
    /// It cannot be applied on this machine.
    Impossible,
    /// The recording is from another machine, or this machine does not provide the information.
    CannotTell,
}

/// Effect of a mitigation at one scale, in points of the slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Effect {
    /// Number of ranks.
    #[column]
    pub ranks: u64,
    /// The slowdown without it, on all CPUs of the nodes.
    #[column(title = "now %", points)]
    pub before_percent: f64,
    /// The slowdown with it, against the same time without noise; for a job that leaves CPUs to the system, with the work that its ranks take
    /// over.
    #[column(title = "left %", points)]
    pub after_percent: f64,
    /// 95 % confidence interval of the slowdown with it.
    #[column(title = "95 % interval", points)]
    pub after_ci95_percent: Option<[f64; 2]>,
    /// The difference: the slowdown without it less the slowdown with it.
    #[column(title = "gain, points", points)]
    pub gain_percent: f64,
    /// 95 % confidence interval of the gain, from pairs of runs.
    #[column(title = "95 % interval ", points)]
    pub gain_ci95_percent: Option<[f64; 2]>,
}

impl Effect {
    /// Whether the gain is certain and large enough for a job to notice.
    pub fn is_worth_it(&self) -> bool {
        let sure = self.gain_ci95_percent.is_some_and(|[low, _]| low > 0.0);
        sure && 100.0 * self.gain_percent / (100.0 + self.before_percent) >= LEAST_SAVING_PERCENT
    }
}

/// Whether the difference at the last scale is certain, and large enough for a job to notice.
pub(super) fn is_worth_adding(so_far: &Ran, ran: &Ran) -> bool {
    let (Some(before), Some(after)) = (so_far.samples.last(), ran.samples.last()) else { return false };
    is_worth(before, after)
}

/// The same for one scale.
pub(super) fn is_worth(before: &Sample, after: &Sample) -> bool {
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

/// A mitigation that addresses some of the noise.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proposal {
    /// Its id in the catalogue.
    pub id: String,
    /// A one-line title.
    pub title: String,
    /// The risk: `low`, `medium`, `high`, `external`.
    pub risk: String,
    /// Whether it can be applied.
    pub standing: Applicability,
    /// The reason, if the standing alone does not give it.
    pub why: Option<String>,
    /// Whether it takes effect only at the next boot.
    pub reboot: bool,
    /// The sources that it addresses, the costliest first; untrusted text.
    pub addresses: Vec<String>,
    /// What those sources took on the nodes.
    pub node: OnNode,
    /// The CPUs that compute, for one that moves noise to the others. Its effect is then that of the same work on the same nodes, by a job which
    /// leaves the others free.
    pub on_cpus: Option<String>,
    /// The effect at each scale if it removes all that it addresses; null if it cannot be applied, or addresses next to nothing.
    pub effects: Option<Vec<Effect>>,
    /// Whether the time that it saves at the last scale is worth the effort.
    pub worth_it: bool,
}

/// A proposal with the sources that it selects.
pub(super) struct Weighed {
    pub proposal: Proposal,
    pub chosen: Vec<SelectedSources>,
    pub moves: bool,
}

/// The mitigations that address recorded noise: first those that can be applied, by gain.
pub(super) fn proposals(
    base: &Base<'_>,
    leaving: Option<&Base<'_>>,
    candidates: &[Candidate],
    sources: &[Source],
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Weighed>, PredictError> {
    let mut all: Vec<Weighed> =
        candidates.par_iter().filter_map(|one| proposal(base, leaving, one, sources)).collect();
    let most = |one: &Weighed| std::cmp::Reverse(one.proposal.node.total_ns);
    all.sort_by_key(|one| (one.proposal.standing, most(one)));
    // The job on the CPUs that it would keep, with all their noise: what leaving the others saves is no gain of a mitigation.
    let left = leaving.and_then(|side| {
        let none: Vec<_> = side.nodes.iter().map(|node| SelectedSources::by(node, |_| false)).collect();
        side.without(&none).ok()
    });
    let noise: u64 = sources.iter().map(|source| source.node.total_ns).sum();
    let mut predicted = 0;
    let count = all.len();
    for (at, Weighed { proposal, chosen, moves }) in all.iter_mut().enumerate() {
        progress(at as u64, count as u64);
        let can = proposal.standing <= Applicability::ByHand && predicted < MOST_EFFECTS;
        let is_long = proposal.node.total_ns as f64 >= LEAST_SHARE * noise as f64;
        let counts = is_long || costs_much(proposal, sources);
        let Some(side) = (if *moves { leaving } else { Some(base) }) else { continue };
        if !(can && counts) {
            continue;
        }
        let ran = match side.without(chosen) {
            // The larger share of work per rank may exceed what can be simulated; the rest of the advice still holds.
            Err(_) if *moves => continue,
            other => other?,
        };
        let effects = side.effects(&ran);
        let moved = !*moves || left.as_ref().is_some_and(|left| is_worth_adding(left, &ran));
        proposal.worth_it = moved && effects.last().is_some_and(Effect::is_worth_it);
        proposal.effects = Some(effects);
        predicted += 1;
    }
    let most = all.iter().map(|one| gain(&one.proposal)).fold(0.0, f64::max);
    let order = |one: &Weighed| one.proposal.order(most);
    let by_gain = |a: &Weighed, b: &Weighed| gain(&b.proposal).total_cmp(&gain(&a.proposal));
    all.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| by_gain(a, b)));
    Ok(all)
}

impl Proposal {
    /// The sort key: first what can be applied. Among those that gain nearly `most`, removing noise comes before moving it, lower risk
    /// before higher, and fewer addressed sources before more. All others are sorted by gain.
    fn order(&self, most: f64) -> (Applicability, bool, bool, usize, usize) {
        let nearly = gain(self) >= NEARLY * most && self.worth_it;
        let risk = ["low", "medium", "high"].iter().position(|risk| *risk == self.risk).unwrap_or(3);
        match nearly {
            true => (self.standing, false, self.on_cpus.is_some(), risk, self.addresses.len()),
            false => (self.standing, true, false, 0, 0),
        }
    }
}

/// The gain of a proposal at the last scale.
fn gain(proposal: &Proposal) -> f64 {
    proposal.effects.as_ref().and_then(|all| all.last()).map_or(f64::NEG_INFINITY, |last| last.gain_percent)
}

/// Whether a source that it addresses costs the job something, alone or among the others, however little time it takes.
fn costs_much(proposal: &Proposal, sources: &[Source]) -> bool {
    let cost = |cost: &SourceCost| cost.part_percent.max(cost.alone_percent);
    let part = |source: &Source| source.costs.iter().map(cost).fold(0.0, f64::max);
    let whole = sources.iter().map(part).sum::<f64>();
    let mine = sources.iter().filter(|source| proposal.addresses.contains(&source.source));
    mine.map(part).sum::<f64>() >= LEAST_SHARE * whole && whole > 0.0
}

/// A proposal from a candidate; `None` if the candidate addresses nothing.
fn proposal(
    base: &Base<'_>,
    leaving: Option<&Base<'_>>,
    candidate: &Candidate,
    sources: &[Source],
) -> Option<Weighed> {
    let side = if candidate.moves { leaving.unwrap_or(base) } else { base };
    let chosen: Vec<SelectedSources> =
        side.nodes.iter().map(|node| SelectedSources::addressed(node, &candidate.patterns)).collect();
    let node = on_node(side.nodes, &chosen);
    if node.total_ns == 0 {
        return None;
    }
    let on_cpus = (candidate.moves && leaving.is_some()).then(|| {
        let cpus: Vec<_> = side.nodes.first().into_iter().flat_map(|node| node.cpus()).collect();
        format_cpu_list(&cpus)
    });
    let proposal = Proposal {
        id: candidate.id.clone(),
        title: candidate.title.clone(),
        risk: candidate.risk.clone(),
        standing: candidate.standing,
        why: candidate.why.clone(),
        reboot: candidate.reboot,
        addresses: addresses(side, &chosen, sources),
        node,
        on_cpus,
        effects: None,
        worth_it: false,
    };
    Some(Weighed { proposal, chosen, moves: candidate.moves })
}

/// The families that are selected, in the order of the sources, then by name.
fn addresses(base: &Base<'_>, chosen: &[SelectedSources], sources: &[Source]) -> Vec<String> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (node, chosen) in base.nodes.iter().zip(chosen) {
        let meant = node.kinds().iter().enumerate().filter(|(kind, _)| chosen.has(*kind));
        names.extend(meant.map(|(_, kind)| &*kind.family));
    }
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let place =
        |name: &String| sources.iter().position(|source| source.source == *name).unwrap_or(usize::MAX);
    names.sort_by(|a, b| place(a).cmp(&place(b)).then(a.cmp(b)));
    names
}
