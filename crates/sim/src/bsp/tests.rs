use proptest::prelude::*;
use quell_recording::{Cpu, Detour, Span, Trace};

use super::*;

/// (span, one list of (start, duration) per CPU) of a node.
type NodeSpec = (u64, Vec<Vec<(u64, u64)>>);

fn node(spec: &NodeSpec) -> Option<Node> {
    let ns = Nanos::from_nanos;
    let trace = |detours: &Vec<(u64, u64)>| Trace {
        cpu: Cpu(0),
        span: Span { start: ns(0), end: ns(spec.0) },
        detours: detours.iter().map(|d| Detour { start: ns(d.0), duration: ns(d.1), own: false }).collect(),
    };
    Node::new(&spec.1.iter().map(trace).collect::<Vec<_>>()).ok()
}

fn node_spec() -> impl Strategy<Value = NodeSpec> {
    (50u64..3_000).prop_flat_map(|span| {
        let detours = proptest::collection::vec((0..span, 0u64..60), 0..25);
        (Just(span), proptest::collection::vec(detours, 1..4))
    })
}

fn sync() -> impl Strategy<Value = SyncMode> {
    let start = |(skew, drift_ppm)| SyncMode::Start { skew: Nanos::from_nanos(skew), drift_ppm };
    prop_oneof![
        3 => Just(SyncMode::None),
        1 => Just(SyncMode::Phase),
        2 => (0u64..4_000, Just(0.0)).prop_map(start),
        1 => (0u64..4_000, 0.0f64..50_000.0).prop_map(start),
    ]
}

/// Runs every rank of every phase one by one; shares only the draws with the program.
fn one_by_one(nodes: &[Node], quantum: u64, job: &Job) -> Run {
    let chains = if job.drifts() { 1 } else { (job.phases / 50).clamp(1, 8) };
    let mut run = Run::default();
    for chain in 0..chains {
        let mut now = 0u64;
        for phase in 0..job.phases / chains + u64::from(chain < job.phases % chains) {
            let length = slowest_rank(nodes, quantum, job, (chain, phase), now);
            now += length;
            run = run.add_phase(length);
        }
    }
    run
}

fn slowest_rank(nodes: &[Node], quantum: u64, job: &Job, (chain, phase): (u64, u64), now: u64) -> u64 {
    let draws = |name| Draws::new(job.seed, &[name, chain]);
    let (mut rank, mut slowest) = (0, 0);
    for number in 0.. {
        if rank == job.ranks {
            break;
        }
        let clocks = &nodes[number as usize % nodes.len()].clocks();
        let period = clocks[0].period();
        let start = match job.sync {
            SyncMode::None => draws(stream::OFFSET).below(number, period) + now,
            SyncMode::Phase => draws(stream::PLACE).below(phase, period),
            SyncMode::Start { skew, drift_ppm } => {
                let place = draws(stream::PLACE).below(0, period);
                let late = draws(stream::OFFSET).below(number, skew.as_nanos() + 1);
                let drift = draws(stream::DRIFT).signed(number) * drift_ppm * 1e-6;
                let drifted = (now as f64 * drift).floor() as i64;
                ((place + late + now) as i64 + drifted).rem_euclid(period as i64) as u64
            }
        };
        for clock in clocks.iter().take((job.ranks - rank) as usize) {
            slowest = slowest.max(clock.finish(start, quantum) - start);
            rank += 1;
        }
    }
    slowest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn agrees_with_every_rank_of_every_phase(
        specs in proptest::collection::vec(node_spec(), 1..3),
        quantum in prop_oneof![1u64..200, 1u64..10_000],
        ranks in prop_oneof![1u64..20, 1u64..900],
        phases in 1u64..120,
        sync in sync(),
        seed in any::<u64>(),
    ) {
        let nodes: Vec<Node> = specs.iter().filter_map(node).collect();
        prop_assume!(nodes.len() == specs.len());
        let job = Job { ranks, phases, sync, seed };
        let program = Program::new(nodes.clone(), Nanos::from_nanos(quantum)).unwrap();
        prop_assert_eq!(program.run(&job).unwrap(), one_by_one(&nodes, quantum, &job));
    }
}

/// Runs the job from the places of all ranks.
fn by_places(nodes: &[Node], quantum: u64, job: &Job) -> Run {
    let mut run = Run::default();
    for chain in 0..job.chains() {
        let places = Places::new(nodes, job, chain);
        let mut elapsed = 0u128;
        for phase in 0..job.phases_of(chain) {
            let delay = |place: Place| nodes[place.kind].clocks()[place.cpu].delay(place.at, quantum);
            assert_eq!(places.at(phase, elapsed).count() as u64, job.ranks);
            let length = quantum + places.at(phase, elapsed).map(delay).max().unwrap();
            elapsed += u128::from(length);
            run = run.add_phase(length);
        }
    }
    run
}

proptest! {
    #[test]
    fn places_are_those_of_the_program(
        specs in proptest::collection::vec(node_spec(), 1..3),
        quantum in 1u64..2_000,
        ranks in 1u64..40,
        phases in 1u64..120,
        sync in sync(),
        seed in any::<u64>(),
    ) {
        let nodes: Vec<Node> = specs.iter().filter_map(node).collect();
        prop_assume!(nodes.len() == specs.len());
        let job = Job { ranks, phases, sync, seed };
        let program = Program::new(nodes.clone(), Nanos::from_nanos(quantum)).unwrap();
        prop_assert_eq!(program.run(&job).unwrap(), by_places(&nodes, quantum, &job));
    }
}

/// A node of many CPUs and detours, drawn from `seed`.
pub(super) fn busy_node(seed: u64, cpus: u64) -> Node {
    let draws = Draws::new(seed, &[]);
    let detours = |cpu: u64| {
        (0..3_000).map(move |i| {
            (draws.below(cpu * 6_000 + i, 10_000_000), draws.below(cpu * 6_000 + 3_000 + i, 2_000))
        })
    };
    node(&(10_000_000, (0..cpus).map(|cpu| detours(cpu).collect()).collect())).unwrap()
}

#[test]
fn every_way_to_the_slowest_agrees_at_scale() {
    let nodes = [busy_node(1, 3), busy_node(2, 2)];
    let program = Program::new(nodes.to_vec(), Nanos::from_nanos(20_000)).unwrap();
    for (ranks, skew) in
        [(501, None), (5_003, None), (20_000, None), (5_003, Some(30_000)), (5_003, Some(3_000_000))]
    {
        let sync = skew
            .map_or(SyncMode::None, |skew| SyncMode::Start { skew: Nanos::from_nanos(skew), drift_ppm: 0.0 });
        let job = Job { ranks, phases: 101, sync, seed: 9 };
        assert_eq!(
            program.run(&job).unwrap(),
            one_by_one(&nodes, 20_000, &job),
            "{ranks} ranks, skew {skew:?}"
        );
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let program = Program::new(vec![busy_node(3, 2)], Nanos::from_nanos(20_000)).unwrap();
    let job = Job { ranks: 1_001, phases: 400, sync: SyncMode::None, seed: 4 };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| program.run(&job).unwrap())
    };
    assert_eq!(on(1), on(2));
}

#[test]
fn lockstep_costs_what_one_node_pays() {
    let program = Program::new(vec![busy_node(5, 1)], Nanos::from_nanos(20_000)).unwrap();
    let sync = SyncMode::Start { skew: Nanos::ZERO, drift_ppm: 0.0 };
    let run = |ranks| program.run(&Job { ranks, phases: 100, sync, seed: 6 }).unwrap();
    assert_eq!(run(1), run(10_000));
}

#[test]
fn quiet_nodes_take_the_quantum() {
    let quiet = node(&(1_000, vec![vec![], vec![]])).unwrap();
    let program = Program::new(vec![quiet], Nanos::from_nanos(7)).unwrap();
    let run = program.run(&Job { ranks: 1_000, phases: 10, sync: SyncMode::None, seed: 0 }).unwrap();
    assert_eq!(run, Run { phases: 10, total_ns: 70, longest: Nanos::from_nanos(7) });
}

#[test]
fn refuses_jobs_and_nodes_that_cannot_run() {
    let quiet = || node(&(1_000, vec![vec![]])).unwrap();
    assert_eq!(Program::new(vec![], Nanos::from_secs(1)).unwrap_err(), BspError::NoTrace);
    assert_eq!(Program::new(vec![quiet()], Nanos::ZERO).unwrap_err(), BspError::NoQuantum);
    let program = Program::new(vec![quiet()], Nanos::from_secs(1)).unwrap();
    let run = |ranks, phases, drift_ppm| {
        program.run(&Job { ranks, phases, sync: SyncMode::Start { skew: Nanos::MAX, drift_ppm }, seed: 0 })
    };
    assert_eq!(run(0, 1, 0.0), Err(BspError::Ranks(0)));
    assert_eq!(run(MAX_RANKS + 1, 1, 0.0), Err(BspError::Ranks(MAX_RANKS + 1)));
    assert_eq!(run(1, 0, 0.0), Err(BspError::Phases(0)));
    assert!(run(1, 1, f64::NAN).is_err() && run(1, 1, -1.0).is_err() && run(1, 1, 1.0).is_ok());
}

#[test]
fn cpus_of_a_node_share_their_time_line() {
    let ns = Nanos::from_nanos;
    let trace = |start, end, detour| Trace {
        cpu: Cpu(0),
        span: Span { start: ns(start), end: ns(end) },
        detours: vec![Detour { start: ns(detour), duration: ns(5), own: false }],
    };
    let node = Node::new(&[trace(0, 100, 50), trace(10, 120, 50)]).unwrap();
    assert!(node.clocks().iter().all(|clock| clock.period() == 90 && clock.finish(0, 41) == 46));
    assert_eq!(Node::new(&[trace(0, 10, 5), trace(10, 20, 15)]).unwrap_err(), BspError::Apart);
    assert_eq!(Node::new(&[]).unwrap_err(), BspError::NoTrace);
}

#[test]
fn hostile_lengths_saturate() {
    let nearly_all = node(&(1 << 62, vec![vec![(1, (1 << 62) - 1)]])).unwrap();
    let program = Program::new(vec![nearly_all], Nanos::MAX).unwrap();
    let run = program.run(&Job { ranks: 3, phases: 60, sync: SyncMode::None, seed: 1 }).unwrap();
    assert_eq!(run.longest, Nanos::MAX);
}

/// A node with these detours, as (start, duration), on each CPU.
pub(super) fn plain_node(period: u64, cpus: &[&[(u64, u64)]]) -> Node {
    node(&(period, cpus.iter().map(|detours| detours.to_vec()).collect())).unwrap()
}

#[test]
fn spans_that_meet_nowhere_are_apart_unless_one_is_empty() {
    let ns = Nanos::from_nanos;
    let shared = |spans: &[(u64, u64)]| {
        let trace = |&(start, end): &(u64, u64)| Trace {
            cpu: Cpu(0),
            span: Span { start: ns(start), end: ns(end) },
            detours: Vec::new(),
        };
        Node::shared_span(&spans.iter().map(trace).collect::<Vec<_>>())
    };
    assert_eq!(shared(&[(0, 10), (4, 20)]), Ok(Span { start: ns(4), end: ns(10) }));
    assert_eq!(shared(&[(0, 10), (10, 20)]), Err(BspError::Apart));
    assert_eq!(shared(&[(0, 10), (9, 20)]), Ok(Span { start: ns(9), end: ns(10) }));
    assert!(shared(&[(5, 5), (10, 20)]).is_ok(), "an empty trace has its own error");
    assert_eq!(shared(&[]), Err(BspError::NoTrace));
}
