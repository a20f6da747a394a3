//! What each rank knows at the end: whose data reached it, along the requirements of the operations.

use std::collections::{HashMap, VecDeque};

use super::graph::Graph;
use super::*;
use crate::loggops::Kind;

/// A set of up to 256 ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ranks([u64; 4]);

impl Ranks {
    fn only(rank: u32) -> Self {
        let mut set = Self::default();
        set.0[rank as usize / 64] |= 1 << (rank % 64);
        set
    }

    fn those(ranks: std::ops::Range<u32>) -> Self {
        ranks.map(Self::only).fold(Self::default(), Self::and)
    }

    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn has(self, other: Self) -> bool {
        self.and(other) == self
    }
}

/// Whose data reach each rank of a program of one iteration.
fn known(name: &str, params: &Params) -> Vec<Ranks> {
    let graph = Graph::of(&by_name(name, params).unwrap());
    let mut known: Vec<Ranks> = (0..params.ranks).map(Ranks::only).collect();
    // What each operation hands on; a receive has its message's too.
    let mut handed: Vec<Vec<Option<Ranks>>> = graph.ranks.iter().map(|ops| vec![None; ops.len()]).collect();
    let mut messages: HashMap<(u32, u32, u32), VecDeque<Ranks>> = HashMap::new();
    let mut moved = true;
    while moved {
        moved = false;
        for (rank, ops) in (0..).zip(&graph.ranks) {
            for (number, op) in ops.iter().enumerate() {
                let done = &mut handed[rank as usize];
                let mut needs = op.requires.iter().map(|&on| done[on as usize]);
                if done[number].is_some() || needs.clone().any(|need| need.is_none()) {
                    continue;
                }
                let mut set = needs.try_fold(Ranks::only(rank), |set, need| Some(set.and(need?))).unwrap();
                let shape = graph.shape(op);
                match shape.kind {
                    Kind::Calc => {}
                    Kind::Send => messages.entry((rank, op.peer, shape.tag)).or_default().push_back(set),
                    Kind::Recv => match messages.entry((op.peer, rank, shape.tag)).or_default().pop_front() {
                        Some(message) => set = set.and(message),
                        None => continue,
                    },
                }
                done[number] = Some(set);
                known[rank as usize] = known[rank as usize].and(set);
                moved = true;
            }
        }
    }
    assert!(handed.iter().flatten().all(Option::is_some), "{name} {params:?} does not end");
    known
}

/// Holds what every rank of a pattern knows to what it must know.
fn check(names: &[&str], must: impl Fn(&Params, u32) -> Ranks) {
    for ranks in (1..=40).chain([64, 77, 128, 200]) {
        let cases = every(ranks);
        for (name, params) in cases.iter().filter(|(name, _)| names.contains(name)) {
            for (rank, known) in (0..).zip(known(name, params)) {
                assert!(known.has(must(params, rank)), "rank {rank} of {name} {params:?} knows {known:x?}");
            }
        }
    }
}

#[test]
fn all_hear_from_all() {
    let names = [
        "dissemination",
        "nway-dissemination",
        "allreduce-recursive-doubling",
        "allreduce-rabenseifner",
        "allreduce-ring",
        "allreduce-hierarchical",
        "reduce-scatter",
        "allgather-ring",
        "allgather-bruck",
        "alltoall-pairwise",
        "alltoall-bruck",
        "bsp",
        "training-step",
    ];
    check(&names, |params, _| Ranks::those(0..params.ranks));
}

#[test]
fn all_hear_from_the_root() {
    let names = ["linear-scatter", "binomial-bcast", "binomial-scatter", "pipelined-ring"];
    check(&names, |params, _| Ranks::only(params.root));
}

#[test]
fn the_root_hears_from_all() {
    let names = ["linear-gather", "binomial-reduce", "binomial-gather"];
    let root = |params: &Params, rank| if rank == params.root { params.ranks } else { 0 };
    check(&names, |params, rank| Ranks::those(0..root(params, rank)));
}

#[test]
fn a_scan_hears_from_those_before() {
    check(&["scan"], |_, rank| Ranks::those(0..rank + 1));
}

#[test]
fn a_sweep_crosses_the_grid_from_every_corner() {
    check(&["sweep"], |params, _| Ranks::those(0..params.ranks));
}

#[test]
fn a_halo_exchange_hears_from_neighbours_and_from_no_others() {
    let params = Params { ranks: 24, dims: vec![2, 3, 4], periodic: true, ..Params::default() };
    let at = |x: u32, y: u32, z: u32| (x % 2 * 3 + y % 3) * 4 + z % 4;
    for (rank, known) in (0..).zip(known("halo", &params)) {
        let (x, y, z) = (rank / 12, rank / 4 % 3, rank % 4);
        let along_x = [at(x + 1, y, z)];
        let along_y = [at(x, y + 1, z), at(x, y + 2, z)];
        let along_z = [at(x, y, z + 1), at(x, y, z + 3)];
        let all = [&along_x[..], &along_y, &along_z, &[rank]].concat();
        let must = all.into_iter().map(Ranks::only).fold(Ranks::default(), Ranks::and);
        assert_eq!(known, must, "rank {rank}");
    }
}
