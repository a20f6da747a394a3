//! The phases in a recording's folder.

use std::collections::BTreeMap;
use std::path::Path;

use crate::read::read_table;
use crate::table::Row as _;
use crate::write::write_parquet;
use crate::{Cpu, Error, Manifest, MpiFacts, Nanos, Phase};

/// The phases of the recording in `folder`, by rank and number; each with the CPU that it ended on.
///
/// # Errors
/// [`Error::Malformed`] or [`Error::Io`].
pub fn read_phases(folder: &Path) -> Result<Vec<(Cpu, Phase)>, Error> {
    let (mut phases, _) = read_table::<Phase>(folder)?;
    let bad = |p: &Phase| p.start.checked_add(p.compute).and_then(|t| t.checked_add(p.wait)).is_none();
    if let Some((_, phase)) = phases.iter().find(|(_, phase)| bad(phase)) {
        let reason = format!("phase {} of rank {} ends beyond all time", phase.index, phase.rank);
        return Err(Error::malformed(folder, reason));
    }
    phases.sort_by_key(|(_, phase)| (phase.rank, phase.index));
    Ok(phases)
}

/// Adds phases to a recording of the kernel's intervals that has ended. `manifest` is the recording's; it gets the ranks and the
/// CPUs of the rows.
///
/// # Errors
/// [`Error::Exists`] if it holds quanta already, and [`Error::Io`].
pub fn add_phases(
    folder: &Path,
    manifest: &mut Manifest,
    mpi: MpiFacts,
    rows: &[(Cpu, Phase)],
) -> Result<(), Error> {
    let target = folder.join(Phase::TABLE).with_extension("parquet");
    // A table without ranks in the manifest is from a writer that was killed between the two steps.
    if target.exists() && manifest.mpi.is_some() {
        return Err(Error::Exists { path: target });
    }
    let schema = Phase::schema();
    // Row groups stay small, so that many rows need no more memory than few.
    let batches = rows.chunks(1 << 16).map(Phase::to_batch);
    write_parquet(&target, &schema, batches)?;
    manifest.method = crate::Method::Phases;
    manifest.mpi = Some(mpi);
    let mut of_cpu: BTreeMap<Cpu, (u64, Nanos)> = BTreeMap::new();
    for (cpu, phase) in rows {
        let (count, end) = of_cpu.entry(*cpu).or_default();
        *count += 1;
        *end = phase.end().max(*end);
    }
    manifest.add_cpus(of_cpu.keys().copied());
    for facts in &mut manifest.cpus {
        let (count, end) = of_cpu.get(&facts.cpu).copied().unwrap_or_default();
        facts.rows = Some(count);
        facts.end_ns = facts.end_ns.max(end);
    }
    manifest.write(folder)
}
