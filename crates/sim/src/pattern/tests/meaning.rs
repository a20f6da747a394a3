//! What each rank knows at the end: whose data has reached it, along the dependencies of the operations.

use std::collections::{HashMap, VecDeque};

use super::graph::{Graph, Waits};
use super::*;
use crate::loggops::{Kind, Program, ReadyOp};

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

/// Messages that wait, and receives that wait with what was known before them.
type Channel = (VecDeque<Ranks>, VecDeque<(u32, Ranks)>);

/// What the operations of a program know, through their dependencies and messages.
struct Flow {
    graph: Graph,
    states: Vec<Waits>,
    /// What each operation passes on; for a receive this includes the message.
    handed: Vec<Vec<Option<Ranks>>>,
    /// Channels by sender, receiver and tag.
    channels: HashMap<(u32, u32, u32), Channel>,
    todo: Vec<(u32, ReadyOp)>,
}

impl Flow {
    fn from_graph(graph: Graph) -> Self {
        let handed = graph.ranks.iter().map(|ops| vec![None; ops.len()]).collect();
        let (mut states, mut todo) = (Vec::new(), Vec::new());
        for rank in 0..graph.ranks.len() as u32 {
            let mut free = Vec::new();
            states.push(graph.begin(rank, &mut free));
            todo.extend(free.into_iter().map(|free| (rank, free)));
        }
        let mut flow = Self { graph, states, handed, channels: HashMap::new(), todo };
        while let Some((rank, free)) = flow.todo.pop() {
            flow.begin(rank, free);
        }
        assert!(flow.handed.iter().flatten().all(Option::is_some), "it does not end");
        flow
    }

    fn begin(&mut self, rank: u32, free: ReadyOp) {
        let handed = &self.handed[rank as usize];
        let needs = self.graph.ranks[rank as usize][free.op as usize].requires.iter();
        let sets = needs.map(|&on| handed[on as usize].expect("it is done"));
        let set = sets.fold(Ranks::only(rank), Ranks::and);
        let shape = self.graph.shapes()[free.shape as usize];
        match shape.kind {
            Kind::Calc => {}
            Kind::Send => {
                let (messages, receives) = self.channels.entry((rank, free.peer, shape.tag)).or_default();
                match receives.pop_front() {
                    Some((op, known)) => self.done(free.peer, op, known.and(set)),
                    None => messages.push_back(set),
                }
            }
            Kind::Recv => {
                let (messages, receives) = self.channels.entry((free.peer, rank, shape.tag)).or_default();
                match messages.pop_front() {
                    Some(message) => return self.done(rank, free.op, set.and(message)),
                    None => return receives.push_back((free.op, set)),
                }
            }
        }
        self.done(rank, free.op, set);
    }

    fn done(&mut self, rank: u32, op: u32, set: Ranks) {
        self.handed[rank as usize][op as usize] = Some(set);
        let mut free = Vec::new();
        self.graph.done(rank, &mut self.states[rank as usize], op, 0, &mut free);
        self.todo.extend(free.into_iter().map(|free| (rank, free)));
    }
}

/// Whose data reaches each rank of a program of one iteration.
fn known(name: &str, params: &Params) -> Vec<Ranks> {
    let flow = Flow::from_graph(Graph::from_steps(&by_name(name, params).unwrap()));
    let ranks = (0..).zip(&flow.handed);
    ranks
        .map(|(rank, sets)| sets.iter().flatten().fold(Ranks::only(rank), |all, &set| all.and(set)))
        .collect()
}

/// Compares what every rank of a pattern knows with what it must know.
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

#[test]
fn a_training_step_reduces_each_bucket_when_it_is_there_and_ends_when_all_are() {
    let params = Params { ranks: 5, buckets: 3, optimizer_ns: 70, work_ns: 900, ..Params::default() };
    let graph = Graph::from_steps(&by_name("training-step", &params).unwrap());
    for ops in &graph.ranks {
        let works = |size| {
            let shapes = ops.iter().map(|op| graph.shape(op)).enumerate();
            let works = shapes.filter(|(_, shape)| shape.kind == Kind::Calc && shape.size == size);
            works.map(|(op, _)| op).collect::<Vec<_>>()
        };
        let (backward, optimizer) = (works(200), works(70));
        assert_eq!((works(300).len(), backward.len(), optimizer.len()), (1, 3, 1));
        assert_eq!(above(ops, optimizer[0]).len(), ops.len() - 1);
        let sends: Vec<usize> =
            (0..ops.len()).filter(|&op| graph.shape(&ops[op]).kind == Kind::Send).collect();
        for (bucket, sends) in sends.chunks(8).enumerate() {
            let needs = above(ops, sends[0]);
            let needed: Vec<bool> = backward.iter().map(|work| needs.contains(work)).collect();
            let expected: Vec<bool> = (0..3).map(|number| number <= bucket).collect();
            assert_eq!(needed, expected);
        }
    }
}

/// All that an operation requires, directly or not.
fn above(ops: &[super::graph::Operation], op: usize) -> std::collections::BTreeSet<usize> {
    let mut above = std::collections::BTreeSet::new();
    let mut todo = vec![op];
    while let Some(op) = todo.pop() {
        todo.extend(ops[op].requires.iter().map(|&on| on as usize).filter(|&on| above.insert(on)));
    }
    above
}
