//! `compare`: what changed between two recordings.

pub mod args;

use std::path::Path;

use quell_analysis::compare::{self, Comparison, Options, Side};
use quell_recording::{Method, Recording, format_cpu_list, formats};

pub use args::CompareArgs;

use crate::{noise, time};

/// Compares.
///
/// # Errors
/// Where a recording cannot be read, or holds no detours.
pub fn comparison(args: &CompareArgs) -> anyhow::Result<Comparison> {
    let (before, after) = (open(&args.before)?, open(&args.after)?);
    let options = Options { seed: args.seed, ..Options::default() };
    let (a, b) = (before.name(), after.name());
    let comparison = compare::compare(
        &Side { name: &a, traces: &before.traces },
        &Side { name: &b, traces: &after.traces },
        &options,
    )?;
    Ok(Comparison { warnings: warnings(&before, &after), ..comparison })
}

/// What the reader must know of either side, and what differs between them that is not noise.
fn warnings(before: &Recording, after: &Recording) -> Vec<String> {
    let mut warnings: Vec<String> = [before, after]
        .iter()
        .flat_map(|side| noise::limits(side).into_iter().map(|limit| format!("{}: {limit}", side.name())))
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
    let recording = if path.is_file() { formats::import(path)? } else { Recording::open(path)? };
    if recording.manifest.method != Method::Detour {
        anyhow::bail!(
            "{} holds {}; only detours can be compared",
            path.display(),
            recording.manifest.method.holds()
        );
    }
    Ok(recording)
}
