//! Effects that Beckman et al. (IEEE Cluster 2006) and Ferreira et al. (SC 2008) measured on machines, at a small scale: see
//! `repro/effects.md`.

use std::sync::Arc;

use quell_recording::{Cpu, Nanos};
use quell_sim::loggops::{Network, Noise, Place, RankClocks, Rules, Run, run};
use quell_sim::pattern::{Params, by_name};
use quell_sim::{Draws, Model, ProgressClock};

const RANKS: u32 = 512;
const MS: u64 = 1_000_000;

/// 2.5 % noise: one detour of a fortieth of the period in each period, at the same place in the trace for every seed.
fn model(period_us: u64) -> ProgressClock {
    let duration_ns = period_us * 1000 / 40;
    let text = format!(
        "[[component]]\nperiodic = {{ period = \"{period_us}us\" }}\nduration = {{ constant = \"{duration_ns}ns\" }}"
    );
    let trace = Model::from_toml(&text).unwrap().trace(Cpu(0), Nanos::from_secs(1), 1).unwrap();
    ProgressClock::new(&trace).unwrap()
}

/// Slowdown in percent of iterations of 1 ms of work and `inner`.
fn slowdown(inner: &str, period_us: u64, together: bool) -> f64 {
    let params = Params {
        ranks: RANKS,
        iterations: 100,
        work_ns: MS,
        inner: Some(inner.to_owned()),
        ..Params::default()
    };
    let program = by_name("bsp", &params).unwrap();
    let clock = Arc::new(model(period_us));
    let draws = Draws::new(7, &[]);
    let place =
        |rank| Place { clock: 0, offset: draws.below(if together { 0 } else { rank }, clock.period()) };
    let places = (0..u64::from(RANKS)).map(place).collect();
    let noise = Noise::Clocks(RankClocks::new(vec![Arc::clone(&clock)], places).unwrap());
    let end = |noise: &Noise| {
        let options = Run {
            net: Network::default(),
            ranges: &[],
            levels: &[],
            rules: Rules::Physical,
            noise,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        run(&program, &options).unwrap().last().1 as f64
    };
    100.0 * (end(&noise) / end(&Noise::None) - 1.0)
}

const RARE: u64 = 100_000;
const FREQUENT: u64 = 1000;

#[test]
fn rare_long_detours_cost_more_than_frequent_short_ones() {
    let [rare, medium, frequent] =
        [RARE, 10_000, FREQUENT].map(|period| slowdown("allreduce", period, false));
    assert!(rare > 4.0 * medium && medium > 4.0 * frequent, "{rare} {medium} {frequent}");
    assert!(rare > 200.0 && frequent < 15.0, "{rare} {frequent}");
}

#[test]
fn noise_that_strikes_all_at_once_costs_little_more_than_itself() {
    for period in [RARE, FREQUENT] {
        let together = slowdown("allreduce", period, true);
        assert!((1.0..5.0).contains(&together), "{period}: {together}");
    }
}

#[test]
fn a_broadcast_absorbs_what_a_barrier_does_not() {
    let [barrier, bcast] = ["barrier", "bcast"].map(|inner| slowdown(inner, RARE, false));
    assert!(barrier > 8.0 * bcast, "{barrier} {bcast}");
}
