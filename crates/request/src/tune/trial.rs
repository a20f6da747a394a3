//! What `quell tune try` found: each mitigation measured with and without.

use quell_analysis::predict::Point;
use quell_analysis::trial::{Trial, Verdict};
use quell_recording::{Nanos, Warning};
use quell_tune::catalogue::Mitigation;
use quell_tune::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// Phases of all ranks together that are simulated at least, so that what is rare is met at two ranks too.
pub const RANK_PHASES: u64 = 100_000;

/// The document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempts {
    /// `quell.tune-try/2`.
    pub schema: &'static str,
    /// Length of each recording.
    pub duration_ns: u64,
    /// The seed of the order.
    pub seed: u64,
    /// Each mitigation.
    pub mitigations: Vec<Attempt>,
}

/// One mitigation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempt {
    /// Its id.
    pub id: String,
    /// One line.
    pub title: String,
    /// Why it was not tried.
    pub not_tried: Option<String>,
    /// What came of it; null where it was not tried.
    pub verdict: Option<Verdict>,
    /// The figures.
    pub trial: Option<Trial>,
    /// What it means at scale.
    pub scale: Option<Scale>,
    /// Ids of what was written each time.
    pub writes: Vec<String>,
    /// What the kernel refused, and why.
    pub not_taken: Vec<(String, String)>,
    /// Events that the recorder lost without it; what was lost is in no figure.
    pub lost_without: u64,
    /// Those that it lost with it.
    pub lost_with: u64,
    /// What limits the recordings.
    pub warnings: Vec<Warning>,
    /// Whether it was left applied.
    pub kept: bool,
}

/// What a program of many ranks would lose, without and with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Scale {
    /// Length of a compute phase.
    pub quantum_ns: u64,
    /// Without the mitigation.
    pub without: Vec<Point>,
    /// With it.
    pub with: Vec<Point>,
    /// Up to so many ranks the recordings speak.
    pub supported_ranks: u64,
}

/// The schema's name and version.
pub const SCHEMA: &str = "quell.tune-try/2";

/// What limits a trial.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Writes that the kernel refused, and why.
    pub not_taken: Vec<(String, String)>,
    /// Events that were lost without it, and with it: what was lost is no gain.
    pub lost_without: u64,
    /// Those that were lost with it.
    pub lost_with: u64,
    /// What limits the recordings, each once.
    pub warnings: Vec<Warning>,
}

impl Attempts {
    /// Of what was tried.
    pub fn new(duration: Nanos, seed: u64, mitigations: Vec<Attempt>) -> Self {
        Self { schema: SCHEMA, duration_ns: duration.as_nanos(), seed, mitigations }
    }
}

impl Attempt {
    /// One for which there is nothing to switch on and off here.
    pub fn not_tried(mitigation: &Mitigation, why: &str) -> Self {
        Self {
            id: mitigation.id.clone(),
            title: mitigation.title.clone(),
            not_tried: Some(why.to_owned()),
            verdict: None,
            trial: None,
            scale: None,
            writes: Vec::new(),
            not_taken: Vec::new(),
            lost_without: 0,
            lost_with: 0,
            warnings: Vec::new(),
            kept: false,
        }
    }

    /// One that was tried.
    pub fn tried(
        mitigation: &Mitigation,
        plan: &Plan,
        trial: Trial,
        scale: Option<Scale>,
        limits: Limits,
    ) -> Self {
        Self {
            verdict: Some(trial.verdict),
            trial: Some(trial),
            scale,
            writes: plan.writes.iter().map(|write| write.id.clone()).collect(),
            not_taken: limits.not_taken,
            warnings: limits.warnings,
            lost_without: limits.lost_without,
            lost_with: limits.lost_with,
            not_tried: None,
            ..Self::not_tried(mitigation, "")
        }
    }
}
