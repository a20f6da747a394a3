#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use quell_recording::{Cpu, Detour, Span, Trace};

use super::*;
use crate::stats::mean;

/// A node of one CPU, watched for `span` ns, with as many detours of 10 ns.
fn node(span: u64, detours: u64) -> NodeNoise {
    let ns = Nanos::from_nanos;
    let detour = |at: u64| Detour { start: ns(at * 20), duration: ns(10), own: false };
    let detours = (0..detours).map(detour).collect();
    let trace = Trace { cpu: Cpu(0), span: Span { start: ns(0), end: ns(span) }, detours };
    NodeNoise { name: "n".into(), origin: None, traces: vec![trace], limits: Vec::new() }
}

fn job(ranks: u64, phases: u64, sync: SyncMode) -> Job {
    Job { ranks, phases, sync, seed: 1 }
}

#[test]
fn scales_of_few_ranks_run_more_phases() {
    let phases = |sync| {
        let options = Options { sync, phases: 50, rank_phases: 1_000, ..Options::new(vec![1, 3, 10, 100]) };
        let jobs = options.jobs(&[node(100_000_000, 1)]).unwrap();
        jobs.iter().map(|job| job.phases).collect::<Vec<_>>()
    };
    assert_eq!(phases(SyncMode::None), [1_000, 333, 100, 50]);
    assert_eq!(phases(SyncMode::Phase), [1_000, 333, 250, 250], "four ranks are as good as all");
}

/// Two nodes that hold 300 quanta together.
#[test]
fn no_more_phases_run_than_the_traces_can_tell() {
    let nodes = [node(100_000_000, 1), node(200_000_000, 1)];
    let (none, drift) = (SyncMode::None, SyncMode::Start { skew: Nanos::ZERO, drift_ppm: 1.0 });
    let phases = |rank_phases, sync| {
        let options =
            Options { sync, phases: 600, rank_phases, ..Options::new(vec![1, 2, 10, 1 << 10, 1 << 14]) };
        let jobs = options.jobs(&nodes).unwrap();
        let replicated = options.replicated(&nodes, &jobs);
        [jobs, replicated].map(|jobs| jobs.iter().map(|job| job.phases).collect::<Vec<_>>())
    };
    assert_eq!(phases(1_000_000, none), [[3_000, 1_500, 600, 600, 600], [600, 300, 100, 500, 100]]);
    assert_eq!(phases(400, none), [[600; 5], [400, 200, 100, 500, 100]], "as asked for, where that is less");
    assert_eq!(phases(0, none), [[600; 5]; 2], "none but those that are asked for");
    assert_eq!(phases(400, drift), [[600; 5]; 2], "one chain");
}

/// Fewer phases of the runs on resampled traces leave the points as they are, and the intervals nearly so.
#[test]
fn intervals_hardly_depend_on_the_phases_of_replicates() {
    let draws = Draws::new(3, &[]);
    let detour = |at: u64| Detour {
        start: Nanos::from_nanos(2_000 * at + draws.below(2 * at, 1_500)),
        duration: Nanos::from_nanos(draws.below(2 * at + 1, 500)),
        own: false,
    };
    let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(2_000_000) };
    let trace = Trace { cpu: Cpu(0), span, detours: (0..1_000).map(detour).collect() };
    let nodes = [NodeNoise { name: "n".into(), origin: None, traces: vec![trace], limits: Vec::new() }];
    let points = |phases, rank_phases| {
        let quantum = Nanos::from_nanos(1_000);
        let options = Options { quantum, phases, rank_phases, ..Options::new(vec![2, 64]) };
        predict(&nodes, &options, &|_, _| ControlFlow::Continue(())).unwrap().points
    };
    // The first asks for the phases that the second has.
    let (all, few) = (points(10_000, 0), points(10_000, 20_000));
    for (all, few) in all.iter().zip(&few) {
        assert_eq!((all.phases, all.slowdown_percent), (few.phases, few.slowdown_percent));
        let length = |point: &Point| point.ci95_percent.map(|[low, high]| high - low).unwrap();
        let ratio = length(few) / length(all);
        assert!((0.5..2.0).contains(&ratio), "{all:?} {few:?}");
    }
}

#[test]
fn scales_in_one_phase_are_as_when_they_are_run_alone() {
    let two_cpus = |mut made: NodeNoise| {
        let other = node(100_000, 70).traces.remove(0);
        made.traces.push(Trace { cpu: Cpu(1), ..other });
        made
    };
    let nodes = [two_cpus(node(100_000, 100)), node(90_000, 30)];
    let points = |ranks: Vec<u64>, sync| {
        let options = Options {
            quantum: Nanos::from_nanos(500),
            sync,
            phases: 200,
            rank_phases: 2_000,
            replicates: 5,
            ..Options::new(ranks)
        };
        predict(&nodes, &options, &|_, _| ControlFlow::Continue(())).unwrap().points
    };
    for sync in [SyncMode::None, SyncMode::Phase] {
        let ranks = [1, 2, 3, 4, 5, 64, 1_000];
        let alone: Vec<_> = ranks.iter().flat_map(|&one| points(vec![one], sync)).collect();
        assert_eq!(points(ranks.into(), sync), alone, "{sync:?}");
    }
}

#[test]
fn a_quantum_may_be_as_long_as_the_trace() {
    let check = |span, detours| check_span(&node(span, detours), Nanos::from_nanos(1_000));
    assert_eq!(check(1_000, 1), Ok(()));
    assert!(matches!(check(999, 1), Err(PredictError::SpanBelowQuantum { .. })));
    assert_eq!(check(999, 0), Ok(()));
}

/// A scale of 4 ranks and 100 phases has two chains, so it places 8 nodes; rebuilding the trace costs its three detours.
#[test]
fn the_cost_is_that_of_all_runs() {
    let cost = |replicates| {
        let options = Options { phases: 100, replicates, ..Options::new(vec![4]) };
        cost_ns(&[node(1_000, 3)], &options).unwrap()
    };
    assert_eq!((cost(0), cost(5)), (11 * 300, 6 * 11 * 300));
}

#[test]
fn huge_scales_are_resampled_less_and_then_not() {
    let affordable = |ranks| affordable_replicates(&[], &[job(ranks, 1, SyncMode::None)], 1_000);
    // Each cost is that of the ranks and one for no detours at all.
    assert_eq!(affordable(29_999), 1_000);
    assert_eq!(affordable(299_999), 100);
    assert_eq!(affordable(99_999_999), 40);
    assert_eq!(affordable(100_000_000), 0);
    let drifts = SyncMode::Start { skew: Nanos::ZERO, drift_ppm: 1.0 };
    assert_eq!(
        effort(&[node(1_000, 5)], &[job(10, 100, drifts), job(7, 100, SyncMode::None)]),
        5 + 1_000 + 14
    );
}

#[test]
fn progress_counts_each_run_of_each_scale() {
    let reports = Mutex::new(Vec::new());
    let progress = |done, total| {
        reports.lock().unwrap().push((done, total));
        ControlFlow::Continue(())
    };
    let options =
        Options { quantum: Nanos::from_nanos(100), phases: 10, replicates: 3, ..Options::new(vec![1, 4]) };
    let prediction = predict(&[node(100_000, 9)], &options, &progress).unwrap();
    assert_eq!(prediction.replicates, 3);
    let mut reports = reports.into_inner().unwrap();
    reports.sort_unstable();
    assert_eq!(reports, (1..=8).map(|done| (done, 8)).collect::<Vec<_>>());
}

/// Nodes whose rate of detours differs from one recording to the next. The truth is the mean over many recordings.
#[test]
fn the_interval_holds_what_changes_between_recordings_of_a_node() {
    let recording = |number: u32, host: Option<&str>| {
        let draws = Draws::new(7, &[number.into()]);
        let every = 2_000_000 / (100 + draws.below(0, 900));
        let detour = |at: u64| Detour {
            start: Nanos::from_nanos(every * at + draws.below(at + 1, every - 500)),
            duration: Nanos::from_nanos(500),
            own: false,
        };
        let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(500_000) };
        let detours = (0..500_000 / every).map(detour).collect();
        let traces = vec![Trace { cpu: Cpu(0), span, detours }];
        let origin = host.map(|host| Origin::new(host, &traces));
        NodeNoise { name: "n".into(), origin, traces, limits: Vec::new() }
    };
    let predicted = |set: u32, host, replicates| {
        let nodes: Vec<NodeNoise> = (6 * set..6 * set + 6).map(|number| recording(number, host)).collect();
        let (quantum, phases) = (Nanos::from_nanos(1_000), 500);
        let options = Options { quantum, phases, replicates, ..Options::new(vec![6]) };
        predict(&nodes, &options, crate::NO_PROGRESS).unwrap().points.remove(0)
    };
    let truth = mean((0..100).map(|set| predicted(set, None, 0).slowdown_percent)).unwrap();
    let held = |host| {
        let holds = |set: &u32| {
            let [low, high] = predicted(*set, host, REPLICATES).ci95_percent.unwrap();
            (low..=high).contains(&truth)
        };
        (0..100).filter(holds).count()
    };
    // With a probability of 0.93 in a hundred, fewer than 85 hold it once in 600 times.
    let (one_node, six_nodes) = (held(Some("n")), held(None));
    assert!(one_node >= 85 && six_nodes < 60, "{one_node} {six_nodes}");
}
