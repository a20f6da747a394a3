//! A mitigation's trial as text for a terminal.

use quell_analysis::trial::{Effect, Trial, Verdict};

use super::table::{table, time};
use crate::printer::one_line;
use quell_request::tune::trial::{Attempt, Attempts, Scale};

/// Each mitigation, its verdict first.
pub fn text(document: &Attempts) -> String {
    let each: Vec<String> = document.mitigations.iter().map(one).collect();
    each.join("\n")
}

fn one(attempt: &Attempt) -> String {
    let name = format!("{}: ", attempt.id);
    if let Some(why) = &attempt.not_tried {
        return format!("{name}not tried: {}\n", one_line(why));
    }
    let Some(trial) = &attempt.trial else { return name + "not tried\n" };
    let mut text = format!("{name}{}", words(trial));
    if attempt.kept {
        text += "; it stays applied (`quell tune revert` takes it back)";
    }
    text.push('\n');
    text += &format!(
        "{} pairs of recordings; all intervals hold together with {} % confidence\n",
        trial.pairs,
        trial.confidence * 100.0
    );
    for (write, why) in &attempt.not_taken {
        text += &format!("not taken: {}: {}\n", one_line(write), one_line(why));
    }
    if trial.addressed.without_ns_per_s == 0.0 && trial.addressed.with_ns_per_s == 0.0 {
        text += "none of the noise that it addresses was seen on these CPUs\n";
    }
    if attempt.lost_without + attempt.lost_with > 0 {
        text += &format!(
            "events were lost, {} without it and {} with it: what was lost is in no figure\n",
            attempt.lost_without, attempt.lost_with
        );
    }
    text += &effects(trial);
    text.extend(attempt.scale.as_ref().map(scale));
    text
}

fn effects(trial: &Trial) -> String {
    let header = ["noise per second of a CPU", "without", "with", "gain", "at least", "at most", ""];
    let row = |one: &Effect, name: &str| {
        let mark = match (one.changed, one.gain_ns_per_s > 0.0) {
            (true, true) => "less",
            (true, false) => "more",
            (false, _) => "",
        };
        vec![
            name.to_owned(),
            time(one.without_ns_per_s),
            time(one.with_ns_per_s),
            signed(one.gain_ns_per_s),
            signed(one.low_ns_per_s),
            signed(one.high_ns_per_s),
            mark.to_owned(),
        ]
    };
    let first = [row(&trial.detours, "all detours"), row(&trial.addressed, "what it addresses")];
    let sources = trial.sources.iter().map(|one| row(one, &format!("  {}", one_line(&one.name))));
    table(&header, first.into_iter().chain(sources))
}

fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) }
}

fn scale(scale: &Scale) -> String {
    let header = ["ranks", "slowdown without", "95 %", "with", "95 %"];
    let percent = |percent: f64| format!("{percent:.3} %");
    let interval =
        |ci: Option<[f64; 2]>| ci.map_or_else(|| "-".into(), |[low, high]| format!("{low:.3} to {high:.3}"));
    let rows = scale.without.iter().zip(&scale.with).map(|(without, with)| {
        let mark = if without.supported && with.supported { "" } else { " *" };
        vec![
            format!("{}{mark}", without.ranks),
            percent(without.slowdown_percent),
            interval(without.ci95_percent),
            percent(with.slowdown_percent),
            interval(with.ci95_percent),
        ]
    });
    let mut text = format!("\nA phase of {} at scale:\n", time(scale.quantum_ns as f64));
    text += &table(&header, rows);
    if scale.without.iter().chain(&scale.with).any(|point| !point.supported) {
        text += &format!(
            "* more ranks than the recordings speak for ({}): extrapolated\n",
            scale.supported_ranks
        );
    }
    text
}

/// What came of it, in words.
pub fn words(trial: &Trial) -> &'static str {
    match trial.verdict {
        Verdict::Helps => "it helps",
        Verdict::Hurts => "it makes more noise",
        Verdict::NoMeasurableEffect => "no measurable effect",
    }
}
