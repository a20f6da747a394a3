//! The phases of one run, of all ranks on all hosts, on one clock.

use quell_recording::{Cpu, Phase, Recording, parse_cpu_list};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Warning;

/// Maximum time, in ns: times are below 36 years, so that sums of four do not overflow.
const LONGEST: i64 = i64::MAX / 8;

/// The request for a run, and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFacts {
    /// `bsp`, `allreduce`, `halo`, `fwq`.
    pub bench: String,
    /// The MPI, as `Open MPI 4.1.4`.
    pub mpi: String,
    /// The launcher's command line.
    pub command: Vec<String>,
    /// Number of ranks requested.
    pub ranks: u32,
    /// Noise-free length of the work in a phase; 0 for none.
    pub quantum_ns: u64,
    /// The operation that ends a phase.
    pub operation: String,
    /// Size of its messages, in bytes.
    pub bytes: u64,
    /// Dimensions of the grid of a halo; 0 for any other operation.
    pub dims: u32,
    /// The factor by which work and time were scaled while it ran, as was the noise that was replayed into it; all reported times are scaled
    /// back. Older files do not have this field; then it is 0, which stands for 1.
    #[serde(default)]
    pub scale: f64,
    /// `complete`, `interrupted`, or `failed`; `running` while it runs, and after it was killed.
    pub state: String,
    /// Error messages of the parts that failed.
    pub errors: Vec<String>,
}

/// The part of a run on one host.
#[derive(Clone, Debug)]
pub struct HostRun {
    /// The kernel's intervals on it, and facts about its ranks.
    pub recording: Recording,
    /// The phases of its ranks, by rank and number.
    pub phases: Vec<(Cpu, Phase)>,
}

impl HostRun {
    /// The host's name.
    pub fn name(&self) -> String {
        self.recording.manifest.host.clone().unwrap_or_else(|| self.recording.name())
    }
}

/// A warning for each host with more ranks than CPUs that they may use.
pub fn crowded(hosts: &[HostRun]) -> Vec<Warning> {
    let crowded = |host: &HostRun| {
        let here = &host.recording.manifest.mpi.as_ref()?.here;
        let cpus = here.iter().flat_map(|rank| parse_cpu_list(&rank.cpus).unwrap_or_default());
        let cpus: std::collections::BTreeSet<Cpu> = cpus.collect();
        (!cpus.is_empty() && here.len() > cpus.len()).then(|| Warning::RanksShareCpus {
            host: host.name(),
            ranks: here.len() as u64,
            cpus: cpus.len() as u64,
        })
    };
    hosts.iter().filter_map(crowded).collect()
}

/// One rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// Its number.
    pub rank: u32,
    /// Index of its host in the list of hosts.
    pub host: usize,
    /// Its process.
    pub pid: u32,
    /// Noise-free time of one step of work, in ns.
    pub ns_per_iteration: f64,
    /// Offset from a time of its host's recording to rank 0's CLOCK_MONOTONIC, in ns.
    shift: i64,
}

/// One phase of one rank, on rank 0's CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The CPU on which it ended.
    pub cpu: Cpu,
    /// When its compute part began, in ns.
    pub start: i64,
    /// qt: compute time, in ns.
    pub compute: u64,
    /// bt: time in the operation, in ns.
    pub wait: u64,
    /// Number of steps of work.
    pub work: u64,
}

impl Cell {
    /// When it reached the operation.
    pub fn computed(&self) -> i64 {
        self.start + self.compute as i64
    }

    /// When it left the operation.
    pub fn end(&self) -> i64 {
        self.computed() + self.wait as i64
    }

    /// qtb: the sum of both, in ns.
    pub fn total(&self) -> u64 {
        self.compute + self.wait
    }
}

/// All phases that every rank finished.
#[derive(Clone, Debug)]
pub struct Job {
    /// The ranks, by number.
    pub ranks: Vec<Rank>,
    /// The cells phase by phase, and within each phase rank by rank.
    cells: Vec<Cell>,
    /// Maximum error between the hosts' clocks and rank 0's, in ns.
    pub clock_error_ns: u64,
}

impl Job {
    /// Combines the hosts' phases.
    ///
    /// # Errors
    /// Why they do not form a run: a rank is missing, or occurs twice.
    pub fn from_hosts(hosts: &[HostRun]) -> Result<Self, String> {
        let mut ranks = Vec::new();
        let mut rows: Vec<(u32, &[(Cpu, Phase)])> = Vec::new();
        let mut clock_error_ns = 0;
        for (host, run) in hosts.iter().enumerate() {
            let manifest = &run.recording.manifest;
            let mpi = manifest.mpi.as_ref().ok_or("a recording of the run holds no ranks")?;
            let zero = manifest.zero_monotonic_ns.unwrap_or(0) as i64;
            for facts in &mpi.here {
                clock_error_ns = clock_error_ns.max(facts.clock_error_ns);
                ranks.push(Rank {
                    rank: facts.rank,
                    host,
                    pid: facts.pid,
                    ns_per_iteration: facts.ns_per_iteration,
                    shift: zero.saturating_add(facts.clock_offset_ns).clamp(-LONGEST, LONGEST),
                });
            }
            rows.extend(run.phases.chunk_by(|a, b| a.1.rank == b.1.rank).map(|rows| (rows[0].1.rank, rows)));
        }
        ranks.sort_by_key(|rank| rank.rank);
        rows.sort_by_key(|(rank, _)| *rank);
        let numbered = ranks.iter().zip(&rows).zip(0u32..).all(|((r, (of, _)), n)| r.rank == n && *of == n);
        if ranks.is_empty() || ranks.len() != rows.len() || !numbered {
            return Err(format!(
                "{} ranks are known and {} have finished a phase: too few to judge the run",
                ranks.len(),
                rows.len()
            ));
        }
        let phases = rows.iter().map(|(_, rows)| rows.len()).min().unwrap_or(0);
        let mut cells = Vec::with_capacity(phases * ranks.len());
        for phase in 0..phases {
            for (rank, (_, rows)) in ranks.iter().zip(&rows) {
                cells.push(cell(rank, rows[phase], phase as u64)?);
            }
        }
        Ok(Self { ranks, cells, clock_error_ns })
    }

    /// Number of phases that all ranks finished.
    pub fn phases(&self) -> usize {
        self.cells.len() / self.ranks.len().max(1)
    }

    /// The phases in order, each with its ranks in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Cell]> {
        self.cells.chunks(self.ranks.len().max(1))
    }

    /// When the first phase began and the last ended, on rank 0's clock; `None` if there are no phases.
    pub fn span(&self) -> Option<(i64, i64)> {
        let begin = self.cells.iter().map(|cell| cell.start).min()?;
        Some((begin, self.cells.iter().map(Cell::end).max()?))
    }

    /// One rank's phases.
    pub fn cells_of_rank(&self, rank: usize) -> impl Iterator<Item = &Cell> {
        self.cells.iter().skip(rank).step_by(self.ranks.len().max(1))
    }

    /// Converts a time of rank 0's clock to the clock of the recording of `rank`'s host; 0 if it is before that clock's zero.
    pub fn on_host(&self, rank: usize, at: i64) -> u64 {
        u64::try_from(at - self.ranks[rank].shift).unwrap_or(0)
    }

    /// Converts a time on the clock of the recording of `rank`'s host to rank 0's clock; 0 if it is before that clock's zero.
    pub fn from_host(&self, rank: usize, at_ns: u64) -> u64 {
        let at = i64::try_from(at_ns).unwrap_or(LONGEST).saturating_add(self.ranks[rank].shift);
        u64::try_from(at).unwrap_or(0)
    }
}

fn cell(rank: &Rank, (cpu, phase): (Cpu, Phase), number: u64) -> Result<Cell, String> {
    if phase.index != number {
        return Err(format!("phase {number} of rank {} is missing", rank.rank));
    }
    let fits = |ns: u64| i64::try_from(ns).ok().filter(|ns| *ns < LONGEST);
    let times = (fits(phase.start.as_nanos()), fits(phase.compute.as_nanos()), fits(phase.wait.as_nanos()));
    let (Some(start), Some(_), Some(_)) = times else {
        return Err(format!("phase {number} of rank {} is at no possible time", rank.rank));
    };
    Ok(Cell {
        cpu,
        start: start + rank.shift,
        compute: phase.compute.as_nanos(),
        wait: phase.wait.as_nanos(),
        work: phase.work,
    })
}
