//! `quell track --timeline`: draws the calls of some of the ranks, and what noise did to them, for Perfetto.
//!
//! The archive is read once more for this: which rank lost most is known only after the analysis.

mod collector;
mod drawing;

use std::path::Path;

use quell_analysis::track::{Given, Learned, Tracked, track_again};
use quell_otf2::Archive;
use quell_recording::mpi::Run as _;
use quell_request::track::TrackArgs;

use self::collector::{Collector, Keeper};
use self::drawing::Drawing;
use crate::printer::Printer;
use crate::progress::Step;

/// Number of ranks to draw, evenly spread; with the last to finish and the one that lost most there can be two more.
const MOST_RANKS: usize = 64;
/// Maximum number of slices to draw, which a browser shows with ease.
const MOST_SLICES: usize = 1_000_000;

/// Refuses to overwrite a file, before the archive is read.
pub fn refuse(output: &Path) -> anyhow::Result<()> {
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    Ok(())
}

/// Draws the archive.
pub fn draw(
    options: &TrackArgs,
    (given, learned): (&Given, Learned),
    tracked: &Tracked,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<()> {
    let mut archive = options.noise_of(Archive::open(&options.archive)?);
    let definitions = archive.definitions().clone();
    let ranks = sample(tracked);
    let step = Step::new(printer, "timeline", Some(tracked.events));
    let mut keeper = Keeper { kept: Collector::new(&definitions, &ranks, MOST_SLICES), step };
    track_again(&mut archive, given, learned, &mut keeper);
    let kept = keeper.finish();
    let drawing = Drawing::new(&definitions, &kept, ranks.len(), tracked.ranks.len());
    let name = super::page::name(&options.archive);
    quell_recording::write_output(output, |out| drawing.write(&name, out))?;
    printer.status(&format!(
        "{} holds {}; open it at https://ui.perfetto.dev",
        output.display(),
        drawing.extent()
    ));
    drawing.cut().iter().for_each(|cut| printer.warn(cut));
    Ok(())
}

/// The ranks to draw, in order.
fn sample(tracked: &Tracked) -> Vec<u32> {
    let all = &tracked.ranks;
    let count = all.len().min(MOST_RANKS);
    let mut ranks: Vec<u32> = (0..count).map(|n| all[n * all.len() / count].rank).collect();
    ranks.extend(all.iter().max_by_key(|rank| rank.runtime_ns).map(|rank| rank.rank));
    ranks.extend(all.iter().max_by_key(|rank| rank.accumulated_ns).map(|rank| rank.rank));
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}
