//! Periods are found in the typical mixture of real machines: a tick, a jittery task and a storm of short detours.

use quell_analysis::periods::{Period, periods};
use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_testing::cpu_seconds;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const MS: f64 = 1e6;
const SECOND: f64 = 1e9;

/// Detours under construction, in nanoseconds.
struct Mixture {
    rng: Pcg64Mcg,
    length: f64,
    detours: Vec<(f64, f64)>,
}

impl Mixture {
    fn new(seed: u64, length: f64) -> Self {
        Self { rng: Pcg64Mcg::seed_from_u64(seed), length, detours: Vec::new() }
    }

    /// Adds a Poisson process with durations that are uniform on the log axis.
    fn storm(mut self, per_s: f64, low_ns: f64, high_ns: f64) -> Self {
        let mut t = 0.0;
        loop {
            t -= (1.0 - self.rng.random::<f64>()).ln() * SECOND / per_s;
            if t >= self.length {
                return self;
            }
            let duration = low_ns * (high_ns / low_ns).powf(self.rng.random::<f64>());
            self.detours.push((t, duration));
        }
    }

    /// Adds a train: each wake-up is up to `jitter` late; a share `misses` of them does not happen; the period grows by the share
    /// `drift` until the end.
    fn train(mut self, period: f64, jitter: f64, misses: f64, drift: f64, duration: (f64, f64)) -> Self {
        let mut due = period * self.rng.random::<f64>();
        while due < self.length {
            if self.rng.random::<f64>() >= misses {
                let late = jitter * self.rng.random::<f64>();
                let duration = duration.0 + (duration.1 - duration.0) * self.rng.random::<f64>();
                self.detours.push((due + late, duration));
            }
            due += period * (1.0 + drift * due / self.length);
        }
        self
    }

    /// Adds a task that sleeps for `period` after each run, so its lateness accumulates.
    fn sleeper(mut self, period: f64, jitter: f64, duration: f64) -> Self {
        let mut due = 0.0;
        while due < self.length {
            self.detours.push((due, duration));
            due += period + jitter * (self.rng.random::<f64>() - 0.5);
        }
        self
    }

    /// Adds bursts of detours at random times.
    fn bursts(mut self, per_s: f64, detours: usize) -> Self {
        let mut t = 0.0;
        loop {
            t -= (1.0 - self.rng.random::<f64>()).ln() * SECOND / per_s;
            if t >= self.length {
                return self;
            }
            for i in 0..detours {
                let gap = 3e4 * i as f64 * (0.5 + self.rng.random::<f64>());
                self.detours.push((t + gap, 2_000.0 + 500.0 * self.rng.random::<f64>()));
            }
        }
    }

    /// The trace; a detour that begins within another is part of it.
    fn trace(mut self) -> Trace {
        self.detours.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut detours: Vec<Detour> = Vec::new();
        for (start, duration) in self.detours.into_iter().filter(|d| d.0 < self.length) {
            let (start, duration) = (Nanos::from_nanos(start as u64), Nanos::from_nanos(duration as u64));
            if detours.last().is_none_or(|last| start >= last.end()) {
                detours.push(Detour { start, duration, own: false });
            }
        }
        let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(self.length as u64) };
        Trace { cpu: Cpu(0), span, detours }
    }
}

fn near(found: &[Period], period: f64, tolerance: f64) -> Option<&Period> {
    found.iter().find(|p| (p.period_ns / period - 1.0).abs() <= tolerance)
}

#[track_caller]
fn expect(found: &[Period], period: f64, tolerance: f64) -> &Period {
    near(found, period, tolerance).unwrap_or_else(|| panic!("no period of {} ms in {found:#?}", period / MS))
}

#[test]
fn a_jittery_task_and_a_tick_stand_out_of_a_storm() {
    for (seed, storm) in [(1, 1_000.0), (2, 5_000.0), (3, 15_000.0), (4, 30_000.0)] {
        for jitter in [50e3, 300e3] {
            let trace = Mixture::new(seed, 10.0 * SECOND)
                .storm(storm, 150.0, 1_200.0)
                .storm(20.0, 1_000.0, 1_000_000.0)
                .train(4.0 * MS, 3_000.0, 0.0, 0.0, (2_000.0, 6_000.0))
                .train(10.0 * MS, jitter, 0.03, 0.0, (200_000.0, 260_000.0))
                .trace();
            let found = periods(&trace);
            let task = expect(&found, 10.0 * MS, 0.001);
            assert!(
                task.events.abs_diff(970) < 60 && task.median_duration_ns.abs_diff(230_000) < 20_000,
                "{task:?}"
            );
            expect(&found, 4.0 * MS, 0.001);
            assert!(found.len() <= 3, "{found:#?}");
            assert_eq!(found[0].period_ns, task.period_ns);
        }
    }
}

#[test]
fn a_task_that_the_tick_cuts_in_two_keeps_its_period() {
    let mut mixture = Mixture::new(5, 10.0 * SECOND).storm(3_000.0, 150.0, 1_000.0);
    for i in 0..1_000 {
        let start = 10.0 * MS * f64::from(i) + 200e3 * mixture.rng.random::<f64>();
        let run = 200e3 + 60e3 * mixture.rng.random::<f64>();
        // The tick comes every 4 ms, which is in the middle of every second run.
        if i % 2 == 0 {
            let cut = 10.0 * MS * f64::from(i) + 300e3 - start;
            mixture.detours.push((start, cut.min(run)));
            mixture.detours.push((start + cut.min(run) + 1_000.0, run - cut.min(run)));
        } else {
            mixture.detours.push((start, run));
        }
    }
    let found = periods(&mixture.train(4.0 * MS, 2_000.0, 0.0, 0.0, (3_000.0, 5_000.0)).trace());
    expect(&found, 10.0 * MS, 0.01);
    expect(&found, 4.0 * MS, 0.01);
}

#[test]
fn periods_are_precise() {
    for period in [0.1, 0.37, 1.0, 3.333_3, 16.7, 101.3, 1_000.0] {
        let trace = Mixture::new(6, 10.0 * SECOND)
            .storm(300.0, 500.0, if period < 500.0 { 20_000.0 } else { 9_000.0 })
            .train(period * MS, 2_000.0f64.min(period * 5e4), 0.1, 0.0, (11_000.0, 12_000.0))
            .trace();
        expect(&periods(&trace), period * MS, 0.000_5);
    }
}

#[test]
fn drift_and_adding_lateness_are_followed() {
    let drifting = Mixture::new(7, 20.0 * SECOND).storm(500.0, 200.0, 2_000.0).train(
        5.0 * MS,
        20_000.0,
        0.05,
        0.01,
        (10_000.0, 20_000.0),
    );
    expect(&periods(&drifting.trace()), 5.0 * MS * 1.005, 0.005);
    for seconds in [10.0, 300.0] {
        let sleeper =
            Mixture::new(8, seconds * SECOND).storm(500.0, 200.0, 2_000.0).sleeper(10.2 * MS, 300e3, 200e3);
        expect(&periods(&sleeper.trace()), 10.2 * MS, 0.01);
    }
}

#[test]
fn chance_and_bursts_have_no_period() {
    let mut reports = 0;
    for seed in 0..60 {
        let rate = [3.0, 30.0, 300.0, 3_000.0][seed as usize % 4];
        let trace = Mixture::new(100 + seed, 10.0 * SECOND).storm(rate, 150.0, 3e6).trace();
        reports += usize::from(!periods(&trace).is_empty());
    }
    assert!(reports <= 2, "{reports} of 60");
    let mut reports = 0;
    for seed in 0..40 {
        let trace = Mixture::new(200 + seed, 10.0 * SECOND).bursts(4.0 * (seed + 1) as f64, 20).trace();
        reports += usize::from(!periods(&trace).is_empty());
    }
    assert!(reports <= 2, "{reports} of 40");
}

#[test]
fn many_detours_take_little_time() {
    let spent = [360.0, 3_600.0].map(|seconds| {
        let trace = Mixture::new(9, seconds * SECOND)
            .storm(20.0, 150.0, 1_000.0)
            .train(4.0 * MS, 3_000.0, 0.0, 0.0, (2_000.0, 4_000.0))
            .train(1_000.0 * MS, 100e3, 0.0, 0.0, (2.0 * MS, 3.0 * MS))
            .trace();
        assert!(trace.detours.len() as f64 > 250.0 * seconds);
        let before = cpu_seconds();
        let found = periods(&trace);
        expect(&found, 4.0 * MS, 0.000_1);
        expect(&found, 1_000.0 * MS, 0.000_1);
        cpu_seconds() - before
    });
    // Ten times the detours need ten times the work, and a logarithm. Comparing all pairs would need a hundred times.
    assert!(spent[1] < 30.0 * spent[0], "{spent:?} s of CPU time");
}

#[test]
fn hostile_traces_end() {
    let detour = |start, duration| Detour {
        start: Nanos::from_nanos(start),
        duration: Nanos::from_nanos(duration),
        own: false,
    };
    let trace = |end, detours| Trace {
        cpu: Cpu(0),
        span: Span { start: Nanos::ZERO, end: Nanos::from_nanos(end) },
        detours,
    };
    let all_at_once = vec![detour(5, 0); 1_000];
    let backwards = (0..1_000).rev().map(|i| detour(i * 1_000_000, u64::MAX)).collect();
    let outside = (0..100).map(|i| detour(u64::MAX - i, i)).collect();
    for end in [0, 1, 1_000_000_000, u64::MAX] {
        for detours in [
            Vec::new(),
            all_at_once.clone(),
            vec![detour(0, u64::MAX)],
            Vec::clone(&outside),
            Vec::clone(&backwards),
        ] {
            for period in periods(&trace(end, detours)) {
                assert!(period.period_ns.is_finite() && period.strength <= 1.0);
            }
        }
    }
}
