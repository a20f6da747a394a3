//! The document of an advice.

use schemars::JsonSchema;
use serde::Serialize;

use super::proposals::{Applicability, Proposal, Weighed};
use super::{Best, Leave, Question};
use crate::Warning;
use crate::predict::SyncName;
use crate::whatif::{AttributedNoise, Costs, Job, Load, Scale, Source, Switches};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.advise/3";

/// What `advise --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// Always `quell.advise/3`.
    pub schema: &'static str,
    /// The job.
    pub job: JobFacts,
    /// The recorded nodes; the job's nodes take their noise round-robin.
    pub nodes: Vec<NodeFacts>,
    /// The cost of all noise at each scale.
    pub scales: Vec<Scale>,
    /// The cost of each source, the costliest at the last scale first.
    pub sources: Vec<Source>,
    /// Mitigations that address recorded noise: first those that can be applied, by gain at the last scale. None are proposed for a node
    /// that was recorded under a load of others.
    pub mitigations: Vec<Proposal>,
    /// Those that are worth it in combination: the recommendation; null if there are none.
    pub best: Option<Best>,
    /// The effect of leaving CPUs of each node to the system; null if a node has only one, and for schedules.
    pub leave: Option<Leave>,
    /// The slowdown without any combination of the costliest sources.
    pub what_if: Switches,
    /// The CPUs that were observed, as in `0,2-5`; null if nodes differ.
    pub watched: Option<String>,
    /// Whether any mitigation is worth it.
    pub worth_it: bool,
    /// The conclusion, in a sentence.
    pub verdict: String,
    /// The command that tests what is recommended, as far as quell can apply it without a boot; null if that is nothing.
    pub try_it: Option<String>,
    /// What limits the figures.
    pub warnings: Vec<Warning>,
}

/// The job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobFacts {
    /// Noise-free work per phase and rank, in nanoseconds; null for a schedule.
    pub quantum_ns: Option<u64>,
    /// The operation that ends a phase, as for a prediction; null for a schedule.
    pub op: Option<String>,
    /// How the nodes' noise lines up.
    pub sync: SyncName,
    /// Number of phases at each scale, or of runs of a schedule.
    pub phases: u64,
    /// The random seed: the same seed reproduces the result bit for bit.
    pub seed: u64,
}

/// One node whose noise was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodeFacts {
    /// The recording's or the model's name.
    pub name: String,
    /// Number of CPUs that were observed.
    pub cpus: u64,
    /// The load that others put on it while it was recorded; null if there was none.
    pub load: Option<Load>,
}

impl JobFacts {
    fn from_job(job: &Job<'_>) -> Self {
        match job {
            Job::Phases(options) => Self {
                quantum_ns: Some(options.quantum.as_nanos()),
                op: Some(
                    options
                        .messages
                        .as_ref()
                        .map_or_else(|| "max".to_owned(), |messages| messages.op.clone()),
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
    best: Option<Best>,
    (leave, what_if): (Option<Leave>, Switches),
) -> Advice {
    let mitigations: Vec<Proposal> = proposals.into_iter().map(|one| one.proposal).collect();
    let worth_it = best.is_some() || mitigations.iter().any(|one| one.worth_it);
    let node = |node: &AttributedNoise| NodeFacts {
        name: node.name.clone(),
        cpus: node.cpus().count() as u64,
        load: node.load().cloned(),
    };
    let mut advice = Advice {
        schema: SCHEMA,
        job: JobFacts::from_job(question.job),
        nodes: question.nodes.iter().map(node).collect(),
        scales: costs.scales,
        sources: costs.sources,
        mitigations,
        best,
        leave,
        what_if,
        watched: watched(question.nodes),
        worth_it,
        verdict: String::new(),
        try_it: None,
        warnings: costs.warnings,
    };
    advice.verdict = verdict(&advice, question.candidates.is_empty());
    advice
}

/// The CPUs of the nodes, if they are the same.
pub(super) fn watched(nodes: &[AttributedNoise]) -> Option<String> {
    let first: Vec<_> = nodes.first()?.cpus().collect();
    let alike = nodes.iter().all(|node| node.cpus().eq(first.iter().copied()));
    alike.then(|| quell_recording::format_cpu_list(&first))
}

/// The conclusion in words.
fn verdict(advice: &Advice, without_catalogue: bool) -> String {
    let Some(scale) = advice.scales.last() else { return "no scale was asked for".to_owned() };
    let under_load = advice.nodes.iter().find_map(under_load);
    let cost = format!("at {} ranks {}", scale.ranks, cost_of(scale.slowdown_percent));
    let first = advice.sources.first().and_then(|source| Some((source, source.costs.last()?)));
    let most = first.filter(|(_, cost)| cost.part_percent > 0.0).map(|(source, cost)| {
        let part = 100.0 * cost.part_percent / scale.slowdown_percent.max(f64::MIN_POSITIVE);
        format!(", {part:.0} % of the loss from {}", quell_recording::one_line(&source.source))
    });
    let reported = format!("{cost}{}", most.unwrap_or_default());
    if let Some(under_load) = under_load {
        return format!("{under_load}. Under that load, {reported}");
    }
    let left = |set: &Best| {
        let place = set.on_cpus.as_ref().map(|cpus| format!(" for a job on CPUs {cpus} alone"));
        let effect = set.effects.last()?;
        Some(format!(
            "{} would leave {}{}",
            set.ids.join(" and "),
            slowdown(effect.after_percent),
            place.unwrap_or_default()
        ))
    };
    match advice.best.as_ref().and_then(left) {
        Some(best) => format!("{reported}; {best}"),
        None if without_catalogue => reported,
        None => format!("{reported}; {}", nothing(advice)),
    }
}

/// A slowdown above this, in percent, is given as a factor.
const MOST_PERCENT: f64 = 200.0;

/// What noise costs.
pub(super) fn cost_of(percent: f64) -> String {
    let amount = slowdown(percent);
    if percent > MOST_PERCENT {
        format!("noise makes it take {amount} as long")
    } else {
        format!("noise costs {amount}")
    }
}

/// A slowdown in percent or, if it is large, as a multiple of the time without noise.
fn slowdown(percent: f64) -> String {
    let times = 1.0 + percent / 100.0;
    match percent > MOST_PERCENT {
        false => format!("{percent:.1} %"),
        true if times < 9.95 => format!("{times:.1} ×"),
        true => format!("{times:.0} ×"),
    }
}

/// Why nothing is proposed for a node that others used.
fn under_load(node: &NodeFacts) -> Option<String> {
    let Load { cpu, percent, task } = node.load.as_ref()?;
    let (name, task) = (quell_recording::one_line(&node.name), quell_recording::one_line(task));
    Some(format!(
        "others used {name} while it was recorded ({task} and other tasks had CPU {cpu} for {percent:.0} % of the time), so quell \
         proposes nothing: record it while it is idle"
    ))
}

fn nothing(advice: &Advice) -> &'static str {
    let known = advice.sources.iter().any(|source| source.source != crate::whatif::UNATTRIBUTED);
    let possible = advice.mitigations.iter().any(|one| one.standing <= Applicability::ByHand);
    match (known, possible) {
        (false, _) => "its sources are not known, so nothing can be proposed: record with `--sources on`",
        (true, false) => "no mitigation that is possible here addresses it",
        (true, true) => "nothing that is possible here is worth it",
    }
}
