//! Rounds compared with the window engine.

use std::sync::Arc;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};

use super::*;
use crate::clock::ProgressClock;
use crate::draws::Draws;
use crate::loggops::watch::culprits_by_events;
use crate::loggops::{
    Level, NO_PROGRESS, Network, PerByte, Place, Progress, RankClocks, SizeRange, run_by_events,
};
use crate::pattern::{AnyPattern, LIST, Params, Steps, by_name};

/// Number of random programs: 400, or what the environment says where the test is built. 5,000 take a minute.
fn programs() -> u64 {
    option_env!("QUELL_TEST_SCHEDULES").map_or(400, |number| number.parse().unwrap())
}

/// A random stream of small numbers.
struct Dice(Draws, u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.1 += 1;
        self.0.below(self.1, bound)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A program, its network and its noise.
#[derive(Debug)]
struct Case {
    name: &'static str,
    params: Params,
    program: Steps<AnyPattern>,
    net: Network,
    ranges: Vec<SizeRange>,
    levels: Vec<Level>,
    noise: Noise,
}

fn network(dice: &mut Dice, scale: u64) -> Network {
    let time = |dice: &mut Dice| if dice.below(6) == 0 { 0 } else { dice.below(scale + 1) };
    let per_byte =
        |dice: &mut Dice| PerByte::from_femtoseconds(dice.one_of(&[0, 40_000, 1_300_000, 6_000_000]));
    Network {
        latency: time(dice),
        overhead: time(dice),
        gap: time(dice),
        gap_per_byte: per_byte(dice),
        overhead_per_byte: if dice.below(4) == 0 { per_byte(dice) } else { PerByte::default() },
        eager_limit: dice.one_of(&[0, 60, 65_535, 65_535, 65_535]),
    }
}

fn clock(dice: &mut Dice, scale: u64) -> Arc<ProgressClock> {
    let (mut detours, mut at) = (Vec::new(), dice.below(scale));
    for _ in 0..dice.below(60) {
        let duration = 1 + dice.below(2 * scale);
        let [start, length] = [at, duration].map(Nanos::from_nanos);
        detours.push(Detour { start, duration: length, own: false });
        at += duration + dice.below(6 * scale);
    }
    let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(at + 1 + dice.below(scale)) };
    Arc::new(ProgressClock::new(&Trace { cpu: Cpu(0), span, detours }).unwrap())
}

fn noise(dice: &mut Dice, ranks: u32, scale: u64) -> Noise {
    if dice.below(4) == 0 {
        return Noise::None;
    }
    let clocks: Vec<_> = (0..1 + dice.below(3)).map(|_| clock(dice, scale)).collect();
    let together = dice.below(4) == 0;
    let place = |_| {
        let clock = if together { 0 } else { dice.below(clocks.len() as u64) as u32 };
        let period = clocks[clock as usize].period();
        Place { clock, offset: if together { period / 3 } else { dice.below(period) } }
    };
    let places = (0..ranks).map(place).collect();
    Noise::Clocks(RankClocks::new(clocks, places).unwrap())
}

/// No levels, or networks of their own among some ranks.
fn levels(dice: &mut Dice, scale: u64) -> Vec<Level> {
    let number = if dice.below(4) == 0 { 1 + dice.below(2) } else { 0 };
    let mut ranks = 1;
    let mut next = |_| {
        ranks *= dice.one_of(&[2, 2, 4, 8, 3]);
        let near = network(dice, scale);
        let network = Network { eager_limit: near.eager_limit, ..network(dice, scale) };
        let range = SizeRange { from_bytes: 5, to_bytes: 20, network };
        Level { ranks, network: near, ranges: if dice.below(5) == 0 { vec![range] } else { Vec::new() } }
    };
    (0..number).map(&mut next).collect()
}

fn case(seed: u64) -> Case {
    let dice = &mut Dice(Draws::new(seed, &[0x7273]), 0);
    let scale = dice.one_of(&[3, 40, 3_000]);
    let uniform =
        ["dissemination", "allreduce", "allreduce-ring", "alltoall", "allreduce-rabenseifner", "bsp"];
    let any = LIST[dice.below(LIST.len() as u64) as usize].name;
    let name = if dice.below(3) == 0 { any } else { dice.one_of(&uniform) };
    let ranks = match dice.below(3) {
        0 => 1 << dice.below(8),
        1 => 8 * (1 + dice.below(12) as u32),
        _ => 1 + dice.below(100) as u32,
    };
    let inner = ["dissemination", "allreduce", "allreduce-ring", "allgather-bruck", "alltoall", "halo2d"];
    let params = Params {
        ranks,
        bytes: if dice.below(2) == 0 { 8 } else { u64::from(ranks) * dice.below(30) },
        iterations: 1 + dice.below(4) as u32,
        root: dice.below(u64::from(ranks)) as u32,
        work_ns: if dice.below(4) == 0 { 0 } else { dice.below(30 * scale) },
        inner: (name == "bsp").then(|| dice.one_of(&inner).to_owned()),
        node_ranks: 1 + dice.below(6) as u32,
        buckets: 1 + dice.below(3) as u32,
        reduce_per_byte: PerByte::from_femtoseconds(if dice.below(2) == 0 {
            0
        } else {
            dice.below(2_000_000)
        }),
        ..Params::default()
    };
    let program = by_name(name, &params).unwrap();
    let net = network(dice, scale);
    let range = |dice: &mut Dice| SizeRange { from_bytes: 5, to_bytes: 20, network: network(dice, scale) };
    let ranges = if dice.below(5) == 0 { vec![range(dice)] } else { Vec::new() };
    let ranges: Vec<SizeRange> = ranges
        .into_iter()
        .map(|range| SizeRange {
            network: Network { eager_limit: net.eager_limit, ..range.network },
            ..range
        })
        .collect();
    let noise = noise(dice, ranks, scale);
    let levels = levels(dice, scale);
    Case { name, params, program, net, ranges, levels, noise }
}

impl Case {
    fn run(&self, threads: usize) -> Run<'_> {
        let Self { net, ranges, levels, noise, .. } = self;
        Run { net: *net, ranges, levels, rules: Rules::Call, noise, threads, progress: NO_PROGRESS }
    }
}

/// Every rank's time and noise are the window engine's, on any number of threads and with any instruction set.
#[test]
fn rounds_give_what_the_window_engine_gives() {
    let mut by_rounds = 0;
    for seed in 0..programs() {
        let case = case(seed);
        let expected = run_by_events(&case.program, &case.run(1)).unwrap();
        for isa in Isa::available() {
            for threads in [1, 2, 7] {
                let Some((found, _)) = run_with(&case.program, &case.run(threads), isa, None).unwrap() else {
                    continue;
                };
                by_rounds += 1;
                let Case { name, params, net, levels, noise, .. } = &case;
                assert!(
                    found == expected,
                    "seed {seed}, {isa:?}, {threads} threads, {name} {params:?}\n{net:?}\n{levels:?}\n{noise:?}\n{found:?}\n{expected:?}"
                );
            }
        }
    }
    let runs = programs() * 3 * Isa::available().len() as u64;
    assert!(2 * by_rounds > runs, "only {by_rounds} of {runs} runs had rounds");
}

/// Compares the noise on the critical path with what the watched window engine finds, and returns the number of runs in rounds and of hits.
fn compare_culprits(case: &Case, seed: u64) -> (u64, usize) {
    let expected = culprits_by_events(&case.program, &case.run(1)).unwrap();
    let (mut by_rounds, mut hits) = (0, 0);
    let lengths: [Section; 4] = [|_| 1, |_| 3, |size| size.parts / 2 + 1, culprits::section];
    for (threads, length) in (1..).zip(lengths) {
        let run = case.run(threads);
        let found = run_with(&case.program, &run, Isa::best(), Some(length)).unwrap();
        let Some((outcome, struck)) = found else { continue };
        by_rounds += 1;
        hits += struck.len();
        let found = (outcome, Culprits::new(struck.into_iter(), case.params.ranks, run.noise.clocks()));
        let Case { name, params, net, levels, noise, .. } = case;
        assert!(
            found == expected,
            "seed {seed}, {threads} threads, {name} {params:?}\n{net:?}\n{levels:?}\n{noise:?}\n{found:?}\n{expected:?}"
        );
    }
    (by_rounds, hits)
}

/// The noise on the critical path is the one that the watched window engine finds, whatever the sections.
#[test]
fn rounds_find_the_culprits_that_the_window_engine_finds() {
    let found = (0..programs()).map(|seed| compare_culprits(&case(seed), seed));
    let (by_rounds, hits) = found.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(by_rounds > 2 * programs() && hits as u64 > 20 * programs(), "{by_rounds} runs, {hits} hits");
}

/// In times of a few nanoseconds much ends together, and the paths to it differ in the noise on them.
#[test]
fn of_what_ends_together_the_same_counts() {
    let mut by_rounds = 0;
    for seed in 0..programs() {
        let dice = &mut Dice(Draws::new(seed, &[0x7469]), 0);
        let name = dice.one_of(&["halo", "halo2d", "halo3d", "sweep", "bsp"]);
        let params = Params {
            ranks: 2 + dice.below(26) as u32,
            iterations: 4,
            work_ns: dice.below(4),
            inner: (name == "bsp").then(|| "halo2d".to_owned()),
            ..Params::default()
        };
        let [overhead, gap] = [1, 0].map(|least| least + dice.below(5).saturating_sub(3));
        let net = Network { latency: 1 + dice.below(3), overhead, gap, ..Network::default() };
        let net = Network { gap_per_byte: PerByte::default(), overhead_per_byte: PerByte::default(), ..net };
        let (program, noise) = (by_name(name, &params).unwrap(), noise(dice, params.ranks, 3));
        let case = Case { name, params, program, net, ranges: Vec::new(), levels: Vec::new(), noise };
        by_rounds += compare_culprits(&case, seed).0;
    }
    assert_eq!(by_rounds, 4 * programs());
}

/// A uniform step is what each rank does in that step.
#[test]
fn uniform_steps_are_the_ranks_own() {
    use crate::loggops::{Peers, UniformStep};
    for seed in 0..programs() {
        let Case { name, params, program, .. } = case(seed);
        let Some(steps) = program.in_steps() else { continue };
        for step in 0..steps.rank_steps(0).min(40) {
            let Some(uniform) = steps.uniform_step(step) else { continue };
            for rank in 0..params.ranks {
                let mut free = Vec::new();
                steps.step(rank, step, &mut free);
                let found: Vec<_> = free.iter().map(|op| (op.peer, op.shape)).collect();
                let ranks = params.ranks;
                let expected = match uniform {
                    UniformStep::Idle => vec![],
                    UniformStep::Calc(shape) => vec![(0, shape)],
                    UniformStep::Exchange { peers: Peers::Xor(bits), sent, received } => {
                        vec![(rank ^ bits, sent), (rank ^ bits, received)]
                    }
                    UniformStep::Exchange { peers: Peers::Ahead(distance), sent, received } => {
                        vec![((rank + distance) % ranks, sent), ((rank + ranks - distance) % ranks, received)]
                    }
                };
                assert_eq!(found, expected, "seed {seed}, {name} {params:?}, rank {rank}, step {step}");
            }
        }
    }
}

/// A run without noise, on one thread.
fn silent(net: Network, progress: Progress<'_>) -> Run<'_> {
    let noise = &Noise::None;
    Run { net, ranges: &[], levels: &[], rules: Rules::Call, noise, threads: 1, progress }
}

#[test]
fn a_program_without_messages_is_its_work() {
    let params = Params { ranks: 1, iterations: 7, work_ns: 100, ..Params::default() };
    let program = by_name("bsp", &params).unwrap();
    let how = silent(Network::default(), NO_PROGRESS);
    let outcome = run(&program, &how).unwrap().unwrap();
    assert_eq!(outcome, run_by_events(&program, &how).unwrap());
    assert_eq!(outcome.last(), (0, 700));
}

#[test]
fn the_callback_stops_a_run() {
    // Passes; a list; and an order that is found while it is played.
    for (name, ranks, iterations) in
        [("dissemination", 1 << 12, 50), ("scan", 1 << 12, 50), ("scan", 1 << 14, 1)]
    {
        let program = by_name(name, &Params { ranks, iterations, ..Params::default() }).unwrap();
        let stop = |_| std::ops::ControlFlow::Break(());
        let how = silent(Network::default(), &stop);
        assert_ne!(speed(&program, &how).unwrap(), Speed::Events, "{name}");
        assert_eq!(run(&program, &how), Err(RunError::Stopped), "{name} {iterations}");
        assert_eq!(run_for_culprits(&program, &how), Err(RunError::Stopped), "{name} {iterations}");
    }
}

/// Times that are too long for rounds are left to the engine, also where they are found to be so while the program is played.
#[test]
fn what_takes_too_long_is_not_played_in_rounds() {
    let params = Params { ranks: 6, root: 2, bytes: 8, ..Params::default() };
    let program = by_name("binomial-bcast", &params).unwrap();
    for (overhead, in_rounds) in [(1 << 40, true), (1 << 60, false)] {
        let how = silent(Network { overhead, ..Network::default() }, NO_PROGRESS);
        assert_eq!(run(&program, &how).unwrap().is_some(), in_rounds, "{overhead}");
    }
}
