//! `compare`: what changed between two recordings.

use std::path::{Path, PathBuf};

use clap::Args;
use quell_recording::{Method, Recording, format_cpu_list, formats};

use super::{noise_file, time};
use crate::compare::{self, Comparison, Options, Side};

/// What is to be compared.
#[derive(Debug, Args)]
pub struct Asked {
    /// The recording to compare with.
    #[arg(value_name = "BEFORE.quell")]
    pub before: PathBuf,
    /// The recording that is compared.
    #[arg(value_name = "AFTER.quell")]
    pub after: PathBuf,
    /// Seed of the resampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Compares.
///
/// # Errors
/// Where a recording cannot be read, or holds no detours.
pub fn comparison(asked: &Asked) -> anyhow::Result<Comparison> {
    let (before, after) = (open(&asked.before)?, open(&asked.after)?);
    let options = Options { seed: asked.seed, ..Options::default() };
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
