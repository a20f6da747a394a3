//! Renders advice as text for a terminal.

use quell_analysis::advise::{Advice, Applicability, Best, Leave, Proposal};
use quell_analysis::whatif::{CostRow, Scale, Source};
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
    for best in [&advice.best, &advice.best_leaving].into_iter().flatten() {
        text += &best_set(best);
    }
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
    let shown: Vec<CostRow<'_>> = sources
        .into_iter()
        .map(|source| CostRow { source: &source.source, node: source.node, cost: source.costs[at] })
        .collect();
    text += &rows(&shown);
    text + &format!("overlap, which no single removal recovers: {} points\n", points(scale.overlap_percent))
}

fn percent(value: f64, ci: Option<[f64; 2]>) -> String {
    match ci {
        Some([low, high]) => format!("{} % ({} – {})", points(value), points(low), points(high)),
        None => format!("{} %", points(value)),
    }
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
    #[column(title = "for")]
    place: String,
    #[column(title = "now %", points)]
    before_percent: f64,
    #[column(title = "left %", points)]
    after_percent: f64,
    #[column(title = "gain, points", points)]
    gain_percent: f64,
    #[column(title = "95 % interval", points)]
    gain_ci95_percent: Option<[f64; 2]>,
    #[column]
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
            place: one.on_cpus.as_ref().map_or_else(|| "all".into(), |cpus| format!("CPUs {cpus}")),
            before_percent: effect.before_percent,
            after_percent: effect.after_percent,
            gain_percent: effect.gain_percent,
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
    let ranks = advice.scales.last().map_or(0, |scale| scale.ranks);
    let mut text = String::new();
    if !shown.is_empty() {
        text +=
            &format!("\nmitigations, at {ranks} ranks, if each removes all the noise that it addresses\n");
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
    format!("\nthe best set{place}: {}\n{}", best.ids.join(", "), rows(&best.effects))
}

fn leave(leave: &Leave) -> String {
    let mut text = format!(
        "\nwith one of {} CPUs of each node left free for the system, on the same number of nodes\n",
        leave.cpus
    );
    text += &rows(&leave.scales);
    let pays = |from: Option<u64>| {
        from.map_or_else(|| "at none of these scales".into(), |ranks| format!("from {ranks} ranks on"))
    };
    text + &format!(
        "a free CPU pays off {}; with daemons and interrupts moved to it, {}\n",
        pays(leave.pays_from_ranks),
        pays(leave.pays_moved_from_ranks)
    )
}

/// The command that tests the first proposal.
fn try_it(advice: &Advice) -> Option<String> {
    advice.try_it.as_ref().map(|command| format!("to prove it: {}\n", one_line(command)))
}
