//! Converts runs to schedules, and to schedules of more ranks.

use proptest::prelude::*;
use quell_recording::mpi::{Operation, UNKNOWN, What};
use quell_sim::goal::Schedule;
use quell_sim::loggops::{Network, Noise, PerByte, Program, Rules, Run, run};
use quell_sim::pattern::{Params, by_name};

use super::archives::Made;
use super::simulated::{ends, programs, schedule, trace};
use crate::track::{Extrapolation, GoalError, Replayable, goal};

pub fn made(made: &mut Made, ranks: Option<u32>) -> Result<Replayable, GoalError> {
    goal(made, ranks.map(|ranks| Extrapolation { ranks, seed: 1 }), &mut |_| ())
}

pub fn finish(program: &impl Program, net: Network) -> Vec<u64> {
    let silence = Run {
        net,
        ranges: &[],
        rules: Rules::Physical,
        noise: &Noise::None,
        threads: 1,
        progress: quell_sim::loggops::NO_PROGRESS,
    };
    let outcome = run(program, &silence).unwrap();
    assert!(outcome.stuck.is_none());
    outcome.finish
}

fn wire(latency: u64) -> Network {
    Network { latency, overhead: 0, gap: 0, gap_per_byte: PerByte::default(), ..Network::default() }
}

/// Each rank exchanges messages with its neighbours on a grid, all at once.
fn exchange(dims: [u32; 2], periodic: bool, bytes: u64) -> Made {
    let ranks = dims[0] * dims[1];
    let mut run = Made::new(ranks, &["tick"]);
    for rank in 0..ranks {
        run.at(rank, 0, What::Enter(0)).at(rank, 1000, What::Enter(1));
        let at = [i64::from(rank / dims[1]), i64::from(rank % dims[1])];
        let neighbour = |dimension: usize, way: i64| {
            let mut there = at;
            there[dimension] += way;
            let dim = i64::from(dims[dimension]);
            if periodic {
                there[dimension] = there[dimension].rem_euclid(dim);
            }
            (0..dim).contains(&there[dimension]).then(|| (there[0] * i64::from(dims[1]) + there[1]) as u32)
        };
        let ways = [(0, -1), (0, 1), (1, -1), (1, 1)];
        let all: Vec<(u32, u32)> =
            (0u32..).zip(ways).filter_map(|(tag, (dim, way))| Some((tag, neighbour(dim, way)?))).collect();
        for &(tag, to) in &all {
            run.at(rank, 1000, What::Send { comm: 0, to, tag, bytes, request: u64::from(tag) });
        }
        for &(tag, from) in &all {
            let request = 10 + u64::from(tag);
            run.at(rank, 1000, What::RecvPosted { comm: 0, from, tag: tag ^ 1, request });
        }
        for &(tag, from) in all.iter().rev() {
            let (sent, request) = (u64::from(tag), 10 + u64::from(tag));
            run.at(rank, 2000, What::SendDone { request: sent });
            run.at(rank, 2000, What::Recv { comm: 0, from, tag: tag ^ 1, bytes, request });
        }
        run.at(rank, 2000, What::Leave(1)).at(rank, 2000, What::Leave(0));
    }
    run
}

fn halo(dims: [u32; 2], periodic: bool, bytes: u64) -> Vec<u64> {
    let params =
        Params { ranks: dims[0] * dims[1], bytes, dims: dims.to_vec(), periodic, ..Params::default() };
    let all = finish(&by_name("halo2d", &params).unwrap(), Network::default());
    all.into_iter().map(|end| end + 1000).collect()
}

#[test]
fn a_grid_of_more_ranks_takes_as_long_as_the_pattern() {
    for periodic in [true, false] {
        let same = made(&mut exchange([3, 4], periodic, 100), None).unwrap();
        assert_eq!(
            finish(&same.schedule, Network::default()),
            halo([3, 4], periodic, 100),
            "periodic: {periodic}"
        );
        let more = made(&mut exchange([3, 4], periodic, 100), Some(64)).unwrap();
        assert_eq!(
            finish(&more.schedule, Network::default()),
            halo([8, 8], periodic, 100),
            "periodic: {periodic}"
        );
    }
}

#[test]
fn allreduces_of_more_ranks_are_the_pattern() {
    let mut run = Made::new(3, &["tick"]);
    for rank in 0..3 {
        run.at(rank, 0, What::Enter(0));
        for round in 0..5 {
            let begin = round * 2000 + 1000;
            run.collective(rank, [begin, begin + 1000], Operation::Barrier, UNKNOWN);
        }
    }
    let more = made(&mut run, Some(37)).unwrap();
    let params = Params {
        ranks: 37,
        bytes: 1,
        work_ns: 1000,
        iterations: 5,
        inner: Some("dissemination".to_owned()),
        ..Params::default()
    };
    let pattern = by_name("bsp", &params).unwrap();
    assert_eq!(finish(&more.schedule, Network::default()), finish(&pattern, Network::default()));
}

#[test]
fn a_rank_that_does_otherwise_is_named() {
    let mut run = exchange([3, 3], true, 100);
    let send = run.events[4].iter_mut().find_map(|event| match &mut event.what {
        What::Send { bytes, .. } => Some(bytes),
        _ => None,
    });
    *send.unwrap() = 7;
    let Err(GoalError::Irregular(why)) = made(&mut run, Some(64)) else { panic!("it is not regular") };
    assert_eq!((why.rank, why.operation), (4, 1), "{why}");
}

#[test]
fn noise_from_before_the_run_takes_nothing_and_what_finds_no_room_is_carried_over() {
    let mut run = Made::new(1, &["tick"]);
    run.noise(0, 10, 500).at(0, 10, What::Enter(0));
    run.noise(0, 110, 700).at(0, 110, What::Enter(3)).at(0, 120, What::Leave(3));
    run.at(0, 420, What::Leave(0));
    let alone = made(&mut run, None).unwrap();
    // 100 ns with 200 ns of noise, then 300 ns.
    assert_eq!(finish(&alone.schedule, Network::default()), [200]);
}

#[test]
fn both_ends_of_an_exchange_begin_before_either_is_waited_for() {
    let mut run = Made::new(2, &["tick"]);
    for rank in 0..2 {
        let (to, bytes) = (1 - rank, 1 << 20);
        run.at(rank, 0, What::Enter(1));
        run.at(rank, 0, What::Send { comm: 0, to, tag: 0, bytes, request: quell_recording::mpi::BLOCKING });
        let request = quell_recording::mpi::BLOCKING;
        run.at(rank, 9, What::Recv { comm: 0, from: to, tag: 0, bytes, request }).at(rank, 9, What::Leave(1));
    }
    assert!(!made(&mut run, None).unwrap().needs_buffers);
}

fn collectives(rounds: &[(usize, u32, Vec<u64>)]) -> Made {
    let mut run = Made::new(rounds[0].2.len() as u32, &["tick"]);
    let mut now = 0;
    for (operation, root, works) in rounds {
        let operation = Operation::ALL[operation % Operation::ALL.len()];
        let ranks = works.len() as u32;
        let last = works.iter().max().unwrap() + now + 10;
        for (rank, work) in works.iter().enumerate() {
            if now == 0 {
                run.at(rank as u32, 0, What::Enter(0));
            }
            run.collective(rank as u32, [now + work, last], operation, root % ranks);
        }
        now = last;
    }
    run
}

fn totals(schedule: &Schedule) -> u64 {
    schedule.totals().unwrap().0
}

proptest! {
    #[test]
    fn a_run_becomes_the_program_that_it_was(program in programs(), latency in 0u64..3000) {
        let noisy = ends(&program, wire(latency), [true, true]);
        let again = made(&mut trace(&program, &noisy), None).unwrap();
        let quiet = schedule(&program, [false, false]);
        prop_assert_eq!(totals(&again.schedule), totals(&quiet));
        for net in [wire(latency), Network::default()] {
            prop_assert_eq!(finish(&again.schedule, net), finish(&quiet, net));
        }
    }

    #[test]
    fn what_is_left_of_a_damaged_run_still_ends(program in programs(), lost in prop::collection::vec(0usize..6, 6)) {
        let mut run = trace(&program, &ends(&program, wire(100), [true, true]));
        for (rank, lost) in lost.into_iter().enumerate().take(run.events.len()) {
            let keep = run.events[rank].len() * (6 - lost) / 6;
            run.events[rank].truncate(keep);
        }
        match made(&mut run, None) {
            Ok(made) => prop_assert!(!made.needs_buffers),
            Err(why) => prop_assert!(matches!(why, GoalError::Empty), "{}", why),
        }
    }

    #[test]
    fn no_one_leaves_an_operation_of_all_before_the_last_has_come(
        ranks in 2usize..9,
        rounds in prop::collection::vec((0usize..19, 0u32..9, prop::collection::vec(1u64..5000, 9)), 1..8),
    ) {
        let mut rounds: Vec<_> =
            rounds.into_iter().map(|(op, root, works)| (op, root, works[..ranks].to_vec())).collect();
        rounds.push((0, 0, vec![1; ranks]));
        let again = made(&mut collectives(&rounds), None).unwrap();
        let longest = (0..ranks).map(|rank| rounds.iter().map(|round| round.2[rank]).sum::<u64>()).max().unwrap();
        let ends = finish(&again.schedule, Network::default());
        prop_assert!(ends.iter().all(|end| *end >= longest), "{:?} {}", ends, longest);
        let more = made(&mut collectives(&rounds), Some(ranks as u32 + 5)).unwrap();
        prop_assert!(more.quiet_ns > 0);
    }
}
