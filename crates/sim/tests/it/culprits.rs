//! Finds the detours that made a program late, and no others.

use std::sync::Arc;

use proptest::prelude::*;
use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::ProgressClock;
use quell_sim::loggops::{
    Culprits, Network, Noise, Outcome, Place, RankClocks, Rules, Run, run, run_for_culprits,
};
use quell_sim::pattern::{Params, by_name};

const PERIOD: u64 = 1_000_000;

fn clock(detours: &[(u64, u64)]) -> Arc<ProgressClock> {
    let ns = Nanos::from_nanos;
    let detours =
        detours.iter().map(|&(start, length)| Detour { start: ns(start), duration: ns(length), own: false });
    let span = Span { start: Nanos::ZERO, end: ns(PERIOD) };
    Arc::new(ProgressClock::new(&Trace { cpu: Cpu(0), span, detours: detours.collect() }).unwrap())
}

/// Each rank has a clock of its own.
fn noise(detours: &[Vec<(u64, u64)>]) -> Noise {
    let clocks = detours.iter().map(|detours| clock(detours)).collect();
    let places = (0..detours.len() as u32).map(|clock| Place { clock, offset: 0 }).collect();
    Noise::Clocks(RankClocks::new(clocks, places).unwrap())
}

fn play(name: &str, params: &Params, noise: &Noise) -> (Outcome, Culprits) {
    play_by(Rules::Physical, name, params, noise)
}

fn play_by(rules: Rules, name: &str, params: &Params, noise: &Noise) -> (Outcome, Culprits) {
    let program = by_name(name, params).unwrap();
    let how = Run {
        net: Network::default(),
        ranges: &[],
        levels: &[],
        rules,
        noise,
        threads: 1,
        progress: quell_sim::loggops::NO_PROGRESS,
    };
    let (outcome, culprits) = run_for_culprits(&program, &how).unwrap();
    assert_eq!(run(&program, &how).unwrap(), outcome, "who looks on changes nothing");
    assert!(outcome.stuck.is_none());
    (outcome, culprits)
}

fn noisy(ranks: usize) -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    let detours = proptest::collection::vec((0..PERIOD, 1u64..20_000), 0..25);
    proptest::collection::vec(detours, ranks)
}

const NAMES: [&str; 8] = [
    "dissemination",
    "binomial-bcast",
    "binomial-reduce",
    "allreduce-recursive-doubling",
    "allreduce-ring",
    "linear-gather",
    "halo",
    "bsp",
];

proptest! {
    #[test]
    fn the_path_holds_what_struck_and_no_more(
        detours in noisy(16),
        name in proptest::sample::select(NAMES.as_slice()),
        bytes in proptest::sample::select([1u64, 8, 3000].as_slice()),
        rules in proptest::sample::select([Rules::Physical, Rules::Call].as_slice()),
    ) {
        let params = Params { ranks: 16, bytes, iterations: 3, work_ns: 40_000, ..Params::default() };
        let (_, none) = play_by(rules, name, &params, &Noise::None);
        prop_assert!(none.hits.is_empty());
        let (outcome, culprits) = play_by(rules, name, &params, &noise(&detours));
        let end = outcome.last().1;
        prop_assert!(culprits.delay() <= end);
        prop_assert_eq!(culprits.propagated.iter().sum::<u64>(), culprits.delay());
        for (rank, (on_path, struck)) in culprits.propagated.iter().zip(&outcome.noise).enumerate() {
            prop_assert!(on_path <= struck, "rank {rank}");
        }
        prop_assert!(culprits.hits.is_sorted_by_key(|hit| hit.end));
        prop_assert!(culprits.hits.iter().all(|hit| hit.iteration < 3 && hit.at == hit.start % PERIOD));
    }

    #[test]
    fn the_detours_of_the_path_alone_make_a_broadcast_as_late(detours in noisy(16)) {
        let params = Params { ranks: 16, iterations: 1, ..Params::default() };
        let (outcome, culprits) = play("binomial-bcast", &params, &noise(&detours));
        let mut only = vec![Vec::new(); 16];
        for hit in &culprits.hits {
            let strikes = |&(start, length): &(u64, u64)| start < hit.end && start + length > hit.start;
            only[hit.rank as usize].extend(detours[hit.rank as usize].iter().copied().filter(strikes));
        }
        let (again, _) = play("binomial-bcast", &params, &noise(&only));
        prop_assert_eq!(again.last().1, outcome.last().1);
    }
}

#[test]
fn one_detour_on_the_way_is_the_culprit_and_one_next_to_it_is_absorbed() {
    let params = Params { ranks: 4, iterations: 2, work_ns: 100_000, ..Params::default() };
    // Rank 2 loses 30 µs in the first phase; rank 1 loses 5 µs at the same time, and waits for rank 2 anyway.
    let detours = [vec![], vec![(10_000, 5_000)], vec![(20_000, 30_000)], vec![]];
    let (outcome, culprits) = play("bsp", &params, &noise(&detours));
    assert_eq!(culprits.hits.len(), 1, "{culprits:?}");
    let hit = culprits.hits[0];
    assert_eq!((hit.rank, hit.iteration, hit.start, hit.delay), (2, 0, 0, 30_000));
    assert_eq!(outcome.noise, [0, 5_000, 30_000, 0]);
    assert_eq!(culprits.propagated, [0, 0, 30_000, 0]);
}

#[test]
fn what_strikes_the_root_of_a_broadcast_delays_all_of_it() {
    let params = Params { ranks: 16, ..Params::default() };
    let (silent, _) = play("binomial-bcast", &params, &Noise::None);
    let mut detours = vec![Vec::new(); 16];
    detours[0] = vec![(500, 7_000)];
    let (outcome, culprits) = play("binomial-bcast", &params, &noise(&detours));
    assert_eq!(outcome.last().1, silent.last().1 + 7_000);
    assert_eq!((culprits.hits.len(), culprits.delay()), (1, 7_000));
}
