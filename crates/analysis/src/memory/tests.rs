#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::path::PathBuf;

use quell_recording::{Intervals, Manifest, MemoryName, Nanos, Quantum, SourcesFacts, State};

use super::*;
use crate::attribution::fixture::tick;
use crate::fleet::hosts::{hosts, one_host};

const WINDOWS: u64 = 300;
/// Quanta of each level in a window.
const QUANTA: u64 = 50;
/// Undisturbed loads, in ns; the number of loads in a quantum.
const LEVELS: [(MemoryName, f64, u32); 3] =
    [(MemoryName::Core, 2.0, 8_192), (MemoryName::Shared, 20.0, 512), (MemoryName::Main, 100.0, 512)];

/// A recording of one CPU. `slower` says by what factor loads from a level are slower in a window; each varies by 10 % around that.
fn recording(slower: impl Fn(usize, u64) -> f64, intervals: Vec<Interval>) -> Recording {
    correlated(0.0, slower, intervals)
}

/// One in which neighbouring loads are alike, with this correlation.
fn correlated(alike: f64, slower: impl Fn(usize, u64) -> f64, intervals: Vec<Interval>) -> Recording {
    let draws = Draws::new(7, &[]);
    let mut varies = [0.0; LEVELS.len()];
    let ns = |value: f64| Nanos::from_nanos(value as u64);
    let mut quanta = Vec::new();
    for window in 0..WINDOWS {
        for turn in 0..QUANTA {
            let mut start = Nanos::from_nanos(window * WINDOW_NS + turn * WINDOW_NS / QUANTA);
            for (level, (_, load, loads)) in LEVELS.iter().enumerate() {
                let drawn = 0.1 * draws.signed((window * QUANTA + turn) * 3 + level as u64);
                varies[level] = alike * varies[level] + (1.0 - alike * alike).sqrt() * drawn;
                let duration = ns(load * f64::from(*loads) * slower(level, window) * (1.0 + varies[level]));
                quanta.push(Quantum { start, duration, work: level as u64 });
                start += duration;
            }
        }
    }
    let mut manifest = Manifest::new(Method::Memory, State::Complete);
    manifest.sources = Some(SourcesFacts::default());
    let level = |(name, _, loads): (MemoryName, f64, u32)| MemoryLevel { name, bytes: 1, loads };
    manifest.memory = LEVELS.map(level).into();
    Recording {
        path: PathBuf::from("made.quell"),
        manifest,
        traces: Vec::new(),
        quanta: vec![Quanta { cpu: Cpu(1), quanta }],
        intervals: vec![Intervals { cpu: Cpu(1), intervals }],
        threads: Vec::new(),
        histograms: Vec::new(),
    }
}

fn is_near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance
}

#[test]
fn what_varies_by_chance_is_no_ones_use_of_memory() {
    for row in memory(&recording(|_, _| 1.0, Vec::new())) {
        assert!(row.memory_percent < 0.1 && row.core_percent < 0.1 && row.chance_percent < 0.1, "{row:?}");
    }
}

/// Loads that stay alike for some ms, eight quanta here, are no window's, and what chance gives is known.
#[test]
fn what_varies_slowly_by_chance_is_no_ones_use_of_memory() {
    for row in memory(&correlated(0.78, |_, _| 1.0, Vec::new())) {
        assert!(row.memory_percent < 0.6 && row.core_percent < 0.6, "{row:?}");
    }
}

/// A fifth slower in half of the windows: a tenth on the whole.
#[test]
fn slower_windows_are_others_use_of_memory() {
    let half = |level: usize, window: u64| if level == 2 && window % 2 == 1 { 1.2 } else { 1.0 };
    let rows = memory(&recording(half, Vec::new()));
    let of = |at: usize| (&rows[at].level, rows[at].memory_percent, rows[at].core_percent);
    assert!(is_near(of(2).1, 10.0, 0.7), "{rows:?}");
    assert!(rows.iter().take(2).all(|row| row.memory_percent < 0.1), "{rows:?}");
    assert!(rows.iter().all(|row| row.core_percent < 0.1 && row.chance_percent < 0.3), "{rows:?}");
    assert!(is_near(rows[2].quiet_ns, 100.0, 1.5), "{rows:?}");
}

/// A slower clock slows all levels alike.
#[test]
fn what_slows_the_core_is_not_memory() {
    let half = |_: usize, window: u64| if window % 2 == 1 { 1.2 } else { 1.0 };
    for row in memory(&recording(half, Vec::new())) {
        assert!(is_near(row.core_percent, 10.0, 1.0) && row.memory_percent < 0.3, "{row:?}");
    }
    // Memory that does not depend on the core's clock.
    let core = |level: usize, window: u64| if level == 0 { half(level, window) } else { 1.0 };
    let rows = memory(&recording(core, Vec::new()));
    assert!(rows[2].core_percent < 0.7 && rows[2].memory_percent < 0.1, "{rows:?}");
}

/// Ticks of 10 us in each fifth quantum of main memory, which takes some 51 us.
#[test]
fn what_the_kernel_took_is_the_kernels() {
    let plain = recording(|_, _| 1.0, Vec::new());
    let main = plain.quanta[0].quanta.iter().filter(|one| one.work == 2).step_by(5);
    let ticks: Vec<Interval> = main.map(|one| tick(one.start.as_nanos() + 5_000, 10_000)).collect();
    let mut disturbed = recording(|_, _| 1.0, ticks.clone());
    for one in &mut disturbed.quanta[0].quanta {
        let has = |tick: &&Interval| tick.start > one.start && tick.start < one.start + one.duration;
        if ticks.iter().any(|tick| has(&tick)) {
            one.duration += Nanos::from_nanos(10_000);
        }
    }
    let row = memory(&disturbed).remove(2);
    let expected = 100.0 * 10_000.0 / 5.0 / (512.0 * 100.0);
    assert!(is_near(row.kernel_percent.unwrap(), expected, 0.3) && row.memory_percent < 0.1, "{row:?}");
}

/// A neighbour that uses memory makes the core's clock fall, too.
#[test]
fn what_slows_both_is_the_cores_as_far_as_the_core_is_slower() {
    let both = |level: usize, window: u64| match (level, window % 2) {
        (_, 0) => 1.0,
        (2, _) => 1.3,
        _ => 1.1,
    };
    let rows = memory(&recording(both, Vec::new()));
    assert!(
        is_near(rows[2].core_percent, 5.0, 0.7) && is_near(rows[2].memory_percent, 10.0, 0.7),
        "{rows:?}"
    );
}

/// As on a kernel with a thousand ticks a second, while memory is slow.
#[test]
fn a_tick_in_each_quantum_hides_no_ones_use_of_memory() {
    let half = |level: usize, window: u64| if level == 2 && window % 2 == 1 { 1.2 } else { 1.0 };
    let plain = recording(half, Vec::new());
    let main = plain.quanta[0].quanta.iter().filter(|one| one.work == 2);
    let ticks = main.map(|one| tick(one.start.as_nanos() + 5_000, 2_000)).collect();
    let mut disturbed = recording(half, ticks);
    for one in disturbed.quanta[0].quanta.iter_mut().filter(|one| one.work == 2) {
        one.duration += Nanos::from_nanos(2_000);
    }
    let row = memory(&disturbed).remove(2);
    let expected = 100.0 * 2_000.0 / (512.0 * 100.0);
    assert!(is_near(row.memory_percent, 10.0, 1.0), "{row:?}");
    assert!(is_near(row.kernel_percent.unwrap(), expected, 0.2), "{row:?}");
}

/// Where a window holds four quanta of each level, as where loads take two microseconds.
#[test]
fn few_quanta_in_a_window_blame_no_one() {
    let mut few = recording(|_, _| 1.0, Vec::new());
    let step = QUANTA / 4;
    let is_kept = |at: usize| (at as u64 / 3).is_multiple_of(step) && (at as u64 / 3) % QUANTA < 4 * step;
    let mut at = 0..;
    few.quanta[0].quanta.retain(|_| at.next().is_some_and(is_kept));
    let rows = memory(&few);
    assert_eq!((rows.len(), rows[0].quanta), (3, 4 * WINDOWS));
    assert!(rows.iter().all(|row| row.memory_percent < 0.5), "{rows:?}");
}

/// As the probe does: each quantum follows the one before, so windows hold fewer where memory is slow.
fn in_a_row(slower: impl Fn(u64) -> f64) -> Recording {
    const LOADS: [u32; 3] = [16_384, 2_048, 2_048];
    let draws = Draws::new(9, &[]);
    let (mut quanta, mut at) = (Vec::new(), 0);
    while at < WINDOWS * WINDOW_NS {
        for (level, ((_, load, _), loads)) in LEVELS.iter().zip(LOADS).enumerate() {
            let slow = if level == 2 { slower(at / WINDOW_NS) } else { 1.0 };
            let varies = 1.0 + 0.1 * draws.signed(quanta.len() as u64);
            let duration = (load * f64::from(loads) * slow * varies) as u64;
            let [start, duration] = [at, duration].map(Nanos::from_nanos);
            quanta.push(Quantum { start, duration, work: level as u64 });
            at += duration.as_nanos();
        }
    }
    let mut made = recording(|_, _| 1.0, Vec::new());
    made.manifest.memory.iter_mut().zip(LOADS).for_each(|(level, loads)| level.loads = loads);
    made.quanta[0].quanta = quanta;
    made
}

/// Half of the time, for a third of a second each: time of all loads that is above the quiet is then others' use of memory.
#[test]
fn however_slow_memory_is_it_is_others_use_of_it() {
    for factor in [1.5, 4.0, 12.0] {
        let made = in_a_row(|window| if window / 16 % 2 == 1 { factor } else { 1.0 });
        let row = memory(&made).remove(2);
        assert!(
            is_near(row.memory_percent, row.slower_percent, 0.06 * row.slower_percent),
            "{factor} {row:?}"
        );
        assert!(row.slower_percent > 5.0 && row.core_percent < 0.3, "{factor} {row:?}");
    }
}

#[test]
fn hosts_are_compared_by_others_use_of_memory() {
    let half = |level: usize, window: u64| if level == 2 && window % 2 == 1 { 1.2 } else { 1.0 };
    let all = [recording(|_, _| 1.0, Vec::new()), recording(half, Vec::new())];
    let all = all.iter().map(one_host).collect();
    let rows = hosts("runs".into(), all, Vec::new()).hosts;
    let noise = [&rows[0], &rows[1]].map(|row| row.overhead_percent.unwrap());
    // A tenth of the quiet time, as a part of all of it.
    assert!(is_near(noise[0], 100.0 * 0.1 / 1.1, 0.7) && noise[1] < 0.1, "{noise:?}");
}

#[test]
fn levels_may_come_in_any_order() {
    let half = |_: usize, window: u64| if window % 2 == 1 { 1.2 } else { 1.0 };
    let mut turned = recording(half, Vec::new());
    turned.manifest.memory.reverse();
    turned.quanta[0].quanta.iter_mut().for_each(|one| one.work = 2 - one.work);
    for row in memory(&turned) {
        assert!(is_near(row.core_percent, 10.0, 1.0) && row.memory_percent < 0.3, "{row:?}");
    }
    turned.manifest.memory.remove(2);
    assert_eq!(memory(&turned), [], "without the core nothing is known");
}

#[test]
fn too_short_a_recording_has_no_figures() {
    let mut short = recording(|_, _| 1.0, Vec::new());
    short.quanta[0].quanta.truncate(FEWEST_WINDOWS * 3 * QUANTA as usize / 2);
    assert_eq!(memory(&short), []);
}

#[test]
fn damaged_tables_have_figures_or_none() {
    let mut odd = recording(|_, _| 1.0, Vec::new());
    odd.quanta[0].quanta[1].work = u64::MAX;
    odd.quanta[0].quanta[2].duration = Nanos::MAX;
    odd.quanta[0].quanta[3].duration = Nanos::ZERO;
    odd.quanta[0].quanta.reverse();
    odd.manifest.memory[0].loads = 0;
    let rows = memory(&odd);
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.quiet_ns.is_finite() && row.slower_percent.is_finite()), "{rows:?}");
    odd.manifest.memory.clear();
    assert_eq!(memory(&odd), []);
    odd.manifest.method = Method::Fwq;
    assert_eq!(memory(&odd), []);
}
