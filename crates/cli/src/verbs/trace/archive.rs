//! Makes the archive from the ranks' logs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use quell_node::clock::{monotonic_ns, realtime_ns};
use quell_node::machine;
use quell_otf2::{Facts, Written};
use quell_recording::mpi::{Definitions, Run as _};
use quell_recording::mpi_log::{LogRun, Summary};
use quell_recording::{Cpu, format_cpu_list, one_line};

use super::folder::Folder;

/// The result of making an archive.
#[derive(Debug, Default)]
pub struct Made {
    /// Path of the archive; `None` if no MPI program was seen.
    pub archive: Option<PathBuf>,
    /// Number of ranks in it.
    pub ranks: u32,
    /// Number of events in it.
    pub events: u64,
    /// Number of MPI calls, without the first and the last.
    pub calls: u64,
    /// The data missing from it, with the reasons.
    pub missing: Vec<String>,
    /// Whether the logs are damaged and worth inspecting.
    pub damaged: bool,
    /// The hosts of the ranks.
    pub hosts: Vec<String>,
}

/// Makes the archive. `counters`: whether noise counters were requested; only then is their absence reported.
pub fn make(folder: &Folder, command: &[String], counters: bool) -> anyhow::Result<Made> {
    if !has_logs(folder)? {
        return Ok(Made::default());
    }
    let mut run = LogRun::open(&folder.logs)?;
    let summary = run.summary().clone();
    // The command of a run whose `quell trace` was killed is not known.
    let program = [summary.program.clone()];
    let mut missing = notes(&summary, counters);
    if run.definitions().locations.is_empty() {
        return Ok(Made { missing, damaged: true, ..Made::default() });
    }
    if let Err(error) = run.name_tasks(&folder.recordings()?) {
        missing.push(format!("tasks that took a CPU have no names: {error}"));
    }
    let facts = facts(run.definitions(), if command.is_empty() { &program } else { command });
    let hosts: BTreeSet<String> =
        run.definitions().locations.iter().map(|location| location.host.clone()).collect();
    let written = quell_otf2::write(&mut run, &folder.path, facts)?;
    missing.extend(event_notes(run.definitions(), &written));
    Ok(Made {
        archive: Some(folder.path.join("traces.otf2")),
        ranks: summary.ranks.saturating_sub(u32::try_from(summary.missing.len()).unwrap_or(u32::MAX)),
        events: written.events,
        calls: summary.calls,
        missing,
        damaged: !summary.damaged.is_empty() || !written.damaged.is_empty(),
        hosts: hosts.into_iter().collect(),
    })
}

/// Whether any rank has written a log.
pub fn has_logs(folder: &Folder) -> std::io::Result<bool> {
    let entries = folder.logs.read_dir()?.flatten();
    Ok(entries.into_iter().any(|entry| entry.path().extension().is_some_and(|kind| kind == "log")))
}

fn facts(definitions: &Definitions, command: &[String]) -> Facts {
    let host = machine::host();
    // Times are those of rank 0's clock; only on its host is the offset from calendar time known.
    let first = definitions.locations.iter().find(|location| location.rank == 0);
    let here = first.is_some_and(|location| Some(&location.host) == host.as_ref());
    Facts {
        creator: Some(format!("quell {}", env!("CARGO_PKG_VERSION"))),
        description: Some(format!("quell trace -- {}", one_line(&command.join(" ")))),
        machine: host,
        zero_clock_ns: 0,
        realtime_ns: here.then(|| realtime_ns().saturating_sub(monotonic_ns())),
        properties: Vec::new(),
    }
}

fn ranks(numbers: &[u32]) -> String {
    let numbers: Vec<Cpu> = numbers.iter().map(|&rank| Cpu(rank)).collect();
    let plural = if numbers.len() == 1 { "rank" } else { "ranks" };
    format!("{plural} {}", format_cpu_list(&numbers))
}

/// What is missing, the most severe first.
fn notes(summary: &Summary, counters: bool) -> Vec<String> {
    let mut reported = Vec::new();
    if let Some((host, pid)) = summary.wrong_mpi.first() {
        reported.push(format!(
            "{} processes (the first is {pid} on {}) use another MPI than the tracer was built for: name theirs with --mpi",
            summary.wrong_mpi.len(),
            one_line(host)
        ));
    }
    if let Some((host, pid)) = summary.others.first() {
        reported.push(format!(
            "{} processes (the first is {pid} on {}) are of another MPI program under the same trace and left out: trace one at a time",
            summary.others.len(),
            one_line(host)
        ));
    }
    for (path, why) in &summary.damaged {
        reported.push(format!("{} cannot be read: {why}", path.display()));
    }
    let mut of_ranks = |numbers: &[u32], what: &str| {
        if !numbers.is_empty() {
            reported.push(format!("{}: {what}", ranks(numbers)));
        }
    };
    of_ranks(&summary.missing, "no log: their calls are unknown");
    of_ranks(&summary.unfinished, "MPI_Finalize never ended; the archive holds what they did until then");
    of_ranks(&summary.silent, "no call was seen but MPI_Init and MPI_Finalize");
    if summary.lost > 0 {
        let lost = summary.lost;
        reported
            .push(format!("{lost} records found no room: raise --limit, or check that the disk is not full"));
    }
    if summary.one_sided > 0 {
        reported.push(format!("{} one-sided calls (put, get) are not in the archive", summary.one_sided));
    }
    for (why, rank) in summary.no_noise.iter().filter(|_| counters) {
        reported.push(format!(
            "no counters of the kernel's noise (rank {rank} was the first): {}",
            one_line(why)
        ));
    }
    for comm in &summary.unknown_members {
        reported.push(format!("the ranks of communicator {} are not known", one_line(comm)));
    }
    for host in &summary.unaligned {
        reported.push(format!(
            "the clock of {} was not compared with rank 0's: its times are not synchronised",
            one_line(host)
        ));
    }
    reported
}

fn event_notes(definitions: &Definitions, written: &Written) -> Vec<String> {
    let name = |place: usize| definitions.locations.get(place).map_or("", |location| &location.name);
    let mut reported: Vec<String> = written
        .damaged
        .iter()
        .map(|(place, why)| format!("{} ends early: {why}", one_line(name(*place))))
        .collect();
    if written.raised > 0 {
        reported.push(format!(
            "the clock went back at {} events, which have the time of the one before",
            written.raised
        ));
    }
    reported
}
