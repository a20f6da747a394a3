//! Phases of an MPI program: compute, then an operation. The rows of `quanta` in the recording of a benchmark.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::replace_file;
use crate::read::read_table;
use crate::table::Row as _;
use crate::write::write_parquet;
use crate::{Cpu, CpuFacts, Error, Manifest, Nanos, Span};

/// One phase of one rank (De et al. 2008, Algorithm 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The rank.
    pub rank: u32,
    /// Number of the phase, from 0; the same on all ranks.
    pub index: u64,
    /// When its compute part began, counted from the zero of its recording.
    pub start: Nanos,
    /// Steps of work that it did.
    pub work: u64,
    /// The paper's qt: time to compute.
    pub compute: Nanos,
    /// The paper's bt: time in the operation that ends the phase.
    pub wait: Nanos,
}

impl Phase {
    /// The paper's qtb.
    pub fn total(&self) -> Nanos {
        self.compute + self.wait
    }

    /// When the rank had computed, and came to the operation.
    pub fn computed(&self) -> Nanos {
        self.start + self.compute
    }

    /// When the rank left the operation.
    pub fn end(&self) -> Nanos {
        self.computed() + self.wait
    }
}

/// A rank whose phases are in a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankFacts {
    /// The rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// CPUs that it might use, as in `0,2-5`.
    pub cpus: String,
    /// Time of one step of work without noise, in ns; 0 where there was no work.
    pub ns_per_iteration: f64,
    /// What taking the time adds to each of its phases, in ns.
    #[serde(default)]
    pub timing_ns: f64,
    /// What is to be added to this host's clock at the recording's zero to get rank 0's, in ns.
    pub clock_offset_ns: i64,
    /// How far that may be off, in ns; 0 where both have one clock.
    pub clock_error_ns: u64,
}

/// The MPI program whose phases a recording holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MpiFacts {
    /// `bsp`, `allreduce`, `halo`, `fwq`.
    pub bench: String,
    /// The library, in its own words.
    pub library: String,
    /// What ends a phase, such as `barrier`.
    pub operation: String,
    /// Bytes of its messages.
    pub bytes: u64,
    /// Ranks of the whole job.
    pub ranks: u32,
    /// Ranks on this host.
    pub here: Vec<RankFacts>,
}

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

/// Puts phases beside the kernel's intervals in a recording that has ended. `manifest` is the recording's; it gets the ranks and the
/// rows' CPUs.
///
/// # Errors
/// [`Error::Exists`] where it holds quanta already, and [`Error::Io`].
pub fn add_phases(
    folder: &Path,
    manifest: &mut Manifest,
    mpi: MpiFacts,
    rows: &[(Cpu, Phase)],
) -> Result<(), Error> {
    let target = folder.join(Phase::TABLE).with_extension("parquet");
    // A table without ranks in the manifest is of a writer that was killed between the two.
    if target.exists() && manifest.mpi.is_some() {
        return Err(Error::Exists { path: target });
    }
    let schema = Phase::schema();
    // Row groups stay small, so that the memory for many is that for a few.
    let batches = rows.chunks(1 << 16).map(Phase::to_batch);
    replace_file(&target, |file| write_parquet(file, &target, &schema, batches))?;
    manifest.method = crate::Method::Phases;
    manifest.mpi = Some(mpi);
    let mut of_cpu: BTreeMap<Cpu, (u64, Nanos)> = BTreeMap::new();
    for (cpu, phase) in rows {
        let (count, end) = of_cpu.entry(*cpu).or_default();
        *count += 1;
        *end = phase.end().max(*end);
    }
    for &cpu in of_cpu.keys() {
        if !manifest.cpus.iter().any(|facts| facts.cpu == cpu) {
            manifest.cpus.push(CpuFacts::of_span(cpu, Span::default()));
        }
    }
    manifest.cpus.sort_by_key(|facts| facts.cpu);
    for facts in &mut manifest.cpus {
        let (count, end) = of_cpu.get(&facts.cpu).copied().unwrap_or_default();
        facts.rows = Some(count);
        facts.end_ns = facts.end_ns.max(end);
    }
    manifest.write(folder)
}
