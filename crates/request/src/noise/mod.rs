//! Files that hold the noise of a node: recordings, other tools' files, models.

use std::path::Path;

use anyhow::Context as _;
use quell_recording::{Method, Nanos, Recording, State, Warning, formats, whole_file};
use quell_sim::Model;

use quell_analysis::attribution::JoinedRecording;
use quell_analysis::overview::busiest;
use quell_analysis::predict::{NodeNoise, Origin};
use quell_analysis::whatif::AttributedNoise;

/// How much noise a model generates: enough for this job. A recording's amount is fixed.
#[derive(Clone, Copy, Debug)]
pub struct ModelScale {
    /// The work of a rank between two synchronizations.
    pub quantum: Nanos,
    /// The largest number of ranks that draw from the noise.
    pub ranks: u64,
    /// The seed of the model's draws.
    pub seed: u64,
}

/// Opens the noise of a node: a recording, or wherever one is accepted, a model (`.toml`) or another tool's file.
///
/// # Errors
/// If the file cannot be read, or holds no noise.
pub fn open(path: &Path, scale: ModelScale) -> anyhow::Result<NodeNoise> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        model(path, scale)
    } else {
        from_recording(&recording(path)?)
    }
}

/// Opens a recording, or imports another tool's file.
///
/// # Errors
/// If it cannot be read.
pub fn recording(path: &Path) -> Result<Recording, quell_recording::Error> {
    if path.is_file() { formats::import(path) } else { Recording::open(path) }
}

/// As [`open`], with the sources.
///
/// # Errors
/// If the file cannot be read, or holds no noise.
pub fn attributed(path: &Path, scale: ModelScale) -> anyhow::Result<AttributedNoise> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        let model = read_model(path)?;
        let name = name_of(&model, path);
        let ModelScale { quantum, ranks, seed } = scale;
        let node = AttributedNoise::from_model(&name, &model, quantum, ranks, seed);
        return node.with_context(|| path.display().to_string());
    }
    sources_of(JoinedRecording::new(&recording(path)?))
}

/// The noise of a recorded node with its sources, from a recording whose detours are already joined with its intervals.
///
/// # Errors
/// If it holds no noise.
pub fn sources_of(joined: JoinedRecording<'_>) -> anyhow::Result<AttributedNoise> {
    let recording = joined.recording();
    check(recording)?;
    Ok(AttributedNoise::from_joined(joined, limits(recording)))
}

/// The noise of a recorded node, without its sources.
///
/// # Errors
/// If it holds no noise.
pub fn from_recording(recording: &Recording) -> anyhow::Result<NodeNoise> {
    check(recording)?;
    Ok(NodeNoise {
        name: recording.name(),
        origin: Origin::from_recording(recording),
        traces: recording.traces.clone(),
        limits: limits(recording),
    })
}

/// Checks that the recording holds detours to predict from.
///
/// # Errors
/// If it holds other data than detours, or no detours.
pub fn check(recording: &Recording) -> anyhow::Result<()> {
    let path = recording.path.display();
    if recording.manifest.method != Method::Detour {
        anyhow::bail!(
            "{path} holds {}, not detours: record with --method detour to predict",
            recording.manifest.method.holds()
        );
    }
    if recording.traces.iter().all(|trace| trace.noise().next().is_none()) {
        anyhow::bail!(
            "{path} holds no detours, so there is nothing to predict from: record for longer, or with a lower --threshold"
        );
    }
    Ok(())
}

/// Warnings that apply to every figure from this recording.
pub fn limits(recording: &Recording) -> Vec<Warning> {
    let manifest = &recording.manifest;
    let mut limits = manifest.warnings.clone();
    match manifest.state {
        State::Recording | State::Failed => limits.push(Warning::CutOff),
        State::Interrupted => limits.push(Warning::Interrupted),
        State::Complete | State::Imported => {}
    }
    let rows = manifest.lost();
    if rows > 0 && !limits.iter().any(|limit| matches!(limit, Warning::RowsLost { .. })) {
        limits.push(Warning::RowsMissing { rows });
    }
    if manifest.method == Method::Detour {
        limits.extend(busiest(&recording.traces));
    }
    limits
}

/// The noise that a model generates.
///
/// # Errors
/// If the file cannot be read, or holds no noise.
pub fn model(path: &Path, scale: ModelScale) -> anyhow::Result<NodeNoise> {
    let model = read_model(path)?;
    NodeNoise::from_model(&name_of(&model, path), &model, scale.quantum, scale.ranks, scale.seed)
        .with_context(|| path.display().to_string())
}

fn read_model(path: &Path) -> anyhow::Result<Model> {
    let text = whole_file::read_text(path, whole_file::MOST_DESCRIPTION_BYTES)?;
    Model::from_toml(&text).with_context(|| path.display().to_string())
}

fn name_of(model: &Model, path: &Path) -> String {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    model.name().map_or_else(stem, str::to_owned)
}
