//! Patterns in the engine: by their rule or as a schedule, and compared with LogGOPSim's schedule generator.

use super::*;
use crate::goal::{Findings, Schedule, ScheduleBuilder, read_text};
use crate::loggops::{Kind, Network, Noise, Outcome, PerByte, Program, Rules, Run, WindowNoise, run};

/// A detour of 1.5 to 3.9 µs every 40 µs.
fn noise(ranks: u32, seed: u64) -> Noise {
    let detours: Vec<(u64, u64)> =
        (0..60).map(|number| (number * 40_000, 1_500 + number % 7 * 400)).collect();
    let offsets = WindowNoise::draw_offsets(&detours, ranks, false, seed);
    Noise::Window(WindowNoise::new(&detours, offsets).unwrap())
}

fn play(program: &impl Program, rules: Rules, noise: &Noise, threads: usize, net: Network) -> Outcome {
    let outcome = run(
        program,
        &Run { net, ranges: &[], levels: &[], rules, noise, threads, progress: crate::loggops::NO_PROGRESS },
    )
    .unwrap();
    assert_eq!(outcome.stuck, None);
    outcome
}

/// A network on which few things happen at the same instant.
fn uneven() -> Network {
    Network {
        latency: 2503,
        overhead: 1499,
        gap: 1009,
        gap_per_byte: PerByte::from_femtoseconds(1_300_000),
        overhead_per_byte: PerByte::from_femtoseconds(170_000),
        eager_limit: 1 << 20,
    }
}

#[test]
fn rules_and_schedules_take_the_same_time() {
    for ranks in [2, 3, 5, 8, 13, 16, 27] {
        for (name, params) in every(ranks) {
            let params = Params { iterations: 2, ..params };
            let steps = by_name(name, &params).unwrap();
            let listed = schedule(&steps).unwrap();
            for noise in [Noise::None, noise(ranks, 5)] {
                for threads in [1, 2] {
                    let by_rule = play(&steps, Rules::Physical, &noise, threads, uneven());
                    let as_list = play(&listed, Rules::Physical, &noise, threads, uneven());
                    assert_eq!(by_rule, as_list, "{name} {params:?}");
                }
            }
        }
    }
}

#[test]
fn patterns_end_by_rendezvous_too() {
    for ranks in [2, 3, 5, 8, 13] {
        for (name, params) in every(ranks) {
            let steps = by_name(name, &Params { iterations: 2, ..params }).unwrap();
            let net = Network { eager_limit: 0, ..uneven() };
            let outcome = play(&steps, Rules::Physical, &noise(ranks, 1), 1, net);
            let listed = play(&schedule(&steps).unwrap(), Rules::Physical, &noise(ranks, 1), 1, net);
            assert_eq!(outcome, listed, "{name}");
        }
    }
}

/// A schedule from LogGOPSim's generator.
fn golden(case: &str) -> Schedule {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/loggops");
    let text = fs_err::read(format!("{folder}/{case}/schedule.goal")).unwrap();
    read_text(&text[..], &mut Findings::default()).unwrap()
}

/// The same schedule, in which every send also waits for the send and all receives of the rounds before. In the generator's it
/// waits for one receive only, so that under noise a later round can overtake an earlier one.
fn in_rounds(golden: &Schedule) -> Schedule {
    let mut builder = ScheduleBuilder::new(golden.ranks());
    for rank in 0..golden.ranks() {
        builder.begin_rank();
        for op in golden.rank_ops(rank).iter() {
            let number = builder.op(op.shape, op.peer);
            let before = if op.shape.kind == Kind::Send { 0..number } else { 0..0 };
            before.for_each(|before| builder.requires(number, before));
        }
        builder.end_rank();
    }
    builder.finish().unwrap()
}

/// Compares a pattern with a schedule from LogGOPSim's generator.
fn held_to(case: &str, name: &str, params: &Params) {
    let steps = by_name(name, params).unwrap();
    let golden = golden(case);
    let in_rounds = in_rounds(&golden);
    for rules in [Rules::Compatible, Rules::Physical] {
        let theirs = play(&golden, rules, &Noise::None, 1, Network::default());
        assert_eq!(
            play(&steps, rules, &Noise::None, 1, Network::default()).finish,
            theirs.finish,
            "{rules:?}"
        );
    }
    for seed in 0..5 {
        let noise = noise(params.ranks, seed);
        let theirs = play(&in_rounds, Rules::Physical, &noise, 1, Network::default());
        assert_eq!(play(&steps, Rules::Physical, &noise, 1, Network::default()).finish, theirs.finish);
    }
}

#[test]
fn disseminations_are_those_of_loggopsims_generator() {
    for (case, ranks) in [("s09_dissemination_64", 64), ("s12_dissemination_256_noise", 256)] {
        held_to(case, "dissemination", &Params { ranks, ..Params::default() });
    }
}

#[test]
fn rabenseifners_allreduce_is_what_loggopsims_generator_calls_recursive_doubling() {
    let params = Params { ranks: 64, bytes: 8192, ..Params::default() };
    held_to("s13_recdoub_64_noise_cosched", "allreduce-rabenseifner", &params);
}

#[test]
fn broadcasts_are_those_of_loggopsims_generator_with_bits_of_ranks_reversed() {
    let params = Params { ranks: 1024, bytes: 4096, ..Params::default() };
    let steps = by_name("binomial-bcast", &params).unwrap();
    let theirs =
        play(&golden("s10_binomial_bcast_1024"), Rules::Physical, &Noise::None, 1, Network::default());
    let ours = play(&steps, Rules::Physical, &Noise::None, 1, Network::default());
    for rank in 0..1024u32 {
        let reversed = rank.reverse_bits() >> 22;
        assert_eq!(ours.finish[rank as usize], theirs.finish[reversed as usize]);
    }
}
