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
        settle_s: 0,
        conflicts: Vec::new(),
    }
}

fn advice(nodes: &[AttributedNoise], candidates: &[Candidate], compute: &[Cpu], ranks: &[u64]) -> Advice {
    let options = Options { phases: 400, replicates: 20, ..Options::new(ranks.to_vec()) };
    let job = Job::Phases(options);
    advise(
        &Question {
            nodes,
            job: &job,
            candidates,
            compute,
            most_sources: 8,
            leave: Leaving::default(),
            given: &Given::default(),
        },
        &|_, _| (),
    )
    .unwrap()
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
    let candidates = [
        candidate("ksm-away", "task:ksmd", Applicability::Possible, true),
        candidate("tick-away", "tick", Applicability::Possible, true),
    ];
    let advice = advice(&[node(NOISY, 4)], &candidates, &[Cpu(1), Cpu(2), Cpu(3)], &[1_024]);
    let of = |at: usize| {
        let one = &advice.mitigations[at];
        assert_eq!(one.on_cpus.as_deref(), Some("1-3"));
        one.effects.as_ref().unwrap()[0]
    };
    let (ksm, tick) = (of(0), of(1));
    assert!(ksm.before_percent.total_cmp(&tick.before_percent).is_eq(), "one baseline: {ksm:?} {tick:?}");
    // What three CPUs do in place of four costs a third, which the tick is not worth.
    assert!(ksm.gain_percent > 33.0 && tick.gain_percent < 0.0, "{ksm:?} {tick:?}");
    assert!(!advice.mitigations[1].worth_it);
    assert_eq!(advice.best.unwrap().on_cpus.as_deref(), Some("1-3"));
    let leave = advice.leave.unwrap();
    let scale = leave.choices[0].scales[0];
    assert_eq!((leave.cpus, leave.best, scale.ranks_left), (4, 1, 768));
    // Three CPUs do the work of four, and all noise but the tick is gone.
    assert!((scale.left_moved_percent - 4.0 / 3.0 * 100.0).abs() < 2.0, "{leave:?}");
    assert!(scale.left_percent > scale.left_moved_percent);
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

/// A source that a longer one hides is the next culprit, and gets a row of its own.
#[test]
fn a_daemon_that_others_hide_is_listed() {
    let mut components = String::from(NOISY);
    for at in 0..30 {
        components += &format!(
            "[[component]]\nname = \"task:worker{at}\"\npoisson = {{ rate = \"40/s\" }}\nduration = {{ constant = \"60us\" }}\n"
        );
    }
    components += "[[component]]\nname = \"task:daemon\"\npoisson = { rate = \"0.2/s\" }\nduration = { constant = \"2ms\" }\n";
    let advice = advice(&[node(&components, 2)], &[], &[], &[1_024]);
    assert!(advice.sources.iter().any(|source| source.source == "task:daemon"), "{:?}", advice.sources);
}

#[test]
fn ranks_that_leave_cpus_anyway_leave_them_at_no_cost() {
    let (nodes, ranks) = ([node(NOISY, 8)], vec![1_024]);
    let options = Options { phases: 400, replicates: 20, ..Options::new(ranks) };
    let job = Job::Phases(options);
    let leave = Leaving { counts: vec![0, 1, 2, 4, 8], ranks_per_node: Some(4) };
    let question = Question {
        nodes: &nodes,
        job: &job,
        candidates: &[],
        compute: &[],
        most_sources: 8,
        leave,
        given: &Given::default(),
    };
    let leave = advise(&question, &|_, _| ()).unwrap().leave.unwrap();
    assert_eq!(leave.best, 1, "the fewest, as more save nothing more");
    let counts: Vec<u64> = leave.choices.iter().map(|choice| choice.left).collect();
    assert_eq!((counts, leave.ranks_per_node), (vec![1, 2, 4], 4), "none, and all of them, are no choice");
    for choice in &leave.choices {
        let scale = choice.scales[0];
        assert_eq!(scale.ranks_left, scale.ranks);
        assert!(scale.left_moved_percent < 102.0 && scale.full_percent > 150.0, "{choice:?}");
    }
}

/// Noise of one CPU that a mitigation cannot remove: a job that leaves that CPU is rid of it, with the mitigation or without.
#[test]
fn what_leaving_cpus_saves_is_no_gain_of_a_mitigation() {
    let quiet = r#"
        [[component]]
        name = "task:kworker/u"
        poisson = { rate = "5/s" }
        duration = { constant = "3us" }
    "#;
    let irq = "[[component]]\nname = \"irq:eth0\"\npoisson = { rate = \"10/s\" }\nduration = { constant = \"1ms\" }\n";
    let all = node(&format!("{quiet}{irq}"), 16);
    let is_irq = |kind: u32| &*all.kinds()[kind as usize].family == "irq:eth0";
    let on_one = all.with_traces(|trace| {
        let stays = trace.segments.iter().filter(|one| trace.cpu == Cpu(0) || !is_irq(one.kind));
        trace.queued(stays.copied().collect())
    });
    let candidates = [
        candidate("workqueue-away", "task:kworker", Applicability::Possible, true),
        candidate("irq-away", "irq:eth0", Applicability::Possible, true),
    ];
    let compute: Vec<Cpu> = (1..16).map(Cpu).collect();
    let advice = advice(&[on_one], &candidates, &compute, &[4_096]);
    let of = |id: &str| advice.mitigations.iter().find(|one| one.id == id);
    let away = of("workqueue-away").unwrap();
    assert!(away.effects.as_ref().unwrap()[0].gain_percent > 50.0 && !away.worth_it, "{away:?}");
    assert!(of("irq-away").is_none(), "there is no such noise on the CPUs that the job keeps");
    assert_eq!((advice.best, advice.try_it), (None, None));
    assert_eq!(advice.leave.unwrap().best, 1);
}

/// Two sources that are met in nearly each phase hide each other: without either nothing is gained.
#[test]
fn sources_that_hide_each_other_are_removed_together() {
    let components = ["task:ksmd", "task:kdamond"].map(|name| {
        format!("[[component]]\nname = \"{name}\"\npoisson = {{ rate = \"4/s\" }}\nduration = {{ constant = \"5ms\" }}\n")
    });
    let candidates = [
        candidate("ksm", "task:ksmd", Applicability::Possible, false),
        candidate("damon", "task:kdamond", Applicability::Possible, false),
        candidate("idle", "tick", Applicability::Possible, false),
    ];
    let tick =
        "[[component]]\nname = \"tick\"\nperiodic = { period = \"1s\" }\nduration = { constant = \"1us\" }\n";
    let advice = advice(&[node(&(components.concat() + tick), 1)], &candidates, &[], &[4_096]);
    assert!(advice.mitigations.iter().all(|one| !one.worth_it), "{:?}", advice.mitigations);
    let mut ids = advice.best.unwrap().ids;
    ids.sort_unstable();
    assert_eq!(ids, ["damon", "ksm"]);
    assert!(advice.worth_it && !advice.verdict.contains("nothing"), "{}", advice.verdict);
}

#[test]
fn the_command_tests_what_is_recommended() {
    let rare = r#"
        [[component]]
        name = "task:ksmd"
        poisson = { rate = "0.5/s" }
        duration = { constant = "5ms" }
    "#;
    let nodes = [node(rare, 4)];
    let options = Options { phases: 400, replicates: 20, ..Options::new(vec![16, 1_024]) };
    let job = Job::Phases(options);
    let command = |moves, given: &Given, ranks_per_node| {
        let candidates = [candidate("ksm", "task:ksmd", Applicability::Possible, moves)];
        let compute = &[Cpu(1), Cpu(2), Cpu(3)];
        let leave = Leaving { counts: vec![1], ranks_per_node };
        let question = Question {
            nodes: &nodes,
            job: &job,
            candidates: &candidates,
            compute,
            most_sources: 8,
            leave,
            given,
        };
        advise(&question, &|_, _| ()).unwrap().try_it.unwrap()
    };
    let words = |command: &str, option: &str| {
        let mut words = command.split(' ').skip_while(|word| *word != option);
        words.nth(1).map(str::to_owned)
    };
    let all = command(false, &Given::default(), None);
    assert_eq!(words(&all, "--watch").as_deref(), Some("0-3"), "{all}");
    assert_eq!(
        (words(&all, "--ranks").as_deref(), words(&all, "--quantum").as_deref()),
        (Some("1024"), Some("1ms"))
    );
    // 0.5 events in each second of a CPU, four CPUs: ten take five seconds, or as many as the model drew.
    let seconds: f64 = words(&all, "--duration").unwrap().trim_end_matches('s').parse().unwrap();
    assert!((4.0..=7.0).contains(&seconds), "{all}");
    let given = Given { cpus: Some("1-3".into()), site: Some("/etc/our site".into()) };
    let some = command(true, &given, Some(2));
    assert_eq!(words(&some, "--watch").as_deref(), Some("1-2"), "two ranks on the CPUs that compute: {some}");
    assert_eq!(words(&some, "--cpus").as_deref(), Some("1-3"));
    assert!(some.contains(" --site '/etc/our site' "), "{some}");
    assert_eq!(words(&command(false, &Given::default(), Some(2)), "--watch").as_deref(), Some("0-1"));
}

#[test]
fn no_cpus_are_left_where_that_saves_nothing() {
    let quiet = "[[component]]\nname = \"tick\"\nperiodic = { period = \"100ms\" }\nduration = { constant = \"2us\" }\n";
    let (nodes, options) =
        ([node(quiet, 8)], Options { phases: 400, replicates: 20, ..Options::new(vec![1_024]) });
    let job = Job::Phases(options);
    let leave = Leaving { counts: vec![1, 2, 4], ranks_per_node: Some(4) };
    let given = &Given::default();
    let question =
        Question { nodes: &nodes, job: &job, candidates: &[], compute: &[], most_sources: 8, leave, given };
    assert_eq!(advise(&question, &|_, _| ()).unwrap().leave.unwrap().best, 0);
}

/// Nine daemons that are rare and long cost most alone; the tick takes most of the node's time.
#[test]
fn what_is_first_by_time_or_share_is_listed_whatever_costs_more_alone() {
    let mut components = String::from(
        "[[component]]\nname = \"tick\"\nperiodic = { period = \"1ms\" }\nduration = { constant = \"9us\" }\n",
    );
    for at in 0..11 {
        components += &format!(
            "[[component]]\nname = \"task:d{at}\"\npoisson = {{ rate = \"0.2/s\" }}\nduration = {{ constant = \"{}us\" }}\n",
            10_000 - 100 * at
        );
    }
    let advice = advice(&[node(&components, 2)], &[], &[], &[2, 65_536]);
    assert!(advice.sources.iter().any(|source| source.source == "tick"), "{:?}", advice.sources);
}
