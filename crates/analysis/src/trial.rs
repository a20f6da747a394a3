//! Whether a mitigation helps: noise with it and without it, in pairs of random order, and the confidence in the difference.
//!
//! A pair is two consecutive recordings, so slow drifts of a machine cancel. The interval of a mean difference is
//! Student's, at a level that is shared among all comparisons (Bonferroni): *all* intervals hold together with the requested confidence.
//!
//! Student's interval assumes that the mean of the differences is normal, and believes any spread that it sees. So a figure counts as
//! changed only if two more things hold: Wilcoxon's signed-rank test, which assumes no distribution, agrees, and the difference is
//! larger than what one step of the measurement can make.

use std::collections::{BTreeMap, BTreeSet};

use quell_recording::columns::{Columns, describe};
use quell_recording::{Recording, SourcePattern};
use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::{mean, mean_half_width, signed_rank_p};
use crate::whatif::family;

/// Maximum number of sources that are compared individually: the noisiest.
const MOST_SOURCES: usize = 12;
/// Minimum number of pairs for a verdict. With four, all differences have one sign by chance in one trial of eight.
const LEAST_PAIRS: usize = 5;
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
    /// The smallest difference that the recording can show: the shortest detour that its probe counts, or one step of its clock if that
    /// is longer, over the time observed.
    pub step: f64,
}

impl Round {
    /// The noise of a recording, over all CPUs.
    pub fn from_recording(recording: &Recording, patterns: &[SourcePattern]) -> Self {
        let watched: f64 =
            recording.manifest.cpus.iter().map(|cpu| cpu.span().length().as_nanos() as f64 / 1e9).sum();
        if watched <= 0.0 {
            return Self::default();
        }
        let clock = recording.manifest.clock.as_ref().map_or(1.0, |clock| clock.granularity_ns);
        let shortest = recording.manifest.threshold_ns.map_or(clock, |threshold| threshold.max(clock));
        let mut round = Self { step: shortest / watched, ..Self::default() };
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
/// `confidence` is between 0 and 1, both exclusive. With fewer than five pairs nothing is certain.
pub fn trial(pairs: &[(Round, Round)], confidence: f64) -> Trial {
    let step = pairs.iter().flat_map(|(without, with)| [without.step, with.step]).fold(0.0, f64::max);
    let figure = |name: &str, of: &dyn Fn(&Round) -> f64, compared: usize| {
        let values: Vec<(f64, f64)> = pairs.iter().map(|(without, with)| (of(without), of(with))).collect();
        effect(name, &values, step, 1.0 - (1.0 - confidence) / compared.max(1) as f64)
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

/// Student's interval of the mean of paired differences, and whether the figure changed.
///
/// Each figure is only known to a `step`, and rounding may err equally in all pairs. So the interval is never narrower than a step on
/// either side, however little the differences spread.
fn effect(name: &str, values: &[(f64, f64)], step: f64, level: f64) -> Effect {
    let gains: Vec<f64> = values.iter().map(|(without, with)| without - with).collect();
    let gain = mean(gains.iter().copied()).unwrap_or(0.0);
    let half = mean_half_width(gains.iter().copied(), level).map(|half| half.max(step));
    let half = half.filter(|half| half.is_finite()).unwrap_or(f64::MAX);
    // A figure that is zero on both sides of all pairs did not change.
    let seen = values.iter().any(|pair| *pair != (0.0, 0.0));
    let (low, high) = (gain - half, gain + half);
    let excludes_zero = low > 0.0 || high < 0.0;
    Effect {
        name: name.to_owned(),
        without_ns_per_s: mean(values.iter().map(|pair| pair.0)).unwrap_or(0.0),
        with_ns_per_s: mean(values.iter().map(|pair| pair.1)).unwrap_or(0.0),
        gain_ns_per_s: gain,
        low_ns_per_s: low,
        high_ns_per_s: high,
        changed: seen && gains.len() >= LEAST_PAIRS && excludes_zero && ranks_agree(&gains, 1.0 - level),
    }
}

/// Whether the signed-rank test finds the gains off 0 at the level `alpha`. Few pairs cannot reach a low level; then all gains must
/// have one sign, which is the most that they can show.
fn ranks_agree(gains: &[f64], alpha: f64) -> bool {
    let most_extreme = 2.0 * 0.5_f64.powi(gains.len() as i32);
    // The probabilities are sums of powers of two, exact up to the last bits.
    signed_rank_p(gains).is_some_and(|p| p <= alpha.max(most_extreme) * (1.0 + 1e-9))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::attribution::fixture;

    #[test]
    fn a_round_is_in_ns_for_each_second_that_was_watched() {
        let traces =
            vec![fixture::trace(2_000_000_000, vec![fixture::detour(10, 300), fixture::detour(1_000, 100)])];
        let intervals = vec![vec![fixture::tick(10, 80), fixture::softirq("TIMER", 95, 20)]];
        let recording = fixture::recording(traces, intervals);
        let round = Round::from_recording(&recording, &["tick".parse().unwrap()]);
        assert_eq!((round.detours, round.addressed), (200.0, 40.0));
        assert_eq!(round.sources.values().copied().collect::<Vec<_>>(), [10.0, 40.0]);
        assert_eq!(round.step, 5.0, "the clock's step of 10 ns, over 2 s");
    }

    /// Pairs around a mean with a heavy tail, in which the mitigation removes `gain` of what it addresses.
    fn pairs(draws: &mut Pcg64, count: usize, gain: f64) -> Vec<(Round, Round)> {
        let mut round = |gain: f64| {
            // The sum of a steady part and a rare, long one, as in real noise.
            let rare = if draws.random::<f64>() < 0.1 { draws.random::<f64>() * 50_000.0 } else { 0.0 };
            let steady = 10_000.0 + 1_000.0 * draws.random::<f64>();
            let addressed = 1_000.0 + 300.0 * draws.random::<f64>() - gain;
            let sources = [("tick".to_owned(), steady), ("task:ksmd".to_owned(), addressed)].into();
            Round { detours: steady + rare + addressed, addressed, sources, step: 50.0 }
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

    /// Pairs that all gain the same, without any spread.
    fn equal_pairs(count: usize, gain: f64, step: f64) -> Trial {
        let round = |addressed| Round { detours: addressed, addressed, step, ..Round::default() };
        trial(&vec![(round(1_000.0), round(1_000.0 - gain)); count], 0.95)
    }

    #[test]
    fn equal_pairs_are_no_certainty() {
        for count in 2..5 {
            assert_eq!(equal_pairs(count, 500.0, 0.0).verdict, Verdict::NoMeasurableEffect, "{count} pairs");
        }
        assert_eq!(equal_pairs(5, 500.0, 50.0).verdict, Verdict::Helps);
        let within_a_step = equal_pairs(5, 40.0, 50.0);
        assert_eq!(within_a_step.verdict, Verdict::NoMeasurableEffect, "one step of the measurement");
        assert!(within_a_step.addressed.low_ns_per_s < 0.0, "its interval has a width");
    }

    /// Four small losses and four large gains. Student's interval of their mean, 24.5, excludes 0 (by 0.3); the signed-rank test finds as much in
    /// 80 of the 256 ways to give the differences signs.
    #[test]
    fn ranks_overrule_a_mean_of_few_large_gains() {
        let gains = [-1.0, -2.0, -3.0, -4.0, 50.0, 51.0, 52.0, 53.0];
        let values: Vec<(f64, f64)> = gains.iter().map(|gain| (1_000.0, 1_000.0 - gain)).collect();
        let found = effect("x", &values, 0.0, 0.95);
        assert!(found.low_ns_per_s > 0.0 && !found.changed, "{found:?}");
        let all: Vec<(f64, f64)> = gains.iter().map(|gain| (1_000.0, 1_000.0 - f64::abs(*gain))).collect();
        assert!(effect("x", &all, 0.0, 0.9).changed, "all are gains");
    }

    /// An interval that ends at 0 does not exclude it.
    #[test]
    fn a_gain_of_one_step_is_no_gain() {
        for gain in [50.0, -50.0] {
            let addressed = equal_pairs(5, gain, 50.0).addressed;
            assert!(!addressed.changed && [addressed.low_ns_per_s, addressed.high_ns_per_s].contains(&0.0));
        }
        assert!(
            equal_pairs(5, 51.0, 50.0).addressed.changed && equal_pairs(5, -51.0, 50.0).addressed.changed
        );
    }

    /// Seven gains and two larger losses: by chance once in five times, so it is no gain.
    #[test]
    fn a_gain_that_ranks_do_not_show_is_no_gain() {
        let gains = [90.0, 91.0, 92.0, 93.0, 94.0, -95.0, -96.0, 97.0, 98.0];
        let values: Vec<(f64, f64)> = gains.iter().map(|gain| (1_000.0, 1_000.0 - gain)).collect();
        assert!(!effect("x", &values, 0.0, 0.95).changed);
        let all: Vec<(f64, f64)> = gains.iter().map(|gain| (1_000.0, 1_000.0 - f64::abs(*gain))).collect();
        assert!(effect("x", &all, 0.0, 0.95).changed);
    }

    #[test]
    fn too_few_pairs_are_sure_of_nothing() {
        for count in 0..5 {
            let trial = trial(&pairs(&mut Pcg64::seed_from_u64(1), count, 900.0), 0.99);
            assert_eq!(trial.verdict, Verdict::NoMeasurableEffect);
            assert!(serde_json::to_string(&trial).unwrap().contains("no-measurable-effect"));
        }
    }

    /// Pairs that gain 100 ± 7.07 for detours and for each of some sources.
    fn spread_pairs(sources: usize) -> Vec<(Round, Round)> {
        let round = |value: f64| Round {
            detours: value,
            sources: (0..sources).map(|one| (format!("s{one}"), value)).collect(),
            ..Round::default()
        };
        [90.0, 100.0, 110.0, 95.0, 105.0, 100.0].map(|gain| (round(1_000.0), round(1_000.0 - gain))).into()
    }

    /// Student's t of 5 degrees of freedom from tables: 2.570582 at 0.975, 3.163381 at 0.9875. The standard error is
    /// √(250 / 5 / 6).
    #[test]
    fn the_confidence_is_shared_among_what_is_compared() {
        let trial = trial(&spread_pairs(4), 0.9);
        let error = (250.0_f64 / 5.0 / 6.0).sqrt();
        let near = |effect: &Effect, t: f64| {
            let (low, high) = (100.0 - t * error, 100.0 + t * error);
            assert_eq!(
                (effect.without_ns_per_s, effect.with_ns_per_s, effect.gain_ns_per_s),
                (1_000.0, 900.0, 100.0)
            );
            assert!((effect.low_ns_per_s - low).abs() < 1e-3, "{effect:?} {low}");
            assert!((effect.high_ns_per_s - high).abs() < 1e-3, "{effect:?} {high}");
        };
        near(&trial.detours, 2.570_582);
        assert_eq!(trial.sources.len(), 4);
        trial.sources.iter().for_each(|source| near(source, 3.163_381));
        assert_eq!((trial.pairs, trial.verdict), (6, Verdict::Helps));
    }

    #[test]
    fn more_detours_always_hurt_and_fewer_excuse_what_is_addressed() {
        let verdict = |detours: f64, addressed: f64| {
            let round = |detours, addressed| Round { detours, addressed, ..Round::default() };
            let pair = (round(1_000.0, 1_000.0), round(1_000.0 - detours, 1_000.0 - addressed));
            trial(&vec![pair; 6], 0.95).verdict
        };
        let expected = [
            (-10.0, 0.0, Verdict::Hurts),
            (-10.0, 10.0, Verdict::Hurts),
            (0.0, -10.0, Verdict::Hurts),
            (10.0, -10.0, Verdict::Helps),
            (10.0, 0.0, Verdict::Helps),
            (0.0, 10.0, Verdict::Helps),
            (0.0, 0.0, Verdict::NoMeasurableEffect),
        ];
        for (detours, addressed, expected) in expected {
            assert_eq!(verdict(detours, addressed), expected, "{detours} {addressed}");
        }
    }

    #[test]
    fn the_noisiest_twelve_sources_are_compared() {
        let round = |rates: &[f64]| {
            let sources = (0..).zip(rates).map(|(at, &rate): (u32, _)| (format!("s{at:02}"), rate)).collect();
            Round { sources, ..Round::default() }
        };
        let rates: Vec<f64> = (0..14).map(|at| 10.0 + f64::from(at * 5 % 14)).collect();
        // On both sides together the last has 23 more than on one.
        let found = noisiest(&[(round(&rates), round(&[0.0]))]);
        let mut expected: Vec<usize> = (0..14).collect();
        expected.sort_by_key(|at| std::cmp::Reverse(at * 5 % 14));
        let expected: Vec<String> = expected[..12].iter().map(|at| format!("s{at:02}")).collect();
        assert_eq!(found, expected);
        // A source needs more than a thousandth of all noise, over both sides.
        let few = |rate: f64| noisiest(&[(round(&[999.0]), round(&[0.0, rate]))]);
        assert_eq!((few(1.0).len(), few(1.01).len()), (1, 2));
    }
}
