//! Schedules of more ranks have the messages that the same program has when that many ranks run it.

use std::collections::BTreeMap;

use quell_recording::mpi::{BLOCKING, Operation, UNKNOWN, What};
use quell_sim::goal::Schedule;
use quell_sim::loggops::{Kind, Program as _};

use super::archives::Made;
use super::both::run;
use super::goals::made;
use crate::track::{Extrapolation, GoalError, Scaling, goal};

/// The number of messages by sender, receiver, whether they are a collective's, and bytes.
type Messages = BTreeMap<(u32, u32, bool, u64), u32>;

fn messages(schedule: &Schedule) -> Messages {
    let mut messages = Messages::new();
    for rank in 0..schedule.ranks() {
        for op in schedule.rank_ops(rank).iter().filter(|op| op.shape.kind == Kind::Send) {
            let of_collective = op.shape.tag >> 31 == 1;
            *messages.entry((rank, op.peer, of_collective, op.shape.size)).or_default() += 1;
        }
    }
    messages
}

/// Whether the program's messages on more ranks are those extrapolated from fewer.
fn assert_alike(program: impl Fn(&[u32]) -> Made, from: &[u32], to: &[u32], scaling: Scaling) {
    let ranks = to.iter().product();
    let extrapolation = Extrapolation { ranks, dims: Some(to.to_vec()), scaling, seed: 1 };
    let larger = goal(
        &mut program(from),
        Some(extrapolation),
        &quell_sim::loggops::Network::default().into(),
        &mut |_| (),
    )
    .unwrap();
    let traced = made(&mut program(to), None).unwrap();
    assert_eq!(messages(&larger.schedule), messages(&traced.schedule), "{from:?} {to:?} {:?}", larger.grid);
    assert_eq!(larger.needs_buffers, traced.needs_buffers, "{from:?} {to:?}");
}

fn refusal(run: &mut Made, ranks: u32) -> String {
    let refused = made(run, Some(ranks)).unwrap_err();
    assert!(matches!(refused, GoalError::Irregular(_)), "{refused}");
    refused.to_string()
}

impl Made {
    fn sends_to(&mut self, rank: u32, to: u32, tag: u32, bytes: u64) {
        let send = What::Send { comm: 0, to, tag, bytes, request: BLOCKING };
        self.calls(rank, 0, "MPI_Send", &[send]);
    }

    fn receives_from(&mut self, rank: u32, from: u32, tag: u32, bytes: u64) {
        let receive = What::Recv { comm: 0, from, tag, bytes, request: BLOCKING };
        self.calls(rank, 0, "MPI_Recv", &[receive]);
    }

    /// Posts a receive from one rank, sends to another, and waits.
    fn exchanges(&mut self, rank: u32, [to, from]: [u32; 2], tag: [u32; 2], bytes: [u64; 2]) {
        let posted = What::RecvPosted { comm: 0, from, tag: tag[1], request: 1 };
        let received = What::Recv { comm: 0, from, tag: tag[1], bytes: bytes[1], request: 1 };
        self.calls(rank, 0, "MPI_Irecv", &[posted]);
        self.sends_to(rank, to, tag[0], bytes[0]);
        self.calls(rank, 0, "MPI_Wait", &[received]);
    }
}

/// The part of a dimension: as even as possible, the first ones larger.
fn part(total: u64, dim: u32, at: u32) -> u64 {
    let (dim, at) = (u64::from(dim), u64::from(at));
    total / dim + u64::from(at < total % dim)
}

/// A pipeline through a plane from its first corner and back, as LU's; at last, along the first column only. `side` is that of the problem for
/// a number of ranks.
fn pipeline(dims: &[u32], side: impl Fn(u32) -> u64) -> Made {
    let [rows, columns] = [dims[0], dims[1]];
    let mut run = run(rows * columns);
    for rank in 0..rows * columns {
        let (row, column) = (rank / columns, rank % columns);
        let wide = 40 * part(side(columns), columns, column);
        let high = 40 * part(side(rows), rows, row);
        for tag in [0, 1, 0, 1] {
            // Down and to the right, then up and to the left.
            let (before, after) = if tag == 0 {
                ([row > 0, column > 0], [row + 1 < rows, column + 1 < columns])
            } else {
                ([row + 1 < rows, column + 1 < columns], [row > 0, column > 0])
            };
            let peer = |vertical: bool, forward: bool| {
                let step = if vertical { columns } else { 1 };
                if forward == (tag == 0) { rank + step } else { rank - step }
            };
            if before[0] {
                run.receives_from(rank, peer(true, false), tag, wide);
            }
            if before[1] {
                run.receives_from(rank, peer(false, false), tag, high);
            }
            if after[0] {
                run.sends_to(rank, peer(true, true), tag, wide);
            }
            if after[1] {
                run.sends_to(rank, peer(false, true), tag, high);
            }
        }
        if column == 0 && row > 0 {
            run.receives_from(rank, rank - columns, 2, 800);
        }
        if column == 0 && row + 1 < rows {
            run.sends_to(rank, rank + columns, 2, 800);
        }
    }
    run
}

#[test]
fn a_pipeline_of_two_by_two_ranks_shows_that_of_more() {
    for to in [[4, 4], [8, 4], [2, 6], [3, 2]] {
        assert_alike(|dims| pipeline(dims, |dim| 8 * u64::from(dim)), &[2, 2], &to, Scaling::Weak);
        assert_alike(|dims| pipeline(dims, |_| 240), &[2, 2], &to, Scaling::Strong);
        assert_alike(|dims| pipeline(dims, |_| 240), &[4, 3], &to, Scaling::Strong);
    }
}

#[test]
fn a_problem_that_is_not_divisible_is_divided_as_it_was() {
    for [from, to] in [[[2, 2], [4, 4]], [[4, 4], [8, 8]], [[2, 4], [5, 4]], [[2, 2], [7, 9]]] {
        assert_alike(|dims| pipeline(dims, |_| 33), &from, &to, Scaling::Strong);
    }
}

/// Sums within the rows of a square by powers of two, from one side or the other, and an exchange with the transposed rank, as CG's.
fn square(dims: &[u32], descending: bool, bytes: impl Fn(u32) -> u64) -> Made {
    let side = dims[0];
    let mut run = run(side * side);
    for rank in 0..side * side {
        let (row, column) = (rank / side, rank % side);
        for _ in 0..3 {
            for size in [bytes(side), 8] {
                for round in 0..side.ilog2() {
                    let bit = if descending { side.ilog2() - 1 - round } else { round };
                    let peer = row * side + (column ^ 1 << bit);
                    run.exchanges(rank, [peer, peer], [7, 7], [size, size]);
                }
            }
            let peer = column * side + row;
            run.exchanges(rank, [peer, peer], [7, 7], [bytes(side), bytes(side)]);
        }
    }
    run
}

#[test]
fn exchanges_at_powers_of_two_have_more_rounds() {
    for descending in [true, false] {
        assert_alike(|dims| square(dims, descending, |_| 700), &[4, 4], &[8, 8], Scaling::Weak);
        assert_alike(
            |dims| square(dims, descending, |side| 128_000 / u64::from(side)),
            &[4, 4],
            &[16, 16],
            Scaling::Strong,
        );
        assert_alike(|dims| square(dims, descending, |_| 700), &[8, 8], &[2, 2], Scaling::Weak);
    }
}

#[test]
fn of_two_ranks_in_a_row_no_one_can_tell_who_they_are() {
    let printed = refusal(&mut square(&[2, 2], true, |_| 700), 16);
    assert!(printed.contains("more than one rule leads to its peer"), "{printed}");
    let mut run = run(8);
    for rank in 0..8 {
        run.exchanges(rank, [rank ^ 4; 2], [0, 0], [80, 80]);
    }
    let printed = refusal(&mut run, 16);
    assert!(printed.contains("rank 0, operation 1, is a receive of 80 bytes from rank 4"), "{printed}");
}

#[test]
fn with_more_ranks_messages_to_all_may_be_more() {
    let mut run = run(9);
    for rank in 0..9 {
        for step in 1..9 {
            run.exchanges(rank, [(rank + step) % 9, (rank + 9 - step) % 9], [0, 0], [80, 80]);
        }
    }
    let printed = refusal(&mut run, 16);
    assert!(printed.contains("each rank sends to every other"), "{printed}");
}

/// Sweeps through a torus in which each rank has a part of each row and column, as BT's; the tags differ by rank.
fn sweeps(dims: &[u32]) -> Made {
    let side = dims[0];
    let mut run = run(side * side);
    let at = |row: u32, column: u32| row % side * side + column % side;
    for rank in 0..side * side {
        let (row, column) = (rank / side, rank % side);
        for _ in 0..2 {
            for [down, right] in [[1, 0], [0, 1], [side - 1, 0], [1, side - 1]] {
                let to = at(row + down, column + right);
                let from = at(row + side - down, column + side - right);
                for _ in 1..side {
                    run.exchanges(rank, [to, from], [rank % 3, from % 3], [600, 600]);
                }
                run.exchanges(rank, [from, to], [9, 9], [80, 80]);
            }
        }
    }
    run
}

#[test]
fn sweeps_have_a_message_for_each_other_rank() {
    let with_end = |dims: &[u32]| {
        let mut run = sweeps(dims);
        for rank in 0..dims[0] * dims[0] {
            run.collective(rank, [10, 10], Operation::Barrier, UNKNOWN);
        }
        run
    };
    assert_alike(with_end, &[4, 4], &[6, 6], Scaling::Weak);
    assert_alike(with_end, &[5, 5], &[3, 3], Scaling::Weak);
}

/// Each rank of a cuboid sends to its neighbours at all sides; ends are no neighbours.
fn halo(dims: &[u32], side: impl Fn(u32) -> u64) -> Made {
    let ranks = dims.iter().product();
    let mut run = run(ranks);
    for rank in 0..ranks {
        let at = [rank / dims[2] / dims[1], rank / dims[2] % dims[1], rank % dims[2]];
        let mut ends = Vec::new();
        for dimension in 0..3 {
            let stride: u32 = dims[dimension + 1..].iter().product();
            let bytes: u64 = (0..3)
                .filter(|other| *other != dimension)
                .map(|other| part(side(dims[other]), dims[other], at[other]))
                .product();
            ends.extend((at[dimension] > 0).then(|| (rank - stride, dimension as u32 * 2, bytes * 8)));
            ends.extend(
                (at[dimension] + 1 < dims[dimension])
                    .then(|| (rank + stride, dimension as u32 * 2 + 1, bytes * 8)),
            );
        }
        let request = |tag: u32| u64::from(tag) + 1;
        for (from, tag, _) in &ends {
            let posted = What::RecvPosted { comm: 0, from: *from, tag: tag ^ 1, request: request(*tag) };
            run.calls(rank, 0, "MPI_Irecv", &[posted]);
        }
        for (to, tag, bytes) in &ends {
            run.sends_to(rank, *to, *tag, *bytes);
        }
        let received = ends.iter().map(|(from, tag, bytes)| What::Recv {
            comm: 0,
            from: *from,
            tag: tag ^ 1,
            bytes: *bytes,
            request: request(*tag),
        });
        run.calls(rank, 0, "MPI_Waitall", &received.collect::<Vec<_>>());
    }
    run
}

#[test]
fn sides_of_a_cuboid_are_those_of_the_places_that_are_alike() {
    for to in [[4, 4, 4], [2, 3, 5], [3, 2, 2]] {
        assert_alike(|dims| halo(dims, |dim| 6 * u64::from(dim)), &[2, 2, 2], &to, Scaling::Weak);
        assert_alike(|dims| halo(dims, |_| 120), &[2, 2, 2], &to, Scaling::Strong);
        assert_alike(|dims| halo(dims, |_| 120), &[3, 4, 2], &to, Scaling::Strong);
        // The first part of a direction is the larger one.
        assert_alike(|dims| halo(dims, |dim| 6 * u64::from(dim) + 1), &[3, 3, 3], &to, Scaling::Weak);
        assert_alike(|dims| halo(dims, |_| 37), &[3, 3, 3], &to, Scaling::Strong);
    }
}

/// A program that transposes a matrix of 1 MiB for each rank, or of 16 MiB for all, after the counts.
fn transposes(dims: &[u32], scaling: Scaling) -> Made {
    let ranks = dims[0];
    let each = if scaling == Scaling::Weak { 1 << 20 } else { (16 << 20) / u64::from(ranks) };
    let mut run = run(ranks);
    for rank in 0..ranks {
        let none = UNKNOWN;
        run.collective_of(rank, [0, 0], Operation::Alltoall, none, 4 * u64::from(ranks));
        run.collective_of(rank, [0, 0], Operation::Alltoallv, none, each);
        // A block of each rank, and a vector of all.
        let over = What::Collective {
            operation: Operation::Allgather,
            comm: 0,
            root: none,
            sent: each / 16,
            received: each / 16 * u64::from(ranks),
            request: BLOCKING,
        };
        run.calls(rank, 0, "MPI_Allgather", &[over]);
        run.collective_of(rank, [0, 0], Operation::Allreduce, none, 4000);
    }
    run
}

#[test]
fn an_alltoall_has_the_volume_of_its_ranks() {
    for scaling in [Scaling::Weak, Scaling::Strong] {
        for to in [8, 16, 64] {
            assert_alike(|dims| transposes(dims, scaling), &[4], &[to], scaling);
            assert_alike(|dims| transposes(dims, scaling), &[32], &[to], scaling);
        }
    }
}

#[test]
fn ends_that_may_be_neighbours_are_refused() {
    // Both send to each other with the same tag: once as neighbours in a row, or twice round it.
    let mut run = run(4);
    for rank in 0..4 {
        run.exchanges(rank, [rank ^ 1; 2], [0, 0], [80, 80]);
        run.exchanges(rank, [rank ^ 2; 2], [0, 0], [80, 80]);
    }
    let printed = refusal(&mut run, 16);
    assert!(printed.contains("rank 0, operation 1, is a receive of 80 bytes from rank 1"), "{printed}");
    assert!(printed.contains("three or more in each direction"), "{printed}");
}

#[test]
fn exchanges_at_all_powers_of_two_need_no_square() {
    let powers = |dims: &[u32]| {
        let mut run = run(dims[0]);
        for rank in 0..dims[0] {
            for bit in 0..dims[0].ilog2() {
                run.exchanges(rank, [rank ^ 1 << bit; 2], [0, 0], [80, 80]);
            }
        }
        run
    };
    assert_alike(powers, &[8], &[32], Scaling::Weak);
    assert_alike(powers, &[8], &[32], Scaling::Strong);
}

#[test]
fn less_work_is_left_to_each_of_more_ranks_of_the_same_problem() {
    let quiet = |scaling| {
        let mut run = Made::new(4, &["tick"]);
        for rank in 0..4 {
            run.at(rank, 0, What::Enter(0)).at(rank, 8000, What::Leave(0));
        }
        let extrapolation = Extrapolation { ranks: 16, dims: None, scaling, seed: 1 };
        goal(&mut run, Some(extrapolation), &quell_sim::loggops::Network::default().into(), &mut |_| ())
            .unwrap()
            .quiet_ns
    };
    assert_eq!([Scaling::Weak, Scaling::Strong].map(quiet), [8000, 2000]);
}
