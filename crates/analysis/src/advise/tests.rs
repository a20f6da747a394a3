#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use quell_recording::{Cpu, Nanos};
use quell_sim::Model;

use super::*;
use crate::predict::Options;
use crate::whatif::Load;

fn node(components: &str, cpus: u32) -> AttributedNoise {
    let text = format!("span = \"20s\"\ncpus = {cpus}\n{components}");
    let model = Model::from_toml(&text).unwrap();
    AttributedNoise::from_model("made", &model, Nanos::from_nanos(1_000_000), 16, 3).unwrap()
}

const NOISY: &str = r#"
    [[component]]
    name = "tick"
    periodic = { period = "4ms", phase = "random" }
    duration = { constant = "4us" }
    [[component]]
    name = "task:ksmd"
    poisson = { rate = "2/s" }
    duration = { constant = "3ms" }
    [[component]]
    name = "irq:eth0"
    poisson = { rate = "20/s" }
    duration = { constant = "200us" }
"#;

fn candidate(id: &str, pattern: &str, standing: Applicability, moves: bool) -> Candidate {
    Candidate {
        id: id.into(),
        title: id.into(),
        risk: "low".into(),
        standing,
        why: None,
        patterns: vec![pattern.parse().unwrap()],
        moves,
        reboot: false,
        conflicts: Vec::new(),
    }
}

fn advice(nodes: &[AttributedNoise], candidates: &[Candidate], compute: &[Cpu], ranks: &[u64]) -> Advice {
    let options = Options { phases: 400, replicates: 20, ..Options::new(ranks.to_vec()) };
    let job = Job::Phases(options);
    advise(&Question { nodes, job: &job, candidates, compute, most_sources: 8 }, &|_, _| ()).unwrap()
}

#[test]
fn a_large_slowdown_is_a_factor() {
    assert_eq!(
        [199.94, 210.0, 1199.1].map(document::cost_of),
        ["noise costs 199.9 %", "noise makes it take 3.1 × as long", "noise makes it take 13 × as long",]
    );
}

#[test]
fn nothing_is_proposed_for_a_node_that_others_used() {
    let candidates = [candidate("ksm", "task:ksmd", Applicability::Possible, false)];
    let idle = node(NOISY, 2);
    assert!(advice(std::slice::from_ref(&idle), &candidates, &[], &[64]).try_it.is_some());
    let load = Load { cpu: 1, percent: 47.2, task: "cc1".into() };
    let advice = advice(&[idle.under(load)], &candidates, &[], &[64]);
    assert!(advice.mitigations.is_empty() && advice.best.is_none() && advice.try_it.is_none());
    let first = "others used made while it was recorded (cc1 and other tasks had CPU 1 for 47 % of the time)";
    assert!(advice.verdict.starts_with(first), "{}", advice.verdict);
}

#[test]
fn what_gains_most_comes_first_and_the_rest_is_reported() {
    let candidates = [
        candidate("quiet-irq", "irq:eth0", Applicability::Possible, false),
        candidate("ksm", "task:ksmd", Applicability::Possible, false),
        candidate("nothing", "task:absent", Applicability::Possible, false),
        candidate("ksm-elsewhere", "task:ksmd", Applicability::Impossible, false),
        candidate("done", "tick", Applicability::On, false),
    ];
    let advice = advice(&[node(NOISY, 1)], &candidates, &[], &[2, 1_024]);
    let ids: Vec<&str> = advice.mitigations.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["ksm", "quiet-irq", "done", "ksm-elsewhere"]);
    assert!(advice.worth_it && advice.mitigations[0].worth_it);
    assert_eq!(advice.mitigations[0].addresses, ["task:ksmd"]);
    assert!(advice.mitigations[2].effects.is_none(), "what is on has no effect to come");
    assert_eq!(advice.best.unwrap().ids, ["ksm", "quiet-irq"]);
    assert!(
        advice.verdict.contains("task:ksmd") && advice.verdict.contains("ksm and quiet-irq"),
        "{}",
        advice.verdict
    );
    assert!(advice.leave.is_none(), "one CPU cannot be left");
    assert_eq!(advice.what_if.slowdown_percent.len(), 8);
    let all_gone = &advice.what_if.slowdown_percent[7];
    assert_eq!(all_gone, &[0.0, 0.0]);
}

#[test]
fn what_is_not_worth_it_is_reported() {
    let quiet = r#"
        [[component]]
        name = "tick"
        periodic = { period = "100ms" }
        duration = { constant = "2us" }
    "#;
    let advice =
        advice(&[node(quiet, 1)], &[candidate("nohz", "tick", Applicability::Possible, false)], &[], &[64]);
    assert!(!advice.worth_it && advice.best.is_none());
    assert!(advice.verdict.ends_with("nothing that is possible here is worth it"), "{}", advice.verdict);
}

#[test]
fn noise_that_moves_away_helps_those_who_leave_its_place() {
    let candidates = [candidate("irq-away", "irq:eth0", Applicability::Possible, true)];
    let advice = advice(&[node(NOISY, 4)], &candidates, &[Cpu(1), Cpu(2), Cpu(3)], &[1_024]);
    let one = &advice.mitigations[0];
    assert_eq!(one.on_cpus.as_deref(), Some("1-3"));
    assert!(one.effects.as_ref().unwrap()[0].gain_percent > 0.0);
    assert!(advice.best.is_none());
    assert_eq!(advice.best_leaving.unwrap().on_cpus.as_deref(), Some("1-3"));
    let leave = advice.leave.unwrap();
    assert_eq!((leave.cpus, leave.scales[0].ranks_left), (4, 768));
    // Three CPUs do the work of four, and all noise but the tick is gone.
    assert!((leave.scales[0].left_moved_percent - 4.0 / 3.0 * 100.0).abs() < 2.0, "{leave:?}");
    assert!(leave.scales[0].left_percent > leave.scales[0].left_moved_percent);
}

#[test]
fn equal_seeds_advise_alike_on_any_number_of_threads() {
    let candidates = [candidate("ksm", "task:ksmd", Applicability::Possible, false)];
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| advice(&[node(NOISY, 2)], &candidates, &[], &[16, 256]))
    };
    assert_eq!(on(1), on(2));
}
