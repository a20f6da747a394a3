//! Trials of pairs whose result is known by a table, a closed form or by construction.

#![allow(clippy::unwrap_used, reason = "a test may")]
use super::paired::Paired;
use super::*;

const ONE_LOOK: Design = Design { confidence: 0.95, smallest: 0.05, addresses: true, look: None };

fn flat(value: f64, step: f64) -> Round {
    Round { detours: value, addressed: value, step, clock_step: step, ..Round::default() }
}

fn gains(of: &[f64], step: f64) -> Vec<(Round, Round)> {
    of.iter().map(|gain| (flat(1_000.0, step), flat(1_000.0 - gain, step))).collect()
}

/// Pairs that all gain the same, without any spread.
fn equal_pairs(count: usize, gain: f64, step: f64) -> Trial {
    trial(&gains(&vec![gain; count], step), &ONE_LOOK)
}

/// At 95 % for two figures, one sign in all pairs has to have a probability of at most 0.025: 2 / 2⁷ is less, 2 / 2⁶ is more.
#[test]
fn equal_pairs_are_no_certainty() {
    for count in 0..7 {
        let found = equal_pairs(count, 500.0, 0.0);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{count} pairs");
        assert!(!found.addressed.changed && serde_json::to_string(&found).unwrap().contains("inconclusive"));
    }
    assert_eq!(equal_pairs(6, 500.0, 50.0).further_pairs, Some(1), "the seventh");
    assert_eq!(equal_pairs(7, 500.0, 50.0).verdict, Verdict::Helps);
    assert_eq!(equal_pairs(7, -500.0, 50.0).verdict, Verdict::Hurts);
    let within_a_step = equal_pairs(7, 40.0, 50.0);
    assert_eq!(within_a_step.verdict, Verdict::NoEffectLargerThan, "one step of the measurement");
    assert!(within_a_step.addressed.low_ns_per_s < 0.0, "its interval has a width");
    assert_eq!(within_a_step.addressed.limit_ns_per_s, Some(100.0), "two steps are more than 5 %");
}

/// Four small losses and four large gains. Student's interval of their mean, 24.5, excludes 0 (by 0.3); the signed-rank test finds as much in
/// 80 of the 256 ways to give the differences signs.
#[test]
fn ranks_overrule_a_mean_of_few_large_gains() {
    let mixed = [-1.0, -2.0, -3.0, -4.0, 50.0, 51.0, 52.0, 53.0];
    let paired = |of: &[f64]| Paired::new(of.to_vec(), &[], 0.0);
    assert!(paired(&mixed).centre() > paired(&mixed).half_width(0.05) && !paired(&mixed).excludes_zero(0.05));
    assert!(paired(&mixed.map(f64::abs)).excludes_zero(0.1), "all are gains");
    // Seven gains and two larger losses: by chance once in five times.
    let losses = [90.0, 91.0, 92.0, 93.0, 94.0, -95.0, -96.0, 97.0, 98.0];
    assert!(!paired(&losses).excludes_zero(0.05) && paired(&losses.map(f64::abs)).excludes_zero(0.05));
}

/// An interval that ends at 0 does not exclude it.
#[test]
fn a_gain_of_one_step_is_no_gain() {
    for gain in [50.0, -50.0] {
        let addressed = equal_pairs(7, gain, 50.0).addressed;
        assert!(!addressed.changed && [addressed.low_ns_per_s, addressed.high_ns_per_s].contains(&0.0));
    }
    assert!(equal_pairs(7, 51.0, 50.0).addressed.changed && equal_pairs(7, -51.0, 50.0).addressed.changed);
}

/// Student's t of 5 degrees of freedom from tables: 2.570582 at 0.975, 3.163381 at 0.9875. The standard error is
/// √(250 / 5 / 6).
#[test]
fn the_confidence_is_shared_among_what_is_compared() {
    let round = |value: f64| Round {
        detours: value,
        sources: (0..4).map(|one| (format!("s{one}"), value)).collect(),
        ..Round::default()
    };
    let pairs = [90.0, 100.0, 110.0, 95.0, 105.0, 100.0].map(|gain| (round(1_000.0), round(1_000.0 - gain)));
    let error = (250.0_f64 / 5.0 / 6.0).sqrt();
    let near = |effect: &Effect, t: f64| {
        let (low, high) = (100.0 - t * error, 100.0 + t * error);
        let means = (effect.without_ns_per_s, effect.with_ns_per_s, effect.gain_ns_per_s);
        assert_eq!(means, (1_000.0, 900.0, 100.0));
        assert!((effect.low_ns_per_s - low).abs() < 1e-3, "{effect:?} {low}");
        assert!((effect.high_ns_per_s - high).abs() < 1e-3, "{effect:?} {high}");
    };
    let found = trial(&pairs, &Design { confidence: 0.9, ..ONE_LOOK });
    near(&found.detours, 2.570_582);
    assert_eq!(found.sources.len(), 4);
    found.sources.iter().for_each(|source| near(source, 3.163_381));
    // The first of several looks has half of the probability of error.
    let first = trial(&pairs, &Design { confidence: 0.8, look: Some(1), ..ONE_LOOK });
    near(&first.detours, 2.570_582);
    assert_eq!((found.pairs, found.looks, found.verdict), (6, 1, Verdict::Helps));
}

/// 1/2 + 1/6 + 1/12 + … + 1/(k (k + 1)) = 1 − 1/(k + 1).
#[test]
fn all_looks_together_have_the_probability_of_error() {
    let at = |look| Design { look: Some(look), confidence: 0.99, ..ONE_LOOK }.alpha();
    let sum: f64 = (1..=99).map(at).sum();
    assert!((sum - 0.01 * 0.99).abs() < 1e-12);
    // Ten pairs of one sign, 2 / 2¹⁰, suffice at the first look.
    assert_eq!(least_pairs(at(1) / FIGURES), 10);
    assert_eq!([0.5, 0.25, 0.2, 1.0].map(least_pairs), [2, 3, 4, 2]);
}

#[test]
fn more_detours_always_hurt_and_fewer_excuse_what_is_addressed() {
    let verdict = |detours: f64, addressed: f64| {
        let round = |detours, addressed| Round { detours, addressed, ..Round::default() };
        let pair = (round(1_000.0, 1_000.0), round(1_000.0 - detours, 1_000.0 - addressed));
        trial(&vec![pair; 7], &ONE_LOOK).verdict
    };
    let expected = [
        (-10.0, 0.0, Verdict::Hurts),
        (-10.0, 10.0, Verdict::Hurts),
        (0.0, -10.0, Verdict::Hurts),
        (10.0, -10.0, Verdict::Helps),
        (10.0, 0.0, Verdict::Helps),
        (0.0, 10.0, Verdict::Helps),
        (0.0, 0.0, Verdict::NoEffectLargerThan),
    ];
    for (detours, addressed, expected) in expected {
        assert_eq!(verdict(detours, addressed), expected, "{detours} {addressed}");
    }
}

#[test]
fn an_effect_counts_as_none_only_if_both_figures_show_it() {
    // Eight differences of mean 0, of ± 10 and of ± 100, of figures of 1,000: a limit of 50.
    let pairs = |detours: f64, addressed: f64| {
        let round = |detours, addressed| Round { detours, addressed, ..Round::default() };
        let signs = [1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0];
        signs.map(|sign| (round(1e3, 1e3), round(1e3 - sign * detours, 1e3 - sign * addressed)))
    };
    let verdict = |detours, addressed| trial(&pairs(detours, addressed), &ONE_LOOK).verdict;
    assert_eq!(verdict(10.0, 10.0), Verdict::NoEffectLargerThan);
    assert_eq!((verdict(10.0, 100.0), verdict(100.0, 10.0)), (Verdict::Inconclusive, Verdict::Inconclusive));
    let wider = Design { smallest: 0.5, ..ONE_LOOK };
    assert_eq!(trial(&pairs(10.0, 100.0), &wider).verdict, Verdict::NoEffectLargerThan);
}

/// The cars of R's data set: `summary(lm(dist ~ speed, cars))` gives slope 3.932409 and, for the intercept, −17.579095 ± 6.758440.
#[test]
fn a_regression_is_that_of_r() {
    let speed = [
        4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16,
        16, 17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25,
    ];
    let dist = [
        2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54,
        32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85,
    ];
    let paired = Paired::new(dist.map(f64::from).to_vec(), &speed.map(f64::from), 0.0);
    assert!(
        (paired.slope().unwrap() - 3.932_409).abs() < 1e-6 && (paired.centre() + 17.579_095).abs() < 1e-6
    );
    // Student's t of 48 degrees of freedom at 0.975, as R's `qt` gives it.
    assert!((paired.half_width(0.05) / 2.010_635 - 6.758_440).abs() < 1e-5);
}

/// Load that explains every difference leaves no gain; load that explains none changes nothing.
#[test]
fn load_is_adjusted_for_where_it_explains() {
    let load = [300.0, -200.0, 500.0, -100.0, 50.0, -400.0, 250.0, -350.0, 100.0, -60.0];
    let pairs = |gain: f64, slope: f64| -> Vec<(Round, Round)> {
        let round = |detours, load| Round { load, detours, addressed: 100.0, step: 1.0, ..Round::default() };
        let pair = |(at, load): (usize, &f64)| {
            let rest = [0.5, -0.5, -0.25, 0.25][at % 4];
            (round(2e3 + slope * load + rest, 500.0 + load), round(2e3 - gain, 500.0))
        };
        load.iter().enumerate().map(pair).collect()
    };
    let adjusted = trial(&pairs(20.0, 0.9), &ONE_LOOK);
    assert_eq!(adjusted.verdict, Verdict::Helps, "{adjusted:#?}");
    let slope = adjusted.background.detours_per_load.unwrap();
    assert!((slope - 0.9).abs() < 0.01 && (adjusted.detours.gain_ns_per_s - 20.0).abs() < 1.0);
    assert!(!adjusted.background.differs);
    // As measured, the loads' differences are larger than 5 % of the detours.
    assert_eq!(trial(&pairs(0.0, 0.9), &ONE_LOOK).verdict, Verdict::Inconclusive);
    assert_eq!(
        trial(&pairs(0.0, 0.9), &Design { smallest: 0.2, ..ONE_LOOK }).verdict,
        Verdict::NoEffectLargerThan
    );
    let unrelated = trial(&pairs(20.0, 0.0), &ONE_LOOK);
    assert_eq!((unrelated.verdict, unrelated.background.detours_per_load), (Verdict::Helps, None));
    let few = trial(&pairs(20.0, 0.9)[..7], &ONE_LOOK);
    assert_eq!((few.verdict, few.background.detours_per_load), (Verdict::Inconclusive, None));
}

/// A mitigation that moves tasks away which its patterns miss: the gain in detours is load. What it addresses still decides.
#[test]
fn where_load_differs_detours_decide_nothing() {
    let trial = |removed: f64| {
        let pair = |at: u32| {
            let (load, rest) = (100.0 + f64::from(at * 7 % 10), f64::from(at % 3) - 1.0);
            let with = Round { addressed: 200.0 - removed, ..flat(1e3, 1.0) };
            (Round { load, addressed: 200.0, ..flat(1e3 + load + rest, 1.0) }, with)
        };
        trial(&(0..10).map(pair).collect::<Vec<_>>(), &ONE_LOOK)
    };
    let found = trial(0.0);
    assert!(found.background.differs && found.background.detours_undecided);
    assert_eq!((found.verdict, found.background.detours_per_load), (Verdict::Inconclusive, None));
    assert_eq!(found.further_pairs, None, "load keeps differing");
    assert_eq!(trial(50.0).verdict, Verdict::Helps);
}

/// A load that differs by 5 ns in each second is no reason for 100 µs.
#[test]
fn detours_decide_what_load_cannot_account_for() {
    let trial = |gain: f64, load: f64, removed: f64| {
        let pair = |at: u32| {
            let rest = [1.0, -1.0][at as usize % 2];
            let without = Round { load: 500.0 + load + rest, addressed: 1e3, ..flat(1e6, 1.0) };
            let with = flat(1e6 - gain - 1e3 * rest, 1.0);
            (without, Round { load: 500.0, addressed: 1e3 - removed - rest, ..with })
        };
        trial(&(0..10).map(pair).collect::<Vec<_>>(), &ONE_LOOK)
    };
    let more = trial(-1e5, 5.0, 500.0);
    assert!(more.background.differs && !more.background.detours_undecided, "{more:#?}");
    assert_eq!(more.verdict, Verdict::Hurts, "{more:#?}");
    assert!(more.detours.low_ns_per_s < -100_010.0 && more.detours.gain_ns_per_s > -100_001.0);
    assert_eq!(trial(1e5, 5.0, 0.0).verdict, Verdict::Helps);
    // Half of the gain is as much as the load can account for.
    assert_eq!(trial(1e5, 48e3, 0.0).verdict, Verdict::Helps);
    assert_eq!(trial(1e5, 52e3, 0.0).verdict, Verdict::Inconclusive);
    // More load on the side with the mitigation may hide a gain.
    assert_eq!(trial(-1e5, -48e3, 0.0).verdict, Verdict::Hurts);
    assert_eq!(trial(-1e5, -52e3, 0.0).verdict, Verdict::Inconclusive);
}

/// Five of twenty rounds without the mitigation had 4,000 of a program that it stops: a twentieth of the signs' ways shows as much, so it is
/// not certain that load differs.
#[test]
fn what_load_hides_is_not_shown_to_be_none() {
    let pair = |at: u32| {
        let load = if at.is_multiple_of(4) { 4_000.0 } else { 0.0 };
        let rest = [1.0, -1.0][at as usize % 2];
        let round = |detours, load| Round { detours, load, addressed: 100.0, step: 1.0, ..Round::default() };
        (round(2e4 + load + rest, load), round(2e4 - rest, 0.0))
    };
    let found = trial(&(0..20).map(pair).collect::<Vec<_>>(), &ONE_LOOK);
    assert!(!found.background.differs && found.background.detours_per_load.is_some(), "{found:#?}");
    assert_eq!(found.verdict, Verdict::Inconclusive, "a gain of 5 %");
}

/// What is addressed is known to a step of the clock, not of the probe.
#[test]
fn a_source_shorter_than_the_probes_threshold_is_compared() {
    let pair = |at: u32| {
        let round =
            |addressed| Round { detours: 1e4, addressed, step: 750.0, clock_step: 1.0, ..Round::default() };
        (round(700.0 + f64::from(at % 3)), round(0.0))
    };
    assert_eq!(trial(&(0..10).map(pair).collect::<Vec<_>>(), &ONE_LOOK).verdict, Verdict::Helps);
}

#[test]
fn noise_that_did_not_occur_shows_nothing() {
    let pairs = vec![(flat(1e3, 1.0), flat(1e3, 1.0)); 10];
    let quiet = |pair: &(Round, Round)| {
        let none = |round: &Round| Round { addressed: 0.0, ..round.clone() };
        (none(&pair.0), none(&pair.1))
    };
    let pairs: Vec<_> = pairs.iter().map(quiet).collect();
    let found = trial(&pairs, &ONE_LOOK);
    assert_eq!((found.verdict, found.further_pairs, found.unseen), (Verdict::Inconclusive, None, true));
    let found = trial(&pairs, &Design { addresses: false, ..ONE_LOOK });
    assert_eq!((found.verdict, found.unseen), (Verdict::NoEffectLargerThan, false));
}

/// Eight gains and two losses that are far larger: no number of pairs makes the mean and the ranks agree.
#[test]
fn pairs_whose_mean_and_ranks_disagree_promise_nothing() {
    let mixed = [10.0, 11.0, 9.0, 10.5, 9.5, 10.2, 9.8, 10.1, -500.0, -510.0];
    assert_eq!(Paired::new(mixed.to_vec(), &[], 0.0).pairs_to_exclude_zero(0.005), None);
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
