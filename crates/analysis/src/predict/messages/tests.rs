#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::sync::Mutex;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::loggops::Network;

use super::*;

/// Events of a phase of a barrier of four ranks: the work of each, and in each of two rounds its send, which counts twice, and its receive.
const BARRIER: u64 = 4 + 4 * 2 * 3;
const WORK: u64 = 1_000_000;
/// A message of a byte from the start of its send to the end of its receive: o + L + o.
const MESSAGE: u64 = 1_500 + 2_500 + 1_500;

fn messages(op: &str, bytes: u64) -> Messages {
    Messages {
        op: op.to_owned(),
        bytes,
        network: Box::new(Network::default().into()),
        rules: Rules::Physical,
    }
}

fn options(ranks: u64, effort_divisor: u64) -> Options {
    Options { effort_divisor, ..Options::new(vec![ranks]) }
}

/// A node whose CPUs were watched for 10 ms, with a detour of these durations in each millisecond.
fn node(detours: &[u64]) -> NodeNoise {
    let ns = Nanos::from_nanos;
    let trace = |(cpu, &duration): (u32, &u64)| {
        let detour =
            |at: u64| Detour { start: ns(at * 1_000_000 + 300_000), duration: ns(duration), own: false };
        let detours = (0..10).map(detour).filter(|detour| detour.duration > Nanos::ZERO).collect();
        Trace { cpu: Cpu(cpu), span: Span { start: ns(0), end: ns(10_000_000) }, detours }
    };
    NodeNoise {
        name: "n".into(),
        origin: None,
        traces: (0..).zip(detours).map(trace).collect(),
        limits: Vec::new(),
    }
}

fn engine<'a>(options: &'a Options, messages: &'a Messages) -> Engine<'a> {
    Engine { options, messages, tick: loggops::NO_PROGRESS }
}

fn clocks(nodes: &[NodeNoise]) -> Clocks {
    Clocks::new(&super::super::clocks(nodes).unwrap())
}

/// (number of runs, phases of each) of a scale and of its resampled runs.
fn planned(divisor: u64) -> ((u64, u64), Option<(u64, u64)>) {
    let scale = scale(&options(4, divisor), &messages("barrier", 1), 4, 0).unwrap();
    assert_eq!((scale.ranks, scale.events), (4, BARRIER));
    let of = |runs: &Runs| (runs.count, runs.phases);
    (of(&scale.runs), scale.resampled.as_ref().map(of))
}

#[test]
fn a_scale_runs_what_it_can_afford() {
    // 60,000,000 events are more than enough for 1,000 phases and for 40 resampled runs of as many.
    assert_eq!(planned(1), ((20, 50), Some((40, 1_000))));
    assert_eq!(planned(0), planned(1));
    // 2,000 events are 71 phases: a quarter for the runs, the rest for the resampled ones.
    assert_eq!(planned(30_000), ((17, 1), Some((40, 1))));
    // 20,000 events are 714 phases.
    assert_eq!(planned(3_000), ((20, 8), Some((40, 13))));
    // 909 events are 32 phases, which leaves eight runs; 895 would leave seven, and an interval needs eight.
    assert_eq!(planned(66_000), ((8, 1), Some((24, 1))));
    assert_eq!(planned(67_000), ((8, 1), Some((21, 1))));
    // An interval may cost five times as much as the scale: 448 events are 16 phases, 447 are fewer.
    assert_eq!(planned(669_000), ((8, 1), Some((8, 1))));
    assert_eq!(planned(670_000), ((1, 1), None));
    assert_eq!(planned(u64::MAX), ((1, 1), None));
}

#[test]
fn noise_costs_by_the_detours_that_a_rank_passes_in_a_phase() {
    let options = options(4, 1);
    assert_eq!(noise_ps(&[node(&[0])], &options), NOISE_PS);
    // One a millisecond, and a phase takes 1 ms and the longest of them.
    assert_eq!(noise_ps(&[node(&[500_000])], &options), NOISE_PS + DETOUR_PS * 3 / 2);
    let barrier = Messages { rules: Rules::Call, ..messages("barrier", 1) };
    let phases = |rank_ps| scale(&options, &barrier, 1 << 20, rank_ps).unwrap().runs.all();
    assert!(phases(NOISE_PS) > 4 * phases(40 * NOISE_PS), "more noise, fewer phases");
}

#[test]
fn resampled_runs_can_be_declined_and_limited() {
    let resampled = |replicates| {
        let options = Options { replicates, ..options(4, 1) };
        scale(&options, &messages("barrier", 1), 4, 0).unwrap().resampled.map(|runs| runs.count)
    };
    assert_eq!([0, 1, 9, 41].map(resampled), [None, Some(1), Some(9), Some(40)]);
}

#[test]
fn all_events_of_a_scale_are_counted() {
    let (options, messages) = (options(4, 1), messages("barrier", 1));
    let all = scale(&options, &messages, 4, 0).unwrap();
    assert_eq!((all.runs.all(), all.silent_phases(), all.longer()), (1_000, 50, 20.0));
    let phases = 1_000 + 40_000 + 50;
    assert_eq!(all.all_events(), phases * BARRIER);
    assert_eq!(cost_ns(&[], &options, &messages).unwrap(), phases * BARRIER * 50);
    let few = Options { effort_divisor: 670_000, ..options.clone() };
    let few = scale(&few, &messages, 4, 0).unwrap();
    assert_eq!((few.all_events(), few.longer()), ((1 + 1) * BARRIER, 1.0));
    let in_step = Options { sync: SyncMode::Phase, ..options };
    let in_step = scale(&in_step, &messages, 4, 0).unwrap();
    assert_eq!((in_step.runs.all(), in_step.silent_phases()), (1_000, 1), "each phase is a run of its own");
}

#[test]
fn a_phase_of_too_many_messages_is_refused() {
    let error = scale(&options(1 << 20, 1), &messages("alltoall", 1), 1 << 20, 0).err().unwrap();
    assert!(matches!(error, PredictError::TooLarge { ranks: 1_048_576, most: 500_000_000, .. }), "{error:?}");
}

#[test]
fn a_phase_without_noise_is_its_work_and_its_messages() {
    for sync in [SyncMode::None, SyncMode::Phase] {
        let options = Options { sync, ..options(4, 3_000) };
        let clocks = clocks(&[node(&[0])]);
        // Two rounds of a message of a byte.
        let barrier = messages("barrier", 1);
        let one = scale(&options, &barrier, 4, 0).unwrap();
        let expected = (WORK + 2 * MESSAGE) as f64;
        assert_eq!(engine(&options, &barrier).silent(&one).unwrap(), expected);
        for number in [0, 3] {
            let run = engine(&options, &barrier).run(&one, &one.runs, &clocks, number);
            assert_eq!(run.unwrap(), expected, "noise without detours");
        }
        // One round of a message of 101 bytes, at 6 ns for each further one.
        let reduce = messages("allreduce-recursive-doubling", 101);
        let one = scale(&options, &reduce, 2, 0).unwrap();
        assert_eq!(engine(&options, &reduce).silent(&one).unwrap(), (WORK + MESSAGE + 600) as f64);
    }
}

/// A detour of 100 us in each millisecond of one rank: in ten phases of ten it loses 10 % of its time.
#[test]
fn the_mean_phase_grows_by_the_noise_that_strikes_it() {
    let options = Options { sync: SyncMode::Phase, ..options(1, 1) };
    let (barrier, clocks) = (messages("barrier", 1), clocks(&[node(&[100_000])]));
    let one = scale(&options, &barrier, 1, 0).unwrap();
    let run = engine(&options, &barrier).run(&one, &one.runs, &clocks, 0).unwrap();
    // A quantum of a millisecond meets one detour, or two if it begins up to 100 us before one or within one.
    assert!((1_100_000.0..1_120_000.0).contains(&run), "{run}");
}

fn placed(sync: SyncMode) -> Vec<Place> {
    let options = Options { sync, ..options(7, 1) };
    let clocks = clocks(&[node(&[0, 0]), node(&[0])]);
    clocks.place(7, &options, 9).unwrap().places().to_vec()
}

#[test]
fn ranks_are_placed_node_after_node() {
    const PERIOD: u64 = 10_000_000;
    let (offsets, skews) = (Draws::new(9, &[stream::PLACES]), Draws::new(9, &[stream::SKEWS]));
    // Nodes of two CPUs and of one take turns; the CPUs of one node are at the same place.
    let (cpus, nodes) = ([0, 1, 2, 0, 1, 2, 0], [0, 0, 1, 2, 2, 3, 4]);
    let check = |sync, offset: &dyn Fn(u64) -> u64| {
        let expected = cpus.iter().zip(nodes).map(|(&clock, node)| (clock, offset(node)));
        let found: Vec<(u32, u64)> = placed(sync).iter().map(|place| (place.clock, place.offset)).collect();
        assert_eq!(found, expected.collect::<Vec<_>>(), "{sync:?}");
    };
    check(SyncMode::None, &|node| offsets.below(node, PERIOD));
    let common = offsets.below(0, PERIOD);
    check(SyncMode::Phase, &|_| common);
    for skew in [0, 5_000, 10 * PERIOD] {
        let late = |node| skews.below(node, skew + 1);
        let behind =
            |node| (i128::from(common) - i128::from(late(node))).rem_euclid(i128::from(PERIOD)) as u64;
        check(SyncMode::Start { skew: Nanos::from_nanos(skew), drift_ppm: 0.0 }, &behind);
    }
}

#[test]
fn a_point_is_the_mean_of_its_runs() {
    let options = options(4, 3_000);
    let scale = scale(&options, &messages("barrier", 1), 4, 0).unwrap();
    let support = Support::from_nodes(&[node(&[0])], options.quantum, options.sync);
    let mut sample = Sample {
        silent_ns: 80.4,
        recorded_ns: vec![90.0, 120.6, 110.4],
        resampled_ns: vec![Some(vec![1.0]), None, Some(vec![2.0])],
        longer: 1.0,
    };
    let found = point(&scale, &sample, &support);
    assert_eq!((found.ranks, found.phases, found.replicates), (4, 160, 2));
    assert_eq!((found.base_phase_ns, found.max_phase_ns, found.supported), (80, 121, false));
    assert!((found.mean_phase_ns - 107.0).abs() < 1e-9);
    assert!((found.slowdown_percent - 100.0 * 26.6 / 80.4).abs() < 1e-9);
    sample.silent_ns = 0.0;
    assert_eq!(point(&scale, &sample, &support).slowdown_percent, 0.0);
}

/// The larger scale can afford fewer runs. Run n is played on the traces of draw n, with starts that the first runs did not have.
#[test]
fn each_scale_has_its_own_number_of_resampled_runs() {
    let (nodes, barrier) = ([node(&[50_000, 20_000])], messages("barrier", 1));
    let options = Options { effort_divisor: 66_000, ..Options::new(vec![2, 4]) };
    let scales = [2, 4].map(|ranks| scale(&options, &barrier, ranks, 0).unwrap());
    let counts = scales.each_ref().map(|scale| scale.resampled.as_ref().unwrap().count);
    assert_eq!(counts, [40, 24]);
    let engine = engine(&options, &barrier);
    let (means, tally) = resample(JobNoise::from_nodes(&nodes), &scales, &engine).unwrap();
    assert_eq!(means.iter().map(|means| means.len() as u64).collect::<Vec<_>>(), counts);
    assert_eq!((tally.done, tally.tried), (40, 40));
    for number in [1, 3, 23] {
        let redraw = Redraw::new(JobNoise::from_nodes(&nodes), options.quantum).unwrap();
        let anew = Clocks::new(&redraw.draw(options.seed, number).unwrap().0);
        for (scale, means) in scales.iter().zip(&means) {
            let expected = engine.run(scale, scale.resampled.as_ref().unwrap(), &anew, 20 + number).unwrap();
            assert_eq!(means[number as usize], Some(vec![expected]), "{number}");
        }
    }
}

#[test]
fn progress_grows_by_the_events_of_each_run() {
    let reports = Mutex::new(Vec::new());
    let progress = |done: u64, total: u64| {
        reports.lock().unwrap().push((done, total));
        ControlFlow::Continue(())
    };
    let options = Options { messages: Some(messages("barrier", 1)), ..options(4, 66_000) };
    super::super::predict(&[node(&[50_000])], &options, &progress).unwrap();
    let total = (8 + 24 + 1) * BARRIER;
    let mut reports = reports.into_inner().unwrap();
    reports.sort_unstable();
    reports.dedup();
    assert_eq!(reports, (1..=33).map(|runs| (runs * BARRIER, total)).collect::<Vec<_>>());
}

#[test]
fn the_culprits_are_those_of_four_runs_of_each_scale() {
    let mut options = options(2, 3_000);
    options.ranks = vec![2, 1];
    let nodes = [node(&[50_000, 20_000])];
    assert_eq!(culprits_of_messages(&nodes, &options).unwrap(), Vec::<Vec<loggops::Hit>>::new());
    options.messages = Some(messages("barrier", 1));
    let of = |nodes: &[NodeNoise]| culprits_of_messages(nodes, &options).unwrap();
    assert_eq!(of(&[node(&[0, 0])]), [vec![], vec![]]);
    let found = of(&nodes);
    assert_eq!(found.len(), 2);
    for hits in &found {
        assert!(hits.iter().all(|hit| hit.delay > 0));
        let restarts = hits.windows(2).filter(|pair| pair[1].start < pair[0].start).count();
        assert_eq!(restarts, 3, "each run begins anew");
    }
    assert!(found[1].iter().all(|hit| hit.rank == 0 && hit.clock == 0));
}
