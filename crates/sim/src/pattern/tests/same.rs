//! A pattern that runs by its rule and one that runs as a list of operations are the same program.

use proptest::prelude::*;

use super::graph::Graph;
use super::play::play;
use super::*;
use crate::loggops::Program;

/// What became free on each rank, in order of time, with the graph's numbers of shapes.
fn freed(program: &impl Program, graph: &Graph, seed: u64) -> Vec<Vec<(u64, u32, u32)>> {
    let mut freed = play(program, seed).freed;
    for rank in &mut freed {
        rank.iter_mut().for_each(|(_, shape, _)| *shape = graph.number(&program.shapes()[*shape as usize]));
        rank.sort_unstable();
    }
    freed
}

fn check(name: &str, params: &Params, seed: u64) {
    let steps = by_name(name, params).unwrap();
    let graph = Graph::from_steps(&steps);
    assert_eq!(freed(&steps, &graph, seed), freed(&graph, &graph, seed), "{name} {params:?}");
}

#[test]
fn rules_and_lists_are_the_same_program() {
    for ranks in (1..=20).chain([31, 32, 33]) {
        for (name, params) in every(ranks) {
            for iterations in [1, 3] {
                check(name, &Params { iterations, ..params.clone() }, 7);
            }
        }
    }
}

#[test]
fn numbers_of_operations_ascend() {
    let steps = by_name("halo", &Params { ranks: 27, iterations: 2, ..Params::default() }).unwrap();
    let mut free = Vec::new();
    let mut state = steps.begin(13, &mut free);
    for op in 0..12 {
        steps.done(13, &mut state, op, 5, &mut free);
    }
    let numbers: Vec<u32> = free.iter().map(|free| free.op).collect();
    assert_eq!(numbers, (0..24).collect::<Vec<_>>());
    assert!(free[12..].iter().all(|free| free.ready == 5));
}

/// Parameters of every kind, some of which do not fit together.
fn params() -> impl Strategy<Value = Params> {
    let first = (1u32..70, 0u64..5000, 1u32..4, 1u32..9, 1u64..2000, any::<bool>(), 0u64..3000);
    let second = (0u64..900, 1u32..20, 1u32..7, 1u32..5, 0u64..3_000_000, any::<prop::sample::Index>());
    (first, second).prop_map(|(first, second)| {
        let (ranks, bytes, iterations, nway, segment_bytes, periodic, work_ns) = first;
        let (optimizer_ns, node_ranks, buckets, blocks, reduce, root) = second;
        Params {
            ranks,
            bytes,
            iterations,
            root: root.index(ranks as usize) as u32,
            nway,
            segment_bytes,
            periodic,
            work_ns,
            optimizer_ns,
            node_ranks,
            buckets,
            blocks,
            reduce_per_byte: crate::loggops::PerByte::from_femtoseconds(reduce),
            ..Params::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn rules_and_lists_are_the_same_program_whatever_the_parameters(
        which in 0..LIST.len(), inner in 0..LIST.len(), params in params(), seed: u64,
    ) {
        let name = LIST[which].name;
        let inner = (name == "bsp" && LIST[inner].name != "training-step").then(|| LIST[inner].name.to_owned());
        check(name, &Params { inner, ..params }, seed);
    }
}
