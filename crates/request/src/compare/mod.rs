//! `compare`: what changed between two recordings.

pub mod args;

use std::path::Path;

use quell_analysis::Warning;
use quell_analysis::compare::{self, Comparison, Options, Side};
use quell_recording::{Method, Recording};

pub use args::CompareArgs;

use crate::noise;

/// Compares the two recordings.
///
/// # Errors
/// If a recording cannot be read, or holds no detours.
pub fn comparison(args: &CompareArgs) -> anyhow::Result<Comparison> {
    let (before, after) = (open(&args.before)?, open(&args.after)?);
    let options = Options { seed: args.seed, ..Options::default() };
    let (a, b) = (before.name(), after.name());
    let comparison = compare::compare(
        &Side { name: &a, traces: &before.traces },
        &Side { name: &b, traces: &after.traces },
        &options,
    )?;
    let by_source = Some(compare::by_source(&before, &after));
    Ok(Comparison { warnings: warnings(&before, &after), by_source, ..comparison })
}

/// Warnings that limit either recording, and differences between the two that are not noise: threshold and CPUs.
fn warnings(before: &Recording, after: &Recording) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for side in [before, after] {
        let named = |warning| Warning::OfRecording { recording: side.name(), warning };
        warnings.extend(noise::limits(side).into_iter().map(named));
    }
    let threshold = |side: &Recording| side.manifest.threshold_ns;
    if let (Some(before_ns), Some(after_ns)) = (threshold(before), threshold(after))
        && (before_ns - after_ns).abs() > 1.0
    {
        warnings.push(Warning::ThresholdsDiffer { before_ns, after_ns });
    }
    let cpus = |side: &Recording| side.traces.iter().map(|trace| trace.cpu.0).collect();
    let (before, after): (Vec<u32>, Vec<u32>) = (cpus(before), cpus(after));
    if before != after {
        warnings.push(Warning::CpusDiffer { before, after });
    }
    warnings
}

fn open(path: &Path) -> anyhow::Result<Recording> {
    let recording = noise::recording(path)?;
    if recording.manifest.method != Method::Detour {
        anyhow::bail!(
            "{} holds {}; only detours can be compared",
            path.display(),
            recording.manifest.method.holds()
        );
    }
    Ok(recording)
}
