//! Advice as text for a terminal.

use quell_analysis::advise::{Advice, Best, Effect, Leave, Proposal, Standing};
use quell_analysis::whatif::{Scale, Source};

use super::table::{table, table_with_words, time};
use super::warnings;
use crate::printer::one_line;

/// So many mitigations of each standing are shown.
const MOST_SHOWN: usize = 8;

/// The whole of it: what noise costs, who causes it, what can be done.
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

/// The sentence, the last scale and what to do: for the end of a study.
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
        if scale.supported { "" } else { "  (extrapolated: the recording is too short for so many ranks)" }
    );
    let mut sources: Vec<&Source> = advice.sources.iter().collect();
    sources.sort_by(|a, b| b.costs[at].part_percent.total_cmp(&a.costs[at].part_percent));
    let rows = sources.iter().map(|source| {
        let cost = source.costs[at];
        vec![
            one_line(&source.source),
            format!("{:.4}", source.node.percent),
            source.node.count.to_string(),
            time(source.node.max_ns as f64),
            points(cost.part_percent),
            points(cost.gain_percent),
            interval(cost.gain_ci95_percent),
            points(cost.alone_percent),
        ]
    });
    let header =
        ["source", "% of node", "times", "longest", "part %", "removed %", "95 % interval", "alone %"];
    text += &table(&header, rows);
    text + &format!("overlap, which no single removal gains: {} %\n", points(scale.overlap_percent))
}

fn percent(value: f64, ci: Option<[f64; 2]>) -> String {
    match ci {
        Some([low, high]) => format!("{} % ({} – {})", points(value), points(low), points(high)),
        None => format!("{} %", points(value)),
    }
}

fn points(value: f64) -> String {
    let value = if value == 0.0 { 0.0 } else { value };
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn interval(ci: Option<[f64; 2]>) -> String {
    ci.map_or_else(|| "-".into(), |[low, high]| format!("{} – {}", points(low), points(high)))
}

fn mitigations(advice: &Advice) -> String {
    let last = |one: &Proposal| one.effects.as_ref().and_then(|effects| effects.last().copied());
    let possible =
        advice.mitigations.iter().filter(|one| one.standing <= Standing::ByHand && one.effects.is_some());
    let row = |one: &Proposal| {
        let effect = last(one)?;
        Some(vec![
            one.id.clone(),
            one.risk.clone(),
            match (one.standing, one.reboot) {
                (Standing::ByHand, _) => "by hand".to_owned(),
                (_, true) => "after a boot".to_owned(),
                _ => "possible".to_owned(),
            },
            short(&one.addresses),
            one.on_cpus.clone().map_or_else(|| "all".into(), |cpus| format!("CPUs {cpus}")),
            points(effect.before_percent),
            points(effect.after_percent),
            points(effect.gain_percent),
            interval(effect.gain_ci95_percent),
            if one.worth_it { "yes" } else { "no" }.to_owned(),
        ])
    };
    let rows: Vec<_> = possible.clone().filter_map(row).take(MOST_SHOWN).collect();
    let ranks = advice.scales.last().map_or(0, |scale| scale.ranks);
    let mut text = String::new();
    if !rows.is_empty() {
        let header = [
            "mitigation",
            "risk",
            "here",
            "addresses",
            "for",
            "now %",
            "left %",
            "gain %",
            "95 % interval",
            "worth it",
        ];
        text += &format!("\nwhat could be done, at {ranks} ranks, if it takes away all that it addresses\n");
        text += &table_with_words(5, &header, rows.into_iter());
        let more = possible.count().saturating_sub(MOST_SHOWN);
        if more > 0 {
            text += &format!("and {more} more that do less (--json)\n");
        }
    }
    for (standing, words) in [
        (Standing::On, "on already"),
        (Standing::Impossible, "not on this machine"),
        (Standing::CannotTell, "whether possible is not known"),
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
    let mut text = format!("\nthe best set{place}: {}\n", best.ids.join(", "));
    let row = |effect: &Effect| {
        vec![
            effect.ranks.to_string(),
            points(effect.before_percent),
            points(effect.after_percent),
            interval(effect.after_ci95_percent),
            points(effect.gain_percent),
            interval(effect.gain_ci95_percent),
        ]
    };
    let header = ["ranks", "now %", "left %", "95 % interval", "gain %", "95 % interval "];
    text += &table(&header, best.effects.iter().map(row));
    text
}

fn leave(leave: &Leave) -> String {
    let mut text =
        format!("\nleaving one of {} CPUs of each node to the system, on as many nodes\n", leave.cpus);
    let row = |scale: &quell_analysis::advise::LeaveScale| {
        vec![
            scale.ranks.to_string(),
            points(scale.full_percent),
            points(scale.left_percent),
            points(scale.left_moved_percent),
        ]
    };
    let header = ["ranks", "full nodes, time %", "one left", "one left, daemons on it"];
    text += &table(&header, leave.scales.iter().map(row));
    let pays = |from: Option<u64>| {
        from.map_or_else(|| "at none of these".into(), |ranks| format!("from {ranks} ranks on"))
    };
    text + &format!(
        "it pays {}; with daemons and interrupts moved to it {}\n",
        pays(leave.pays_from_ranks),
        pays(leave.pays_moved_from_ranks)
    )
}

/// The command that proves the first proposal.
fn try_it(advice: &Advice) -> Option<String> {
    advice.try_it.as_ref().map(|command| format!("to prove it: {}\n", one_line(command)))
}
