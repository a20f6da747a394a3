#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use quell_recording::{Cpu, Detour, Interval, Intervals, Nanos, Recording, Source, Trace};
use quell_sim::Draws;

use super::*;
use crate::Warning;
use crate::attribution::fixture::{self, interval};
use crate::predict::{NodeNoise, Options, predict};

const SPAN: u64 = 4_000_000_000;

/// Random events: rate per second, mean length, source.
type SourceModel = (f64, f64, Option<Source>);

fn events(seed: u64, models: &[SourceModel]) -> Vec<(u64, u64, Option<Source>)> {
    let mut all = Vec::new();
    for (place, (rate, mean, source)) in models.iter().enumerate() {
        let draws = Draws::new(seed, &[place as u64]);
        let (mut at, mut turn) = (0.0, 0);
        loop {
            at += -(1e9 / rate) * (1.0 - draws.unit(2 * turn)).ln();
            if at >= 0.99 * SPAN as f64 {
                break;
            }
            let length = (-mean * (1.0 - draws.unit(2 * turn + 1)).ln()).clamp(200.0, 3e7);
            all.push((at as u64, length as u64, source.clone()));
            turn += 1;
        }
    }
    all.sort_by_key(|event| event.0);
    let mut free = 0;
    for event in &mut all {
        event.0 = event.0.max(free + 100);
        free = event.0 + event.1;
    }
    all
}

fn recording(name: &str, seed: u64, cpus: &[Vec<SourceModel>], sources: bool) -> Recording {
    let ns = Nanos::from_nanos;
    let mut traces: Vec<Trace> = Vec::new();
    let mut sides: Vec<Vec<Interval>> = Vec::new();
    for (cpu, models) in cpus.iter().enumerate() {
        let events = events(seed * 100 + cpu as u64, models);
        let detours = events.iter().map(|(start, length, _)| Detour {
            start: ns(*start),
            duration: ns(*length),
            own: false,
        });
        traces.push(Trace { cpu: Cpu(cpu as u32), ..fixture::trace(SPAN + 40_000_000, detours.collect()) });
        sides.push(
            events
                .iter()
                .filter_map(|(start, length, source)| Some(interval(source.clone()?, *start, *length)))
                .collect(),
        );
    }
    let mut made = fixture::recording(traces, sides);
    if !sources {
        made.manifest.sources = None;
        made.intervals = Vec::<Intervals>::new();
    }
    made.path = format!("{name}.quell").into();
    made
}

fn task(name: &str) -> Option<Source> {
    Some(Source::Task(name.into()))
}

/// The events of a healthy CPU, whose rates vary by some 10 % from node to node.
fn healthy(node: u64) -> Vec<SourceModel> {
    let factor = |at: u64| 1.0 + 0.17 * Draws::new(9, &[node]).signed(at);
    vec![
        (250.0 * factor(0), 2_500.0, Some(Source::Tick)),
        (30.0 * factor(1), 5_000.0, Some(Source::Irq("eth0".into()))),
        (0.05, 2e6, task("sshd")),
        (1.0 * factor(2), 30_000.0, None),
    ]
}

fn found(ill: &[(u64, Vec<Vec<SourceModel>>)], sources: bool) -> Fleet {
    let summary = |node: u64| {
        let models =
            ill.iter().find(|one| one.0 == node).map_or_else(|| vec![healthy(node); 2], |one| one.1.clone());
        NodeSummary::from_recording(&recording(&format!("n{node:03}"), node, &models, sources), None, 1)
    };
    fleet("fleet".into(), (0..200).map(summary).collect(), Vec::new(), None)
}

fn with(node: u64, model: SourceModel) -> Vec<SourceModel> {
    [healthy(node), vec![model]].concat()
}

fn ill() -> Vec<(u64, Vec<Vec<SourceModel>>)> {
    let mut often = healthy(120);
    often[0].0 *= 2.2;
    vec![
        (17, vec![with(17, (1.5, 5e6, task("crawld"))), healthy(17)]),
        (60, vec![healthy(60), with(60, (2_000.0, 4_000.0, Some(Source::Irq("nvme".into()))))]),
        (120, vec![often; 2]),
        (150, vec![with(150, (1.5, 5e6, None)); 2]),
    ]
}

#[test]
fn every_ill_node_is_named_with_its_source() {
    let fleet = found(&ill(), true);
    let of = |name: &str| {
        fleet.unlike.iter().find(|node| node.node == name).map(|node| node.why[0].source.as_str())
    };
    let names = ["n017", "n060", "n120", "n150"].map(of);
    assert_eq!(
        names,
        [Some("task:crawld"), Some("irq:nvme"), Some("tick"), Some("unattributed")],
        "{:#?}",
        fleet.unlike
    );
    assert_eq!(fleet.unlike.len(), 4, "{:#?}", fleet.unlike);
    assert!(fleet.unlike[0].delay_share_percent.is_none() && fleet.cost.is_none());
}

#[test]
fn without_sources_the_lengths_of_detours_tell() {
    let fleet = found(&ill(), false);
    let mut names: Vec<&str> = fleet.unlike.iter().map(|node| node.node.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["n017", "n060", "n120", "n150"], "{:#?}", fleet.unlike);
}

#[test]
fn chance_and_less_noise_are_no_illness() {
    let quiet = (7, vec![vec![(20.0, 1_000.0, Some(Source::Tick))]; 2]);
    let fleet = found(&[quiet], true);
    assert!(fleet.unlike.is_empty(), "{:#?}", fleet.unlike);
    assert!(fleet.typical.iter().any(|one| one.source == "tick" && (one.per_s / 250.0 - 1.0).abs() < 0.1));
}

#[test]
fn what_every_fifth_node_has_is_another_kind_of_node() {
    let ill: Vec<_> = (0..40).map(|n| (5 * n, vec![with(5 * n, (5.0, 1e6, task("agent"))); 2])).collect();
    let fleet = found(&ill, true);
    assert!(!fleet.unlike.iter().flat_map(|node| &node.why).any(|why| why.source == "task:agent"));
    assert!(
        fleet
            .warnings
            .iter()
            .any(|one| matches!(one, Warning::OtherKind { source, .. } if source == "task:agent")),
        "{:?}",
        fleet.warnings
    );
}

/// Twelve nodes of two CPUs each, two of which are outliers.
fn small() -> Vec<Recording> {
    let models = |node| if node % 6 == 2 { with(node, (20.0, 1e6, None)) } else { healthy(node) };
    (0..12).map(|node| recording(&format!("n{node:02}"), node, &vec![models(node); 2], false)).collect()
}

#[test]
fn the_cost_is_that_of_a_prediction() {
    let recordings = small();
    let job = FleetJob { ranks: vec![24, 96], quantum: Nanos::from_nanos(1_000_000), seed: 3 };
    let nodes: Vec<NodeSummary> =
        recordings.iter().map(|one| NodeSummary::from_recording(one, Some(job.quantum), job.seed)).collect();
    let cost = fleet("small".into(), nodes, Vec::new(), Some(job.clone())).cost.unwrap();
    let noise: Vec<NodeNoise> = recordings
        .iter()
        .map(|one| NodeNoise {
            name: one.name(),
            origin: None,
            traces: one.traces.clone(),
            limits: Vec::new(),
        })
        .collect();
    let options = Options { phases: 20_000, replicates: 0, ..Options::new(job.ranks.clone()) };
    let predicted = predict(&noise, &options, crate::NO_PROGRESS).unwrap();
    for (scale, point) in cost.scales.iter().zip(&predicted.points) {
        let ratio = scale.mixture_percent / point.slowdown_percent;
        // Detours that begin while a rank waits are left out, so the more waiting there is, the more is missing.
        let waits = point.slowdown_percent / 100.0;
        assert!((ratio - 1.0).abs() < 0.06 + 0.2 * waits, "{scale:?} {point:?}");
        assert!(scale.median_percent < scale.mixture_percent);
    }
    assert_eq!(cost.scales[1].nodes, 48);
    let mut slowest: Vec<&str> = cost.slowest[..2].iter().map(|slow| slow.node.as_str()).collect();
    slowest.sort_unstable();
    assert_eq!(slowest, ["n02", "n08"]);
    assert!((cost.slowest.iter().map(|slow| slow.delay_share_percent).sum::<f64>() - 100.0).abs() < 1e-6);
    assert!(cost.worst_share[0].share_percent < cost.worst_share[1].share_percent);
}

#[test]
fn a_job_on_a_part_of_the_fleet_costs_less_than_on_all() {
    let job = FleetJob { ranks: vec![1, 2, 8, 24, 48], quantum: Nanos::from_nanos(1_000_000), seed: 3 };
    let nodes: Vec<NodeSummary> =
        small().iter().map(|one| NodeSummary::from_recording(one, Some(job.quantum), 3)).collect();
    let fleet = fleet("small".into(), nodes, Vec::new(), Some(job.clone()));
    let scales = fleet.cost.unwrap().scales;
    assert!(scales[0].nodes == 1 && (scales[0].mixture_percent - scales[1].mixture_percent).abs() < 1e-12);
    assert!(
        scales[1..].windows(2).all(|pair| pair[0].mixture_percent < pair[1].mixture_percent),
        "{scales:?}"
    );
    assert_eq!(fleet.nodes_with_sources, 0);
}
