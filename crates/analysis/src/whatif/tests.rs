#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use quell_recording::{Cpu, Nanos, Trace};
use quell_sim::Model;
use quell_sim::loggops::{Network, Rules};

use super::*;
use crate::attribution::fixture::{detour, recording, steal, task, tick, trace};
use crate::predict::{self, JobNoise, NodeNoise, Options};

/// Short ticks that take 90 % of the noise, a rare daemon with long runs, and some more.
const BUILT: &str = r#"
    span = "60s"
    cpus = 2
    [[component]]
    name = "tick"
    periodic = { period = "1ms", phase = "random" }
    duration = { constant = "9us" }
    [[component]]
    name = "task:daemon"
    poisson = { rate = "0.05/s" }
    duration = { constant = "10ms" }
    [[component]]
    name = "softirq:RCU"
    poisson = { rate = "50/s" }
    duration = { constant = "10us" }
"#;

fn built() -> AttributedNoise {
    let model = Model::from_toml(BUILT).unwrap();
    AttributedNoise::from_model("built", &model, Nanos::from_nanos(1_000_000), 16, 7).unwrap()
}

/// The traces as they would be if a component had never existed.
fn really_without(name: &str) -> NodeNoise {
    let noise = changed_noise(&built(), name, Change::Without);
    let length = if name == "tick" { 9_000 } else { 10_000_000 };
    let other = |detour: &quell_recording::Detour| detour.duration.as_nanos() != length;
    let mut traces = Model::from_toml(BUILT).unwrap().node(Nanos::from_secs(60), 7).unwrap();
    traces.iter_mut().for_each(|trace| trace.detours.retain(other));
    NodeNoise { traces, ..noise }
}

fn options(ranks: &[u64]) -> Options {
    Options { phases: 1_000, replicates: 20, ..Options::new(ranks.to_vec()) }
}

fn select(node: &AttributedNoise, which: &str) -> SelectedSources {
    SelectedSources::select(node, &[which.parse().unwrap()])
}

fn changed_noise(node: &AttributedNoise, which: &str, change: Change) -> NodeNoise {
    change.apply(node, &select(node, which)).unwrap().node.noise()
}

fn total(noise: &NodeNoise) -> u64 {
    noise.traces.iter().flat_map(|trace| &trace.detours).map(|detour| detour.duration.as_nanos()).sum()
}

#[test]
fn each_detour_is_of_the_source_that_took_most_of_it() {
    let node = built();
    let (sources, noise) = (node.main_sources(), node.noise());
    assert_eq!((sources.families[0].as_str(), sources.families.len()), ("tick", 3));
    let mut seen = std::collections::BTreeSet::new();
    for (trace, main) in noise.traces.iter().zip(&sources.detours) {
        assert_eq!(trace.detours.len(), main.len());
        for (detour, (start, family)) in trace.detours.iter().zip(main) {
            assert_eq!(detour.start, *start);
            let expected = match detour.duration.as_nanos() {
                9_000 => "tick",
                10_000 => "softirq:RCU",
                // Ticks that are due in that time come after it.
                10_000_000.. => "task:daemon",
                _ => continue,
            };
            assert_eq!(sources.families[*family], expected, "{detour:?}");
            seen.insert(expected);
        }
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn the_order_of_sources_depends_on_the_scale_and_removal_confirms_it() {
    let node = [built()];
    let ranks = [16, 65_536];
    let job = Job::Phases(options(&ranks));
    let costs = costs(&node, &job, 8, &|_, _| ()).unwrap();
    let share = |name: &str| costs.sources.iter().find(|one| one.source == name).unwrap();
    let all: u64 = costs.sources.iter().map(|one| one.node.total_ns).sum();
    assert!(share("tick").node.total_ns * 10 > all * 8, "{:?}", costs.sources);
    let mut held = 0;
    for (scale, first, second) in [(0, "tick", "task:daemon"), (1, "task:daemon", "tick")] {
        let cost = |name| share(name).costs[scale];
        assert!(cost(first).part_percent > cost(second).part_percent, "{costs:?}");
        assert!(cost(first).gain_percent > cost(second).gain_percent, "{costs:?}");
        let parts: f64 = costs.sources.iter().map(|one| one.costs[scale].part_percent).sum();
        let gains: f64 = costs.sources.iter().map(|one| one.costs[scale].gain_percent).sum();
        let whole = costs.scales[scale].slowdown_percent;
        assert!((parts - whole).abs() < 1e-6 * whole, "{parts} of {whole}");
        assert!((gains + costs.scales[scale].overlap_percent - whole).abs() < 1e-6 * whole);
        for name in ["tick", "task:daemon"] {
            // Another seed, and noise in which the source never existed.
            let options = Options { seed: 99, ..options(&ranks) };
            let really = predict::predict(&[really_without(name)], &options, crate::NO_PROGRESS).unwrap();
            let Some([low, high]) = cost(name).without_ci95_percent else { continue };
            held += 1;
            let left = really.points[scale].slowdown_percent;
            assert!(
                (low..=high).contains(&left),
                "without {name} at {}: {left} in {low}..{high}",
                ranks[scale]
            );
        }
    }
    assert!(held > 0, "no interval is resolved: {costs:?}");
}

#[test]
fn messages_split_and_add_up_too() {
    let node = [built()];
    // Event by event, and in rounds.
    for rules in [Rules::Physical, Rules::Call] {
        let network = Box::new(Network::default().into());
        let messages = predict::Messages { op: "allreduce".into(), bytes: 8, network, rules };
        let job = Job::Phases(Options { messages: Some(messages), phases: 40, ..options(&[64]) });
        let costs = costs(&node, &job, 2, &|_, _| ()).unwrap();
        let parts: f64 = costs.sources.iter().map(|one| one.costs[0].part_percent).sum();
        assert!((parts - costs.scales[0].slowdown_percent).abs() < 1e-6 * parts, "{costs:?}");
        assert!(costs.sources.iter().any(|one| one.costs[0].alone_ci95_percent.is_some()), "{costs:?}");
    }
}

#[test]
fn a_recording_is_shared_out_by_its_attribution() {
    let trace = trace(1_000_000, vec![detour(1_000, 1_000), detour(10_000, 500), detour(500_000, 300)]);
    let intervals = vec![tick(1_000, 400), task("kworker/1:2", 9, 1_400, 600), steal(400_000, 200_000, 250)];
    let made = recording(vec![trace.clone()], vec![intervals]);
    let node = AttributedNoise::from_recording(&made, Vec::new());
    assert_eq!(node.noise().traces, [trace]);
    let left = |which, change| total(&changed_noise(&node, which, change));
    assert_eq!(left("tick", Change::Only), 400);
    assert_eq!(left("task:^kworker", Change::Only), 600);
    assert_eq!(left("steal", Change::Only), 250);
    assert_eq!(left("unattributed", Change::Only), 550);
    assert_eq!(left("tick", Change::Without), 1_400);
    assert_eq!(left("tick", Change::Scaled(10.0)), 5_400);
    assert_eq!(left("tick", Change::Scaled(0.5)), 1_600);
    assert!(select(&node, "task:absent").is_empty());
    assert_eq!(&*node.kinds()[removed_of_first(&node, "task:")].family, "task:kworker");
}

fn removed_of_first(node: &AttributedNoise, which: &str) -> usize {
    (0..node.kinds().len()).find(|&kind| select(node, which).has(kind)).unwrap()
}

#[test]
fn sources_move_to_one_cpu_out_of_step_and_into_it() {
    let node = built();
    let before = total(&node.noise());
    let moved = changed_noise(&node, "tick", Change::OnCpu(Cpu(1)));
    assert_eq!(total(&moved), before);
    assert!(moved.traces[1].detours.len() > 100_000 && moved.traces[0].detours.len() < 10_000);
    assert!(Change::OnCpu(Cpu(7)).apply(&node, &select(&node, "tick")).unwrap_err().contains("0-1"));
    let starts = |trace: &Trace, every: usize| -> Vec<u64> {
        let ticks = trace.detours.iter().filter(|detour| detour.duration == Nanos::from_nanos(9_000));
        ticks.step_by(every).map(|detour| detour.start.as_nanos() % 1_000_000).collect()
    };
    let only = Change::Only.apply(&node, &select(&node, "tick")).unwrap().node;
    let aligned = Change::Aligned.apply(&only, &select(&only, "tick")).unwrap().node;
    let noise = aligned.noise();
    assert_eq!(starts(&noise.traces[0], 1_000), starts(&noise.traces[1], 1_000));
    let staggered = changed_noise(&aligned, "tick", Change::Staggered);
    let apart = |at: usize| starts(&staggered.traces[at], 1)[100];
    assert!(apart(0).abs_diff(apart(1)).abs_diff(500_000) < 20_000, "{} {}", apart(0), apart(1));
}

#[test]
fn noise_in_step_on_all_nodes_costs_what_one_node_pays() {
    let node = built();
    let cost = |change: Change| {
        let changed = change.apply(&node, &select(&node, "task:daemon")).unwrap();
        let common = changed.common.as_ref().map(AttributedNoise::noise);
        let nodes = [changed.node.noise()];
        let noise = JobNoise { common: common.as_ref(), ..JobNoise::from_nodes(&nodes) };
        let (prediction, _) = predict::sample(noise, &options(&[4_096]), crate::NO_PROGRESS).unwrap();
        prediction.points[0].slowdown_percent
    };
    let (gone, together, apart) =
        (cost(Change::Without), cost(Change::Coscheduled), cost(Change::Scaled(1.0)));
    assert!(
        gone <= together && together < gone + 1.0 && together * 10.0 < apart,
        "{gone} {together} {apart}"
    );
}

proptest! {
    #[test]
    fn what_is_named_reads_back(text in "[a-z:^/]{1,12}") {
        if let Ok(which) = text.parse::<SourceSelector>() {
            prop_assert_eq!(which.to_string(), text);
        }
    }

    #[test]
    fn parts_make_the_whole(lengths in proptest::collection::vec((1u64..1_000, 0u64..1_000), 0..40)) {
        let mut at = 0;
        let (mut detours, mut intervals) = (Vec::new(), Vec::new());
        for (length, ticked) in lengths {
            detours.push(detour(at, length));
            intervals.extend((ticked > 0).then(|| tick(at, ticked.min(length))));
            at += 5_000;
        }
        let made = recording(vec![trace(at + 1, detours)], vec![intervals]);
        let node = AttributedNoise::from_recording(&made, Vec::new());
        prop_assert_eq!(&node.noise().traces, &made.traces);
        let part = |change| total(&changed_noise(&node, "tick", change));
        prop_assert_eq!(part(Change::Without) + part(Change::Only), total(&node.noise()));
    }
}
