//! What `tune try --json` prints.

use quell_analysis::predict::{NodeNoise, Options, Point};
use quell_analysis::trial::{Trial, Verdict};
use quell_recording::Recording;
use quell_tune::catalogue::Mitigation;
use quell_tune::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

use super::rounds::Sides;
use crate::args::TuneTry;
use crate::commands::predict::curve;
use crate::printer::Printer;
use quell_request::noise;

/// Phases of all ranks together that are simulated at least, so that what is rare is met at two ranks too.
pub const RANK_PHASES: u64 = 100_000;

/// The document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempts {
    /// `quell.tune-try/1`.
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
    /// What limits the recordings, in sentences.
    pub warnings: Vec<String>,
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
pub const SCHEMA: &str = "quell.tune-try/1";

impl Attempts {
    /// Of what was tried.
    pub fn new(args: &TuneTry, seed: u64, mitigations: Vec<Attempt>) -> Self {
        Self { schema: SCHEMA, duration_ns: args.duration.as_nanos(), seed, mitigations }
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
        sides: Sides,
    ) -> Self {
        Self {
            verdict: Some(trial.verdict),
            trial: Some(trial),
            scale,
            writes: plan.writes.iter().map(|write| write.id.clone()).collect(),
            not_taken: sides.not_taken,
            warnings: sides.warnings.into_iter().collect(),
            not_tried: None,
            ..Self::not_tried(mitigation, "")
        }
    }
}

impl Scale {
    /// Predicts from the recordings of each side; none where one of them holds no detour, and so no noise to predict from.
    pub fn predict(
        args: &TuneTry,
        seed: u64,
        without: &[Recording],
        with: &[Recording],
        printer: Printer,
    ) -> anyhow::Result<Option<Self>> {
        let options = Options {
            quantum: args.quantum,
            seed,
            rank_phases: RANK_PHASES,
            ..Options::new(args.ranks.0.clone())
        };
        let side = |recordings: &[Recording]| {
            let noise = recordings.iter().filter_map(|recording| noise::of_recording(recording).ok());
            let noise: Vec<_> = noise.collect();
            // Few ranks would be struck by the first recordings alone.
            let noise = NodeNoise::joined("all recordings", &noise).map_or(noise, |all| vec![all]);
            if noise.is_empty() { Ok(None) } else { curve(&noise, &options, printer).map(Some) }
        };
        let (Some(without), Some(with)) = (side(without)?, side(with)?) else { return Ok(None) };
        Ok(Some(Self {
            quantum_ns: args.quantum.as_nanos(),
            supported_ranks: without.supported_ranks.min(with.supported_ranks),
            without: without.points,
            with: with.points,
        }))
    }
}
