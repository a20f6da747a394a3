//! The effect of a mitigation at scale.

use quell_analysis::predict::{NodeNoise, Options};
use quell_recording::Recording;
use quell_request::noise;
use quell_request::tune::trial::{RANK_PHASES, Scale};

use crate::args::TuneTry;
use crate::printer::Printer;
use crate::steps::predict::curve;

/// Predicts from the recordings of each side; `None` if either side has no detour, and so no noise to predict from.
pub fn predict(
    args: &TuneTry,
    seed: u64,
    without: &[Recording],
    with: &[Recording],
    printer: Printer,
) -> anyhow::Result<Option<Scale>> {
    let options = Options {
        quantum: args.quantum,
        seed,
        rank_phases: RANK_PHASES,
        ..Options::new(args.ranks.0.clone())
    };
    let side = |recordings: &[Recording]| {
        let noise = recordings.iter().filter_map(|recording| noise::from_recording(recording).ok());
        let noise: Vec<_> = noise.collect();
        // Recordings are joined, because a few ranks would draw from the first ones only.
        let noise = NodeNoise::joined("all recordings", &noise).map_or(noise, |all| vec![all]);
        if noise.is_empty() { Ok(None) } else { curve(&noise, &options, printer).map(Some) }
    };
    let (Some(without), Some(with)) = (side(without)?, side(with)?) else { return Ok(None) };
    Ok(Some(Scale {
        quantum_ns: args.quantum.as_nanos(),
        supported_ranks: without.supported_ranks.min(with.supported_ranks),
        without: without.points,
        with: with.points,
    }))
}
