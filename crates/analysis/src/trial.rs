//! Whether a mitigation helps: noise with it and without it, in pairs of random order, and the confidence in the difference.
//!
//! A pair is two consecutive recordings, so slow drifts of a machine cancel. The interval of a mean difference is
//! Student's, at a level that is shared among all comparisons (Bonferroni): *all* intervals hold together with the requested confidence.
//!
//! Student's interval assumes that the mean of the differences is normal, and believes any spread that it sees. So a figure counts as
//! changed only if two more things hold: Wilcoxon's signed-rank test, which assumes no distribution, agrees at the same level, and the
//! difference is larger than what one step of the measurement can make. A coin decides the order in each pair. So if a
//! mitigation changes nothing, the sign of each difference is random, whatever else happens on the machine, and the ranks' probability is
//! exact (Fisher, "The Design of Experiments", 1935, chapter III).
//!
//! *No effect larger than* a limit needs the interval, and both one-sided rank tests at the limit, on the inside of it (Schuirmann, "A
//! comparison of the two one-sided tests procedure and the power approach", J. Pharmacokinet. Biopharm. 15, 1987).
//!
//! A trial that looks at its data several times shares its probability of error among the looks: look k has 1 / (k (k + 1)) of it. These
//! shares sum to 1 however many looks follow, so by Bonferroni's inequality all intervals of all looks hold together (repeated confidence
//! intervals: Jennison and Turnbull, "Group Sequential Methods", 2000, chapter 9; a spending function as in Lan and DeMets, "Discrete
//! sequential boundaries for clinical trials", Biometrika 70, 1983). The number of pairs at a look must not depend on the noise so far.
//!
//! What a mitigation addresses must occur before it can be shown to have no effect: noise that did not occur shows nothing.
//!
//! Load of others is a covariate: where it explains the differences in detours, their gain is adjusted for it by least squares. If load differs
//! between the sides, the mitigation may have moved tasks that its patterns miss, and least squares cannot tell that from a gain of its own. Then
//! detours decide only what holds both if load costs them nothing and if it costs them the most that it can. A difference that is too
//! small to see may be the mitigation's doing as well, so *no effect* must also hold for detours as measured. What the mitigation
//! addresses contains no load, and is never adjusted. Whether load differs depends on which side is which, so each of the two ways to
//! judge detours has half of their probability of error.

mod bounds;
mod paired;
mod round;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bounds::Bounds;
use paired::least_pairs;
use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::round::Round;
use crate::stats::{mean, signed_rank};

/// Maximum number of sources that are compared individually: the noisiest.
const MOST_SOURCES: usize = 12;
/// Minimum number of pairs for a verdict. With four, all differences have one sign by chance in one trial of eight.
const LEAST_PAIRS: u64 = 5;
/// Minimum share of the noise of all sources, summed over both sides, for a source to be compared.
const LEAST_SHARE: f64 = 0.001;
/// Number of figures that the verdict depends on.
const FIGURES: f64 = 2.0;
/// Number of ways to judge detours where there is load: adjusted for it, or for the least and the most that it can cost.
const WAYS: f64 = 2.0;
/// Steps of the measurement that the limit of an effect has at least; an interval is at least one wide on either side.
const LEAST_STEPS: f64 = 2.0;
/// Load that differs between the sides with a lower probability may be the mitigation's own doing.
const LOAD_DIFFERS: f64 = 0.05;
/// The most that load costs detours, per time of load: that time, and as much again for switches and cold caches.
const MOST_PER_LOAD: f64 = 2.0;

/// What a trial should be sure of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// The confidence with which all intervals hold together, over all looks; between 0 and 1, both exclusive.
    pub confidence: f64,
    /// The smallest effect of interest, as a share of a figure without the mitigation.
    pub smallest: f64,
    /// Whether the mitigation names the noise that it addresses. Then that noise must occur before there can be a verdict of no effect.
    pub addresses: bool,
    /// Which look at the data this is, from 1; `None` if there is only one.
    pub look: Option<u32>,
}

impl Design {
    /// The probability of error at this look, for all figures together.
    fn alpha(&self) -> f64 {
        let share = self.look.map_or(1.0, |look| 1.0 / (f64::from(look) * (f64::from(look) + 1.0)));
        (1.0 - self.confidence) * share
    }

    fn next(self) -> Self {
        Self { look: self.look.map(|look| look + 1), ..self }
    }
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There is less noise with it.
    Helps,
    /// There is more noise with it.
    Hurts,
    /// There is no effect on all detours or on what it addresses that is larger than their limits.
    NoEffectLargerThan,
    /// These pairs show neither an effect nor that there is none.
    Inconclusive,
}

/// One figure with and without the mitigation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Effect {
    /// `detours`, `addressed`, `load`, or a source's name, which a process or a driver chose: untrusted text.
    pub name: String,
    /// Mean without it, in ns per second of a CPU.
    #[column(title = "without", time)]
    pub without_ns_per_s: f64,
    /// Mean with it, in ns per second of a CPU.
    #[column(title = "with", time)]
    pub with_ns_per_s: f64,
    /// Mean reduction over pairs, at equal load if it was adjusted; negative if the noise increased. Where load differs, it is as measured, and
    /// the interval holds whatever load cost.
    #[column(title = "gain", time)]
    pub gain_ns_per_s: f64,
    /// Lower end of the interval of the gain.
    #[column(title = "at least", time)]
    pub low_ns_per_s: f64,
    /// Upper end of the interval of the gain.
    #[column(title = "at most", time)]
    pub high_ns_per_s: f64,
    /// Whether the interval excludes 0 and ranks agree.
    pub changed: bool,
    /// The largest gain or loss that counts as none; null for figures that the verdict does not depend on.
    pub limit_ns_per_s: Option<f64>,
    /// Whether the interval lies within ± the limit and ranks agree; null without a limit.
    pub within_limit: Option<bool>,
}

/// Load of others on the recorded CPUs: tasks of users, and time that the hypervisor took, without what the mitigation addresses.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Background {
    /// The load on both sides.
    pub load: Effect,
    /// Whether the load differs between the sides by more than chance explains once in 20 trials.
    pub differs: bool,
    /// The change in all detours per change in load that their gain was adjusted for; null if it was not adjusted.
    pub detours_per_load: Option<f64>,
    /// Whether load differs between the sides by as much as could account for what detours show. It is then not clear what the mitigation did
    /// to them, so they decide nothing.
    pub detours_undecided: bool,
}

/// The trial of a mitigation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// Number of pairs of recordings.
    pub pairs: u64,
    /// The confidence with which all intervals of the verdict hold together, and all those of the sources; over all looks.
    pub confidence: f64,
    /// How often the data were looked at for a verdict.
    pub looks: u32,
    /// The smallest effect of interest, in percent of a figure without the mitigation.
    pub smallest_percent: f64,
    /// The result, from the noise that the mitigation addresses and from all detours.
    pub verdict: Verdict,
    /// The number of further pairs with which a verdict is likely, from the spread so far; null if there is a verdict, or if it would be
    /// more than a million.
    pub further_pairs: Option<u64>,
    /// Noise that occurs, on a CPU, less often than once in this time may have been missed, at the same confidence, in ns; null if nothing was
    /// recorded.
    pub missed_if_rarer_than_ns: Option<u64>,
    /// Whether the verdict waits for noise that the mitigation addresses, none of which occurred.
    pub unseen: bool,
    /// All detours.
    pub detours: Effect,
    /// Noise that its patterns match.
    pub addressed: Effect,
    /// Load of others, and whether gains were adjusted for it.
    pub background: Background,
    /// The noisiest sources.
    pub sources: Vec<Effect>,
}

/// Compares pairs, each of a round without the mitigation and one with it.
///
/// The verdict depends on two figures. It helps if the addressed noise or all detours certainly decrease, and detours do not certainly
/// increase. There is no effect if neither is larger than its limit.
pub fn trial(pairs: &[(Round, Round)], design: &Design) -> Trial {
    let loads = differences(pairs, &|round| round.load);
    let (step, clock) = (largest(pairs, |round| round.step), largest(pairs, |round| round.clock_step));
    let alpha = design.alpha() / FIGURES;
    let load = unadjusted("load", pairs, &|round| round.load, clock, alpha);
    let differs = signed_rank(&loads).is_some_and(|found| found.p <= LOAD_DIFFERS);
    let of_detours =
        Judge { alpha: alpha / if is_seen(&load) { WAYS } else { 1.0 }, step, must_occur: false };
    let detours = Figure::judge("detours", pairs, &|round| round.detours, design, of_detours, |gains| {
        if differs { Bounds::over_loads(&gains, &loads, step) } else { Bounds::adjusted(gains, &loads, step) }
    });
    let of_addressed = Judge { alpha, step: clock, must_occur: design.addresses };
    let addressed =
        Figure::judge("addressed", pairs, &|round| round.addressed, design, of_addressed, |gains| {
            Bounds::adjusted(gains, &[], clock)
        });
    let background = Background {
        load,
        differs,
        detours_per_load: detours.bounds.slope(),
        detours_undecided: detours.undecided,
    };
    let names = noisiest(pairs);
    let of = |name: &String| {
        let rate = |round: &Round| round.sources.get(name).copied().unwrap_or(0.0);
        unadjusted(name, pairs, &rate, clock, design.alpha() / names.len() as f64)
    };
    let sources = names.iter().map(of).collect();
    let verdict = verdict(pairs.len() as u64, &detours.effect, &addressed.effect);
    let share = design.next().alpha() / design.alpha();
    let all = further_of([&detours, &addressed], share);
    let further = all.map(|all| all.saturating_sub(pairs.len() as u64).max(1));
    Trial {
        pairs: pairs.len() as u64,
        confidence: design.confidence,
        looks: design.look.unwrap_or(1),
        smallest_percent: 100.0 * design.smallest,
        verdict,
        further_pairs: further.filter(|_| verdict == Verdict::Inconclusive),
        missed_if_rarer_than_ns: missed_if_rarer_than_ns(pairs, alpha),
        unseen: verdict == Verdict::Inconclusive && design.addresses && !is_seen(&addressed.effect),
        detours: detours.effect,
        addressed: addressed.effect,
        background,
        sources,
    }
}

fn verdict(pairs: u64, detours: &Effect, addressed: &Effect) -> Verdict {
    let less = |one: &Effect| one.changed && one.gain_ns_per_s > 0.0;
    let more = |one: &Effect| one.changed && one.gain_ns_per_s < 0.0;
    let within = |one: &Effect| one.within_limit == Some(true);
    if more(detours) || more(addressed) && !less(detours) {
        Verdict::Hurts
    } else if less(addressed) || less(detours) {
        Verdict::Helps
    } else if pairs >= LEAST_PAIRS && within(detours) && within(addressed) {
        Verdict::NoEffectLargerThan
    } else {
        Verdict::Inconclusive
    }
}

/// The mean time between events of which a recording of this length holds none with probability `alpha`, from the shorter side.
fn missed_if_rarer_than_ns(pairs: &[(Round, Round)], alpha: f64) -> Option<u64> {
    let watched = |of: &dyn Fn(&(Round, Round)) -> u64| pairs.iter().map(of).sum::<u64>();
    let shorter = watched(&|pair| pair.0.watched_ns).min(watched(&|pair| pair.1.watched_ns));
    // Events of a Poisson process, e^(-length / mean) = alpha.
    (shorter > 0).then(|| (shorter as f64 / -alpha.ln()) as u64)
}

/// The number of pairs with which one figure would have changed, or both would lie within their limits; whichever is less. `share` is the
/// probability of error of the next look in units of this one's.
fn further_of(figures: [&Figure; 2], share: f64) -> Option<u64> {
    let level = |figure: &Figure| figure.judge.alpha * share;
    let changed =
        figures.iter().filter_map(|figure| figure.bounds.pairs_to_exclude_zero(level(figure))).min();
    let within = figures.map(|figure| match (is_seen(&figure.effect), figure.judge.must_occur) {
        (true, _) => figure.bounds.pairs_to_lie_within(figure.effect.limit_ns_per_s?, level(figure)),
        (false, must_occur) => (!must_occur).then_some(0),
    });
    let within = within.into_iter().collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().max());
    let least = figures.map(|figure| least_pairs(level(figure))).into_iter().min()?;
    changed.into_iter().chain(within).min().map(|pairs| pairs.max(least))
}

/// How a figure is judged.
#[derive(Clone, Copy, Debug)]
struct Judge {
    /// Its probability of error.
    alpha: f64,
    /// The smallest difference that a recording can show.
    step: f64,
    /// Whether there can be no verdict of no effect before it occurs.
    must_occur: bool,
}

/// A figure that the verdict depends on.
struct Figure {
    judge: Judge,
    effect: Effect,
    bounds: Bounds,
    /// Whether it shows something as measured, but not whatever load cost.
    undecided: bool,
}

impl Figure {
    fn judge(
        name: &str,
        pairs: &[(Round, Round)],
        of: &dyn Fn(&Round) -> f64,
        design: &Design,
        judge: Judge,
        bounds: impl FnOnce(Vec<f64>) -> Bounds,
    ) -> Self {
        let Judge { alpha, step, must_occur } = judge;
        let bounds = bounds(differences(pairs, of));
        let mut effect = effect(name, pairs, of, &bounds, alpha);
        let limit = (design.smallest * effect.without_ns_per_s).max(LEAST_STEPS * step);
        let within = if is_seen(&effect) { bounds.lie_within(limit, alpha) } else { !must_occur };
        effect.limit_ns_per_s = Some(limit);
        effect.within_limit = Some(within);
        let measured = bounds.best();
        let shown = measured.excludes_zero(alpha) || measured.lies_within(limit, alpha);
        let undecided = is_seen(&effect) && shown && !effect.changed && !within;
        Self { judge, effect, bounds, undecided }
    }
}

/// A figure that no load was adjusted for.
fn unadjusted(
    name: &str,
    pairs: &[(Round, Round)],
    of: &dyn Fn(&Round) -> f64,
    step: f64,
    alpha: f64,
) -> Effect {
    effect(name, pairs, of, &Bounds::adjusted(differences(pairs, of), &[], step), alpha)
}

fn effect(
    name: &str,
    pairs: &[(Round, Round)],
    of: &dyn Fn(&Round) -> f64,
    bounds: &Bounds,
    alpha: f64,
) -> Effect {
    let [low, high] = bounds.interval(alpha);
    let mut effect = Effect {
        name: name.to_owned(),
        without_ns_per_s: mean(pairs.iter().map(|pair| of(&pair.0))).unwrap_or(0.0),
        with_ns_per_s: mean(pairs.iter().map(|pair| of(&pair.1))).unwrap_or(0.0),
        gain_ns_per_s: bounds.best().centre(),
        low_ns_per_s: low,
        high_ns_per_s: high,
        changed: false,
        limit_ns_per_s: None,
        within_limit: None,
    };
    effect.changed = is_seen(&effect) && pairs.len() as u64 >= LEAST_PAIRS && bounds.exclude_zero(alpha);
    effect
}

/// A figure that is zero on both sides of all pairs did not occur, and did not change.
fn is_seen(effect: &Effect) -> bool {
    effect.without_ns_per_s != 0.0 || effect.with_ns_per_s != 0.0
}

fn differences(pairs: &[(Round, Round)], of: &dyn Fn(&Round) -> f64) -> Vec<f64> {
    pairs.iter().map(|(without, with)| of(without) - of(with)).collect()
}

fn largest(pairs: &[(Round, Round)], of: impl Fn(&Round) -> f64) -> f64 {
    pairs.iter().flat_map(|(without, with)| [of(without), of(with)]).fold(0.0, f64::max)
}

fn noisiest(pairs: &[(Round, Round)]) -> Vec<String> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let rounds = pairs.iter().flat_map(|(without, with)| [without, with]);
    for (name, rate) in rounds.flat_map(|round| &round.sources) {
        *sums.entry(name).or_default() += rate;
    }
    let all: f64 = sums.values().sum();
    let mut names: Vec<(&str, f64)> = sums.into_iter().filter(|(_, sum)| *sum > LEAST_SHARE * all).collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kept: BTreeSet<&str> = names.iter().take(MOST_SOURCES).map(|(name, _)| *name).collect();
    names.iter().map(|(name, _)| (*name).to_owned()).filter(|name| kept.contains(name.as_str())).collect()
}
