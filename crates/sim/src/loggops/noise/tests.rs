use quell_recording::{Cpu, Nanos, Span, Trace};

use super::*;

/// A node of silent CPUs, whose trace has this length.
fn node(cpus: u32, period: u64) -> Node {
    let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(period) };
    let trace = |cpu| Trace { cpu: Cpu(cpu), span, detours: Vec::new() };
    Node::new(&(0..cpus).map(trace).collect::<Vec<_>>()).unwrap()
}

#[test]
fn ranks_fill_node_after_node() {
    const PERIODS: [u64; 2] = [1_000, 700];
    let nodes = [node(2, PERIODS[0]), node(1, PERIODS[1])];
    let (offsets, skews) = (Draws::new(5, &[OFFSETS]), Draws::new(5, &[SKEWS]));
    // Nodes of two CPUs and of one take turns; the CPUs of one node are at the same place.
    let (cpus, numbers) = ([0, 1, 2, 0, 1, 2, 0], [0, 0, 1, 2, 2, 3, 4]);
    let check = |start, offset: &dyn Fn(u64, u64) -> u64| {
        let clocks = RankClocks::on_nodes(&nodes, 7, start, 5).unwrap();
        assert_eq!(clocks.clocks().len(), 3);
        let expected = cpus.iter().zip(numbers).map(|(&clock, number)| {
            let offset = offset(number, PERIODS[number as usize % 2]);
            Place { clock, offset }
        });
        assert_eq!(clocks.places(), expected.collect::<Vec<_>>());
    };
    check(Start::Independent, &|number, period| offsets.below(number, period));
    for skew in [0, 50, 5_000] {
        let late = |number| i128::from(skews.below(number, skew + 1));
        let behind = |number, period| {
            (i128::from(offsets.below(0, period)) - late(number)).rem_euclid(i128::from(period)) as u64
        };
        check(Start::Together { skew }, &behind);
    }
    assert_eq!(RankClocks::on_nodes(&[], 7, Start::Independent, 5).err(), Some(NoiseError::Empty));
}
