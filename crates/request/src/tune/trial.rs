//! The result of `quell tune try`: each mitigation, measured with and without.

use quell_analysis::predict::Point;
use quell_analysis::trial::{Trial, Verdict};
use quell_recording::{Nanos, SourcePattern, Warning};
use quell_tune::catalogue::Catalogue;
use quell_tune::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of phases times ranks to simulate, so that rare detours are drawn even with two ranks.
pub const RANK_PHASES: u64 = 100_000;

/// The JSON document of `quell tune try --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempts {
    /// `quell.tune-try/3`.
    pub schema: &'static str,
    /// Length of each recording, in ns.
    pub duration_ns: u64,
    /// The seed of the order of recordings.
    pub seed: u64,
    /// The trial of each mitigation.
    pub mitigations: Vec<Attempt>,
}

/// The trial of one mitigation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempt {
    /// Its id, or the ids of those that were tried together, joined by `+`.
    pub id: String,
    /// One-line title.
    pub title: String,
    /// Why it was not tried.
    pub not_tried: Option<String>,
    /// The verdict; null if it was not tried.
    pub verdict: Option<Verdict>,
    /// The measured differences.
    pub trial: Option<Trial>,
    /// The time that the trial's `further_pairs` would take, in ns.
    pub further_ns: Option<u64>,
    /// The prediction at scale.
    pub scale: Option<Scale>,
    /// Ids of the writes that apply it, made and reverted each time.
    pub writes: Vec<String>,
    /// Writes that the kernel refused, and why.
    pub not_taken: Vec<(String, String)>,
    /// Events that the recorder lost without the mitigation; no figure includes them.
    pub lost_without: u64,
    /// Events that the recorder lost with it.
    pub lost_with: u64,
    /// Warnings of the recordings.
    pub warnings: Vec<Warning>,
    /// Whether it was left applied.
    pub kept: bool,
}

/// The predicted slowdown of a program with many ranks, without and with the mitigation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Scale {
    /// Length of a compute phase, in ns.
    pub quantum_ns: u64,
    /// Without the mitigation.
    pub without: Vec<Point>,
    /// With it.
    pub with: Vec<Point>,
    /// Number of ranks up to which the recordings hold enough windows, each a quantum and the longest detour.
    pub supported_ranks: u64,
}

/// The schema's name and version.
pub const SCHEMA: &str = "quell.tune-try/3";

/// Limits of a trial.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Writes that the kernel refused, and why.
    pub not_taken: Vec<(String, String)>,
    /// Events that the recorder lost without the mitigation; noise that is missing because of losses is no gain.
    pub lost_without: u64,
    /// Events that the recorder lost with it.
    pub lost_with: u64,
    /// Warnings of the recordings, each once.
    pub warnings: Vec<Warning>,
}

impl Attempts {
    /// The document of these trials.
    pub fn new(duration: Nanos, seed: u64, mitigations: Vec<Attempt>) -> Self {
        Self { schema: SCHEMA, duration_ns: duration.as_nanos(), seed, mitigations }
    }
}

/// What is switched on and off together: one mitigation, or several joined by `+`.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its id, or the ids joined by `+`.
    pub id: String,
    /// The titles.
    pub title: String,
    /// The sources that it addresses.
    pub noise: Vec<SourcePattern>,
    /// The time that they need to take effect, and to lose it.
    pub settle: Nanos,
}

impl Tried {
    /// The mitigations of a catalogue with these ids; the first id that is not in it is the error.
    ///
    /// # Errors
    /// The id.
    pub fn from_ids(catalogue: &Catalogue, joined: &str) -> Result<Self, String> {
        let (mut titles, mut noise, mut settle) = (Vec::new(), Vec::new(), Nanos::ZERO);
        for id in ids(joined) {
            let mitigation = catalogue.get(id).ok_or_else(|| id.to_owned())?;
            titles.push(mitigation.title.as_str());
            noise.extend(mitigation.noise.iter().cloned());
            settle = settle.max(Nanos::from_secs(mitigation.settle_s));
        }
        Ok(Self { id: joined.to_owned(), title: titles.join("; "), noise, settle })
    }
}

/// The ids that are joined by `+`.
pub fn ids(joined: &str) -> impl Iterator<Item = &str> {
    joined.split('+')
}

impl Attempt {
    /// A mitigation that has nothing to switch on and off here.
    pub fn not_tried(tried: &Tried, why: &str) -> Self {
        Self {
            id: tried.id.clone(),
            title: tried.title.clone(),
            not_tried: Some(why.to_owned()),
            verdict: None,
            trial: None,
            further_ns: None,
            scale: None,
            writes: Vec::new(),
            not_taken: Vec::new(),
            lost_without: 0,
            lost_with: 0,
            warnings: Vec::new(),
            kept: false,
        }
    }

    /// A mitigation that was tried, and the time that further pairs would take.
    pub fn tried(
        tried: &Tried,
        plan: &Plan,
        (trial, further): (Trial, Option<Nanos>),
        scale: Option<Scale>,
        limits: Limits,
    ) -> Self {
        Self {
            verdict: Some(trial.verdict),
            trial: Some(trial),
            further_ns: further.map(Nanos::as_nanos),
            scale,
            writes: plan.writes.iter().map(|write| write.id.clone()).collect(),
            not_taken: limits.not_taken,
            warnings: limits.warnings,
            lost_without: limits.lost_without,
            lost_with: limits.lost_with,
            not_tried: None,
            ..Self::not_tried(tried, "")
        }
    }
}
