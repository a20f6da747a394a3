//! Comparisons of artificial recordings whose differences are known.

use proptest::prelude::*;
use quell_analysis::compare::{CompareError, Comparison, Limit, Options, Side, Verdict, compare};
use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A trace of `seconds` of Poisson noise, log-uniform over a decade from `low_ns`.
fn noise(cpu: u32, seed: u64, seconds: u64, per_s: f64, low_ns: f64) -> Trace {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let length = seconds as f64 * 1e9;
    let mut detours = Vec::new();
    let mut t = 0.0;
    loop {
        t -= (1.0 - rng.random::<f64>()).ln() * 1e9 / per_s;
        if t >= length {
            break;
        }
        let duration = low_ns * 10f64.powf(rng.random::<f64>());
        detours.push(detour(t as u64, duration as u64));
    }
    Trace { cpu: Cpu(cpu), span: span(seconds * 1_000_000_000), detours }
}

fn detour(start: u64, duration: u64) -> Detour {
    Detour { start: Nanos::from_nanos(start), duration: Nanos::from_nanos(duration), own: false }
}

fn span(end: u64) -> Span {
    Span { start: Nanos::ZERO, end: Nanos::from_nanos(end) }
}

fn compared(a: &[Trace], b: &[Trace]) -> Comparison {
    compare(&Side { name: "a", traces: a }, &Side { name: "b", traces: b }, &Options::default()).unwrap()
}

fn holds(limit: &str, comparison: &Comparison) -> bool {
    limit.parse::<Limit>().unwrap().check(comparison).is_none()
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let traces = [noise(0, 1, 10, 500.0, 2e3), noise(1, 2, 10, 500.0, 2e3)];
    let same = compared(&traces, &traces);
    assert_eq!((same.kl_nats, same.kl_reverse_nats, same.wasserstein_ns), (Some(0.0), Some(0.0), Some(0.0)));
    assert_eq!(same.changes.overhead_percent.verdict, Verdict::NoMeasurableDifference);
    assert_eq!(same.cpus.len(), 2);
    for limit in ["0%", "overhead=0", "p99=0%", "p99.9=0%", "max=0%", "rate=0%", "kl=0", "wasserstein=0ns"] {
        assert!(holds(limit, &same), "{limit}");
    }
}

#[test]
fn a_side_without_detours_is_named() {
    let (some, none) = ([noise(0, 1, 10, 500.0, 2e3)], [noise(0, 1, 10, 1e-9, 2e3)]);
    let broken = |a: &[Trace], b: &[Trace]| {
        "kl=1".parse::<Limit>().unwrap().check(&compared(a, b)).map(|why| why.to_string())
    };
    assert!(broken(&none, &some).unwrap().contains("`a` holds no detours"));
    assert!(broken(&some, &none).unwrap().contains("`b` holds no detours"));
}

#[test]
fn chance_is_seldom_called_a_difference() {
    let (mut wrong, mut all) = (0, 0);
    for seed in 0..40 {
        let c = compared(&[noise(0, 2 * seed, 10, 200.0, 2e3)], &[noise(0, 2 * seed + 1, 10, 200.0, 2e3)]);
        let changes = c.changes;
        for change in
            [Some(changes.overhead_percent), Some(changes.rate_per_s), changes.p50_ns, changes.p90_ns]
        {
            all += 1;
            wrong += u32::from(change.unwrap().verdict != Verdict::NoMeasurableDifference);
        }
        assert!(c.kl_nats.unwrap() < 0.1);
    }
    assert!(wrong <= all / 10, "{wrong} of {all}");
}

#[test]
fn more_noise_is_found_and_breaks_limits() {
    let c = compared(&[noise(0, 1, 10, 500.0, 2e3)], &[noise(0, 2, 10, 500.0, 4e3)]);
    assert_eq!(c.changes.overhead_percent.verdict, Verdict::Higher);
    assert_eq!(c.changes.p50_ns.unwrap().verdict, Verdict::Higher);
    assert_eq!(c.changes.rate_per_s.verdict, Verdict::NoMeasurableDifference);
    let p50 = c.changes.p50_ns.unwrap();
    assert!(p50.low < p50.difference && p50.difference < p50.high);
    assert!(!holds("50%", &c) && holds("150%", &c));
    assert!(!holds("overhead=0.1", &c) && holds("overhead=1", &c));
    assert!(!holds("p99=20%", &c) && holds("p99=120%", &c) && holds("rate=20%", &c));
    assert!(!holds("kl=0.1", &c) && !holds("wasserstein=5us", &c) && holds("wasserstein=10us", &c));
    let text = "p99=20%".parse::<Limit>().unwrap().check(&c).unwrap().to_string();
    assert!(
        text.starts_with("the limit `p99=20%` does not hold: the p99 of the durations is up by "),
        "{text}"
    );
}

#[test]
fn a_side_without_detours_is_a_result() {
    let noisy = [noise(0, 1, 10, 500.0, 2e3)];
    let quiet = [Trace { cpu: Cpu(0), span: span(10_000_000_000), detours: Vec::new() }];
    let better = compared(&noisy, &quiet);
    assert_eq!(better.changes.overhead_percent.verdict, Verdict::Lower);
    assert_eq!((better.kl_nats, better.changes.p99_ns, better.wasserstein_ns), (None, None, None));
    assert!(holds("10%", &better) && holds("p99=0%", &better) && !holds("kl=100", &better));
    let worse = compared(&quiet, &noisy);
    assert!(!holds("10%", &worse) && !holds("p99=10%", &worse));
    let neither = compared(&quiet, &quiet);
    assert!(holds("0%", &neither) && holds("kl=0", &neither) && holds("p99=0%", &neither));
}

#[test]
fn no_observed_time_is_an_error() {
    let good = [noise(0, 1, 1, 500.0, 2e3)];
    let (a, b) = (Side { name: "before", traces: &good }, Side { name: "after", traces: &[] });
    let error = compare(&a, &b, &Options::default()).unwrap_err();
    assert_eq!(error, CompareError::NothingObserved("after".into()));
}

#[test]
fn bad_limits_say_why() {
    for (text, why) in [
        ("", "needs a percent sign"),
        ("10", "needs a percent sign"),
        ("p98=3%", "no figure `p98`"),
        ("p99=3", "needs a percent sign"),
        ("kl=x", "`x` is not a number"),
        ("kl=-1", "not a number of 0 or more"),
        ("kl=nan", "not a number"),
        ("wasserstein=5", "the unit is missing"),
        ("overhead=5%", "percentage points"),
    ] {
        let error = text.parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("write `10%`"), "{error}");
    }
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    let (a, b) = ([noise(0, 1, 5, 300.0, 2e3)], [noise(0, 2, 5, 300.0, 2e3)]);
    let on = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = Options { seed, replicates: 200 };
        pool.install(|| {
            compare(&Side { name: "a", traces: &a }, &Side { name: "b", traces: &b }, &options).unwrap()
        })
    };
    assert_eq!(on(1, 7), on(3, 7));
    assert_ne!(on(1, 7).changes, on(1, 8).changes);
}

fn any_side() -> impl Strategy<Value = Vec<Trace>> {
    let time = prop_oneof![Just(0), Just(u64::MAX), 0u64..10_000, any::<u64>()];
    let detours = prop::collection::vec((time.clone(), time.clone(), any::<bool>()), 0..20);
    let trace = (0u32..3, time.clone(), time, detours).prop_map(|(cpu, start, end, detours)| Trace {
        cpu: Cpu(cpu),
        span: Span { start: Nanos::from_nanos(start), end: Nanos::from_nanos(end) },
        detours: detours.into_iter().map(|(s, d, own)| Detour { own, ..detour(s, d) }).collect(),
    });
    prop::collection::vec(trace, 0..4)
}

proptest! {
    #[test]
    fn nothing_panics_or_is_not_a_number(a in any_side(), b in any_side()) {
        let options = Options { seed: 1, replicates: 40 };
        if let Ok(c) = compare(&Side { name: "a", traces: &a }, &Side { name: "b", traces: &b }, &options) {
            let all = std::iter::once(&c.changes).chain(c.cpus.iter().map(|cpu| &cpu.changes));
            for x in all {
                let figures = [Some(x.overhead_percent), Some(x.rate_per_s), x.p50_ns, x.p99_9_ns, x.max_ns];
                for change in figures.into_iter().flatten() {
                    prop_assert!(change.low.is_finite() && change.high.is_finite() && change.difference.is_finite());
                }
            }
            // ln(points / floor), which no grid of densities reaches.
            prop_assert!(c.kl_nats.is_none_or(|kl| kl < 25.0));
            prop_assert!(c.wasserstein_ns.is_none_or(f64::is_finite));
        }
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = text.parse::<Limit>();
    }
}
