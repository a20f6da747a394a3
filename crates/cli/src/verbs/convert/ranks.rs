//! Selects ranks of an MPI program: writes one of them, or all of them to one file each.

use std::path::Path;

use quell_node::leftovers;
use quell_recording::formats::{self, Format, Imported};

use super::{Request, Target, into_file};
use quell_request::Usage;

/// Removes all ranks but one.
pub(super) fn keep(input: &mut Imported, rank: u32, target: Target, args: &Request<'_>) -> Result<(), Usage> {
    if target == Target::File(Format::Perfetto) {
        return Err(Usage("a timeline shows CPUs: choose them with --cpu".into()));
    }
    input.phases.retain(|(_, phase)| phase.rank == rank);
    if input.phases.is_empty() {
        return Err(Usage(format!("{} holds no phases of rank {rank}", args.input.display())));
    }
    if let Some(mpi) = &mut input.recording.manifest.mpi {
        mpi.here.retain(|facts| facts.rank == rank);
    }
    Ok(())
}

/// Writes one file for PSNAP or a single rank; otherwise a folder with a file for each rank.
pub(super) fn export(input: &Imported, format: Format, output: &Path) -> anyhow::Result<()> {
    let manifest = &input.recording.manifest;
    let several = input.phases.first().zip(input.phases.last()).is_some_and(|(a, b)| a.1.rank != b.1.rank);
    if input.phases.is_empty() {
        anyhow::bail!("{} holds no phases", input.recording.path.display());
    }
    if format != Format::Vpsum || !several {
        return into_file(output, |file| formats::export_phases(manifest, &input.phases, format, file));
    }
    leftovers::make_aside(output, super::ASIDE, |folder| {
        fs_err::create_dir(folder)?;
        // The phases are ordered by rank.
        for of_rank in input.phases.chunk_by(|a, b| a.1.rank == b.1.rank) {
            let file = folder.join(format!("vpsum.{}", of_rank[0].1.rank));
            into_file(&file, |file| formats::export_phases(manifest, of_rank, format, file))?;
        }
        Ok(())
    })
}
