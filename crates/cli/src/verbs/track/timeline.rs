//! `quell track --timeline`: calls of some of the ranks and what noise did to them, drawn for Perfetto.
//!
//! The archive is gone through a second time for it: which rank lost most is known only after the first.

mod drawing;
mod kept;

use std::path::Path;

use quell_analysis::track::{Network, Tracked, track};
use quell_otf2::Archive;
use quell_recording::mpi::Run as _;

use self::drawing::Drawing;
use self::kept::{Keeper, Kept};
use crate::printer::Printer;
use crate::progress::Step;

/// So many ranks are drawn, evenly spread; with the last to end and the one that lost most it can be two more.
const MOST_RANKS: usize = 64;
/// So many slices are drawn: what a browser shows at ease.
const MOST_SLICES: usize = 1_000_000;

/// Refuses, before anything is gone through, what would destroy a file.
pub fn refuse(output: &Path) -> anyhow::Result<()> {
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    Ok(())
}

/// Draws the archive.
pub fn draw(
    path: &Path,
    network: Option<Network>,
    tracked: &Tracked,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<()> {
    let mut archive = Archive::open(path)?;
    let definitions = archive.definitions().clone();
    let ranks = sample(tracked);
    let step = Step::new(printer, "time line", Some(tracked.events));
    let mut keeper = Keeper { kept: Kept::of(&definitions, &ranks, MOST_SLICES), step };
    track(&mut archive, network, &mut keeper);
    let kept = keeper.finish();
    let drawing = Drawing::new(&definitions, &kept, ranks.len(), tracked.ranks.len());
    let name = super::page::name(path);
    quell_recording::write_output(output, |out| drawing.write(&name, out))?;
    printer.say(&format!(
        "{} holds {}; open it at https://ui.perfetto.dev",
        output.display(),
        drawing.extent()
    ));
    drawing.cut().iter().for_each(|cut| printer.warn(cut));
    Ok(())
}

/// Ranks to draw, in order.
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
