//! The command that tests a recommendation: the same mitigations, CPUs, scale and site.

use quell_recording::Nanos;

use super::document::Advice;
use super::proposals::{Applicability, Proposal};
use super::{Best, Question};
use crate::whatif::Source;

/// Events of the rarest addressed source that each recording of a trial should hold.
const EVENTS: f64 = 10.0;
/// The length of a recording, in seconds: at least as `tune try` has it, and at most what someone waits for.
const SECONDS: [f64; 2] = [3.0, 60.0];
/// Recordings of a trial up to its third look: twice 40.
const RECORDINGS: f64 = 80.0;
/// A source counts for the length of recordings if it costs this share of what the costliest one costs.
const COUNTS: f64 = 0.1;

/// The command, for what quell can apply without a boot; `used` are the CPUs of the job, if all nodes have the same.
pub(super) fn command(advice: &Advice, used: Option<String>, question: &Question<'_>) -> Option<String> {
    let (best, given) = (advice.best.as_ref()?, question.given);
    let can_now = |one: &&Proposal| {
        one.standing == Applicability::Possible && !one.reboot && best.ids.contains(&one.id)
    };
    let tried: Vec<&Proposal> = advice.mitigations.iter().filter(can_now).collect();
    let risks = ["low", "medium", "high"];
    let risk = tried.iter().filter_map(|one| risks.iter().position(|risk| *risk == one.risk)).max()?;
    let ids: Vec<&str> = tried.iter().map(|one| one.id.as_str()).collect();
    let mut words = format!("sudo quell tune try {}", ids.join("+"));
    let mut add = |option: &str, value: &str| words += &format!(" {option} {value}");
    if let Some(cpus) = &given.cpus {
        add("--cpus", cpus);
    }
    // A job that leaves CPUs to the system is tried on the others.
    if let Some(cpus) = best.on_cpus.clone().or(used) {
        add("--watch", &cpus);
    }
    if let Some(scale) = advice.scales.last() {
        add("--ranks", &scale.ranks.to_string());
    }
    if let Some(quantum) = advice.job.quantum_ns {
        add("--quantum", &typed(quantum));
    }
    let seconds = seconds(advice, best, &tried);
    if seconds > SECONDS[0] {
        add("--duration", &format!("{seconds}s"));
    }
    if let Some(site) = &given.site {
        add("--site", &quoted(site));
    }
    if risk > 0 {
        add("--max-risk", risks[risk]);
    }
    let settle = question.candidates.iter().filter(|one| ids.contains(&one.id.as_str()));
    let settle = settle.map(|one| one.settle_s).max().unwrap_or(0) as f64;
    let minutes = ((seconds + settle) * RECORDINGS / 60.0).ceil().max(10.0);
    Some(format!("{words} --until-resolved --at-most {minutes}min --yes"))
}

/// The length of each recording, so that it holds the rarest source that counts.
fn seconds(advice: &Advice, best: &Best, tried: &[&Proposal]) -> f64 {
    let addressed = |source: &&Source| tried.iter().any(|one| one.addresses.contains(&source.source));
    let sources: Vec<&Source> = advice.sources.iter().filter(addressed).collect();
    let cost = |source: &Source| source.costs.last().map_or(0.0, |cost| cost.alone_percent);
    let most = sources.iter().map(|source| cost(source)).fold(0.0, f64::max);
    let cpus = best.on_cpus.as_ref().or(advice.watched.as_ref());
    let cpus = cpus.and_then(|list| quell_recording::parse_cpu_list(list).ok()).map_or(1, |list| list.len());
    let one = |source: &&&Source| {
        let node = &source.node;
        // Time that it took, over its share of the time that was observed, is that time.
        let observed_s = node.total_ns as f64 / 1e7 / node.percent;
        EVENTS * observed_s / node.count as f64 / cpus.max(1) as f64
    };
    let counts = sources.iter().filter(|source| cost(source) >= COUNTS * most && source.node.percent > 0.0);
    counts.map(|source| one(&source)).fold(SECONDS[0], f64::max).min(SECONDS[1]).ceil()
}

/// A time as an argument: in readable form, unless that rounds it.
fn typed(ns: u64) -> String {
    let text = Nanos::from_nanos(ns).to_string();
    if text.parse() == Ok(Nanos::from_nanos(ns)) { text } else { format!("{ns}ns") }
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
