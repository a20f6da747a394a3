use quell_recording::{Cpu, Span, Trace};

use super::*;

fn point(ranks: u64, phases: u64, replicates: u64) -> Point {
    Point {
        ranks,
        phases,
        replicates,
        base_phase_ns: 1_000,
        mean_phase_ns: 1_000.0,
        slowdown_percent: 0.0,
        ci95_percent: None,
        max_phase_ns: 1_000,
        supported: true,
    }
}

fn options(phases: u64, replicates: u64) -> Options {
    Options { phases, replicates, ..Options::new(vec![1, 2, 4]) }
}

#[test]
fn the_first_scale_with_fewer_phases_is_named() {
    let points = [point(1, 101, 8), point(2, 100, 8), point(4, 99, 8), point(8, 50, 8)];
    let expected = Warning::FewerPhases { phases: 99, requested: 100, ranks: 4 };
    assert_eq!(fewer(&options(100, 8), &points), [expected]);
    assert_eq!(fewer(&options(100, 8), &points[..2]), []);
}

#[test]
fn the_first_scale_without_an_interval_is_named_if_others_have_one() {
    let points = [point(1, 100, 8), point(2, 100, 0), point(4, 100, 0)];
    assert_eq!(fewer(&options(100, 8), &points), [Warning::NotResampledFrom { ranks: 2 }]);
    assert_eq!(fewer(&options(100, 8), &points[..1]), []);
    assert_eq!(fewer(&options(100, 8), &points[1..]), []);
    assert_eq!(fewer(&options(100, 0), &points), [], "none was asked for");
}

/// Ten windows of 100 ns for each CPU of two nodes, the second of which has two CPUs.
fn nodes() -> [NodeNoise; 2] {
    let ns = Nanos::from_nanos;
    let trace =
        |cpu| Trace { cpu: Cpu(cpu), span: Span { start: ns(0), end: ns(1_000) }, detours: Vec::new() };
    let node = |cpus| NodeNoise {
        name: "n".into(),
        origin: None,
        traces: (0..cpus).map(trace).collect(),
        limits: Vec::new(),
    };
    [node(1), node(2)]
}

#[test]
fn runs_that_failed_or_were_left_out_are_reported() {
    let reported = |done, tried, replicates| {
        let options = options(100, replicates);
        let support = Support::from_nodes(&nodes(), options.quantum, options.sync);
        warnings(&[], &options, &support, &[point(1, 100, done)], Resampled { done, tried })
    };
    assert_eq!(reported(8, 8, 8), []);
    assert_eq!(reported(7, 8, 8), [Warning::FewReplicates { done: 7, tried: 8 }]);
    assert_eq!(reported(0, 0, 8), [Warning::NotResampled]);
    assert_eq!(reported(0, 0, 0), []);
}
