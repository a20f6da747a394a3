//! Whether a mitigation helps: noise with it and without it, in pairs of random order, and the confidence in the difference.
//!
//! A pair is two consecutive recordings, so slow drifts of a machine cancel. The interval of a mean difference is
//! Student's, at a level that is shared among all comparisons (Bonferroni): *all* intervals hold together with the requested confidence.

use std::collections::{BTreeMap, BTreeSet};

use quell_recording::columns::{Columns, describe};
use quell_recording::{Recording, SourcePattern};
use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::{mean, mean_half_width};
use crate::whatif::family;

/// Maximum number of sources that are compared individually: the noisiest.
const MOST_SOURCES: usize = 12;
/// Minimum share of the noise of all sources, summed over both sides, for a source to be compared.
const LEAST_SHARE: f64 = 0.001;

/// Noise of one recording, each figure in nanoseconds per second of a CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// All detours, by the program's own clock.
    pub detours: f64,
    /// Noise that the mitigation's patterns match.
    pub addressed: f64,
    /// Noise by source; workers of one kind count as one source.
    pub sources: BTreeMap<String, f64>,
}

impl Round {
    /// The noise of a recording, over all CPUs.
    pub fn from_recording(recording: &Recording, patterns: &[SourcePattern]) -> Self {
        let watched: f64 =
            recording.manifest.cpus.iter().map(|cpu| cpu.span().length().as_nanos() as f64 / 1e9).sum();
        if watched <= 0.0 {
            return Self::default();
        }
        let mut round = Self::default();
        let detours = recording.traces.iter().flat_map(|trace| &trace.detours);
        round.detours =
            detours.filter(|detour| !detour.own).map(|detour| detour.duration.as_nanos() as f64).sum::<f64>()
                / watched;
        for interval in recording.intervals.iter().flat_map(|cpu| &cpu.intervals) {
            let rate = interval.net.as_nanos() as f64 / watched;
            *round.sources.entry(family(&interval.source)).or_default() += rate;
            if patterns.iter().any(|one| one.matches(&interval.source, interval.detail.as_deref())) {
                round.addressed += rate;
            }
        }
        round
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
    /// The difference is not more than chance explains.
    NoMeasurableEffect,
}

/// One figure with and without the mitigation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Effect {
    /// `detours`, `addressed`, or a source's name, which a process or a driver chose: untrusted text.
    pub name: String,
    /// Mean without it, in ns per second of a CPU.
    #[column(title = "without", time)]
    pub without_ns_per_s: f64,
    /// Mean with it, in ns per second of a CPU.
    #[column(title = "with", time)]
    pub with_ns_per_s: f64,
    /// Mean reduction over pairs; negative if the noise increased.
    #[column(title = "gain", time)]
    pub gain_ns_per_s: f64,
    /// Lower end of the interval of the gain.
    #[column(title = "at least", time)]
    pub low_ns_per_s: f64,
    /// Upper end of the interval of the gain.
    #[column(title = "at most", time)]
    pub high_ns_per_s: f64,
    /// Whether the interval excludes 0.
    pub changed: bool,
}

/// The trial of a mitigation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// Number of pairs of recordings.
    pub pairs: u64,
    /// The confidence with which all intervals of the verdict hold together, and all those of the sources.
    pub confidence: f64,
    /// The result, from the noise that the mitigation addresses and from all detours.
    pub verdict: Verdict,
    /// All detours.
    pub detours: Effect,
    /// Noise that its patterns match.
    pub addressed: Effect,
    /// The noisiest sources.
    pub sources: Vec<Effect>,
}

/// Compares pairs, each of a round without the mitigation and one with it.
///
/// The verdict depends on two figures: it helps if the addressed noise or all detours certainly decrease, and detours do not certainly increase.
///
/// `confidence` is between 0 and 1, both exclusive. With fewer than two pairs nothing is certain.
pub fn trial(pairs: &[(Round, Round)], confidence: f64) -> Trial {
    let figure = |name: &str, of: &dyn Fn(&Round) -> f64, compared: usize| {
        let values: Vec<(f64, f64)> = pairs.iter().map(|(without, with)| (of(without), of(with))).collect();
        effect(name, &values, 1.0 - (1.0 - confidence) / compared.max(1) as f64)
    };
    let detours = figure("detours", &|round| round.detours, 2);
    let addressed = figure("addressed", &|round| round.addressed, 2);
    let names = noisiest(pairs);
    let of = |name: &String| {
        let name = name.clone();
        figure(&name.clone(), &move |round| round.sources.get(&name).copied().unwrap_or(0.0), names.len())
    };
    let sources = names.iter().map(of).collect();
    let less = |one: &Effect| one.changed && one.gain_ns_per_s > 0.0;
    let more = |one: &Effect| one.changed && one.gain_ns_per_s < 0.0;
    let verdict = if more(&detours) || more(&addressed) && !less(&detours) {
        Verdict::Hurts
    } else if less(&addressed) || less(&detours) {
        Verdict::Helps
    } else {
        Verdict::NoMeasurableEffect
    };
    Trial { pairs: pairs.len() as u64, confidence, verdict, detours, addressed, sources }
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

/// Student's interval of the mean of paired differences.
fn effect(name: &str, values: &[(f64, f64)], level: f64) -> Effect {
    let gains = values.iter().map(|(without, with)| without - with);
    let gain = mean(gains.clone()).unwrap_or(0.0);
    let half = mean_half_width(gains, level).filter(|half| half.is_finite()).unwrap_or(f64::MAX);
    // A figure that is zero on both sides of all pairs did not change.
    let seen = values.iter().any(|pair| *pair != (0.0, 0.0));
    let (low, high) = (gain - half, gain + half);
    Effect {
        name: name.to_owned(),
        without_ns_per_s: mean(values.iter().map(|pair| pair.0)).unwrap_or(0.0),
        with_ns_per_s: mean(values.iter().map(|pair| pair.1)).unwrap_or(0.0),
        gain_ns_per_s: gain,
        low_ns_per_s: low,
        high_ns_per_s: high,
        changed: seen && (low > 0.0 || high < 0.0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64;

    use super::*;

    /// Pairs around a mean with a heavy tail, in which the mitigation removes `gain` of what it addresses.
    fn pairs(draws: &mut Pcg64, count: usize, gain: f64) -> Vec<(Round, Round)> {
        let mut round = |gain: f64| {
            // The sum of a steady part and a rare, long one, as in real noise.
            let rare = if draws.random::<f64>() < 0.1 { draws.random::<f64>() * 50_000.0 } else { 0.0 };
            let steady = 10_000.0 + 1_000.0 * draws.random::<f64>();
            let addressed = 1_000.0 + 300.0 * draws.random::<f64>() - gain;
            let sources = [("tick".to_owned(), steady), ("task:ksmd".to_owned(), addressed)].into();
            Round { detours: steady + rare + addressed, addressed, sources }
        };
        (0..count).map(|_| (round(0.0), round(gain))).collect()
    }

    #[test]
    fn chance_is_no_effect() {
        let mut draws = Pcg64::seed_from_u64(7);
        let wrong = (0..1000)
            .filter(|_| trial(&pairs(&mut draws, 8, 0.0), 0.99).verdict != Verdict::NoMeasurableEffect);
        let wrong = wrong.count();
        assert!(wrong <= 20, "{wrong} of 1000 trials of nothing found something, at 1 %");
    }

    #[test]
    fn a_gain_is_proved_and_its_source_named() {
        let mut draws = Pcg64::seed_from_u64(8);
        for _ in 0..200 {
            let trial = trial(&pairs(&mut draws, 8, 900.0), 0.99);
            assert_eq!(trial.verdict, Verdict::Helps);
            let source = trial.sources.iter().find(|one| one.name == "task:ksmd").unwrap();
            assert!(source.changed && source.low_ns_per_s > 0.0);
        }
    }

    #[test]
    fn harm_is_reported() {
        let mut draws = Pcg64::seed_from_u64(9);
        assert_eq!(trial(&pairs(&mut draws, 8, -9_000.0), 0.99).verdict, Verdict::Hurts);
    }

    #[test]
    fn too_few_pairs_are_sure_of_nothing() {
        for count in 0..2 {
            let trial = trial(&pairs(&mut Pcg64::seed_from_u64(1), count, 900.0), 0.99);
            assert_eq!(trial.verdict, Verdict::NoMeasurableEffect);
            assert!(serde_json::to_string(&trial).unwrap().contains("no-measurable-effect"));
        }
    }
}
