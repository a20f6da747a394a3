//! `quell compare`: what changed between two recordings.

use std::path::Path;

use quell_analysis::compare::{self, Comparison, Options, Side};
use quell_recording::{Method, Recording, format_cpu_list};

use super::Outcome;
use crate::args::Compare;
use crate::html;
use crate::noise_file;
use crate::printer::Printer;
use crate::terminal::time;
use crate::terminal_compare;

/// Compares, prints, and checks the limits.
pub fn run(args: &Compare, printer: Printer) -> anyhow::Result<Outcome> {
    let (before, after) = (open(&args.before)?, open(&args.after)?);
    let mut comparison = compare(&before, &after, args.seed)?;
    comparison.warnings = warnings(&before, &after);
    if let Some(path) = &args.html {
        let title = format!("{} and {}", before.name(), after.name());
        html::write(path, &html::Page { compare: Some(&comparison), ..html::Page::new(&title) })?;
        printer.say(&format!("wrote {}", path.display()));
    }
    if args.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&terminal_compare::compare(&comparison))?;
    }
    let violations: Vec<_> = args.fail_above.iter().filter_map(|limit| limit.check(&comparison)).collect();
    for violation in &violations {
        printer.warn(&violation.to_string());
    }
    Ok(if violations.is_empty() { Outcome::Done } else { Outcome::LimitExceeded })
}

/// What the reader must know of either side, and what differs between them that is not noise.
fn warnings(before: &Recording, after: &Recording) -> Vec<String> {
    let mut warnings: Vec<String> = [before, after]
        .iter()
        .flat_map(|side| {
            noise_file::limits(side).into_iter().map(|limit| format!("{}: {limit}", side.name()))
        })
        .collect();
    let threshold = |side: &Recording| side.manifest.threshold_ns;
    if let (Some(a), Some(b)) = (threshold(before), threshold(after))
        && (a - b).abs() > 1.0
    {
        warnings.push(format!(
            "the thresholds differ ({} and {}): short detours are in one and not in the other",
            time(a),
            time(b)
        ));
    }
    let cpus =
        |side: &Recording| format_cpu_list(&side.traces.iter().map(|trace| trace.cpu).collect::<Vec<_>>());
    if cpus(before) != cpus(after) {
        warnings.push(format!("the CPUs differ: {} and {}", cpus(before), cpus(after)));
    }
    warnings
}

fn open(path: &Path) -> anyhow::Result<Recording> {
    let recording =
        if path.is_file() { quell_recording::formats::import(path)? } else { Recording::open(path)? };
    if recording.manifest.method != Method::Detour {
        anyhow::bail!(
            "{} holds {}; only detours can be compared",
            path.display(),
            recording.manifest.method.holds()
        );
    }
    Ok(recording)
}

fn compare(before: &Recording, after: &Recording, seed: u64) -> anyhow::Result<Comparison> {
    let options = Options { seed, ..Options::default() };
    let (a, b) = (before.name(), after.name());
    Ok(compare::compare(
        &Side { name: &a, traces: &before.traces },
        &Side { name: &b, traces: &after.traces },
        &options,
    )?)
}
