use super::*;
use crate::Warning;
use crate::attribution::fixture::{steal, task, tick};
use proptest::prelude::*;
use quell_recording::{Nanos, Source};

/// Consecutive quanta of 1 ms on CPU `cpu`. `late` lists the numbers of longer ones, and their excess in ns.
fn phases(rank: u32, cpu: u32, n: u64, late: &[(u64, u64)]) -> Vec<(Cpu, Phase)> {
    let mut at = 0;
    let of_index = |index| {
        let excess = late.iter().find(|one| one.0 == index).map_or(0, |one| one.1);
        // A small variation, as clocks have it.
        let compute = 1_000_000 + (index % 3) * 50 + excess;
        let start = Nanos::from_nanos(at);
        at += compute;
        let compute = Nanos::from_nanos(compute);
        (Cpu(cpu), Phase { rank, index, start, work: 9, compute, wait: Nanos::ZERO })
    };
    (0..n).map(of_index).collect()
}

fn side<'a>(phases: &'a [(Cpu, Phase)], intervals: &'a [Intervals]) -> RankSide<'a> {
    let rank = phases.first().map_or(0, |row| row.1.rank);
    RankSide {
        rank,
        host: Some("n1"),
        pid: 70 + rank,
        zero_unix_ns: Some(5_000),
        ordered: true,
        phases,
        intervals,
    }
}

#[test]
fn the_slowest_rank_of_each_iteration_makes_the_mean_slowdown() {
    let (a, b) =
        (phases(0, 0, 100, &[(10, 500_000)]), phases(1, 1, 90, &[(10, 200_000), (20, 400_000), (95, 1)]));
    let found = analyse(&[side(&a, &[]), side(&b, &[])], Some(1_000_000));
    assert_eq!(found.iterations, 90, "only what all ranks did");
    let mean_slowdown = found.mean_slowdown_percent.unwrap_or_default();
    // 900,000 ns of excess in 90 quanta of 1 ms, and 50 ns of variation on average.
    assert!((mean_slowdown - 1.005).abs() < 1e-9, "{mean_slowdown}");
    let own: Vec<f64> = found.ranks.iter().map(|rank| (rank.slowdown_percent * 1e3).round()).collect();
    assert_eq!(own, [505.0, 672.0]);
    assert_eq!(found.histogram.iter().map(|bin| bin.count).sum::<u64>(), 190);
    assert_eq!(found.histogram[0], Bin { from_ns: 1_000_000, count: 187 });
    assert!(found.warnings.is_empty() && found.spikes_explained_ns.is_none());
}

#[test]
fn spikes_are_the_far_ones_and_get_their_culprits() {
    let late = [(10, 500_000), (20, 300_000), (30, 5_000), (40, 40_000)];
    let rows = phases(0, 2, 1_000, &late);
    let start = |index: usize| rows[index].1.start.as_nanos();
    let intervals = vec![
        task("quell-bench", 70, 0, start(10) + 100),
        task("daemon", 9, start(10) + 100, 450_000),
        tick(start(10) + 200, 10_000),
        task("quell-bench", 70, start(10) + 450_100, 900_000_000),
        steal(start(20), 4_000_000, 260_000),
        tick(start(20) + 7, 20_000),
    ];
    let node = [Intervals { cpu: Cpu(2), intervals }];
    let found = analyse(&[side(&rows, &node)], Some(1_000_000));
    assert_eq!((found.spikes_total, found.ranks[0].spikes), (3, 3), "5 us are too little to be one");
    let reported: Vec<_> =
        found.spikes.iter().map(|s| (s.iteration, s.excess_ns / 1_000, s.explained_ns)).collect();
    assert_eq!(reported, [(10, 500, Some(450_000)), (20, 300, Some(280_000)), (40, 40, Some(0))]);
    let takers =
        |spike: &Spike| spike.takers.iter().map(|t| (t.source.clone(), t.pid, t.net_ns)).collect::<Vec<_>>();
    assert_eq!(takers(&found.spikes[0]), [("task:daemon".into(), 9, 440_000), ("tick".into(), 0, 10_000)]);
    assert_eq!(
        takers(&found.spikes[1]),
        [(Source::Steal.to_string(), 0, 260_000), ("tick".into(), 0, 20_000)]
    );
    assert_eq!(found.spikes[0].start_unix_ns, Some(5_000 + start(10)));
    let sources: Vec<_> = found.spike_sources.iter().map(|s| (s.source.as_str(), s.spikes)).collect();
    assert_eq!(sources, [("task:daemon", 1), ("steal", 1), ("tick", 0)]);
    assert_eq!(found.spikes_explained_ns, Some(730_000));
}

#[test]
fn a_speed_other_than_when_calibrated_is_reported() {
    let rows = phases(0, 0, 50, &[]);
    let found = analyse(&[side(&rows, &[])], Some(900_000));
    assert!(
        matches!(found.warnings[0], Warning::QuantumOff { ranks: 1, of: 1, worst_percent, .. } if (worst_percent - 11.1).abs() < 0.05),
        "{:?}",
        found.warnings
    );
    let found = analyse(&[side(&rows, &[])], None);
    assert_eq!((found.quantum_ns, found.quantum_is_shortest, found.warnings.len()), (1_000_000, true, 0));
}

#[test]
fn the_list_of_spikes_ends_and_the_count_does_not() {
    let late: Vec<(u64, u64)> = (0..2_500).map(|i| (4 * i, 200_000 + i)).collect();
    let (rows, node) = (phases(0, 0, 10_000, &late), [Intervals { cpu: Cpu(7), intervals: vec![] }]);
    let found = analyse(&[side(&rows, &node), side(&rows, &[])], Some(1_000_000));
    assert_eq!((found.spikes_total, found.spikes.len()), (5_000, 1_000));
    assert!(
        found.spikes.is_sorted_by(|a, b| a.excess_ns >= b.excess_ns) && found.spikes[999].excess_ns > 202_000
    );
    assert_eq!(found.warnings.len(), 1, "one rank's sources are not known");
}

#[test]
fn a_histogram_has_no_iterations() {
    let rows = phases(0, 0, 100, &[(10, 500_000)]);
    let found = analyse(&[RankSide { ordered: false, ..side(&rows, &[]) }], Some(1_000_000));
    assert_eq!((found.mean_slowdown_percent, found.spikes_total, found.spikes.len()), (None, 1, 0));
    assert!(found.warnings[0] == Warning::OrderUnknown, "{:?}", found.warnings);
}

#[test]
fn no_data_gives_no_sentence() {
    let found = analyse(&[], Some(1_000_000));
    assert_eq!((found.iterations, found.mean_slowdown_percent, found.spikes_total), (0, None, 0));
    assert_eq!(analyse(&[side(&[], &[])], None).ranks[0].quanta, 0);
}

proptest! {
    #[test]
    fn any_times_end_in_figures(
        rows in prop::collection::vec((any::<u64>(), any::<u64>(), 0u64..40), 0..40),
        quantum in prop::option::of(any::<u64>()),
    ) {
        let of_rank = |rank: u32| {
            let phase = |&(start, compute, index): &(u64, u64, u64)| {
                let [start, compute] = [start, compute].map(|ns| Nanos::from_nanos(ns / 2));
                (Cpu(0), Phase { rank, index, start, work: 0, compute, wait: Nanos::ZERO })
            };
            let mut all: Vec<_> = rows.iter().map(phase).collect();
            all.sort_by_key(|row| row.1.index);
            all.dedup_by_key(|row| row.1.index);
            all
        };
        let (a, b) = (of_rank(0), of_rank(1));
        let found = analyse(&[side(&a, &[]), side(&b, &[])], quantum);
        prop_assert_eq!(found.iterations as usize, a.len());
        prop_assert_eq!(found.spikes_total, found.ranks.iter().map(|rank| rank.spikes).sum::<u64>());
        prop_assert_eq!(found.histogram.iter().map(|bin| bin.count).sum::<u64>() as usize, 2 * a.len());
    }
}
