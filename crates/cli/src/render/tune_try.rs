//! Renders the trial of a mitigation as text for a terminal.

use quell_analysis::predict::Point;
use quell_analysis::trial::{Background, Effect, Trial, Verdict};
use quell_recording::Nanos;
use quell_recording::columns::Columns;

use super::rows::rows;
use super::table::time;
use crate::printer::one_line;
use quell_request::tune::trial::{Attempt, Attempts, Scale};

/// Each mitigation, its verdict first.
pub fn text(document: &Attempts) -> String {
    let each: Vec<String> = document.mitigations.iter().map(one).collect();
    let mut text = each.join("\n");
    if document.mitigations.iter().any(|attempt| attempt.trial.is_some()) {
        text += &format!("\nTo repeat this order of recordings, add --seed {}.\n", document.seed);
    }
    text
}

fn one(attempt: &Attempt) -> String {
    let name = format!("{}: ", attempt.id);
    if let Some(why) = &attempt.not_tried {
        return format!("{name}not tried: {}\n", one_line(why));
    }
    let Some(trial) = &attempt.trial else { return name + "not tried\n" };
    let mut text = format!("{name}{}", verdict(trial, attempt.further_ns));
    if attempt.kept {
        text += "; it stays applied (`quell tune revert` reverts it)";
    }
    text.push('\n');
    text += &format!(
        "{} pairs of recordings{}; the intervals of the verdict hold jointly with {} % confidence\n",
        trial.pairs,
        if trial.looks > 1 { format!(" in {} looks", trial.looks) } else { String::new() },
        trial.confidence * 100.0
    );
    for (write, why) in &attempt.not_taken {
        text += &format!("rejected: {}: {}\n", one_line(write), one_line(why));
    }
    if trial.addressed.without_ns_per_s == 0.0 && trial.addressed.with_ns_per_s == 0.0 {
        text += "the noise that it addresses did not occur on these CPUs\n";
    }
    if attempt.lost_without + attempt.lost_with > 0 {
        text += &format!(
            "events were lost, {} without it and {} with it: the figures exclude them\n",
            attempt.lost_without, attempt.lost_with
        );
    }
    text += &load(&trial.background);
    text += &effects(trial);
    text.extend(attempt.scale.as_ref().map(scale));
    text
}

/// A figure without and with the mitigation.
#[derive(Debug, Columns)]
struct EffectRow<'a> {
    #[column(title = "noise per second of a CPU")]
    noise: String,
    #[column(flatten)]
    effect: &'a Effect,
    #[column(title = "", number)]
    mark: &'static str,
}

impl<'a> EffectRow<'a> {
    fn new(effect: &'a Effect, noise: String) -> Self {
        let mark = match (effect.changed, effect.gain_ns_per_s > 0.0) {
            (true, true) => "less",
            (true, false) => "more",
            (false, _) => "",
        };
        Self { noise, effect, mark }
    }
}

fn effects(trial: &Trial) -> String {
    let detours = EffectRow::new(&trial.detours, "all detours".into());
    let addressed = EffectRow::new(&trial.addressed, "what it addresses".into());
    let sources = trial.sources.iter().map(|one| EffectRow::new(one, format!("  {}", one.name)));
    rows(&[detours, addressed].into_iter().chain(sources).collect::<Vec<_>>())
}

/// The predicted slowdown at one number of ranks, without and with the mitigation.
#[derive(Debug, Columns)]
struct ScaleRow {
    #[column]
    ranks: String,
    #[column(title = "slowdown without", precision = 3, suffix = " %")]
    without_percent: f64,
    #[column(title = "95 %", number)]
    without_interval: Option<String>,
    #[column(title = "with", precision = 3, suffix = " %")]
    with_percent: f64,
    #[column(title = "95 %", number)]
    with_interval: Option<String>,
}

impl ScaleRow {
    fn new(without: &Point, with: &Point) -> Self {
        let interval = |[low, high]: [f64; 2]| format!("{low:.3} to {high:.3}");
        let mark = if without.supported && with.supported { "" } else { " *" };
        Self {
            ranks: format!("{}{mark}", without.ranks),
            without_percent: without.slowdown_percent,
            without_interval: without.ci95_percent.map(interval),
            with_percent: with.slowdown_percent,
            with_interval: with.ci95_percent.map(interval),
        }
    }
}

fn scale(scale: &Scale) -> String {
    let shown = scale.without.iter().zip(&scale.with).map(|(without, with)| ScaleRow::new(without, with));
    let mut text = format!("\nA phase of {} at scale:\n", time(scale.quantum_ns as f64));
    text += &rows(&shown.collect::<Vec<_>>());
    if scale.without.iter().chain(&scale.with).any(|point| !point.supported) {
        text +=
            &format!("* more ranks than the recordings support ({}): extrapolated\n", scale.supported_ranks);
    }
    text
}

/// What the load of others was, and whether it was adjusted for.
fn load(background: &Background) -> String {
    let load = &background.load;
    if load.without_ns_per_s == 0.0 && load.with_ns_per_s == 0.0 {
        return String::new();
    }
    let adjusted = background.detours_per_load.map_or("", |_| "; the gain in detours is adjusted for it");
    let [without, with] = [load.without_ns_per_s, load.with_ns_per_s].map(per_second);
    let mut text = format!("load of others: {without} without it, {with} with it{adjusted}\n");
    if background.detours_undecided {
        text += "the load differs between the sides by as much as could account for the detours, so they decide nothing\n";
    }
    text
}

/// A rate of noise.
fn per_second(rate: f64) -> String {
    format!("{}/s", time(rate))
}

/// A description of the verdict.
fn verdict(trial: &Trial, further_ns: Option<u64>) -> String {
    match trial.verdict {
        Verdict::Helps if !trial.detours.changed && trial.detours.within_limit == Some(true) => {
            let limit =
                limit(&trial.detours).map(|limit| format!(", but all detours changed by less than {limit}"));
            format!("it helps{}", limit.unwrap_or_default())
        }
        Verdict::Helps => "it helps".into(),
        Verdict::Hurts => "it makes more noise".into(),
        Verdict::NoEffectLargerThan => no_effect(trial),
        Verdict::Inconclusive if trial.unseen && trial.further_pairs.is_none() => {
            "inconclusive: what it addresses did not occur; try it while it does, or longer".into()
        }
        Verdict::Inconclusive => inconclusive(trial.further_pairs, further_ns),
    }
}

/// The limit of an effect, also as a share of the noise.
fn limit(effect: &Effect) -> Option<String> {
    let limit = effect.limit_ns_per_s.filter(|_| effect.without_ns_per_s > 0.0)?;
    Some(format!("{} ({:.2} %)", per_second(limit), 100.0 * limit / effect.without_ns_per_s))
}

fn no_effect(trial: &Trial) -> String {
    let detours = limit(&trial.detours).map(|limit| format!("{limit} on all detours"));
    let addressed = limit(&trial.addressed).map(|limit| format!("{limit} on what it addresses"));
    let limits: Vec<String> = detours.into_iter().chain(addressed).collect();
    let text = match limits.as_slice() {
        [] => "no effect: there was no noise".into(),
        limits => format!("no effect larger than {}", limits.join(" or ")),
    };
    let missed = trial.missed_if_rarer_than_ns.map(|ns| {
        format!("; noise that a CPU has less often than once in {} may have been missed", time(ns as f64))
    });
    text + &missed.unwrap_or_default()
}

fn inconclusive(further: Option<u64>, further_ns: Option<u64>) -> String {
    let Some(pairs) = further else { return "inconclusive: no practical number of pairs would tell".into() };
    let pairs = if pairs == 1 { "1 more pair".to_owned() } else { format!("{pairs} more pairs") };
    let time = further_ns.map(|ns| format!(", which take {}", Nanos::from_nanos(ns))).unwrap_or_default();
    format!("inconclusive: about {pairs} would tell{time}")
}
