#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use quell_recording::{Cpu, Detour, Span, Trace};

use super::*;

/// A node of one CPU, watched for `span` ns, with as many detours of 10 ns.
fn node(span: u64, detours: u64) -> NodeNoise {
    let ns = Nanos::from_nanos;
    let detour = |at: u64| Detour { start: ns(at * 20), duration: ns(10), own: false };
    let detours = (0..detours).map(detour).collect();
    let trace = Trace { cpu: Cpu(0), span: Span { start: ns(0), end: ns(span) }, detours };
    NodeNoise { name: "n".into(), traces: vec![trace], limits: Vec::new() }
}

fn job(ranks: u64, phases: u64, sync: SyncMode) -> Job {
    Job { ranks, phases, sync, seed: 1 }
}

#[test]
fn scales_of_few_ranks_run_more_phases() {
    let phases = |sync| {
        let options = Options { sync, phases: 50, rank_phases: 1_000, ..Options::new(vec![1, 3, 10, 100]) };
        options.jobs().unwrap().iter().map(|job| job.phases).collect::<Vec<_>>()
    };
    assert_eq!(phases(SyncMode::None), [1_000, 333, 100, 50]);
    assert_eq!(phases(SyncMode::Phase), [1_000, 333, 250, 250], "four ranks are as good as all");
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
