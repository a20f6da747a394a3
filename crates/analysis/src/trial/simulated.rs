//! Trials of simulated machines: quiet ones, and ones with a busy neighbour, whose load drifts and has heavy tails.

#![allow(clippy::unwrap_used, reason = "a test may")]
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Normal, Pareto};
use rand_pcg::Pcg64;

use super::paired::Paired;
use super::*;

const DESIGN: Design = Design { confidence: 0.99, smallest: 0.05, addresses: true, look: None };

/// A machine, in ns per second of a CPU.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Noise that the mitigation addresses, and how much it varies.
    addressed: (f64, f64),
    /// All other noise of the system.
    rest: (f64, f64),
    /// The share of the addressed noise that the mitigation removes; negative if it adds.
    removed: f64,
    /// Typical load of a neighbour.
    load: f64,
}

impl Machine {
    fn pairs(self, draws: &mut Pcg64, count: usize) -> Vec<(Round, Round)> {
        let mut drift = 0.0_f64;
        let mut round = |draws: &mut Pcg64, removed: f64| {
            let part = |draws: &mut Pcg64, (mean, spread): (f64, f64)| {
                Normal::new(mean, spread).unwrap().sample(draws).max(0.0)
            };
            // The neighbour's load drifts by a factor of a few over a trial, with bursts of infinite variance.
            drift = 0.95 * drift + part(draws, (1.0, 0.25)) - 1.0;
            let burst = Pareto::new(0.2, 1.5).unwrap().sample(draws);
            let load = self.load * (drift.exp() + burst);
            let addressed = part(draws, self.addressed) * (1.0 - removed);
            // A rare, long detour that no source explains.
            let rare =
                if draws.random::<f64>() < 0.1 { self.rest.1 * 20.0 * draws.random::<f64>() } else { 0.0 };
            // What the neighbour costs the probe is more than its time on the CPU.
            let detours = part(draws, self.rest) + rare + addressed + 1.1 * load;
            Round { detours, addressed, load, step: 0.5, clock_step: 0.5, ..Round::default() }
        };
        (0..count)
            .map(|_| {
                if draws.random::<bool>() {
                    let with = round(draws, self.removed);
                    (round(draws, 0.0), with)
                } else {
                    (round(draws, 0.0), round(draws, self.removed))
                }
            })
            .collect()
    }
}

/// Six kinds of machines; the last has little of what is addressed.
const MACHINES: [Machine; 6] = [
    Machine { addressed: (1_000.0, 100.0), rest: (10_000.0, 300.0), removed: 0.0, load: 0.0 },
    Machine { addressed: (5_000.0, 1_000.0), rest: (10_000.0, 1_000.0), removed: 0.0, load: 0.0 },
    Machine { addressed: (20_000.0, 400.0), rest: (5_000.0, 100.0), removed: 0.0, load: 0.0 },
    Machine { addressed: (300.0, 60.0), rest: (2_000.0, 50.0), removed: 0.0, load: 0.0 },
    Machine { addressed: (8_000.0, 800.0), rest: (50_000.0, 2_000.0), removed: 0.0, load: 0.0 },
    Machine { addressed: (100.0, 30.0), rest: (40_000.0, 500.0), removed: 0.0, load: 0.0 },
];
/// What the mitigation removes of the addressed noise on each; one makes more noise.
const REMOVED: [f64; 6] = [1.0, 0.6, 0.12, 0.5, -0.4, 0.9];
/// The neighbour's load: none, or 2 to 5 ms in each second.
const LOADS: [f64; 2] = [0.0, 2e6];

/// The verdict of one look, or of looks at 10, 20, 40 and 80 pairs.
fn try_it(pairs: &[(Round, Round)], sequential: bool) -> Trial {
    if !sequential {
        return trial(&pairs[..20], &DESIGN);
    }
    let mut looks = (1..=4).map(|look| {
        let count = 10 << (look - 1);
        trial(&pairs[..count], &Design { look: Some(look), ..DESIGN })
    });
    let decided = looks.by_ref().find(|found| found.verdict != Verdict::Inconclusive);
    decided.unwrap_or_else(|| trial(pairs, &Design { look: Some(4), ..DESIGN }))
}

/// How often each verdict comes, in the order helps, hurts, no effect, inconclusive.
fn verdicts(machine: Machine, seed: u64, trials: u64, sequential: bool) -> [u64; 4] {
    let mut counts = [0; 4];
    for one in 0..trials {
        let mut draws = Pcg64::seed_from_u64(1_000 * seed + one);
        counts[try_it(&machine.pairs(&mut draws, 80), sequential).verdict as usize] += 1;
    }
    counts
}

#[test]
fn true_effects_are_found_and_never_called_none() {
    for (at, (machine, removed)) in MACHINES.into_iter().zip(REMOVED).enumerate() {
        for load in LOADS {
            for sequential in [false, true] {
                let machine = Machine { removed, load, ..machine };
                let counts = verdicts(machine, 10 + at as u64, 40, sequential);
                let [helps, hurts, none, _] = counts;
                let (right, wrong) = if removed > 0.0 { (helps, hurts) } else { (hurts, helps) };
                assert_eq!((wrong, none), (0, 0), "{machine:?} {sequential} {counts:?}");
                assert!(right >= 38, "{machine:?} {sequential} {counts:?}");
            }
        }
    }
}

/// 12 machines, 100 trials of each with one look and 100 with up to four: 2,400.
#[test]
fn nothing_is_called_an_effect_once_in_a_hundred_times_at_most() {
    let mut all = [[0; 4]; 4];
    for (at, machine) in MACHINES.into_iter().enumerate() {
        for (busy, load) in LOADS.into_iter().enumerate() {
            for sequential in [false, true] {
                let counts = verdicts(Machine { load, ..machine }, 20 + at as u64, 100, sequential);
                let sum = &mut all[2 * busy + usize::from(sequential)];
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
    }
    for [helps, hurts, ..] in all {
        assert!(helps + hurts <= 6, "of 600 each: {all:?}");
    }
    // One of the machines is steady enough to show within these pairs that there is no effect; under load none is.
    assert!(all[..2].iter().all(|[_, _, none, _]| *none >= 90), "{all:?}");
    assert!(all[2..].iter().all(|[_, _, none, _]| *none == 0), "{all:?}");
}

/// A daemon that runs rarely: its noise occurs in 45 % of these trials, and the mitigation removes it.
#[test]
fn rare_noise_that_did_not_occur_is_never_no_effect() {
    let mut unseen = 0;
    for seed in 0..200 {
        let mut draws = Pcg64::seed_from_u64(seed);
        let mut round = |rate: f64| {
            let addressed = if draws.random::<f64>() < 1.0 - (-3.0 * rate).exp() { 50e6 / 3.0 } else { 0.0 };
            let detours = Normal::new(10_000.0, 50.0).unwrap().sample(&mut draws) + addressed;
            Round { detours, addressed, step: 50.0, watched_ns: 3_000_000_000, ..Round::default() }
        };
        let pairs: Vec<_> = (0..10).map(|_| (round(0.02), round(0.0))).collect();
        let found = trial(&pairs, &DESIGN);
        assert_ne!(found.verdict, Verdict::NoEffectLargerThan, "{found:#?}");
        unseen += u64::from(found.unseen);
        // 30 s without an event have a probability of 0.5 % at one event in 5.66 s.
        assert_eq!(found.missed_if_rarer_than_ns.unwrap() / 10_000_000, 566);
    }
    assert!((90..=130).contains(&unseen), "e^-0.6 of 200: {unseen}");
}

/// What is removed is a program of users that no pattern matches: its time is load, too little to show in ten pairs.
#[test]
fn a_gain_that_comes_with_a_little_load_is_never_no_effect() {
    for count in [10, 20] {
        for seed in 0..100 {
            let mut draws = Pcg64::seed_from_u64(seed);
            let load = Normal::new(750.0, 2_100.0).unwrap();
            let pairs: Vec<_> = (0..count)
                .map(|_| {
                    let mut round = |more: f64| {
                        let load = 5_000.0 + more + load.sample(&mut draws);
                        let rest = Normal::new(15_000.0, 70.0).unwrap().sample(&mut draws);
                        Round { detours: rest + load, load, addressed: 1.0, step: 1.0, ..Round::default() }
                    };
                    (round(1_500.0), round(0.0))
                })
                .collect();
            assert_ne!(trial(&pairs, &DESIGN).verdict, Verdict::NoEffectLargerThan, "{count} {seed}");
        }
    }
}

/// Each time that a task has a CPU brings several times as much in softirqs; the mitigation changes nothing. At 95 % for three ways to
/// judge, errors are rarer than one in twenty whichever way load differs.
#[test]
fn load_that_brings_more_than_its_time_makes_no_effect() {
    for slope in [-3.0, 1.0, 5.0] {
        let wrong = (0..2_000).filter(|seed| {
            let mut draws = Pcg64::seed_from_u64(*seed);
            let mut round = || {
                let load = Pareto::new(200.0, 1.5).unwrap().sample(&mut draws);
                let rest = Normal::new(1e5, 50.0).unwrap().sample(&mut draws);
                Round { detours: rest + slope * load, load, ..Round::default() }
            };
            let pairs: Vec<_> = (0..20).map(|_| (round(), round())).collect();
            let found = trial(&pairs, &Design { confidence: 0.95, addresses: false, ..DESIGN });
            found.detours.changed
        });
        let wrong = wrong.count();
        // A detour is judged with half of 5 %: 50 ± 7 of 2,000.
        assert!(wrong <= 71, "{slope}: {wrong}");
    }
}

/// Signs that a coin decides are all that the ranks need, so the rate holds for differences of any size, even of infinite variance.
#[test]
fn ranks_hold_the_rate_whatever_the_differences_are() {
    let tail = Pareto::new(1.0, 0.7).unwrap();
    let wrong = (0..2_000).filter(|seed| {
        let mut draws = Pcg64::seed_from_u64(*seed);
        let mut signed =
            || if draws.random::<bool>() { tail.sample(&mut draws) } else { -tail.sample(&mut draws) };
        let loads: Vec<f64> = (0..20).map(|_| signed()).collect();
        let gains: Vec<f64> = loads.iter().map(|load| 2.0 * load + signed()).collect();
        Paired::new(gains, &loads, 0.0).excludes_zero(0.05)
    });
    // 5 % of 2,000 are 100 ± 10.
    assert!(wrong.count() <= 130);
}

/// Pairs whose gains are normal about a mean, and the number of pairs that the closed form of the interval needs.
fn normal_pairs(draws: &mut Pcg64, mean: f64, spread: f64, count: usize) -> Vec<(Round, Round)> {
    let gain = Normal::new(mean, spread).unwrap();
    let round = |value: f64| Round {
        detours: value,
        addressed: value,
        step: 1.0,
        clock_step: 1.0,
        ..Round::default()
    };
    (0..count).map(|_| (round(1e4), round(1e4 - gain.sample(draws)))).collect()
}

/// At level 0.005, with t of many degrees of freedom: a gain of 0.5 spreads needs n = (2.807 / 0.5)² = 31.5 and, for t in place of the normal
/// distribution, 4 more (t of 34 degrees of freedom is 3.002: 36.0). A limit of 0.5 spreads needs n = ((3.002 + 0.674) / 0.5)² = 54 or,
/// with t of 53 degrees, 2.929: 52.
#[test]
fn the_number_of_further_pairs_is_right_within_a_factor_of_two() {
    for (gain, spread, exact) in [(500.0, 1_000.0, 36.0), (0.0, 1_000.0, 52.0)] {
        let total = |seed: u64| {
            let mut draws = Pcg64::seed_from_u64(seed);
            let pairs = normal_pairs(&mut draws, gain, spread, 20);
            let found = trial(&pairs, &DESIGN);
            found.further_pairs.map(|further| 20 + further)
        };
        let mut all: Vec<u64> = (0..200).filter_map(total).collect();
        all.sort_unstable();
        let median = all[all.len() / 2] as f64;
        let near = all.iter().filter(|pairs| (exact / 2.0..=exact * 2.0).contains(&(**pairs as f64))).count();
        assert!((exact / 2.0..=exact * 2.0).contains(&median), "{median} for {exact}");
        assert!(2 * near > all.len(), "{near} of {} are near {exact}", all.len());
    }
}

/// With the number of pairs that a trial asks for, the next trial mostly has a verdict.
#[test]
fn the_pairs_that_a_trial_asks_for_tell() {
    for gain in [0.0, 500.0] {
        let outcomes = (0..100).filter_map(|seed| {
            let mut draws = Pcg64::seed_from_u64(seed);
            let pairs = normal_pairs(&mut draws, gain, 1_000.0, 400);
            let further = trial(&pairs[..20], &DESIGN).further_pairs?;
            let tells = |count: usize| trial(&pairs[..count.min(400)], &DESIGN).verdict;
            Some((tells(20 + further as usize), tells(20 + 2 * further as usize)))
        });
        let outcomes: Vec<_> = outcomes.collect();
        let resolved = |of: &dyn Fn(&(Verdict, Verdict)) -> Verdict| {
            outcomes.iter().filter(|one| of(one) != Verdict::Inconclusive).count()
        };
        let (then, twice) = (resolved(&|one| one.0), resolved(&|one| one.1));
        assert!(2 * then > outcomes.len() && 4 * twice > 3 * outcomes.len(), "{gain}: {then} and {twice}");
    }
}
