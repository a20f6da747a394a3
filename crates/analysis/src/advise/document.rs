//! The document that advice is.

use quell_recording::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::proposals::{Proposal, Standing, Weighed};
use super::{Best, Leave, Question};
use crate::Warning;
use crate::predict::SyncName;
use crate::whatif::{AttributedNoise, Costs, Job, Scale, Source, Switches};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.advise/2";

/// What `advise --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// Always `quell.advise/2`.
    pub schema: &'static str,
    /// The job.
    pub job: JobFacts,
    /// The nodes that it runs on, in turn.
    pub nodes: Vec<NodeFacts>,
    /// What all noise costs at each scale.
    pub scales: Vec<Scale>,
    /// What each source costs, the costliest at the last scale first.
    pub sources: Vec<Source>,
    /// Mitigations that address noise which was recorded, those that can be done and gain most at the last scale first.
    pub mitigations: Vec<Proposal>,
    /// Those that are worth it together on all CPUs; null where none is.
    pub best: Option<Best>,
    /// Those that are worth it together for a job that leaves the housekeeping CPUs to the system; null where none of them moves anything.
    pub best_leaving: Option<Best>,
    /// A CPU of each node left to the system; null where a node has but one, and for schedules.
    pub leave: Option<Leave>,
    /// What the slowdown is with any of the costliest sources gone.
    pub what_if: Switches,
    /// The CPUs that were watched, as in `0,2-5`; null where nodes differ.
    pub watched: Option<String>,
    /// Whether any of it is worth it.
    pub worth_it: bool,
    /// What it comes to, in a sentence.
    pub verdict: String,
    /// The command that proves the first proposal which quell can do itself and which is worth it; null where there is none.
    pub try_it: Option<String>,
    /// What limits the figures.
    pub warnings: Vec<Warning>,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobFacts {
    /// Noise-free work per phase and rank, in nanoseconds; null for a schedule.
    pub quantum_ns: Option<u64>,
    /// What ends a phase, as for a prediction; for a schedule null.
    pub op: Option<String>,
    /// How the nodes' noise lines up.
    pub sync: SyncName,
    /// Phases for each scale, or runs of a schedule.
    pub phases: u64,
    /// Run again with it for the same bits.
    pub seed: u64,
}

/// One node whose noise was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeFacts {
    /// The recording's or the model's name.
    pub name: String,
    /// CPUs that were watched.
    pub cpus: u64,
}

impl JobFacts {
    fn of(job: &Job<'_>) -> Self {
        match job {
            Job::Phases(options) => Self {
                quantum_ns: Some(options.quantum.as_nanos()),
                op: Some(
                    options.network.as_ref().map_or_else(|| "max".to_owned(), |network| network.op.clone()),
                ),
                sync: options.sync.into(),
                phases: options.phases,
                seed: options.seed,
            },
            Job::Schedule(application) => Self {
                quantum_ns: None,
                op: None,
                sync: SyncName::None,
                phases: application.runs,
                seed: application.seed,
            },
        }
    }
}

pub(super) fn write(
    question: &Question<'_>,
    costs: Costs,
    proposals: Vec<Weighed>,
    (best, best_leaving): (Option<Best>, Option<Best>),
    (leave, what_if): (Option<Leave>, Switches),
) -> Advice {
    let mitigations: Vec<Proposal> = proposals.into_iter().map(|one| one.proposal).collect();
    let worth_it = mitigations.iter().any(|one| one.worth_it) || best.is_some() || best_leaving.is_some();
    let node =
        |node: &AttributedNoise| NodeFacts { name: node.name.clone(), cpus: node.cpus().count() as u64 };
    let mut advice = Advice {
        schema: SCHEMA,
        job: JobFacts::of(question.job),
        nodes: question.nodes.iter().map(node).collect(),
        scales: costs.scales,
        sources: costs.sources,
        mitigations,
        best,
        best_leaving,
        leave,
        what_if,
        watched: watched(question.nodes),
        worth_it,
        verdict: String::new(),
        try_it: None,
        warnings: costs.warnings,
    };
    advice.verdict = verdict(&advice, question.candidates.is_empty());
    advice.try_it = try_it(&advice);
    advice
}

fn try_it(advice: &Advice) -> Option<String> {
    let can_now = |one: &&Proposal| one.standing == Standing::Possible && one.worth_it && !one.reboot;
    let first = advice.mitigations.iter().find(can_now)?;
    let risk = if first.risk == "low" { String::new() } else { format!(" --max-risk {}", first.risk) };
    let watch = match &advice.watched {
        Some(cpus) if first.on_cpus.is_none() => format!(" --watch {cpus}"),
        _ => String::new(),
    };
    let quantum = advice.job.quantum_ns.map(|ns| format!(" --quantum {}", typed(ns))).unwrap_or_default();
    Some(format!("sudo quell tune try {}{watch}{quantum}{risk} --yes", first.id))
}

/// A time as an argument: as people read it, unless that rounds it.
fn typed(ns: u64) -> String {
    let text = Nanos::from_nanos(ns).to_string();
    if text.parse() == Ok(Nanos::from_nanos(ns)) { text } else { format!("{ns}ns") }
}

fn watched(nodes: &[AttributedNoise]) -> Option<String> {
    let first: Vec<_> = nodes.first()?.cpus().collect();
    let alike = nodes.iter().all(|node| node.cpus().eq(first.iter().copied()));
    alike.then(|| quell_recording::format_cpu_list(&first))
}

/// What it comes to.
fn verdict(advice: &Advice, without_catalogue: bool) -> String {
    let Some(scale) = advice.scales.last() else { return "no scale was asked for".to_owned() };
    let cost = format!("at {} ranks noise costs {:.1} %", scale.ranks, scale.slowdown_percent);
    let first = advice.sources.first().and_then(|source| Some((source, source.costs.last()?)));
    let most = first.filter(|(_, cost)| cost.part_percent > 0.0).map(|(source, cost)| {
        let part = 100.0 * cost.part_percent / scale.slowdown_percent.max(f64::MIN_POSITIVE);
        format!(", {part:.0} % of that from {}", quell_recording::one_line(&source.source))
    });
    let told = format!("{cost}{}", most.unwrap_or_default());
    let left = |set: &Best| {
        let place = set.on_cpus.as_ref().map(|cpus| format!(" for a job on CPUs {cpus} alone"));
        let effect = set.effects.last()?;
        Some(format!(
            "{} would leave {:.1} %{}",
            set.ids.join(" and "),
            effect.after_percent,
            place.unwrap_or_default()
        ))
    };
    let sets: Vec<String> =
        [&advice.best, &advice.best_leaving].into_iter().flatten().filter_map(left).collect();
    match sets.is_empty() {
        false => format!("{told}; {}", sets.join("; ")),
        true if without_catalogue => told,
        true => format!("{told}; {}", nothing(advice)),
    }
}

fn nothing(advice: &Advice) -> &'static str {
    let known = advice.sources.iter().any(|source| source.source != crate::whatif::UNATTRIBUTED);
    let possible = advice.mitigations.iter().any(|one| one.standing <= Standing::ByHand);
    match (known, possible) {
        (false, _) => "its sources are not known, so nothing can be proposed: record with `--sources on`",
        (true, false) => "no mitigation that is possible here addresses it",
        (true, true) => "nothing that is possible here is worth it",
    }
}
