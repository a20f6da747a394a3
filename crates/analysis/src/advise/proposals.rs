//! Mitigations held against what the noise costs.

use std::collections::BTreeSet;

use quell_recording::columns::{Columns, describe};
use quell_recording::format_cpu_list;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Base, Candidate};
use crate::predict::PredictError;
use crate::whatif::{Chosen, OnNode, Ran, Source, on_node};

/// Mitigations of which an effect is predicted, at most: those that address most.
const MOST_EFFECTS: usize = 24;
/// What addresses less than this part of all noise, and nothing that costs, has no effect.
const LEAST_SHARE: f64 = 1e-3;
/// Gains are alike from this part of the highest on.
const NEARLY: f64 = 0.8;
/// What saves less of a job's time than this is not worth anybody's while, in percent.
const LEAST_SAVING_PERCENT: f64 = 0.5;

/// Whether a mitigation can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It can.
    Possible,
    /// It can, but not by quell: it has to be done by hand.
    ByHand,
    /// It is done already; what it takes away is not in the recording any more.
    On,
    /// Not on this machine.
    Impossible,
    /// The recording is another machine's, or this machine does not tell.
    CannotTell,
}

/// What a mitigation would do at one scale, in points of the slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Effect {
    /// Ranks.
    #[column]
    pub ranks: u64,
    /// The slowdown as it is, on the CPUs that are meant.
    #[column(title = "now %", points)]
    pub before_percent: f64,
    /// The slowdown that is left.
    #[column(title = "left %", points)]
    pub after_percent: f64,
    /// 95 % confidence interval of that.
    #[column(title = "95 % interval", points)]
    pub after_ci95_percent: Option<[f64; 2]>,
    /// Before less after.
    #[column(title = "gain %", points)]
    pub gain_percent: f64,
    /// 95 % confidence interval of the gain, from pairs of runs.
    #[column(title = "95 % interval ", points)]
    pub gain_ci95_percent: Option<[f64; 2]>,
}

impl Effect {
    /// Whether it is a gain for sure, and one that a job notices.
    pub fn is_worth_it(&self) -> bool {
        let sure = self.gain_ci95_percent.is_some_and(|[low, _]| low > 0.0);
        sure && 100.0 * self.gain_percent / (100.0 + self.before_percent) >= LEAST_SAVING_PERCENT
    }
}

/// A mitigation that addresses some of the noise.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proposal {
    /// Its id in the catalogue.
    pub id: String,
    /// One line.
    pub title: String,
    /// How much can go wrong: `low`, `medium`, `high`, `external`.
    pub risk: String,
    /// Whether it can be done.
    pub standing: Standing,
    /// Why, where that alone does not say.
    pub why: Option<String>,
    /// Whether it only works from the next boot on.
    pub reboot: bool,
    /// The sources that it addresses, the costliest first; hostile input.
    pub addresses: Vec<String>,
    /// What those did on the nodes.
    pub node: OnNode,
    /// The CPUs that compute, for one that moves noise to the others: its effect is that on a job which leaves those alone.
    pub on_cpus: Option<String>,
    /// What comes of it at each scale, if it takes away all that it addresses; null where it cannot be done, or addresses next to nothing.
    pub effects: Option<Vec<Effect>>,
    /// Whether it saves any time worth it at the last scale.
    pub worth_it: bool,
}

/// A proposal with what it chooses.
pub(super) struct Weighed {
    pub proposal: Proposal,
    pub chosen: Vec<Chosen>,
    pub moves: bool,
}

/// What addresses noise that was recorded: first what can be done, the most gain first.
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
    let noise: u64 = sources.iter().map(|source| source.node.total_ns).sum();
    let mut seen: Vec<(usize, Ran)> = Vec::new();
    let count = all.len();
    for at in 0..count {
        progress(at as u64, count as u64);
        let (moves, ns) = (all[at].moves, all[at].proposal.node.total_ns);
        let can = all[at].proposal.standing <= Standing::ByHand && seen.len() < MOST_EFFECTS;
        let counts = ns as f64 >= LEAST_SHARE * noise as f64 || costs_much(&all[at].proposal, sources);
        let Some(side) = (if moves { leaving } else { Some(base) }) else { continue };
        if !(can && counts) {
            continue;
        }
        let alike =
            seen.iter().find(|(other, _)| all[*other].moves == moves && all[*other].chosen == all[at].chosen);
        let ran = match alike {
            Some((_, ran)) => ran.clone(),
            None => side.without(&all[at].chosen)?,
        };
        let effects = side.effects(&ran);
        let proposal = &mut all[at].proposal;
        proposal.worth_it = effects.last().is_some_and(Effect::is_worth_it);
        proposal.effects = Some(effects);
        seen.push((at, ran));
    }
    let most = all.iter().map(|one| gain(&one.proposal)).fold(0.0, f64::max);
    let order = |one: &Weighed| one.proposal.order(most);
    let by_gain = |a: &Weighed, b: &Weighed| gain(&b.proposal).total_cmp(&gain(&a.proposal));
    all.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| by_gain(a, b)));
    Ok(all)
}

impl Proposal {
    /// First what can be done; of that, what gains nearly `most`: what removes noise before what moves it, the lower risk before the
    /// higher, the closer aim before the wider. All else by its gain.
    fn order(&self, most: f64) -> (Standing, bool, bool, usize, usize) {
        let nearly = gain(self) >= NEARLY * most && self.worth_it;
        let risk = ["low", "medium", "high"].iter().position(|risk| *risk == self.risk).unwrap_or(3);
        match nearly {
            true => (self.standing, false, self.on_cpus.is_some(), risk, self.addresses.len()),
            false => (self.standing, true, false, 0, 0),
        }
    }
}

/// What a proposal gains at the last scale.
pub(super) fn gain(proposal: &Proposal) -> f64 {
    proposal.effects.as_ref().and_then(|all| all.last()).map_or(f64::NEG_INFINITY, |last| last.gain_percent)
}

/// Whether a source that it addresses has a part in the slowdown, however little time it takes.
fn costs_much(proposal: &Proposal, sources: &[Source]) -> bool {
    let part = |source: &Source| source.costs.iter().map(|cost| cost.part_percent).fold(0.0, f64::max);
    let whole = sources.iter().map(part).sum::<f64>();
    let mine = sources.iter().filter(|source| proposal.addresses.contains(&source.source));
    mine.map(part).sum::<f64>() >= LEAST_SHARE * whole && whole > 0.0
}

/// A candidate that addresses something.
fn proposal(
    base: &Base<'_>,
    leaving: Option<&Base<'_>>,
    candidate: &Candidate,
    sources: &[Source],
) -> Option<Weighed> {
    let side = if candidate.moves { leaving.unwrap_or(base) } else { base };
    let chosen: Vec<Chosen> =
        side.nodes.iter().map(|node| Chosen::addressed(node, &candidate.patterns)).collect();
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

/// The families that are meant, in the order of the sources, then by name.
fn addresses(base: &Base<'_>, chosen: &[Chosen], sources: &[Source]) -> Vec<String> {
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
