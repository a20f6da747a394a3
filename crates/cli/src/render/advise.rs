//! Renders advice as text for a terminal.

use quell_analysis::advise::{Advice, Applicability, Best, Leave, LeaveChoice, LeaveScale, Proposal};
use quell_analysis::whatif::{OnNode, Scale, Source};
use quell_recording::columns::Columns;

use super::rows::{points, rows};
use super::table::time;
use super::warnings;
use crate::printer::one_line;

/// Maximum number of mitigations to show of each standing.
const MOST_SHOWN: usize = 8;

/// The whole text: what noise costs, which sources cause it, what can be done.
pub fn text(advice: &Advice) -> String {
    let mut text = format!("{}\n\n{}", one_line(&advice.verdict), job(advice));
    for (at, scale) in advice.scales.iter().enumerate() {
        text += &at_scale(advice, at, scale);
    }
    text += &mitigations(advice);
    text.extend(advice.best.as_ref().map(best_set));
    text.extend(advice.leave.as_ref().map(leave));
    text.extend(try_it(advice));
    text += &warnings::lines(&advice.warnings);
    text
}

/// The summary sentence, the last scale and what to do, for the end of a study.
pub fn briefly(advice: &Advice) -> String {
    let mut text = format!("\n{}\n", one_line(&advice.verdict));
    if let Some((at, scale)) = advice.scales.iter().enumerate().next_back() {
        text += &at_scale(advice, at, scale);
    }
    text += &mitigations(advice);
    text.extend(try_it(advice));
    text
}

fn job(advice: &Advice) -> String {
    let job = &advice.job;
    let nodes: Vec<String> =
        advice.nodes.iter().map(|node| format!("{} ({} CPUs)", one_line(&node.name), node.cpus)).collect();
    let what = match (job.quantum_ns, &job.op) {
        (Some(quantum), Some(op)) => format!(
            "phases of {}, then `{}`, sync `{}`, {} phases",
            time(quantum as f64),
            one_line(op),
            job.sync.as_str(),
            job.phases
        ),
        _ => format!("an application's schedule, {} runs", job.phases),
    };
    format!("job: {what}, seed {}\nnoise of {}\n", job.seed, nodes.join(", "))
}

fn at_scale(advice: &Advice, at: usize, scale: &Scale) -> String {
    let mut text = format!(
        "\nat {} ranks noise costs {} of {}{}\n",
        scale.ranks,
        percent(scale.slowdown_percent, scale.ci95_percent),
        time(scale.base_ns as f64),
        if scale.supported { "" } else { " (extrapolated: the recording is too short for that many ranks)" }
    );
    let mut sources: Vec<&Source> = advice.sources.iter().collect();
    sources.sort_by(|a, b| b.costs[at].part_percent.total_cmp(&a.costs[at].part_percent));
    let shown: Vec<SourceRow<'_>> = sources.into_iter().map(|source| SourceRow::new(source, at)).collect();
    text += &rows(&shown);
    text + &format!("overlap, which no single removal recovers: {} points\n", points(scale.overlap_percent))
}

fn percent(value: f64, ci: Option<[f64; 2]>) -> String {
    match ci {
        Some([low, high]) => format!("{} % ({} – {})", points(value), points(low), points(high)),
        None => format!("{} %", points(value)),
    }
}

/// A source at one scale.
#[derive(Debug, Columns)]
struct SourceRow<'a> {
    #[column(name)]
    source: &'a str,
    #[column(flatten)]
    node: OnNode,
    #[column(title = "share, points", points)]
    part_percent: f64,
    #[column(title = "gain if removed, points", points, absent = "not resolved")]
    gain_percent: Option<f64>,
    #[column(title = "95 % interval", points)]
    gain_ci95_percent: Option<[f64; 2]>,
    #[column(title = "alone, points", points)]
    alone_percent: f64,
}

impl<'a> SourceRow<'a> {
    fn new(source: &'a Source, at: usize) -> Self {
        let cost = source.costs[at];
        Self {
            source: &source.source,
            node: source.node,
            part_percent: cost.part_percent,
            gain_percent: resolved(cost.gain_percent, cost.gain_ci95_percent),
            gain_ci95_percent: cost.gain_ci95_percent,
            alone_percent: cost.alone_percent,
        }
    }
}

/// A gain of less is none.
const NO_GAIN: f64 = 0.5;

/// A gain, unless it may be none or may be one that counts.
fn resolved(gain: f64, ci95: Option<[f64; 2]>) -> Option<f64> {
    ci95.filter(|[low, high]| *low > 0.0 || *high < NO_GAIN).map(|_| gain)
}

/// A mitigation that is possible, evaluated at the last scale.
#[derive(Debug, Columns)]
struct RemedyRow<'a> {
    #[column]
    mitigation: &'a str,
    #[column]
    risk: &'a str,
    #[column]
    here: &'static str,
    #[column]
    addresses: String,
    #[column(title = "job on")]
    place: String,
    #[column(title = "left %", points, key)]
    after_percent: f64,
    #[column(title = "gain, points", points, absent = "not resolved", key)]
    gain_percent: Option<f64>,
    #[column(title = "95 % interval", points)]
    gain_ci95_percent: Option<[f64; 2]>,
    #[column(key)]
    worth_it: bool,
}

impl<'a> RemedyRow<'a> {
    fn new(one: &'a Proposal) -> Option<Self> {
        let effect = one.effects.as_ref()?.last()?;
        Some(Self {
            mitigation: &one.id,
            risk: &one.risk,
            here: match (one.standing, one.reboot) {
                (Applicability::ByHand, _) => "by hand",
                (_, true) => "after a boot",
                _ => "possible",
            },
            addresses: short(&one.addresses),
            place: one.on_cpus.as_ref().map_or_else(|| "all CPUs".into(), |cpus| format!("CPUs {cpus}")),
            after_percent: effect.after_percent,
            gain_percent: resolved(effect.gain_percent, effect.gain_ci95_percent),
            gain_ci95_percent: effect.gain_ci95_percent,
            worth_it: one.worth_it,
        })
    }
}

fn mitigations(advice: &Advice) -> String {
    let possible = advice
        .mitigations
        .iter()
        .filter(|one| one.standing <= Applicability::ByHand && one.effects.is_some());
    let shown: Vec<RemedyRow<'_>> = possible.clone().filter_map(RemedyRow::new).take(MOST_SHOWN).collect();
    let mut text = String::new();
    if let Some(scale) = advice.scales.last().filter(|_| !shown.is_empty()) {
        text += &format!(
            "\nmitigations, at {} ranks, where noise costs {} %, if each removes all the noise that it addresses\n",
            scale.ranks,
            points(scale.slowdown_percent)
        );
        text += &rows(&shown);
        let more = possible.count().saturating_sub(MOST_SHOWN);
        if more > 0 {
            text += &format!("and {more} more with less effect (--json)\n");
        }
    }
    for (standing, words) in [
        (Applicability::On, "applied already"),
        (Applicability::Impossible, "not on this machine"),
        (Applicability::CannotTell, "unknown whether possible"),
    ] {
        let ids: Vec<&str> = advice
            .mitigations
            .iter()
            .filter(|one| one.standing == standing)
            .map(|one| one.id.as_str())
            .collect();
        if !ids.is_empty() {
            let rest = ids.len().saturating_sub(2 * MOST_SHOWN);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            text += &format!("{words}: {}{more}\n", ids[..ids.len() - rest].join(", "));
        }
    }
    text
}

fn short(names: &[String]) -> String {
    let first: Vec<String> = names.iter().take(2).map(|name| one_line(name)).collect();
    let more = names.len().saturating_sub(2);
    if more > 0 { format!("{} +{more}", first.join(", ")) } else { first.join(", ") }
}

fn best_set(best: &Best) -> String {
    let place =
        best.on_cpus.as_ref().map(|cpus| format!(", with the job on CPUs {cpus}")).unwrap_or_default();
    format!("\nrecommended{place}: {}\n{}", best.ids.join(", "), rows(&best.effects))
}

fn leave(leave: &Leave) -> String {
    let pays = |from: Option<u64>| {
        from.map_or_else(|| "at none of these scales".into(), |ranks| format!("from {ranks} ranks on"))
    };
    let mut text = format!(
        "\nwith CPUs of each node left free for the system, on as many nodes of {} ranks and {} CPUs\n",
        leave.ranks_per_node, leave.cpus
    );
    let of = |choice: &LeaveChoice| {
        let left = choice.left;
        choice.scales.iter().map(move |scale| LeaveRow { left, scale: *scale }).collect::<Vec<_>>()
    };
    text += &rows(&leave.choices.iter().flat_map(of).collect::<Vec<_>>());
    for LeaveChoice { left, pays_from_ranks, pays_moved_from_ranks, .. } in &leave.choices {
        text += &format!(
            "{left} free: pays off {}; with daemons and interrupts moved there, {}\n",
            pays(*pays_from_ranks),
            pays(*pays_moved_from_ranks)
        );
    }
    match leave.choices.iter().find(|choice| choice.left == leave.best) {
        Some(LeaveChoice { left, on_cpus: Some(cpus), .. }) => {
            text + &format!("the best: leave {left}, with the job on CPUs {cpus}\n")
        }
        Some(LeaveChoice { left, .. }) => text + &format!("the best: leave {left}\n"),
        None => text + "the best: leave none\n",
    }
}

/// A number of CPUs that are left, at one scale.
#[derive(Debug, Columns)]
struct LeaveRow {
    #[column(title = "CPUs left")]
    left: u64,
    #[column(flatten)]
    scale: LeaveScale,
}

/// The command that tests the recommendation.
fn try_it(advice: &Advice) -> Option<String> {
    advice.try_it.as_ref().map(|command| format!("to prove it: {}\n", one_line(command)))
}
