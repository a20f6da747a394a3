//! Converts runs to schedules, and to schedules of more ranks.

use proptest::prelude::*;
use quell_recording::mpi::{BLOCKING, Comm, Operation, UNKNOWN, What};
use quell_sim::goal::Schedule;
use quell_sim::loggops::{Network, Noise, PerByte, Program, Rules, Run, Shape, run};
use quell_sim::pattern::{Params, by_name};

use super::archives::Made;
use super::simulated::{ends, programs, schedule, trace};
use crate::track::{Extrapolation, GoalError, Replayable, Scaling, goal};

pub fn made(made: &mut Made, ranks: Option<u32>) -> Result<Replayable, GoalError> {
    let to = |ranks| Extrapolation { ranks, dims: None, scaling: Scaling::Weak, seed: 1 };
    goal(made, ranks.map(to), &Network::default().into(), &mut |_| ())
}

pub fn finish(program: &impl Program, net: Network) -> Vec<u64> {
    let silence = Run {
        net,
        ranges: &[],
        levels: &[],
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
    // It sends to another neighbour first.
    run.events[4].swap(2, 3);
    let Err(GoalError::Irregular(why)) = made(&mut run, Some(64)) else { panic!("it is not regular") };
    assert_eq!((why.rank, why.operation), (4, 1), "{why}");
    assert_eq!(why.what, "a send of 100 bytes to rank 7");
    assert!(why.expected.starts_with("a send of 100 bytes to rank 1, as rank "), "{why}");
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

/// Each rank receives from the one before it, works for 100, and sends to the one after it.
fn chain(ranks: u32) -> Made {
    let mut run = Made::new(ranks, &["tick"]);
    for rank in 0..ranks {
        let begin = 100 * u64::from(rank);
        run.at(rank, 0, What::Enter(0));
        if rank > 0 {
            run.receives(rank, [0, begin], rank - 1, 0);
        }
        if rank + 1 < ranks {
            run.sends(rank, [begin + 100, begin + 100], rank + 1, 0);
        }
        run.at(rank, begin + 100, What::Leave(0));
    }
    run
}

#[test]
fn more_ranks_wait_for_what_the_traced_ones_waited_for() {
    let same = made(&mut chain(3), None).unwrap();
    assert_eq!(finish(&same.schedule, wire(0)), [100, 200, 300]);
    // The second rank: a receive, work, and a send, each after the one before.
    assert_eq!((same.schedule.ops(1), same.schedule.dependencies()), (3, 1 + 2 + 1));
    let more = made(&mut chain(3), Some(6)).unwrap();
    assert_eq!(finish(&more.schedule, wire(0)), [100, 200, 300, 400, 500, 600]);
    assert_eq!(
        more.grid.as_deref(),
        Some("messages on a 3 grid whose ends are no neighbours, now 6 grid whose ends are no neighbours")
    );
}

#[test]
fn work_waits_for_all_that_the_program_waited_for() {
    // Rank 0 waits for a message of rank 1, begins another receive from it, and waits for one of rank 2 that came long ago.
    let mut run = super::both::run(3);
    let (posted, received) = (super::both::posted, super::both::received);
    for (from, tag, request) in [(1, 0, 1), (2, 0, 2)] {
        run.calls(0, 0, "MPI_Irecv", &[posted(from, tag, request)]);
    }
    run.waits(0, [0, 1000], "MPI_Wait", &[received(1, 0, 1)]);
    run.calls(0, 1000, "MPI_Irecv", &[posted(1, 1, 3)]).calls(0, 1000, "MPI_Wait", &[received(2, 0, 2)]);
    run.calls(0, 1100, "MPI_Wait", &[received(1, 1, 3)]);
    for tag in [0, 1] {
        run.calls(1, 1000, "MPI_Send", &[super::both::send(0, tag)]);
    }
    run.calls(2, 0, "MPI_Send", &[super::both::send(0, 0)]);
    let same = made(&mut run, None).unwrap();
    assert_eq!(finish(&same.schedule, wire(0)), [1100, 1000, 0]);
}

#[test]
fn a_root_beyond_the_last_rank_is_the_last() {
    let mut run = Made::new(4, &["tick"]);
    for rank in 0..4 {
        run.at(rank, 0, What::Enter(0)).collective_of(rank, [500, 600], Operation::Bcast, 3, 8);
    }
    let ends = |ranks| finish(&made(&mut run.clone(), Some(ranks)).unwrap().schedule, wire(1000));
    assert_eq!(ends(2), [1500, 500]);
    assert_eq!(ends(4).iter().filter(|end| **end == 500).count(), 1);
    assert_eq!(ends(4)[3], 500);
}

#[test]
fn a_collective_of_a_rank_with_itself_breaks_no_regularity() {
    let mut run = Made::new(2, &["tick"]);
    for rank in 0..2 {
        let own = Comm { name: "self".to_owned(), members: vec![rank], remote: None };
        run.definitions.comms.push(own);
        run.at(rank, 0, What::Enter(0)).collective(rank, [500, 600], Operation::Barrier, UNKNOWN);
    }
    for rank in 0..2 {
        let (operation, comm) = (Operation::Barrier, rank + 1);
        let over =
            What::Collective { operation, comm, root: UNKNOWN, sent: 0, received: 0, request: BLOCKING };
        run.at(rank, 700, What::Enter(3)).at(rank, 700, over).at(rank, 700, What::Leave(3));
    }
    let more = made(&mut run, Some(3)).unwrap();
    assert_eq!(more.grid.as_deref(), Some("no messages but those of collectives"));
    assert_eq!(finish(&more.schedule, wire(0)), [600; 3]);
}

#[test]
fn a_collective_of_some_ranks_is_named() {
    let mut run = Made::new(3, &["tick"]);
    run.definitions.comms.push(Comm { name: "some".to_owned(), members: vec![0, 1], remote: None });
    for rank in 0..3 {
        run.collective(rank, [500, 600], Operation::Barrier, UNKNOWN);
    }
    for rank in 0..2 {
        let operation = Operation::Allreduce;
        let over =
            What::Collective { operation, comm: 1, root: UNKNOWN, sent: 8, received: 8, request: BLOCKING };
        run.at(rank, 700, What::Enter(3)).at(rank, 700, over).at(rank, 700, What::Leave(3));
    }
    let Err(GoalError::Irregular(why)) = made(&mut run, Some(6)) else { panic!("it is not regular") };
    assert_eq!((why.rank, why.operation, why.what.as_str()), (0, 2, "Allreduce on some, of 2 ranks"));
    assert_eq!(why.expected, "all 3 would have to take part");
}

#[test]
fn sends_of_both_ranks_before_their_receives_need_buffers() {
    let needs = |bytes| {
        let mut run = Made::new(2, &["tick"]);
        for rank in 0..2 {
            let (to, request) = (1 - rank, BLOCKING);
            run.at(rank, 0, What::Enter(1)).at(rank, 0, What::Send { comm: 0, to, tag: 0, bytes, request });
            run.at(rank, 9, What::Leave(1)).at(rank, 9, What::Enter(2));
            run.at(rank, 9, What::Recv { comm: 0, from: to, tag: 0, bytes, request }).at(
                rank,
                9,
                What::Leave(2),
            );
        }
        made(&mut run, None).unwrap().needs_buffers
    };
    // LogGOPSim's own S is 65535.
    assert_eq!([8, 65_535, 65_536].map(needs), [false, false, true]);
}

#[test]
fn an_empty_run_has_no_schedule_and_one_of_work_lasts_as_long() {
    assert!(matches!(made(&mut Made::new(2, &["tick"]), None), Err(GoalError::Empty)));
    assert!(matches!(made(&mut Made::new(2, &["tick"]), Some(4)), Err(GoalError::Empty)));
    let mut run = Made::new(1, &["tick"]);
    run.at(0, 100, What::Enter(0)).at(0, 450, What::Leave(0));
    let made = made(&mut run, None).unwrap();
    assert_eq!((made.quiet_ns, made.grid, made.schedule.ops(0)), (350, None, 1));
}

#[test]
fn operations_that_many_others_came_before_wait_for_one_that_waits_for_all() {
    let sizes = |messages: u32| {
        let mut run = super::both::run(2);
        let all = || (0..messages).map(|tag| (tag, u64::from(tag)));
        for (tag, request) in all() {
            run.calls(0, 0, "MPI_Irecv", &[super::both::posted(1, tag, request)]);
            run.calls(1, 0, "MPI_Send", &[super::both::send(0, tag)]);
        }
        let ends: Vec<What> = all().map(|(tag, request)| super::both::received(1, tag, request)).collect();
        run.waits(0, [0, 10], "MPI_Waitall", &ends).calls(0, 10, "MPI_Send", &[super::both::send(1, 9)]);
        run.waits(1, [0, 10], "MPI_Recv", &[super::both::received(0, 9, BLOCKING)]);
        made(&mut run, None).unwrap().schedule.ops(0)
    };
    assert_eq!([1, 2, 3, 4].map(sizes), [2, 3, 5, 6]);
}

#[test]
fn a_collective_of_a_part_takes_place_between_its_members() {
    let mut run = Made::new(3, &["tick"]);
    run.definitions.comms.push(Comm { name: "some".to_owned(), members: vec![2, 1], remote: None });
    for rank in 1..3 {
        let over = What::Collective {
            operation: Operation::Bcast,
            comm: 1,
            root: 0,
            sent: 8,
            received: 8,
            request: BLOCKING,
        };
        run.at(rank, 0, What::Enter(0)).at(rank, 500, What::Enter(3)).at(rank, 500, over);
        run.at(rank, 500, What::Leave(3)).at(rank, 700, What::Leave(0));
    }
    let same = made(&mut run, None).unwrap();
    // Rank 2 is the root.
    assert_eq!(finish(&same.schedule, wire(1000)), [0, 500 + 1000 + 200, 500 + 200]);
}

#[test]
fn of_two_ranks_the_direction_is_a_guess() {
    let mut run = Made::new(2, &["tick"]);
    for rank in 0..2u32 {
        run.at(rank, 0, What::Enter(0));
        run.sends(rank, [100, 100], 1 - rank, 0).receives(rank, [100, 100], 1 - rank, 0);
    }
    let grid = made(&mut run, Some(4)).unwrap().grid.unwrap();
    let known =
        "messages on a 2 grid whose ends are neighbours, now 4 grid whose ends are neighbours; of two ranks";
    assert!(grid.starts_with(known), "{grid}");
    let ring = made(&mut exchange([3, 4], true, 8), Some(64)).unwrap().grid.unwrap();
    assert!(ring.ends_with("now 8x8 grid whose ends are neighbours"), "{ring}");
}

#[test]
fn a_grid_too_small_for_its_offsets_is_refused() {
    let Err(GoalError::NoGrid { ranks: 7, grid }) = made(&mut exchange([3, 4], true, 8), Some(7)) else {
        panic!("seven ranks in a plane")
    };
    assert_eq!(grid, "3x4 grid whose ends are neighbours");
}

#[test]
fn receives_that_never_end_are_counted_and_cancelled_ones_are_not() {
    let skipped = |ends: &[(u32, What)]| {
        let mut run = super::both::run(2);
        run.definitions.comms[0].members = vec![0];
        run.definitions.locations[1].rank = 0;
        run.definitions.locations[1].thread = 1;
        for request in [1, 2] {
            run.calls(0, 10, "MPI_Irecv", &[super::both::posted(0, 0, request)]);
        }
        run.calls(0, 20, "MPI_Ibarrier", &[What::CollectivePosted { comm: 0, request: 3 }]);
        for (location, what) in ends {
            run.calls(*location, 50, "MPI_Wait", &[*what]);
        }
        run.at(0, 100, What::Leave(0));
        let skipped = made(&mut run, None).unwrap().skipped;
        (skipped.receives, skipped.threads, skipped.notes)
    };
    let cancelled = |request| What::Cancelled { request };
    let note = |receives: u64| format!("rank 0: {receives} receives began and never ended");
    let over = super::both::complete(Operation::Barrier, UNKNOWN, 3);
    assert_eq!(skipped(&[(0, over)]), (2, 1, vec![note(2)]));
    assert_eq!(skipped(&[(0, over), (0, cancelled(1))]), (1, 1, vec![note(1)]));
    // The other thread does it.
    assert_eq!(skipped(&[(1, over), (1, cancelled(1)), (1, cancelled(2))]), (0, 1, vec![]));
}

#[test]
fn what_follows_a_send_depends_on_it_alone() {
    let mut run = super::both::run(2);
    run.calls(0, 0, "MPI_Send", &[super::both::send(1, 0)]);
    run.calls(0, 0, "MPI_Recv", &[super::both::received(1, 1, BLOCKING)]);
    run.calls(1, 0, "MPI_Recv", &[super::both::received(0, 0, BLOCKING)]);
    run.calls(1, 0, "MPI_Send", &[super::both::send(0, 1)]).at(1, 100, What::Leave(0));
    let schedule = made(&mut run, None).unwrap().schedule;
    // The second operation of rank 0 on the first; the send of rank 1 on its receive, and its work on the send.
    assert_eq!((schedule.ops(0), schedule.ops(1), schedule.dependencies()), (2, 3, 3));
}

#[test]
fn work_waits_until_the_send_before_it_has_started() {
    let mut run = super::both::run(2);
    let isend = What::Send { comm: 0, to: 1, tag: 0, bytes: 8, request: 1 };
    run.calls(0, 0, "MPI_Isend", &[isend]).calls(0, 100, "MPI_Wait", &[What::SendDone { request: 1 }]);
    run.calls(1, 0, "MPI_Recv", &[super::both::received(0, 0, BLOCKING)]);
    let schedule = made(&mut run, None).unwrap().schedule;
    assert_eq!((schedule.ops(0), schedule.ops(1), schedule.dependencies()), (2, 1, 1));
}

#[test]
fn peers_as_far_up_as_down_make_no_grid() {
    let mut run = super::both::run(4);
    for rank in 0..4u32 {
        run.sends(rank, [100, 100], rank ^ 2, 0).receives(rank, [100, 100], rank ^ 2, 0);
    }
    assert!(matches!(made(&mut run, Some(8)), Err(GoalError::Irregular(_))));
}

#[test]
fn a_message_of_nothing_has_one_byte() {
    let mut run = super::both::run(2);
    run.calls(0, 0, "MPI_Send", &[What::Send { comm: 0, to: 1, tag: 0, bytes: 0, request: BLOCKING }]);
    let empty = What::Recv { comm: 0, from: 0, tag: 0, bytes: 0, request: BLOCKING };
    run.calls(1, 0, "MPI_Recv", &[empty]);
    let schedule = made(&mut run, None).unwrap().schedule;
    let expected = [(Shape::send(1, 0), 1), (Shape::recv(1, 0), 0)];
    for (rank, expected) in (0..2).zip(expected) {
        let ops: Vec<_> = schedule.rank_ops(rank).iter().map(|op| (op.shape, op.peer)).collect();
        assert_eq!(ops, [expected]);
    }
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
