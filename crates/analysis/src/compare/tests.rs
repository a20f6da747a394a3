#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use quell_recording::{Detour, Nanos, Span};
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::*;

/// A trace of `span` ns with a detour of each duration, 1 ms apart.
fn trace(cpu: u32, span: u64, durations: &[u64]) -> Trace {
    let ns = Nanos::from_nanos;
    let detour = |(at, &duration): (u64, &u64)| Detour {
        start: ns(at * 1_000_000),
        duration: ns(duration),
        own: false,
    };
    let detours = (0..).zip(durations).map(detour).collect();
    Trace { cpu: Cpu(cpu), span: Span { start: Nanos::ZERO, end: ns(span) }, detours }
}

fn compared(a: &[Trace], b: &[Trace]) -> Comparison {
    let options = Options { seed: 1, replicates: 40 };
    compare(&Side { name: "a", traces: a }, &Side { name: "b", traces: b }, &options).unwrap()
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{found} for {expected}");
}

#[test]
fn figures_are_for_the_time_of_one_cpu() {
    let a = [trace(3, 2_000_000_000, &[10_000, 30_000, 20_000]), trace(1, 4_000_000_000, &[40_000])];
    let b = [trace(1, 500_000_000, &[50_000; 8])];
    let c = compared(&a, &b);
    assert_eq!((c.a.cpus.as_slice(), c.a.span_ns, c.a.detours.count), (&[1, 3][..], 4_000_000_000, 4));
    // 4 detours of 100 us together in 6 s of CPUs; 8 of 400 us in half a second.
    near(c.a.rate_per_s, 4.0 / 6.0, 1e-9);
    near(c.b.rate_per_s, 16.0, 1e-9);
    near(c.a.overhead_percent, 100.0 * 100e-6 / 6.0, 1e-9);
    near(c.b.overhead_percent, 100.0 * 400e-6 / 0.5, 1e-9);
    assert_eq!((c.changes.rate_per_s.a, c.changes.rate_per_s.b), (c.a.rate_per_s, c.b.rate_per_s));
    let ends = |change: Option<Change>| change.map(|change| (change.a, change.b)).unwrap();
    assert_eq!(ends(c.changes.p50_ns), (20_000.0, 50_000.0));
    assert_eq!(ends(c.changes.max_ns), (40_000.0, 50_000.0));
    assert_eq!(c.wasserstein_ns, Some(25_000.0), "from 10, 20, 30 and 40 us to 50 us each");
    assert_eq!((c.cpus.len(), c.cpus[0].cpu, c.cpus[0].wasserstein_ns), (1, 1, Some(10_000.0)));
    near(c.cpus[0].changes.rate_per_s.a, 0.25, 1e-9);
}

/// D(p‖q) = Σ p ln(p / q): ½ ln(½ / ¼) + ½ ln(½ / ¾).
#[test]
fn the_step_of_a_grid_is_the_difference_of_its_points() {
    let expected = 0.5 * 2f64.ln() + 0.5 * (2.0 / 3.0_f64).ln();
    for grid in [[-0.25, 0.25], [0.0, 0.5], [3.0, 3.5]] {
        let densities = Densities {
            log10_ns: grid.to_vec(),
            a: vec![1.0, 1.0],
            b: vec![0.5, 1.5],
            bandwidth_decades: 0.1,
        };
        near(densities.divergence(&densities.a, &densities.b), expected, 1e-4);
    }
}

/// Lognormal durations: D(b‖a) = ln(s_a / s_b) + (s_b² + m²) / (2 s_a²) − ½, where a window of width h makes each variance larger by h².
#[test]
fn the_divergence_is_that_of_b_from_a() {
    const COUNT: usize = 2_000;
    let normal = Normal::new(0.0, 1.0).unwrap();
    let side = |mean: f64, deviation: f64| {
        let z = (0..COUNT).map(|i| normal.inverse_cdf((i as f64 + 0.5) / COUNT as f64));
        let durations: Vec<u64> = z.map(|z| 10f64.powf(mean + deviation * z) as u64).collect();
        [trace(0, 10_000_000_000, &durations)]
    };
    let (a, b) = (side(5.0, 0.2), side(5.2, 0.1));
    let window = 0.9 * 0.2 * (COUNT as f64).powf(-0.2);
    let [of_a, of_b] = [0.2_f64, 0.1].map(|deviation| deviation.hypot(window));
    let expected = |p: f64, q: f64| (q / p).ln() + (p * p + 0.2 * 0.2) / (2.0 * q * q) - 0.5;
    near(divergence(&a, &b).unwrap(), expected(of_b, of_a), 0.03);
    // The tails of an estimate from a sample fall faster than those of a normal density.
    near(divergence(&b, &a).unwrap(), expected(of_a, of_b), 0.06);
    assert_eq!(divergence(&a, &[trace(0, 1_000, &[])]), None);
    let c = compared(&a, &b);
    near(c.kl_nats.unwrap(), expected(of_b, of_a), 0.03);
    near(c.kl_reverse_nats.unwrap(), expected(of_a, of_b), 0.06);
}

/// Two equal sides, of which one figure of b is twice that of a.
#[test]
fn each_limit_is_on_its_own_figure() {
    let side = [trace(0, 1_000_000_000, &[10_000, 20_000])];
    let equal = compared(&side, &side);
    let double = |change: &mut Change| *change = Change::new(change.a, 2.0 * change.a, 0.0..=0.0);
    let names = ["", "rate=", "p50=", "p90=", "p99=", "p99.9=", "max="];
    for (at, &name) in names.iter().enumerate() {
        let mut changed = equal.clone();
        let c = &mut changed.changes;
        match at {
            0 => double(&mut c.overhead_percent),
            1 => double(&mut c.rate_per_s),
            2 => double(c.p50_ns.as_mut().unwrap()),
            3 => double(c.p90_ns.as_mut().unwrap()),
            4 => double(c.p99_ns.as_mut().unwrap()),
            5 => double(c.p99_9_ns.as_mut().unwrap()),
            _ => double(c.max_ns.as_mut().unwrap()),
        }
        let broken = |name: &str, most: &str| {
            format!("{name}{most}").parse::<Limit>().unwrap().check(&changed).map(|why| why.to_string())
        };
        assert!(broken(name, "99%").unwrap().ends_with(" is up by 100.0 %"), "{name}");
        assert_eq!(broken(name, "100%"), None, "{name} is no more than twice");
        for other in names.iter().filter(|other| **other != name) {
            assert_eq!(broken(other, "0%"), None, "{other} where {name} changed");
        }
    }
}

#[test]
fn a_limit_holds_up_to_its_value() {
    let side = [trace(0, 1_000_000_000, &[10_000, 20_000])];
    let mut c = compared(&side, &side);
    (c.kl_nats, c.wasserstein_ns) = (Some(0.5), Some(5_000.0));
    c.changes.overhead_percent = Change::new(1.0, 1.25, 0.0..=0.0);
    let broken = |limit: &str| limit.parse::<Limit>().unwrap().check(&c).map(|why| why.to_string());
    for holds in ["kl=0.5", "wasserstein=5us", "overhead=0.25", "25%"] {
        assert_eq!(broken(holds), None);
    }
    assert!(broken("kl=0.49").unwrap().contains("0.5000 nats"));
    assert!(broken("wasserstein=4999ns").unwrap().contains("5us apart"));
    assert!(broken("overhead=0.24").unwrap().contains("from 1.0000 % to 1.2500 %, by 0.2500 points"));
    assert!(broken("24%").unwrap().contains("noise overhead is up by 25.0 %"));
}
