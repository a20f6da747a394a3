#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use quell_recording::{Cpu, Detour, Interval, LoopFacts, Source, Trace};
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Exp, LogNormal};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::attribution::fixture::{detour, interval, recording, trace};

const SPAN_NS: u64 = 10_000_000_000;

/// One kind of noise of a made node.
#[derive(Clone)]
struct Noise {
    source: Source,
    cpus: Vec<u32>,
    /// Mean time between two, and whether it is the same each time.
    every_ns: f64,
    periodic: bool,
    /// Number of detours that come together, a millisecond apart.
    burst: u32,
    median_ns: f64,
    /// Deviation of the logarithm of lengths.
    spread: f64,
}

fn noise(source: &str, cpus: &[u32], every_ns: f64, median_ns: f64) -> Noise {
    let source: Source = source.parse().unwrap();
    let periodic = source == Source::Tick;
    Noise { source, cpus: cpus.to_vec(), every_ns, periodic, burst: 1, median_ns, spread: 0.3 }
}

/// A node with ticks, workers, an interrupt, a daemon that comes in bursts, and rare tasks.
fn node() -> Vec<Noise> {
    vec![
        noise("tick", &[0, 1], 4e6, 2_500.0),
        noise("task:kworker/0:1", &[0, 1], 2e8, 12_000.0),
        noise("irq:nic", &[0], 1e7, 6_000.0),
        noise("softirq:RCU", &[0, 1], 3e7, 1_500.0),
        Noise { burst: 8, ..noise("task:agent", &[1], 2e9, 60_000.0) },
        Noise { spread: 1.5, ..noise("task:sshd", &[0, 1], 4e9, 200_000.0) },
        Noise { spread: 1.0, ..noise("task:cron", &[0], 9e9, 2_000_000.0) },
    ]
}

fn made(noises: &[Noise], seed: u64) -> Recording {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let sides = [0, 1].map(|cpu| {
        let mut intervals: Vec<Interval> = Vec::new();
        for noise in noises.iter().filter(|noise| noise.cpus.contains(&cpu)) {
            let (gaps, lengths) =
                (Exp::new(1.0).unwrap(), LogNormal::new(noise.median_ns.ln(), noise.spread).unwrap());
            let mut at = noise.every_ns * random.random::<f64>();
            while at < SPAN_NS as f64 - 1e8 {
                for number in 0..noise.burst {
                    let start = at as u64 + u64::from(number) * 1_000_000;
                    intervals.push(interval(noise.source.clone(), start, lengths.sample(&mut random) as u64));
                }
                at += noise.every_ns * if noise.periodic { 1.0 } else { gaps.sample(&mut random) };
            }
        }
        intervals.sort_by_key(|one| one.start);
        // Two at a time would be one detour; the later ones are left out.
        let mut end = 0;
        intervals.retain(|one| {
            let keeps = one.start.as_nanos() > end + 1_000;
            end = if keeps { one.end().as_nanos() } else { end };
            keeps
        });
        let detours: Vec<Detour> =
            intervals.iter().map(|one| detour(one.start.as_nanos(), one.duration.as_nanos())).collect();
        (Trace { cpu: Cpu(cpu), ..trace(SPAN_NS, detours) }, intervals)
    });
    let (traces, intervals) = sides.into_iter().unzip();
    recording(traces, intervals)
}

/// What changed from the node to one with this noise, as words.
fn changed(after: &[Noise], seed: u64) -> Vec<String> {
    let found = by_source(&made(&node(), seed), &made(after, seed + 1_000_000));
    assert!(found.sources_known);
    found.changes.iter().map(|change| format!("{} {}", change.source, change.verdict.word())).collect()
}

fn with(change: impl Fn(&mut Vec<Noise>)) -> Vec<Noise> {
    let mut noises = node();
    change(&mut noises);
    noises
}

#[test]
fn each_change_is_named_and_nothing_else() {
    let cases = [
        (
            "task:crawld new",
            with(|all| all.push(Noise { periodic: true, ..noise("task:crawld", &[1], 2e9, 1e7) })),
        ),
        ("tick more", with(|all| all[0].every_ns = 1e6)),
        ("tick fewer", with(|all| all[0].every_ns = 1e7)),
        ("tick longer", with(|all| all[0].median_ns = 9_000.0)),
        ("irq:nic moved", with(|all| all[2].cpus = vec![1])),
        ("steal new", with(|all| all.push(noise("irq:steal-like", &[0, 1], 5e7, 400_000.0)))),
        ("irq:nic gone", with(|all| drop(all.remove(2)))),
    ];
    for (expected, after) in cases {
        let expected = if expected == "steal new" { "irq:steal-like new" } else { expected };
        for seed in 0..5 {
            assert_eq!(changed(&after, seed), [expected], "seed {seed}");
        }
    }
}

/// The limit is 1 %; 200 pairs, of which one false one would be half of it.
#[test]
fn equal_nodes_differ_in_nothing() {
    let wrong: Vec<_> =
        (0..200).map(|seed| changed(&node(), 7_000 + seed)).filter(|found| !found.is_empty()).collect();
    assert!(wrong.len() <= 2, "{wrong:?}");
}

#[test]
fn costs_are_those_of_the_longest_of_all_ranks() {
    // One detour of 1 ms in 10 s of each of two CPUs: of 4,096 phases of 1 ms, 1 − exp(−4096 / 10000 / 2 · 2) meet one.
    let one = |cpu| (Trace { cpu: Cpu(cpu), ..trace(SPAN_NS, vec![detour(1_000, 1_000_000)]) }, vec![]);
    let (traces, intervals) = [one(0), one(1)].into_iter().unzip();
    let quiet = {
        let (traces, intervals) = [0, 1]
            .map(|cpu| (Trace { cpu: Cpu(cpu), ..trace(SPAN_NS, Vec::new()) }, vec![]))
            .into_iter()
            .unzip();
        recording(traces, intervals)
    };
    let observed = Observed::new(&recording(traces, intervals), false);
    let cost = cost_percent(&observed.sources["all"], observed.observed_ns());
    assert!((cost - 100.0 * (1.0 - (-0.4096_f64).exp())).abs() < 1e-9, "{cost}");
    assert!(by_source(&quiet, &quiet).changes.is_empty());
}

#[test]
fn a_slow_cpu_is_one_whose_loop_slowed_down() {
    let with_loop = |p50_ns: [f64; 2]| {
        let mut made = made(&node(), 3);
        for (facts, p50_ns) in made.manifest.cpus.iter_mut().zip(p50_ns) {
            let others = [p50_ns; 5];
            let [mean_ns, min_ns, p99_ns, p99_9_ns, p50_ns] = others;
            facts.probe_loop =
                Some(LoopFacts { iterations: 1_000, mean_ns, min_ns, p50_ns, p99_ns, p99_9_ns });
        }
        made
    };
    let found = by_source(&with_loop([24.0, 24.0]), &with_loop([24.5, 41.0]));
    assert_eq!(found.slow_cpus, [SlowCpu { cpu: 1, a_loop_ns: 24.0, b_loop_ns: 41.0 }]);
    assert!(found.changes.is_empty());
}

/// A daemon that comes each second is periodic on the machine, and on each of its CPUs it is not.
#[test]
fn a_period_of_the_machine_does_not_move() {
    const CPUS: u32 = 16;
    let made = |seed: u64| {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut sides = vec![Vec::new(); CPUS as usize];
        for second in 0..60u64 {
            sides[random.random_range(0..CPUS as usize)].push(second * 1_000_000_000 + 500_000_000);
        }
        let side = |(cpu, starts): (u32, Vec<u64>)| {
            let detours = starts.iter().map(|start| detour(*start, 3_000_000)).collect();
            let of = |start: &u64| interval("task:agent".parse().unwrap(), *start, 3_000_000);
            (Trace { cpu: Cpu(cpu), ..trace(60_000_000_000, detours) }, starts.iter().map(of).collect())
        };
        let (traces, intervals) = (0..).zip(sides).map(side).unzip();
        recording(traces, intervals)
    };
    let moved = (0..200).filter(|seed| !by_source(&made(*seed), &made(1_000 + seed)).changes.is_empty());
    assert!(moved.count() <= 2);
}
